"""What an optimiser has to remember: fp32 weights and Adam's moments, by parameter name, on disk.

The files do not know how DeepSpeed had cut the tensors up: what two ranks wrote at ZeRO stage 2 one rank can
read at stage 0. Every rank calls every function; the first one writes.
"""

import json
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from arl_gym.errors import ArlGymError, DataError
from arl_gym.train.distributed import agree, is_main, on_main

_MOMENTS = ("exp_avg", "exp_avg_sq")
_KEYS = ("weight", *_MOMENTS)
_INDEX = "optimizer.json"
_SHARD_BYTES = 2 << 30


def gathered(parameters: list[nn.Parameter], *, write: bool = False) -> AbstractContextManager[None]:
    """Hold whole parameters that ZeRO-3 has cut up; other parameters are whole anyway.

    Args:
        parameters: Of one model.
        write: What the first rank makes of them is kept, on all ranks.
    """
    cut = [p for p in parameters if hasattr(p, "ds_id")]
    if not cut:
        return nullcontext()
    import deepspeed

    return deepspeed.zero.GatheredParameters(cut, modifier_rank=0 if write else None)  # type: ignore[no-any-return]


class OptimizerState:
    """The master weights and moments of an AdamW inside DeepSpeed, as whole tensors.

    Args:
        module: Whose trainable parameters are meant.
        adamw: The optimiser that was given to DeepSpeed.
        optimizer: DeepSpeed's, around it (at stage 0 in fp32 it is `adamw` itself).
    """

    def __init__(self, module: nn.Module, adamw: torch.optim.Optimizer, optimizer: Any):
        self.parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._adamw, self._optimizer = adamw, optimizer
        halves = (getattr(optimizer, "fp16_groups", []), getattr(optimizer, "fp32_groups", []))
        pairs = [(p, m) for low, high in zip(*halves, strict=False) for p, m in zip(low, high, strict=True)]
        # Stage 0: fp32 copies of bf16 parameters, or else the parameters themselves.
        self._masters: dict[int, Tensor] = {id(p): m for p, m in pairs}

    def _master(self, parameter: nn.Parameter) -> Tensor:
        return self._masters.get(id(parameter), parameter)

    def _is_cut(self, parameter: nn.Parameter) -> bool:
        return hasattr(parameter, "ds_id") or hasattr(parameter, "_hp_mapping")

    def begin(self) -> None:
        """Make moments of zero where AdamW has none yet: it would make them in its first step."""
        whole = [self._master(parameter) for parameter in self.parameters.values()]
        flat = getattr(self._optimizer, "single_partition_of_fp32_groups", None)  # stages 1 and 2
        flat = flat or getattr(self._optimizer, "fp32_partitioned_groups_flat", None)  # stage 3
        for tensor in flat or whole:
            if not self._adamw.state[tensor]:
                zeros = {key: torch.zeros_like(tensor, requires_grad=False) for key in _MOMENTS}
                self._adamw.state[tensor] = {"step": self._count(tensor, 0), **zeros}
        # Stages 1 and 2 look the moments up by parameter only after their own first step.
        getattr(self._optimizer, "_lazy_init_hp_params_optimizer_state", lambda: None)()

    @property
    def step(self) -> int:
        """Steps that AdamW has taken; its bias correction needs them."""
        return int(max((float(s["step"]) for s in self._adamw.state.values() if "step" in s), default=0.0))

    @step.setter
    def step(self, value: int) -> None:
        for tensor, state in self._adamw.state.items():
            state["step"] = self._count(tensor, value)

    def _count(self, tensor: Tensor, steps: int) -> Tensor:
        # Where AdamW itself has it: the fused kernel wants it beside the weights.
        return torch.tensor(float(steps), device=tensor.device if self._adamw.defaults["fused"] else "cpu")

    def read(self, name: str) -> dict[str, Tensor]:
        """Return `weight`, `exp_avg` and `exp_avg_sq` of a parameter, in fp32, on its device."""
        parameter = self.parameters[name]
        if not self._is_cut(parameter):
            master = self._master(parameter)
            return {"weight": master.detach()} | {key: self._adamw.state[master][key] for key in _MOMENTS}
        from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

        moments = {key: safe_get_full_optimizer_state(parameter, key) for key in _MOMENTS}
        return {"weight": safe_get_full_fp32_param(parameter), **moments}

    @torch.no_grad()
    def write(self, name: str, tensors: dict[str, Tensor]) -> None:
        """Set what `read` returns, and the weight that the model computes with."""
        parameter = self.parameters[name]
        with gathered([parameter], write=True):
            parameter.copy_(tensors["weight"])
        if not self._is_cut(parameter):
            master = self._master(parameter)
            master.copy_(tensors["weight"])
            for key in _MOMENTS:
                self._adamw.state[master][key].copy_(tensors[key])
            return
        from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

        safe_set_full_fp32_param(parameter, tensors["weight"])
        for key in _MOMENTS:
            safe_set_full_optimizer_state(parameter, tensors[key], key)


@dataclass(slots=True)
class _Shards:
    """Files of bounded size that tensors are collected into."""

    folder: Path
    where: dict[str, str] = field(default_factory=dict)
    """From the name of a tensor to its file."""
    _waiting: dict[str, Tensor] = field(default_factory=dict)
    _size: int = 0
    _files: int = 0

    def add(self, name: str, tensor: Tensor) -> None:
        # A copy: what is collected must not follow the training on.
        tensor = tensor.detach().to("cpu", torch.float32, copy=True).contiguous()
        if self._size + tensor.nbytes > _SHARD_BYTES:
            self.flush()
        self._waiting[name] = tensor
        self._size += tensor.nbytes

    def flush(self) -> None:
        if not self._waiting:
            return
        file = f"optimizer-{self._files:05d}.safetensors"
        save_file(self._waiting, self.folder / file)
        _sync(self.folder / file)
        self.where |= dict.fromkeys(self._waiting, file)
        self._waiting, self._size = {}, 0
        self._files += 1


def _sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_state(folder: Path, state: OptimizerState, counters: dict[str, int]) -> None:
    """Write the state into a folder, which is made.

    Args:
        folder: Should be one that nobody reads before it is complete.
        state: Of the optimiser.
        counters: Numbers that belong to it.

    Raises:
        ArlGymError: If it cannot be written; on all ranks.
    """

    def begin() -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise ArlGymError(f"cannot write the checkpoint {folder}: {err}") from err

    on_main(begin)
    state.begin()
    shards = _Shards(folder)
    error: Exception | None = None
    for name in state.parameters:
        tensors = state.read(name)  # all ranks: the tensors are gathered
        if not is_main() or error is not None:
            continue
        try:
            for key, tensor in tensors.items():
                shards.add(f"{name}:{key}", tensor)
        except (OSError, SafetensorError) as err:
            error = ArlGymError(f"cannot write the checkpoint {folder}: {err}")
    agree(error)

    def finish() -> None:
        try:
            shards.flush()
            index = {"counters": {**counters, "adam_step": state.step}, "tensors": shards.where}
            (folder / _INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")
            _sync(folder / _INDEX)
            _sync(folder)
        except (OSError, SafetensorError) as err:
            raise ArlGymError(f"cannot write the checkpoint {folder}: {err}") from err

    on_main(finish)


def load_state(folder: Path, state: OptimizerState) -> dict[str, int]:
    """Set the state to what `save_state` wrote, and return the counters.

    Raises:
        DataError: If a file is missing or damaged, or holds other parameters than the model has; on all
            ranks, before anything is changed.
    """
    index: dict[str, Any] = {}
    error = None
    try:
        index = _checked_index(folder, state)
    except DataError as err:
        error = err
    agree(error)
    state.begin()
    for name, parameter in state.parameters.items():
        tensors = {}
        for key in _KEYS:
            full_name = f"{name}:{key}"
            with safe_open(folder / index["tensors"][full_name], framework="pt") as shard:
                tensors[key] = shard.get_tensor(full_name).to(parameter.device)
        state.write(name, tensors)
    counters = {key: int(value) for key, value in index["counters"].items()}
    state.step = counters.pop("adam_step")
    return counters


def _checked_index(folder: Path, state: OptimizerState) -> dict[str, Any]:
    """Return the index, after a look at the names and shapes in all files."""
    path = folder / _INDEX
    try:
        index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found, _ = index["tensors"].keys(), index["counters"]["adam_step"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
        raise DataError(f"cannot read the checkpoint {path}: {err!r}") from err
    shapes = {
        f"{name}:{key}": list(getattr(parameter, "ds_shape", parameter.shape))  # ds: cut up by ZeRO-3
        for name, parameter in state.parameters.items()
        for key in _KEYS
    }
    if found != shapes.keys():
        missing, surplus = sorted(shapes.keys() - found), sorted(found - shapes.keys())
        raise DataError(f"{path} is of another model: it lacks {missing[:3]} and has {surplus[:3]}")
    for name, shape in shapes.items():
        file = folder / index["tensors"][name]
        try:
            with safe_open(file, framework="pt") as shard:
                actual = shard.get_slice(name).get_shape()
        except (OSError, SafetensorError) as err:
            raise DataError(f"cannot read the checkpoint {file}: {err}") from err
        if actual != shape:
            raise DataError(f"{file}: {name} has shape {actual}, in the model {shape}")
    return index
