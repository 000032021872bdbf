"""The policy loss: from log-probabilities and advantages to a scalar.

Pure functions of tensors. Every term is a sum over a micro-batch divided by a count over the whole optimiser
step, so the losses (and the statistics) of micro-batches add up to those of the step, however it was split.

    denom = denominators(batch, rows, cfg.loss)
    loss, stats = policy_loss(logp, None, loss_inputs(batch.select(part), device), cfg.loss, denom)

`logp[n, t]` is the log-probability of token t of row n given the tokens before it; column 0 is never read.
Ratios over a turn need that turn in one row, ratios over a trajectory need all its rows in one micro-batch.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from arl_gym.errors import ConfigError, DataError
from arl_gym.train.batch import Batch
from arl_gym.train.config import LossConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class LossInputs:
    """What the loss needs to know about a micro-batch, besides the model's scores."""

    mask: Tensor
    """(N, T) bool: tokens that carry loss."""
    segment: Tensor
    """(N, T) int64: turn of a token, -1 outside the mask."""
    row_trajectory: Tensor
    """(N,) int64."""
    advantages: Tensor
    """(N, T) float32: the advantage of the token's turn, 0 outside the mask."""
    old_logp: Tensor | None
    """(N, T); None: the old policy is the one that is being scored, all ratios are 1."""
    ref_logp: Tensor | None
    """(N, T)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denominators:
    """Counts over a whole optimiser step: all micro-batches of all ranks."""

    tokens: float
    """Tokens that carry loss."""
    units: float
    """Turns (trajectories, if ratios are per trajectory) with at least one such token."""


def loss_inputs(batch: Batch, device: torch.device | str) -> LossInputs:
    """Move what the loss needs of a micro-batch to a device.

    Raises:
        DataError: If the batch has no advantages yet.
    """
    if batch.advantages is None:
        raise DataError("the loss needs advantages: call batch.with_advantages first")
    # The extra last entry is what segment -1 picks.
    per_turn = np.append(batch.advantages, np.float32(0.0))

    def tensor(array: npt.NDArray[np.generic]) -> Tensor:
        return torch.as_tensor(array, device=device)

    return LossInputs(
        mask=tensor(batch.action_mask),
        segment=tensor(batch.segment).long(),
        row_trajectory=tensor(batch.row_trajectory).long(),
        advantages=tensor(per_turn[batch.segment]),
        old_logp=None if batch.old_logprobs is None else tensor(batch.old_logprobs),
        ref_logp=None if batch.ref_logprobs is None else tensor(batch.ref_logprobs),
    )


def denominators(batch: Batch, rows: npt.ArrayLike, cfg: LossConfig) -> Denominators:
    """Count the tokens and units of all rows of one optimiser step."""
    index = np.asarray(rows, dtype=np.int64)
    mask = batch.action_mask[index]
    if cfg.ratio_level == "trajectory":
        units = np.unique(batch.row_trajectory[index][mask.any(axis=1)])
    else:
        units = np.unique(batch.segment[index][mask])
    return Denominators(tokens=float(mask.sum()), units=float(len(units)))


def policy_loss(
    logp: Tensor, entropy: Tensor | None, inputs: LossInputs, cfg: LossConfig, denom: Denominators
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the micro-batch's share of the loss, and its shares of the statistics.

    Policy term: the clipped surrogate, on ratios per token (PPO) or on the geometric mean ratio of a turn or
    trajectory (GSPO, in the token form, whose gradient reaches every token through its own log-probability).
    Plus `kl_coef` times the k3 divergence to the reference, minus `entropy_coef` times the entropy.

    Args:
        logp: (N, T), any float type; what follows is float32 at least.
        entropy: (N, T) or None.
        inputs: The micro-batch.
        cfg: The dials.
        denom: Of the whole optimiser step.

    Returns:
        A scalar with gradient (0 if no token carries loss), and detached scalars that add up over
        micro-batches: `loss/policy`, `loss/clip_frac` (share of tokens whose clipped branch is the larger),
        `loss/approx_kl` (mean of old minus new), `loss/ratio_mean`; with a reference `loss/kl`, with
        entropies `loss/entropy`.

    Raises:
        ConfigError: If a clip bound is negative, or `dual_clip_c` is not above 1 or meets ratios that are not
            per token.
        DataError: If `cfg` asks for a divergence or entropy that is not given.

    References:
        PPO, arXiv:1707.06347 (clipped surrogate objective); dual clip, arXiv:1912.09729.
        GSPO, arXiv:2507.18071 (sequence ratio, and its GSPO-token form).
        k3: Schulman, "Approximating KL divergence", 2020; as used in GRPO, arXiv:2402.03300.
    """
    check_loss(cfg)
    dtype = torch.promote_types(logp.dtype, torch.float32)
    mask = inputs.mask

    def sampled(grid: Tensor) -> Tensor:
        return grid[mask].to(dtype)  # (S,): what padding holds never enters, not even times zero

    new, advantage = sampled(logp), sampled(inputs.advantages)
    old = new.detach() if inputs.old_logp is None else sampled(inputs.old_logp)
    unit = _units(inputs, cfg)
    size = torch.bincount(unit)
    weight = _weights(unit, size, cfg, denom, dtype)

    ratio = torch.exp(_log_ratio(new, old, unit, size, cfg))
    plain = -advantage * ratio
    clipped = -advantage * ratio.clamp(1.0 - cfg.clip_low, 1.0 + cfg.clip_high)
    surrogate = torch.maximum(plain, clipped)
    if cfg.dual_clip_c is not None:
        surrogate = torch.where(
            advantage < 0.0, torch.minimum(surrogate, -advantage * cfg.dual_clip_c), surrogate
        )
    loss = policy = (weight * surrogate).sum()
    n_tokens = max(denom.tokens, 1.0)
    stats = {
        "loss/policy": policy.detach(),
        "loss/clip_frac": (clipped > plain).sum().to(dtype) / n_tokens,
        "loss/approx_kl": (old - new.detach()).sum() / n_tokens,
        "loss/ratio_mean": ratio.detach().sum() / n_tokens,
    }
    if inputs.ref_logp is not None:
        kl = (weight * _k3(new, sampled(inputs.ref_logp))).sum()
        stats["loss/kl"] = kl.detach()
        if cfg.kl_coef > 0.0 and cfg.kl_gradient:
            loss = loss + cfg.kl_coef * kl
    elif cfg.kl_coef > 0.0:
        raise DataError(f"loss.kl_coef={cfg.kl_coef} needs the reference model's log-probabilities, got none")
    if entropy is not None:
        mean_entropy = (weight * sampled(entropy)).sum()
        stats["loss/entropy"] = mean_entropy.detach()
        if cfg.entropy_coef != 0.0:
            loss = loss - cfg.entropy_coef * mean_entropy
    elif cfg.entropy_coef != 0.0:
        raise DataError(f"loss.entropy_coef={cfg.entropy_coef} needs entropies, got none")
    return loss, stats


def check_loss(cfg: LossConfig) -> None:
    """Raise a `ConfigError` if the dials of the loss do not go together."""
    if cfg.clip_low < 0.0 or cfg.clip_high < 0.0:
        raise ConfigError(
            f"loss: clip bounds must not be negative, got clip_low={cfg.clip_low}, clip_high={cfg.clip_high}"
        )
    if cfg.dual_clip_c is not None and (cfg.dual_clip_c <= 1.0 or cfg.ratio_level != "token"):
        raise ConfigError(
            f"loss: dual_clip_c must be above 1 and needs ratio_level='token', got "
            f"dual_clip_c={cfg.dual_clip_c}, ratio_level={cfg.ratio_level!r}"
        )


def _units(inputs: LossInputs, cfg: LossConfig) -> Tensor:
    """Number the units of the sampled tokens from 0 without gaps: (S,)."""
    if cfg.ratio_level == "trajectory":
        owner = inputs.row_trajectory[:, None].expand_as(inputs.mask)[inputs.mask]
    else:
        owner = inputs.segment[inputs.mask]
    _, unit = torch.unique(owner, return_inverse=True)
    assert isinstance(unit, Tensor)  # torch leaves the type of the pair open
    return unit


def _weights(unit: Tensor, size: Tensor, cfg: LossConfig, denom: Denominators, dtype: torch.dtype) -> Tensor:
    """Return what each sampled token counts in the aggregate: (S,), summing to 1 over a step if a mean."""
    if cfg.aggregation == "token-mean":
        return torch.full_like(unit, 1.0 / max(denom.tokens, 1.0), dtype=dtype)
    per_unit = torch.full_like(unit, 1.0 / max(denom.units, 1.0), dtype=dtype)
    return per_unit if cfg.aggregation == "seq-mean-token-sum" else per_unit / size[unit]


def _log_ratio(new: Tensor, old: Tensor, unit: Tensor, size: Tensor, cfg: LossConfig) -> Tensor:
    difference = new - old
    if cfg.ratio_level == "token":
        return difference.clamp(-20.0, 20.0)
    total = torch.zeros(len(size), dtype=new.dtype, device=new.device)
    mean = total.index_add_(0, unit, difference.detach()) / size
    # The value is the unit's, the gradient each token's own.
    return (new - new.detach() + mean[unit]).clamp(max=10.0)


def _k3(new: Tensor, ref: Tensor) -> Tensor:
    difference = (ref - new).clamp(-20.0, 20.0)
    return (torch.exp(difference) - difference - 1.0).clamp(-10.0, 10.0)
