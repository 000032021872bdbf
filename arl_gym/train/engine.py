"""The DeepSpeed side: scores a batch, and takes optimiser steps on it.

Every rank calls every method with the same batch; the engine deals the forward passes out and puts the
results together again, so that all ranks return the same. The gradient of an optimiser step depends neither
on how its rows are cut into micro-batches nor on the number of ranks: denominators are counted over the whole
step before the first backward pass.
"""

import copy
import inspect
import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from arl_gym.errors import ConfigError, DataError
from arl_gym.train import distributed
from arl_gym.train.batch import Batch, FloatArray, IntArray, micro_batches, minibatches, pad_rows
from arl_gym.train.config import LossConfig, ModelConfig, OptimConfig
from arl_gym.train.head import Entropy, TokenHead
from arl_gym.train.loss import (
    Denominators,
    denominators,
    kept_units,
    loss_inputs,
    needs_kept_units,
    needs_whole_trajectories,
    policy_loss,
)
from arl_gym.train.model import add_lora, plain_weights, save_model
from arl_gym.train.packing import Layout, layout
from arl_gym.train.pictures import View, view
from arl_gym.train.state import OptimizerState, gathered, load_state, save_state
from arl_gym.train.vision import Vision


class TokenLogProbs(nn.Module):
    """Log-probs and entropies of given tokens, with logits made for those positions only.

    Args:
        model: A causal language model.
        banned: Tokens that are never sampled.
    """

    def __init__(self, model: PreTrainedModel, banned: Sequence[int] = ()):
        super().__init__()
        self.model = model
        self.head = TokenHead(model.get_output_embeddings(), banned)

    def forward(
        self,
        ids: Tensor,
        before: Tensor,
        targets: Tensor,
        temperature: float,
        entropy: Entropy,
        positions: Tensor | None = None,
        attention: Tensor | None = None,
        pixels: Tensor | None = None,
        grid: Tensor | None = None,
        features: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Score tokens.

        Args:
            ids: (M, L). A causal model never looks right, so padding on the right needs no attention mask.
            before: (S,) index into the flattened (M, L) of the position that predicts each scored token.
            targets: (S,) the scored tokens.
            temperature: Divides the logits, as in sampling.
            entropy: Whether to return entropies over the full vocabulary, and with a graph.
            positions: (M, L), where they do not count from 0 in every row; (3, M, L) with pictures.
            attention: (M, 1, L, L) bool: what each token sees, where that is not all before it.
            pixels: (P, D): the patches of K pictures, for a model that reads any.
            grid: (K, 3): the patches of each picture.
            features: (Q,): which of the pictures' features the placeholders in `ids` are, in their order.

        Returns:
            Log-probs (S,), and entropies (S,) or zeros.
        """
        more: dict[str, Any] = {} if positions is None else {"position_ids": positions}
        if attention is not None:
            more["attention_mask"] = attention
        if pixels is not None:
            more["mm_encoder_outputs"] = {"image": self._seen(pixels, grid, features)}
        hidden = self.model.base_model(input_ids=ids, use_cache=False, **more).last_hidden_state
        logp, entropies = self.head(hidden.flatten(0, 1)[before], targets, temperature, entropy)
        return logp.float(), entropies.float()

    def _seen(self, pixels: Tensor, grid: Tensor | None, features: Tensor | None) -> Any:
        """Return what the vision tower makes of the pictures, laid out for the placeholders."""
        model: Any = self.model.base_model
        seen = model.get_image_features(pixels, grid, return_dict=True)
        seen.pooler_output = [torch.cat(list(seen.pooler_output))[features]]
        if (layers := seen.get("deepstack_features")) is not None:  # what Qwen3-VL adds to its first layers
            seen.deepstack_features = [[torch.cat(list(layer))[features]] for layer in layers]
        return seen


class GuardedAdamW(torch.optim.AdamW):
    """AdamW that leaves everything as it is when a gradient is not finite, and counts the occasions.

    ZeRO's own optimisers check before they get here; stage 0 steps this one directly.
    """

    n_skipped = 0
    is_ready = True
    """DeepSpeed takes a step of its own while it sets some optimisers up: nothing is to come of it."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take a step unless a gradient is NaN or infinite."""
        if not self.is_ready:
            return
        grads = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        if grads and not torch.isfinite(torch.stack([g.norm() for g in grads]).sum()):
            self.n_skipped += 1
            return
        super().step()


def deepspeed_config(cfg: OptimConfig, dtype: torch.dtype) -> dict[str, Any]:
    """Derive DeepSpeed's configuration; it is never edited by hand.

    Raises:
        ConfigError: If `optim.zero` names the stage, which `optim.zero_stage` does.
    """
    if "stage" in cfg.zero:
        raise ConfigError(f"optim.zero: expected no stage (that is optim.zero_stage), got {cfg.zero}")
    is_bf16 = dtype == torch.bfloat16
    # Many small gradients added up in bf16 lose digits. Stages 0 and 1 cannot do otherwise.
    sums = {"data_types": {"grad_accum_dtype": "fp32"}} if is_bf16 and cfg.zero_stage >= 2 else {}
    return {
        **sums,
        "train_micro_batch_size_per_gpu": 1,  # unused by our loop, required by DeepSpeed
        "gradient_accumulation_steps": 1,
        "gradient_clipping": cfg.grad_clip,  # DeepSpeed's own default is 1.0, not off
        "zero_optimization": {"stage": cfg.zero_stage, **cfg.zero},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # offloaded or not, the optimiser is ours
        "bf16": {"enabled": is_bf16},
        "steps_per_print": 1 << 30,
        "wall_clock_breakdown": False,
    }


def learning_rate(cfg: OptimConfig, step: int, progress: float) -> float:
    """Return the rate of an optimiser step.

    Over the run it goes in a straight line from `lr` to `lr * lr_final`; over the first `warmup_steps`
    optimiser steps it is scaled down besides. How many optimiser steps the run will have need not be known.

    Args:
        cfg: The dials.
        step: Optimiser steps before this one.
        progress: Share of the training steps that is done, in [0, 1].
    """
    warm = min(1.0, (step + 1) / cfg.warmup_steps) if cfg.warmup_steps else 1.0
    return cfg.lr * warm * (1 + (cfg.lr_final - 1) * min(1.0, progress))


def deal(tokens: Sequence[int], ranks: int) -> list[list[int]]:
    """Deal micro-batches out: the largest first, each to the rank that has the fewest tokens so far.

    Args:
        tokens: Size of every micro-batch.
        ranks: How many ranks there are.

    Returns:
        The numbers of the micro-batches of every rank, at most `ceil(len(tokens) / ranks)` each.
    """
    most = math.ceil(len(tokens) / ranks)
    hands: list[list[int]] = [[] for _ in range(ranks)]
    load = [0] * ranks
    for number in sorted(range(len(tokens)), key=lambda n: -tokens[n]):
        least = min((r for r in range(ranks) if len(hands[r]) < most), key=lambda r: load[r])
        hands[least].append(number)
        load[least] += tokens[number]
    return hands


class Engine:
    """Owns the weights, the optimiser and the reference model.

    Args:
        model: The policy; trained in place.
        optim: Optimiser dials.
        temperature: Of the sampling; log-probs are taken at the same.
        reference: Whether to score with the present weights for the KL term: a frozen copy of them, or with
            LoRA the model without its adapter. At ZeRO-3 too, every rank has all of the copy.
        model_cfg: LoRA and gradient checkpointing.
        vision: What the model makes of pictures; None for a model that reads text only.

    Raises:
        ConfigError: If the temperature is 0, or DeepSpeed's or LoRA's settings cannot be used.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        optim: OptimConfig,
        *,
        temperature: float,
        reference: bool,
        model_cfg: ModelConfig = ModelConfig(),  # noqa: B008  # frozen
        vision: Vision | None = None,
    ):
        if temperature <= 0:
            raise ConfigError(f"training needs rollout.temperature > 0, got {temperature}")
        distributed.start()
        self._optim = optim
        self._temperature = temperature
        self._model = model
        self._vision = vision
        if torch.cuda.is_available():
            model.to("cuda")  # type: ignore[arg-type]
        self._has_reference = reference
        self._reference = None
        banned = () if vision is None else vision.banned
        if reference and not model_cfg.lora_rank:
            self._reference = TokenLogProbs(copy.deepcopy(model), banned).eval().requires_grad_(False)
            self._park_reference()
        self._adapter = add_lora(model, model_cfg) if model_cfg.lora_rank else None
        # Never generate with weights that are cut up: ranks take unequal numbers of steps.
        self._copy = copy.deepcopy(model).requires_grad_(False) if optim.zero_stage == 3 else None
        if model_cfg.gradient_checkpointing:
            _recompute_activations(model)
        trained = [p for p in model.parameters() if p.requires_grad]
        self._adamw = GuardedAdamW(
            trained, lr=optim.lr, weight_decay=optim.weight_decay, fused=torch.cuda.is_available()
        )
        self._adamw.is_ready = False
        scorer = TokenLogProbs(model, banned)
        self._engine = _initialise(scorer, self._adamw, deepspeed_config(optim, model.dtype))
        self._adamw.is_ready = True
        self._state = OptimizerState(model, self._adamw, self._engine.optimizer)
        self._can_share = optim.share_prompts and can_share_prompts(model)
        self.n_updates = 0
        """Optimiser steps of `update` so far."""
        self.n_batches = 0
        """Calls of `update` so far."""
        self.model_s = 0.0
        """Seconds in the model's forward and backward passes and the optimiser so far."""
        self._skipped_before = 0

    @property
    def n_skipped(self) -> int:
        """Optimiser steps left out because a gradient was not finite."""
        return self._skipped_before + int(self._engine.skipped_steps) + self._adamw.n_skipped

    def _device(self) -> torch.device:
        return torch.device(self._engine.device)

    def _park_reference(self) -> None:
        if self._optim.offload_reference and self._reference is not None:
            self._reference.to("cpu")

    def n_minibatches(self, batch: Batch) -> int:
        """Return how many optimiser steps `update` takes on a batch: fewer if it has fewer groups."""
        is_real, per_step = batch.row_trajectory >= 0, self._optim.minibatch_rows
        wanted = max(1, round(int(is_real.sum()) / per_step)) if per_step else self._optim.minibatches
        return min(wanted, len(np.unique(batch.row_group[is_real])))

    def score(self, batch: Batch, *, old: bool = True, reference: bool = True) -> Batch:
        """Return the batch with old log-probs and entropies and, if there is a reference, its log-probs.

        Args:
            batch: Packed rows, equal on all ranks.
            old: Whether old log-probs are needed. They are not if a single optimiser step follows: its own
                forward pass gives them.
            reference: Whether the reference model's are, if there is one.
        """
        self._engine.eval()
        if old:
            batch = batch.with_old(*self._scored(self._engine, batch, entropy="value"))
        if not reference:
            return batch
        if self._adapter is not None and self._has_reference:
            with self._adapter.disable_adapter():
                return batch.with_ref(self._scored(self._engine, batch, entropy="none")[0])
        if self._reference is not None:
            self._reference.to(self._device())
            batch = batch.with_ref(self._scored(self._reference, batch, entropy="none")[0])
            self._park_reference()
        return batch

    @torch.no_grad()
    def _scored(
        self, module: Any, batch: Batch, *, entropy: Entropy, temperature: float | None = None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return log-probs and entropies, each (N, T) and 0 outside the mask."""
        temperature = self._temperature if temperature is None else temperature
        grids = np.zeros((1 + (entropy != "none"), *batch.ids.shape), dtype=np.float32)
        for rows in self._mine(batch, np.arange(batch.n_rows)):
            part = _select(batch, rows)
            logp, entropies = self._forward(module, part, temperature, entropy)
            _write(grids, rows, [t for t in (logp, entropies) if t is not None])
        _share_grids(grids, batch.action_mask)
        return grids[0], grids[1] if len(grids) > 1 else None

    def _forward(
        self, module: Any, part: Batch, temperature: float, entropy: Entropy
    ) -> tuple[Tensor, Tensor | None]:
        """Return log-probs (N, T), 0 outside the mask, and entropies (N, T) or None."""
        device = self._device()
        shown = self._view(part)
        plan = layout(part, share=self._can_share, seen=None if shown is None else shown.features)
        mask = torch.from_numpy(part.action_mask).to(device)
        ids, before = torch.from_numpy(plan.ids).to(device), torch.from_numpy(plan.before).to(device)
        targets = torch.from_numpy(part.ids).to(device)[mask]
        more = {name: tensor.to(device) for name, tensor in _placed(plan, shown).items()}
        if plan.forest is not None:
            tree, branch = (torch.from_numpy(a).to(device) for a in (plan.forest.tree, plan.forest.branch))
            more["attention"] = tree_attention(tree, branch)
        with self._timed():
            logp, entropies = module(ids, before, targets, temperature, entropy, **more)
            empty = torch.zeros(mask.shape, device=device)
            grid = empty.masked_scatter(mask, logp)
            return grid, None if entropy == "none" else empty.masked_scatter(mask, entropies)

    def _view(self, part: Batch) -> View | None:
        """Return what the rows show to a model that reads pictures."""
        if self._vision is not None:
            return view(part, self._vision)
        if any(part.row_pictures):
            raise DataError("the batch has pictures, but the model reads text only")
        return None

    def _mine(self, batch: Batch, rows: IntArray, *, keep_trajectories: bool = False) -> list[IntArray]:
        """Return this rank's micro-batches of some rows: equally many on all ranks, so some may be empty."""
        ranks = distributed.world_size()
        fair_share = math.ceil(batch.lengths[rows].sum() / ranks)
        pieces = micro_batches(
            batch,
            rows,
            max_tokens=min(self._optim.micro_tokens, fair_share) if ranks > 1 else self._optim.micro_tokens,
            keep_trajectories=keep_trajectories,
        )
        hands = deal([int(len(piece) * batch.lengths[piece].max()) for piece in pieces], ranks)
        mine = [pieces[number] for number in hands[distributed.rank()]]
        return mine + [rows[:0]] * (max(map(len, hands)) - len(mine))

    def update(
        self, batch: Batch, loss: LossConfig, *, total_steps: int
    ) -> tuple[dict[str, float], FloatArray, FloatArray | None]:
        """Take optimiser steps on a batch with advantages.

        Their number is `optim.minibatches`, or follows from `optim.minibatch_rows`.

        Args:
            batch: With advantages, and scored if there are several steps; equal on all ranks.
            loss: The dials of the loss.
            total_steps: Calls of `update` in the whole run, for the learning rate.

        Returns:
            Metrics, each a mean over the optimiser steps of this call; the log-probs (N, T) that each token
            had in the forward pass of its own optimiser step, 0 outside the mask; and the entropies there,
            unless the batch was scored.
        """
        parts = minibatches(batch, self.n_minibatches(batch))
        seen = np.zeros((1 + (batch.old_logprobs is None), *batch.ids.shape), dtype=np.float32)
        sums: dict[str, float] = {}
        for i, rows in enumerate(parts):
            progress = (self.n_batches + i / len(parts)) / max(1, total_steps)
            lr = learning_rate(self._optim, self.n_updates, progress)
            for key, value in self._optimise(batch, rows, loss, lr, seen).items():
                sums[key] = sums.get(key, 0.0) + value / len(parts)
        self.n_batches += 1
        sums["optim/updates"] = float(len(parts))
        _share_grids(seen, batch.action_mask)
        return sums, seen[0], seen[1] if len(seen) > 1 else None

    def _optimise(
        self, batch: Batch, rows: IntArray, cfg: LossConfig, lr: float, seen: FloatArray
    ) -> dict[str, float]:
        """Take one optimiser step.

        What this rank's forward passes say of its tokens, log-probs and perhaps entropies, goes into `seen`:
        (1, N, T) or (2, N, T).
        """
        denominator = denominators(batch, rows, cfg)
        mine = self._mine(batch, rows, keep_trajectories=needs_whole_trajectories(cfg))
        kept = self._kept_units(batch, mine, cfg) if needs_kept_units(cfg) else None
        entropy: Entropy = "graph" if cfg.entropy_coef != 0 else "value" if len(seen) > 1 else "none"
        outputs: list[list[Tensor]] = []

        def loss_of(part: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
            logp, entropies = self._forward(self._engine, part, self._temperature, entropy)
            outputs.append([t.detach() for t in (logp, entropies) if t is not None])
            return policy_loss(logp, entropies, loss_inputs(part, self._device()), cfg, denominator, kept)

        stats = self.step((loss_of(_select(batch, piece)) for piece in mine), len(mine), lr=lr)
        self.n_updates += 1
        for piece, output in zip(mine, outputs, strict=True):
            _write(seen, piece, output[: len(seen)])
        return stats

    @torch.no_grad()
    def _kept_units(self, batch: Batch, mine: Sequence[IntArray], cfg: LossConfig) -> Denominators:
        """Count what the sequence mask keeps of an optimiser step, over all ranks."""
        kept = Denominators()
        for part in (_select(batch, piece) for piece in mine):
            logp, _ = self._forward(self._engine, part, self._temperature, "none")
            kept += kept_units(logp, loss_inputs(part, self._device()), cfg)
        tokens, units = distributed.sum_arrays(np.array([kept.tokens, kept.units])).tolist()
        return Denominators(tokens=tokens, units=units)

    def fit(self, batch: Batch, rows: IntArray, *, lr: float) -> dict[str, float]:
        """Take one supervised optimiser step.

        Args:
            batch: Packed rows, equal on all ranks.
            rows: (R,) numbers of the rows to fit.
            lr: Learning rate.

        Returns:
            `loss`, the mean negative log-likelihood of the rows' tokens under the mask, in nats, before the
            step; `optim/grad_norm`; `optim/lr`.
        """
        n_tokens = max(1, int(batch.action_mask[rows].sum()))
        mine = self._mine(batch, np.asarray(rows, dtype=np.int64))

        def loss_of(part: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
            loss = -self.log_probs(part).sum() / n_tokens
            return loss, {"loss": loss.detach()}

        return self.step((loss_of(_select(batch, piece)) for piece in mine), len(mine), lr=lr)

    def nll(self, batch: Batch) -> float:
        """Return the mean negative log-likelihood per token under the mask, in nats, at temperature 1."""
        self._engine.eval()
        logp, _ = self._scored(self._engine, batch, entropy="none", temperature=1.0)
        return -float(logp[batch.action_mask].mean(dtype=np.float64))

    def step(
        self, losses: Iterable[tuple[Tensor, Mapping[str, Tensor]]], n: int, *, lr: float
    ) -> dict[str, float]:
        """Back-propagate losses that, over all ranks, add up to the loss of the step; then step once.

        Args:
            losses: This rank's, made one by one.
            n: Their number, equal on all ranks.
            lr: Learning rate.

        Returns:
            The added-up statistics of the losses, `optim/grad_norm` (before clipping) and `optim/lr`.
        """
        self._engine.train()
        n_ranks = distributed.world_size()
        sums: dict[str, Tensor] = {}
        pending = iter(losses)
        for i in range(n):
            self._engine.set_gradient_accumulation_boundary(i == n - 1)  # before the forward pass too
            loss, stats = next(pending)
            with self._timed():
                # DeepSpeed averages over the ranks.
                self._engine.backward(loss * n_ranks, scale_wrt_gas=False)
            for key, value in stats.items():
                sums[key] = sums[key] + value if key in sums else value
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        with self._timed():
            norm = self._grad_norm()
            self._engine.step()
        norm = self._engine.get_global_grad_norm() if norm is None else norm
        totals = distributed.sum_arrays(np.array([float(value) for value in sums.values()]))
        out = dict(zip(sums, totals.tolist(), strict=True))
        return out | {"optim/grad_norm": float(norm), "optim/lr": lr}

    def _grad_norm(self) -> float | None:
        """Return the norm at stage 0, where DeepSpeed keeps none; None at the other stages."""
        if self._optim.zero_stage > 0:
            return None
        grads = [p.grad.float().norm() for p in self._engine.module.parameters() if p.grad is not None]
        return float(torch.stack(grads).norm())

    def log_probs(self, part: Batch) -> Tensor:
        """Return the log-probs (N, T) of the batch's own tokens at temperature 1, with a graph."""
        return self._forward(self._engine, part, 1.0, "none")[0]

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the time of the block as the model's. On a GPU, calls return before their work is done."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.model_s += time.perf_counter() - start

    def rollout_model(self) -> PreTrainedModel:
        """Return what this rank generates with, holding the present weights.

        The trained model itself, adapters included, which needs no second call after an update; at ZeRO-3 a
        whole copy, which each call (by all ranks) brings up to date.
        """
        if self._copy is None:
            return self._model
        for mine, copied in zip(self._model.parameters(), self._copy.parameters(), strict=True):
            if mine.requires_grad:
                with gathered([mine]), torch.no_grad():
                    copied.copy_(mine)
        return self._copy

    def save(self, folder: Path) -> None:
        """Write all that `load` needs to go on exactly; the folder is no whole one before this returns.

        Raises:
            ArlGymError: If it cannot be written.
        """
        names = ("n_updates", "n_batches", "n_skipped")
        save_state(folder, self._state, {name: int(getattr(self, name)) for name in names})

    def load(self, folder: Path) -> None:
        """Go on from what `save` wrote, at any ZeRO stage and on any number of ranks.

        Raises:
            DataError: If a file is missing or damaged, or is of another model.
        """
        counters = load_state(folder, self._state)
        self.n_updates, self.n_batches = counters["n_updates"], counters["n_batches"]
        self._skipped_before += counters["n_skipped"] - self.n_skipped

    def export(self, folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
        """Write the model as a Hugging Face folder, replacing one that is there.

        With LoRA the weights have the adapter merged in, and the adapter is in `adapter/` besides.

        Raises:
            ArlGymError: If it cannot be written.
        """
        is_plain = self._adapter is None and self._optim.zero_stage < 3
        weights = None if is_plain else self._plain_weights()
        adapter = self._adapter_weights()

        def save_adapter(partial: Path) -> None:
            if self._adapter is not None:
                self._adapter.save_pretrained(str(partial / "adapter"), state_dict=adapter)

        distributed.on_main(
            lambda: save_model(
                folder,
                self._model,
                tokenizer,
                vision=self._vision,
                replace=True,
                weights=weights,
                also=save_adapter,
            )
        )

    def _plain_weights(self) -> dict[str, Tensor]:
        """Return whole parameters on the CPU, with the adapter merged in; only on the first rank."""
        out = {}
        for name, tensor in plain_weights(self._model):
            if distributed.is_main():
                out[name] = tensor.to("cpu", copy=True)
        return out

    def _adapter_weights(self) -> dict[str, Tensor]:
        """Return the adapter's parameters, whole, under peft's names."""
        if self._adapter is None:
            return {}
        out = {}
        for name, parameter in self._adapter.named_parameters():
            if parameter.requires_grad:
                with gathered([parameter]):
                    out[name] = parameter.detach().to("cpu", copy=True)
        return out


def _recompute_activations(model: PreTrainedModel) -> None:
    # Its name until transformers 5.19, and its name since.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})


def _select(batch: Batch, rows: IntArray) -> Batch:
    """Return the rows; where there are none, one row of one token that carries no loss."""
    part = batch.select(rows)
    return part if len(rows) else pad_rows(part, 1)


def _placed(plan: Layout, shown: View | None) -> dict[str, Tensor]:
    """Return the positions of a layout's tokens, where they have to be said, and its pictures."""
    forest = plan.forest
    if shown is None:
        return {} if forest is None else {"positions": torch.from_numpy(forest.positions)}
    positions, features = shown.positions, shown.features
    if forest is not None:
        positions = positions[:, forest.row, forest.positions]
        features = np.where(forest.tree >= 0, features[forest.row, forest.positions], -1)
    return {
        "positions": torch.from_numpy(positions),
        "pixels": shown.pixels,
        "grid": shown.grid,
        "features": torch.from_numpy(features[features >= 0]),
    }


def tree_attention(tree: Tensor, branch: Tensor) -> Tensor:
    """Return what each token of a layout sees: the prompt of its tree and its own branch, up to itself.

    Args:
        tree: (M, L); padding, of tree -1, sees padding before it.
        branch: (M, L).

    Returns:
        (M, 1, L, L) bool: True where the row's token sees the column's.
    """
    same_tree = tree[:, :, None] == tree[:, None, :]
    on_path = (branch[:, None, :] == 0) | (branch[:, :, None] == branch[:, None, :])
    earlier = torch.ones(tree.shape[1], tree.shape[1], dtype=torch.bool, device=tree.device).tril()
    return (same_tree & on_path & earlier)[:, None]


def can_share_prompts(model: PreTrainedModel) -> bool:
    """Return whether a model takes any attention mask and any positions."""
    cfg = model.config.get_text_config()
    layers = set(getattr(cfg, "layer_types", None) or ["full_attention"])
    takes = inspect.signature(model.base_model.forward).parameters
    has_rotation = getattr(cfg, "rope_parameters", None) is not None or hasattr(cfg, "rope_theta")
    return (
        cfg._attn_implementation == "sdpa"
        and layers == {"full_attention"}
        and has_rotation
        and {"attention_mask", "position_ids"} <= takes.keys()
    )


def _write(grids: FloatArray, rows: IntArray, tensors: Sequence[Tensor]) -> None:
    """Write tensors (R, T') into the given rows of grids (K, N, T)."""
    for grid, tensor in zip(grids, tensors, strict=True):
        if len(rows):
            grid[rows, : tensor.shape[1]] = tensor.cpu().numpy()


def _share_grids(grids: FloatArray, mask: np.ndarray) -> None:
    """Give every rank, in place, what each of them filled in of grids (K, N, T) under the mask (N, T)."""
    if distributed.world_size() > 1:
        grids[:, mask] = distributed.sum_arrays(grids[:, mask])


def _initialise(module: nn.Module, optimizer: torch.optim.Optimizer, config: dict[str, Any]) -> Any:
    """Start DeepSpeed around a module and optimiser of ours."""
    logging.disable(logging.WARNING)  # importing it warns of every accelerator it does not find
    import deepspeed

    logging.disable(logging.NOTSET)
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # On CPU DeepSpeed would compile a shared-memory collective for a minute, and a killed build hangs every
    # later process on its lock file; gloo does without.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    if config["zero_optimization"]["stage"] == 3:
        deepspeed.utils.set_z3_leaf_modules(module, [TokenHead])
    try:
        engine, _, _, _ = deepspeed.initialize(model=module, optimizer=optimizer, config=config)
    except ValueError as err:
        reason = " ".join(str(err).split())
        raise ConfigError(f"DeepSpeed refuses {config['zero_optimization']}: {reason}") from err
    return engine
