"""The DeepSpeed side: scores a batch, and takes optimiser steps on it.

One rank today. The gradient of an optimiser step does not depend on how its rows are cut into micro-batches:
denominators are counted over the whole step before the first backward pass.
"""

import copy
import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from arl_gym.errors import ConfigError
from arl_gym.train.batch import Batch, micro_batches, minibatches
from arl_gym.train.config import LossConfig, OptimConfig
from arl_gym.train.loss import denominators, loss_inputs, policy_loss

_CHUNK = 1024  # positions whose logits exist at once; at a vocabulary of 152k that is 0.6 GB in fp32


class TokenLogProbs(nn.Module):
    """Log-probs and entropies of given tokens, with logits made for those positions only."""

    def __init__(self, model: PreTrainedModel):
        super().__init__()
        self.model = model

    def forward(
        self, ids: Tensor, mask: Tensor, temperature: float, with_entropy: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Score the tokens under `mask`.

        Args:
            ids: (N, T) right-padded. A causal model never looks right, so padding needs no attention mask.
            mask: (N, T) bool; column 0 is False (nothing predicts the first token).
            temperature: Divides the logits, as in sampling.
            with_entropy: Whether to return entropies over the full vocabulary.

        Returns:
            Log-probs (N, T), 0 outside the mask, and entropies (N, T) or None.
        """
        hidden = self.model.base_model(input_ids=ids, use_cache=False).last_hidden_state  # (N, T, H)
        before = hidden[:, :-1][mask[:, 1:]]  # (K, H): the position before each scored token
        targets = ids[mask]  # (K,)
        head: nn.Module = self.model.get_output_embeddings()  # type: ignore[no-untyped-call]

        def chunk(h: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
            logp = torch.log_softmax(head(h).float() / temperature, dim=-1)
            entropy = -(logp.exp() * logp).sum(-1) if with_entropy else logp.new_zeros(len(h))
            return logp.gather(1, target[:, None]).squeeze(1), entropy

        parts = []
        for i in range(0, max(len(targets), 1), _CHUNK):
            piece = (before[i : i + _CHUNK], targets[i : i + _CHUNK])
            # Recomputed in the backward pass: a plain loop would keep every chunk's logits.
            keep = len(targets) <= _CHUNK or not torch.is_grad_enabled()
            parts.append(chunk(*piece) if keep else checkpoint(chunk, *piece, use_reentrant=False))
        scatter = torch.zeros(ids.shape, dtype=torch.float32, device=ids.device)
        logp = scatter.masked_scatter(mask, torch.cat([p[0] for p in parts]))
        if not with_entropy:
            return logp, None
        return logp, scatter.masked_scatter(mask, torch.cat([p[1] for p in parts]))


class GuardedAdamW(torch.optim.AdamW):
    """AdamW that leaves everything as it is when a gradient is not finite, and counts the occasions.

    ZeRO's own optimisers check before they get here; stage 0 steps this one directly.
    """

    n_skipped = 0

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take a step unless a gradient is NaN or infinite."""
        grads = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        if grads and not torch.isfinite(torch.stack([g.norm() for g in grads]).sum()):
            self.n_skipped += 1
            return
        super().step()


def deepspeed_config(cfg: OptimConfig, dtype: torch.dtype) -> dict[str, Any]:
    """Derive DeepSpeed's configuration; it is never edited by hand."""
    return {
        "train_micro_batch_size_per_gpu": 1,  # unused by our loop, required by DeepSpeed
        "gradient_accumulation_steps": 1,
        "gradient_clipping": cfg.grad_clip,  # DeepSpeed's own default is 1.0, not off
        "zero_optimization": {"stage": cfg.zero_stage},
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": dtype == torch.bfloat16},
        "steps_per_print": 1 << 30,
        "wall_clock_breakdown": False,
    }


def learning_rate(cfg: OptimConfig, step: int, total: int) -> float:
    """Return the rate of optimiser step `step` (0-based) of `total`: warm-up, then linear to `lr_final`."""
    if step < cfg.warmup_steps:
        return cfg.lr * (step + 1) / cfg.warmup_steps
    done = (step - cfg.warmup_steps) / max(1, total - cfg.warmup_steps)
    return cfg.lr * (1 + (cfg.lr_final - 1) * min(1.0, done))


def _start_distributed() -> None:
    """Make a process group of one; no port is opened."""
    os.environ.setdefault("LOCAL_RANK", "0")  # DeepSpeed insists on the launcher's variable
    if not dist.is_initialized():
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        store = dist.HashStore()  # type: ignore[attr-defined]  # public, but missing from its __all__
        dist.init_process_group(backend, store=store, rank=0, world_size=1)


class Engine:
    """Owns the weights, the optimiser and the reference model.

    Args:
        model: The policy; trained in place, so a rollout policy that holds it always has the present weights.
        optim: Optimiser dials.
        temperature: Of the sampling; log-probs are taken at the same.
        reference: Keep a frozen copy of the present weights for the KL term.
    """

    def __init__(self, model: PreTrainedModel, optim: OptimConfig, *, temperature: float, reference: bool):
        if temperature <= 0:
            raise ConfigError(f"training needs rollout.temperature > 0, got {temperature}")
        self._optim = optim
        self._temperature = temperature
        if torch.cuda.is_available():
            model.to("cuda")  # type: ignore[arg-type]
        self._reference = TokenLogProbs(copy.deepcopy(model)).eval() if reference else None
        self._adamw = GuardedAdamW(model.parameters(), lr=optim.lr, weight_decay=optim.weight_decay)
        self._engine = _initialise(TokenLogProbs(model), self._adamw, deepspeed_config(optim, model.dtype))
        self.n_updates = 0

    @property
    def n_skipped(self) -> int:
        """Optimiser steps left out because a gradient was not finite."""
        return int(self._engine.skipped_steps) + self._adamw.n_skipped

    def _device(self) -> torch.device:
        return torch.device(self._engine.device)

    @torch.no_grad()
    def score(self, batch: Batch) -> Batch:
        """Return the batch with old log-probs, entropies and, if there is a reference, its log-probs."""
        self._engine.eval()
        old, entropies = self._scored(self._engine, batch, with_entropy=True)
        batch = batch.with_old(old, entropies)
        if self._reference is not None:
            batch = batch.with_ref(self._scored(self._reference, batch, with_entropy=False)[0])
        return batch

    def _scored(self, module: Any, batch: Batch, *, with_entropy: bool) -> tuple[np.ndarray, np.ndarray]:
        out = np.zeros((2, *batch.ids.shape), dtype=np.float32)
        everything = np.arange(len(batch.ids))
        for rows in micro_batches(
            batch, everything, max_tokens=self._optim.micro_tokens, keep_trajectories=False
        ):
            part = batch.select(rows)
            logp, entropy = module(*self._tensors(part), self._temperature, with_entropy)
            width = part.ids.shape[1]
            out[0, rows, :width] = logp.cpu().numpy()
            if entropy is not None:
                out[1, rows, :width] = entropy.cpu().numpy()
        return out[0], out[1]

    def _tensors(self, part: Batch) -> tuple[Tensor, Tensor]:
        device = self._device()
        return torch.from_numpy(part.ids).to(device), torch.from_numpy(part.action_mask).to(device)

    def update(self, batch: Batch, loss: LossConfig, *, total_steps: int) -> dict[str, float]:
        """Take `minibatches` optimiser steps on a scored batch with advantages.

        Args:
            batch: Scored, with advantages.
            loss: The dials of the loss.
            total_steps: Calls of `update` in the whole run, for the learning rate.

        Returns:
            Metrics, each a mean over the optimiser steps of this call.
        """
        sums: dict[str, float] = {}
        total_steps *= self._optim.minibatches
        parts = minibatches(batch, self._optim.minibatches)
        for rows in parts:
            for key, value in self._optimise(batch, rows, loss, total_steps).items():
                sums[key] = sums.get(key, 0.0) + value / len(parts)
        sums["optim/updates"] = float(len(parts))
        return sums

    def _optimise(
        self, batch: Batch, rows: np.ndarray, cfg: LossConfig, total_steps: int
    ) -> dict[str, float]:
        denominator = denominators(batch, rows, cfg)
        pieces = micro_batches(
            batch,
            rows,
            max_tokens=self._optim.micro_tokens,
            keep_trajectories=cfg.ratio_level == "trajectory",
        )

        def losses() -> Iterable[tuple[Tensor, Mapping[str, Tensor]]]:
            for piece in pieces:
                part = batch.select(piece)
                logp, entropy = self._engine(*self._tensors(part), self._temperature, cfg.entropy_coef != 0)
                yield policy_loss(logp, entropy, loss_inputs(part, self._device()), cfg, denominator)

        return self.step(losses(), len(pieces), lr=learning_rate(self._optim, self.n_updates, total_steps))

    def step(
        self, losses: Iterable[tuple[Tensor, Mapping[str, Tensor]]], n: int, *, lr: float
    ) -> dict[str, float]:
        """Back-propagate `n` losses that add up to the loss of the step, then step once.

        Returns:
            The added-up statistics of the losses, `optim/grad_norm` (before clipping) and `optim/lr`.
        """
        self._engine.train()
        sums: dict[str, Tensor] = {}
        pending = iter(losses)
        for i in range(n):
            self._engine.set_gradient_accumulation_boundary(i == n - 1)  # before the forward pass too
            loss, stats = next(pending)
            self._engine.backward(loss, scale_wrt_gas=False)
            for key, value in stats.items():
                sums[key] = sums[key] + value if key in sums else value
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        norm = self._grad_norm()
        self._engine.step()
        self.n_updates += 1
        norm = self._engine.get_global_grad_norm() if norm is None else norm
        out = {key: float(value) for key, value in sums.items()}
        return out | {"optim/grad_norm": float(norm), "optim/lr": lr}

    def _grad_norm(self) -> float | None:
        """Return the norm at stage 0, where DeepSpeed keeps none; None at the other stages."""
        if self._optim.zero_stage > 0:
            return None
        grads = [p.grad.norm() for p in self._engine.module.parameters() if p.grad is not None]
        return float(torch.stack(grads).norm())

    def log_probs(self, part: Batch) -> Tensor:
        """Return the log-probs (N, T) of the batch's own tokens at temperature 1, with a graph."""
        logp: Tensor = self._engine(*self._tensors(part), 1.0, False)[0]
        return logp


def _initialise(module: nn.Module, optimizer: torch.optim.Optimizer, config: dict[str, Any]) -> Any:
    """Start DeepSpeed around a module and optimiser of ours."""
    logging.disable(logging.WARNING)  # importing it warns of every accelerator it does not find
    import deepspeed

    logging.disable(logging.NOTSET)
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # On CPU DeepSpeed would compile a shared-memory collective for a minute, and a killed build hangs every
    # later process on its lock file; gloo does without.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    _start_distributed()
    engine, _, _, _ = deepspeed.initialize(model=module, optimizer=optimizer, config=config)
    return engine
