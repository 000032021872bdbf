"""How much memory a run takes, by arithmetic: nothing is loaded, and no GPU is asked.

    parts = estimate(cfg, shape_of(cfg.model), gpus=4)
    fits = peak_gib(parts) <= 80

Counts the tensors that PyTorch, DeepSpeed and the transformers policy hold at once. The CUDA context,
DeepSpeed's buckets and fragmentation are one flat allowance. Of the tower that reads pictures the parameters
are counted, but no activations.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.config import ModelConfig, RunConfig

GIB = 1 << 30
ELEMENTS = 1 << 26
"""Logits that the output layer makes at once, positions x vocabulary: 256 MiB in float32."""
ALLOWANCE_GIB = 3.0
"""CUDA context, communication buckets and fragmentation: a guess."""

Phase = Literal["always", "rollout", "update"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The sizes of a dense decoder with grouped queries and a gated feed-forward part (Qwen3, Llama).

    A vision-language model is such a decoder with a tower that reads pictures (Qwen3-VL).
    """

    hidden: int
    layers: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    """Whether the output head is the embedding."""
    tower: int = 0
    """Parameters of the tower that reads pictures."""

    @property
    def queries(self) -> int:
        """Width of the queries."""
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        """Width of the keys, and of the values."""
        return self.kv_heads * self.head_dim

    @property
    def projections(self) -> dict[str, tuple[int, int]]:
        """(Input, output) width of every linear map of a layer."""
        return {
            "q_proj": (self.hidden, self.queries),
            "k_proj": (self.hidden, self.keys),
            "v_proj": (self.hidden, self.keys),
            "o_proj": (self.queries, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def parameters(self) -> int:
        """How many there are; exact for Qwen3, which normalises queries and keys."""
        norms = 2 * self.hidden + 2 * self.head_dim
        layer = norms + sum(a * b for a, b in self.projections.values())
        embeddings = self.vocab * self.hidden * (1 if self.tied else 2)
        return embeddings + self.layers * layer + self.hidden + self.tower


def _qwen3(
    hidden: int, layers: int, intermediate: int, heads: int, *, tied: bool = True, tower: int = 0
) -> ModelShape:
    return ModelShape(
        hidden=hidden,
        layers=layers,
        intermediate=intermediate,
        heads=heads,
        kv_heads=8,
        head_dim=128,
        vocab=151_936,
        tied=tied,
        tower=tower,
    )


KNOWN: dict[str, ModelShape] = {
    "Qwen3-0.6B": _qwen3(1024, 28, 3072, 16),
    "Qwen3-1.7B": _qwen3(2048, 28, 6144, 16),
    "Qwen3-4B": _qwen3(2560, 36, 9728, 32),
    "Qwen3-8B": _qwen3(4096, 36, 12288, 32, tied=False),
    "Qwen3-VL-4B": _qwen3(2560, 36, 9728, 32, tower=415_347_712),
}
"""Published shapes, by the beginning of the model's name."""


def shape_of(model: ModelConfig) -> ModelShape:
    """Return the shape of a model, from its folder or the table of known ones; nothing is downloaded.

    Raises:
        ConfigError: If it is neither, or its `config.json` is not that of a dense decoder.
    """
    if model.path in ("tiny", "tiny-vl"):
        return _tiny(model.words.split(), vision=model.path == "tiny-vl")
    folder = Path(model.path).expanduser()
    if folder.is_dir():
        try:
            return shape_from(json.loads((folder / "config.json").read_text(encoding="utf-8")))
        except (OSError, ValueError) as err:
            raise ConfigError(f"cannot read the shape of the model in {folder}: {err}") from err
    name = model.path.rpartition("/")[2]
    if name not in KNOWN:
        known = [k for k in KNOWN if name.startswith(f"{k}-")]
        if not known:
            raise ConfigError(
                f"the size of the model {model.path!r} is not known: expected a folder with config.json, or "
                f"a name that begins with one of {', '.join(KNOWN)}"
            )
        name = known[0]
    return KNOWN[name]


def shape_from(config: Mapping[str, Any]) -> ModelShape:
    """Read the shape out of the content of a `config.json`.

    Raises:
        ConfigError: If a size is missing, or the model is a mixture of experts.
    """
    tower = tower_parameters(config["vision_config"]) if "vision_config" in config else 0
    tied = config.get("tie_word_embeddings", True)
    config = config.get("text_config", config)
    if "num_experts" in config or "num_local_experts" in config:
        raise ConfigError("a mixture of experts is not counted: expected a dense decoder")
    needed = ("hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads", "vocab_size")
    if missing := [key for key in needed if not isinstance(config.get(key), int)]:
        raise ConfigError(f"config.json of the model: expected whole numbers for {', '.join(missing)}")
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    return ModelShape(
        hidden=hidden,
        layers=config["num_hidden_layers"],
        intermediate=config["intermediate_size"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or hidden // heads,
        vocab=config["vocab_size"],
        tied=config.get("tie_word_embeddings", tied),
        tower=tower,
    )


def tower_parameters(vision: Mapping[str, Any]) -> int:
    """Count the parameters of the tower from the `vision_config` of a `config.json`.

    Exact for Qwen3-VL; Qwen2-VL and Qwen2.5-VL, with other norms and biases, come within a thousandth.

    Raises:
        ConfigError: If a size is missing.
    """
    try:
        hidden = vision.get("embed_dim", vision["hidden_size"])
        inner = vision.get("intermediate_size", int(hidden * vision.get("mlp_ratio", 0)))
        out = vision.get("out_hidden_size", vision["hidden_size"])
        joined = hidden * vision["spatial_merge_size"] ** 2
        patch = vision.get("in_channels", 3) * vision["temporal_patch_size"] * vision["patch_size"] ** 2
        depth = vision["depth"]
    except KeyError as err:
        raise ConfigError(f"config.json of the model: expected {err} in vision_config") from err
    maps = 3 if "fullatt_block_indexes" in vision else 2  # Qwen2.5-VL's feed-forward part has a gate
    attention = 4 * hidden * hidden + 4 * hidden
    forward = maps * hidden * inner + (maps - 1) * inner + hidden
    merger = joined * joined + joined + joined * out + out
    n_mergers = 1 + len(vision.get("deepstack_visual_indexes", ()))
    norms = 4 * depth * hidden + 2 * hidden + 2 * (n_mergers - 1) * joined
    places = vision.get("num_position_embeddings", 0) * hidden
    return int(patch * hidden + hidden + places + depth * (attention + forward) + n_mergers * merger + norms)


def _tiny(words: Sequence[str], *, vision: bool) -> ModelShape:
    """Return about the shape of "tiny" or "tiny-vl": every word is a token alone and after a blank."""
    return ModelShape(
        hidden=96,
        layers=3,
        intermediate=288,
        heads=4,
        kv_heads=2,
        head_dim=32 if vision else 24,
        vocab=(275 if vision else 271) + 2 * len(set(words)),
        tied=True,
        tower=213_280 if vision else 0,
    )


def adapter_parameters(shape: ModelShape, model: ModelConfig) -> int:
    """Count the parameters of the LoRA adapter: rank x (input + output) for every map that gets one.

    Raises:
        UnknownNameError: If `model.lora_targets` names no map of a layer.

    References:
        LoRA, arXiv:2106.09685.
    """
    maps = shape.projections
    names = (
        list(maps)
        if model.lora_targets == "all-linear"
        else [n.strip() for n in model.lora_targets.split(",")]
    )
    for name in names:
        if name not in maps:
            raise UnknownNameError("module", name, [*maps, "all-linear"], "model.lora_targets")
    return model.lora_rank * shape.layers * sum(sum(maps[name]) for name in names)


def cache_bytes(shape: ModelShape, dtype: str) -> int:
    """Return the bytes of keys and values that one token leaves in the cache."""
    return 2 * shape.layers * shape.keys * _width(dtype)


def activation_bytes(shape: ModelShape, dtype: str, *, checkpointing: bool) -> int:
    """Return the bytes per token that wait for the backward pass.

    Counted per layer: both norms, queries and keys before and after their own norm and rotation, values, what
    attention gives, and four tensors of the feed-forward part; no attention matrix (SDPA and Flash Attention
    make none). With checkpointing every layer keeps its input only, and one layer at a time has the rest.
    Within an eighth of what autograd keeps of transformers' Qwen3.
    """
    layer = 6 * shape.hidden + 4 * shape.queries + 6 * shape.keys + 4 * shape.intermediate
    kept = shape.layers * shape.hidden + layer if checkpointing else shape.layers * layer
    return kept * _width(dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that takes memory on every GPU, or for every GPU on its host."""

    what: str
    gib: float
    phase: Phase = "always"
    """When it is there; rollout and update never meet."""
    on_host: bool = False


def estimate(cfg: RunConfig, shape: ModelShape, *, gpus: int) -> list[Part]:
    """Return what a run holds per GPU, in GiB.

    ZeRO shares the optimiser from stage 1 on, gradients from 2, weights from 3; but then a whole copy plays,
    since shared weights cannot generate. Gradients are counted in float32, which they become for the step. An
    adapter needs no reference model: it is switched off instead.

    Args:
        cfg: The run.
        shape: Of its model.
        gpus: Ranks; each has one GPU.

    Raises:
        UnknownNameError: See `adapter_parameters`.

    References:
        ZeRO, arXiv:1910.02054 (the three stages).
    """
    stage, dtype, lora = cfg.optim.zero_stage, cfg.model.dtype, cfg.model.lora_rank > 0
    weights = shape.parameters * _width(dtype)
    trained = adapter_parameters(shape, cfg.model) if lora else shape.parameters
    shared = {s: gpus if stage >= s else 1 for s in (1, 2, 3)}
    offloads = cfg.optim.zero.get("offload_optimizer", {}).get("device", "none") != "none"
    parts = [("weights", weights / shared[3], False)]
    if stage == 3:
        parts.append(("whole copy that plays", weights, False))
    if lora:
        parts.append(("adapter", trained * _width(dtype), False))
    if dtype != "float32" or stage > 0:
        parts.append(("float32 copy of what is trained", trained * 4 / shared[1], offloads))
    parts.append(("Adam's two moments", trained * 8 / shared[1], offloads))
    parts.append(("gradients", trained * 4 / shared[2], False))
    if cfg.loss.kl_coef > 0 and not lora:
        parts.append(("reference model", weights, cfg.optim.offload_reference))
    episodes = cfg.rollout.groups * max(1.0, cfg.filter.oversample) * cfg.rollout.group_size
    rows = min(cfg.rollout.batch_size, math.ceil(episodes / gpus))
    cache = rows * cfg.model.max_context * cache_bytes(shape, dtype)
    tokens = max(cfg.optim.micro_tokens, cfg.model.max_context)
    per_token = activation_bytes(shape, dtype, checkpointing=cfg.model.gradient_checkpointing)
    at_once = min(tokens, ELEMENTS // shape.vocab)
    # Log-probabilities and their gradient in float32, and the gradient once more in the type of the weights.
    logits = at_once * shape.vocab * (8 if dtype == "float32" else 8 + _width(dtype))
    return [
        *(Part(what=what, gib=size / GIB, on_host=host) for what, size, host in parts),
        Part(what=f"cache of {rows} rows", gib=cache / GIB, phase="rollout"),
        Part(what=f"activations of {tokens:,} tokens", gib=tokens * per_token / GIB, phase="update"),
        Part(what=f"logits of {at_once:,} tokens", gib=logits / GIB, phase="update"),
    ]


def peak_gib(parts: Sequence[Part]) -> float:
    """Return the most GiB that are there at once on a GPU, without the allowance."""
    by_phase = {"always": 0.0, "rollout": 0.0, "update": 0.0}
    for part in parts:
        if not part.on_host:
            by_phase[part.phase] += part.gib
    return by_phase["always"] + max(by_phase["rollout"], by_phase["update"])


def _width(dtype: str) -> int:
    return {"float32": 4, "bfloat16": 2}[dtype]
