"""The policy loss: from log-probabilities and advantages to a scalar.

Pure functions of tensors. Every term is a sum over a micro-batch divided by a count over the whole optimiser
step, so the losses (and the statistics) of micro-batches add up to those of the step, however it was split.

    denom = denominators(batch, rows, cfg.loss)
    loss, stats = policy_loss(logp, None, loss_inputs(batch.select(part), device), cfg.loss, denom)

`logp[n, t]` is the log-probability of token t of row n given the tokens before it; column 0 is never read.
A unit is a turn or a trajectory: what a ratio spans, where ratios are per token what `sequence` says. A turn
lies in one row; `needs_whole_trajectories` tells whether the rows of a trajectory must share a micro-batch.

`mask_denominator="kept"` counts only units that the sequence mask keeps, which the log-probs of the moment
decide. `needs_kept_units` asks for a pass without gradient over the micro-batches of the step, whose counts
are added up over ranks too:

    kept = sum((kept_units(logp, inputs, cfg.loss) for …), Denominators())
    loss, stats = policy_loss(logp, None, inputs, cfg.loss, denom, kept)
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
    rollout_logp: Tensor
    """(N, T): of the sampling policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denominators:
    """Counts over a whole optimiser step: all micro-batches of all ranks. Counts of its parts add up."""

    tokens: float = 0.0
    """Tokens that carry loss."""
    units: float = 0.0
    """Units with at least one such token."""

    def __add__(self, other: "Denominators") -> "Denominators":
        return Denominators(tokens=self.tokens + other.tokens, units=self.units + other.units)


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
        rollout_logp=tensor(batch.rollout_logprobs),
    )


def denominators(batch: Batch, rows: npt.ArrayLike, cfg: LossConfig) -> Denominators:
    """Count the tokens and units of all rows of one optimiser step."""
    index = np.asarray(rows, dtype=np.int64)
    mask = batch.action_mask[index]
    if _unit_level(cfg) == "trajectory":
        units = np.unique(batch.row_trajectory[index][mask.any(axis=1)])
    else:
        units = np.unique(batch.segment[index][mask])
    return Denominators(tokens=float(mask.sum()), units=float(len(units)))


def needs_whole_trajectories(cfg: LossConfig) -> bool:
    """Return whether the rows of a trajectory must be scored in one micro-batch."""
    if cfg.ratio_level != "token":
        return cfg.ratio_level == "trajectory"
    per_unit = cfg.mask_delta is not None or cfg.policy == "sapo" or cfg.aggregation == "seq-mean-token-mean"
    return cfg.sequence == "trajectory" and per_unit


def needs_kept_units(cfg: LossConfig) -> bool:
    """Return whether `policy_loss` wants the counts of `kept_units`, added up over the optimiser step."""
    return cfg.mask_delta is not None and cfg.mask_denominator == "kept"


@torch.no_grad()
def kept_units(logp: Tensor, inputs: LossInputs, cfg: LossConfig) -> Denominators:
    """Count the tokens and units of a micro-batch that the sequence mask keeps.

    Args:
        logp: (N, T), of the model before this optimiser step.
        inputs: The micro-batch.
        cfg: The dials.
    """
    sample = _sample(logp, inputs, cfg)
    kept = _kept(sample, cfg)
    return Denominators(tokens=float(kept[sample.unit].sum()), units=float(kept.sum()))


def policy_loss(
    logp: Tensor,
    entropy: Tensor | None,
    inputs: LossInputs,
    cfg: LossConfig,
    denom: Denominators,
    kept: Denominators | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the micro-batch's share of the loss, and its shares of the statistics.

    Policy term, of ratios per token, or of the geometric mean ratio of a turn or trajectory (in the token
    form, whose gradient reaches every token through its own log-probability): the clipped surrogate (PPO;
    GSPO), SAPO's gated one, or CISPO's weighted log-probability. Units that the mask drops have none.
    Plus `kl_coef` times the divergence to the reference, minus `entropy_coef` times the entropy.

    Args:
        logp: (N, T), any float type; what follows is float32 at least.
        entropy: (N, T) or None.
        inputs: The micro-batch.
        cfg: The dials.
        denom: Of the whole optimiser step.
        kept: Sum of `kept_units` over the whole optimiser step; needed iff `needs_kept_units(cfg)`, and used
            by the policy term only.

    Returns:
        A scalar with gradient (0 if no token carries loss), and detached scalars that add up over
        micro-batches: `loss/policy`; `loss/clip_frac` (share of tokens: whose clipped branch is the larger;
        SAPO, beyond the clip bound that the advantage pushes to; CISPO, whose weight was bounded);
        `loss/clip_frac_pos` and `loss/clip_frac_neg` (share of tokens with a positive or negative advantage
        and a ratio outside the clip bounds); `loss/approx_kl` (mean of old minus new); `loss/ratio_mean`;
        with a sequence mask `loss/masked_frac` (share of units); with a reference `loss/kl`, with entropies
        `loss/entropy`.

    Raises:
        ConfigError: If the dials do not go together (see `check_loss`).
        DataError: If `cfg` asks for a divergence, entropy or counts that are not given.

    References:
        PPO, arXiv:1707.06347 (clipped surrogate objective); dual clip, arXiv:1912.09729.
        GSPO, arXiv:2507.18071 (sequence ratio, and its GSPO-token form).
        SAPO, arXiv:2511.20347 (sigmoid gate, two temperatures). CISPO, arXiv:2506.13585.
        Sequence mask: ARLArena, arXiv:2602.21534 (GRPO_SM, SAPO_SM, CISPO_SM).
    """
    check_loss(cfg)
    if not needs_kept_units(cfg):
        kept = denom
    elif kept is None:
        raise DataError("loss.mask_denominator='kept' needs the sum of kept_units over the step, got none")
    sample = _sample(logp, inputs, cfg)
    weight = _weights(sample, cfg, denom)
    ratio = torch.exp(_log_ratio(sample, cfg))
    surrogate, was_clipped = _SURROGATES[cfg.policy](sample, ratio, cfg)
    if cfg.tis_cap is not None:
        gap = sample.old - _sampled(inputs.rollout_logp, inputs, sample.new.dtype)
        surrogate = surrogate * gap.clamp(-20.0, 20.0).exp().clamp(max=cfg.tis_cap)
    policy_weight = _weights(sample, cfg, kept)
    stats: dict[str, Tensor] = {}
    if cfg.mask_delta is not None:
        keep = _kept(sample, cfg)
        policy_weight = torch.where(keep[sample.unit], policy_weight, 0.0)
        stats["loss/masked_frac"] = (~keep).sum().to(weight.dtype) / max(denom.units, 1.0)
    loss = policy = (policy_weight * surrogate).sum()
    stats |= {"loss/policy": policy.detach()} | _ratio_stats(sample, ratio.detach(), was_clipped, cfg, denom)
    if inputs.ref_logp is not None:
        ref = _sampled(inputs.ref_logp, inputs, sample.new.dtype)
        kl = (weight * divergence(sample.new, ref, cfg.kl_type)).sum()
        stats["loss/kl"] = kl.detach()
        if cfg.kl_coef > 0.0 and cfg.kl_gradient:
            loss = loss + cfg.kl_coef * kl
    elif cfg.kl_coef > 0.0:
        raise DataError(f"loss.kl_coef={cfg.kl_coef} needs the reference model's log-probabilities, got none")
    if entropy is not None:
        mean_entropy = (weight * _sampled(entropy, inputs, sample.new.dtype)).sum()
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
    if cfg.dual_clip_c is not None and (
        cfg.dual_clip_c <= 1.0 or cfg.ratio_level != "token" or cfg.policy != "clip"
    ):
        raise ConfigError(
            f"loss: dual_clip_c must be above 1 and needs policy='clip' and ratio_level='token', got "
            f"dual_clip_c={cfg.dual_clip_c}, policy={cfg.policy!r}, ratio_level={cfg.ratio_level!r}"
        )
    if cfg.sapo_tau_pos <= 0.0 or cfg.sapo_tau_neg <= 0.0:
        raise ConfigError(
            f"loss: SAPO's temperatures must be above 0, got sapo_tau_pos={cfg.sapo_tau_pos}, "
            f"sapo_tau_neg={cfg.sapo_tau_neg}"
        )
    if cfg.mask_delta is not None and cfg.mask_delta < 0.0:
        # At the old policy, where nothing is stale, a negative bound would drop every negative sequence.
        raise ConfigError(f"loss.mask_delta must not be negative, got {cfg.mask_delta}")
    if cfg.tis_cap is not None and cfg.tis_cap <= 0.0:
        raise ConfigError(f"loss.tis_cap must be above 0, got {cfg.tis_cap}")
    if cfg.aggregation == "seq-mean-token-sum-norm" and cfg.aggregation_tokens < 1:
        raise ConfigError(
            f"loss.aggregation='seq-mean-token-sum-norm' needs aggregation_tokens of at least 1, got "
            f"{cfg.aggregation_tokens}"
        )


def divergence(new: Tensor, ref: Tensor, kl_type: str) -> Tensor:
    """Estimate KL(new || reference) token by token, from one sample each.

    With e = ref - new: k1 is -e, abs |e|, k2 e²/2, k3 exp(e) - e - 1 (with e bounded at ±20, its value at
    10), and "k3+" has the value of k3 and the gradient of k2. The gradient of k1 has mean zero: as a penalty
    it does nothing but add noise.

    Args:
        new: (S,) log-probs with gradient.
        ref: (S,) log-probs of the reference.
        kl_type: One of `LossConfig.kl_type`.

    References:
        Schulman, "Approximating KL divergence", 2020; k3 as used in GRPO, arXiv:2402.03300.
    """
    gap = ref - new
    if kl_type == "k1":
        return -gap
    if kl_type == "abs":
        return gap.abs()
    if kl_type == "k2":
        return 0.5 * gap.square()
    bounded = gap.clamp(-20.0, 20.0)
    k3 = (torch.exp(bounded) - bounded - 1.0).clamp(-10.0, 10.0)
    if kl_type == "k3":
        return k3
    k2 = 0.5 * gap.square()
    return k2 + (k3 - k2).detach()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """The S sampled tokens of a micro-batch and the U units they belong to."""

    new: Tensor
    """(S,) log-probs with gradient."""
    old: Tensor
    """(S,)."""
    advantage: Tensor
    """(S,)."""
    unit: Tensor
    """(S,): units are numbered from 0 without gaps."""
    size: Tensor
    """(U,): tokens of each unit."""

    def unit_mean(self, values: Tensor) -> Tensor:
        """Return the mean of (S,) values over each unit: (U,), without gradient."""
        total = torch.zeros(len(self.size), dtype=values.dtype, device=values.device)
        return total.index_add_(0, self.unit, values.detach()) / self.size


def _sampled(grid: Tensor, inputs: LossInputs, dtype: torch.dtype) -> Tensor:
    return grid[inputs.mask].to(dtype)  # (S,): what padding holds never enters, not even times zero


def _sample(logp: Tensor, inputs: LossInputs, cfg: LossConfig) -> _Sample:
    dtype = torch.promote_types(logp.dtype, torch.float32)
    new = _sampled(logp, inputs, dtype)
    unit = _units(inputs, cfg)
    return _Sample(
        new=new,
        old=new.detach() if inputs.old_logp is None else _sampled(inputs.old_logp, inputs, dtype),
        advantage=_sampled(inputs.advantages, inputs, dtype),
        unit=unit,
        size=torch.bincount(unit),
    )


def _unit_level(cfg: LossConfig) -> str:
    return cfg.sequence if cfg.ratio_level == "token" else cfg.ratio_level


def _units(inputs: LossInputs, cfg: LossConfig) -> Tensor:
    if _unit_level(cfg) == "trajectory":
        owner = inputs.row_trajectory[:, None].expand_as(inputs.mask)[inputs.mask]
    else:
        owner = inputs.segment[inputs.mask]
    _, unit = torch.unique(owner, return_inverse=True)
    assert isinstance(unit, Tensor)  # torch leaves the type of the pair open
    return unit


def _weights(sample: _Sample, cfg: LossConfig, denom: Denominators) -> Tensor:
    """Return what each sampled token counts in the aggregate: (S,), summing to 1 over a step if a mean."""
    like = torch.ones_like(sample.advantage)
    if cfg.aggregation == "token-mean":
        return like / max(denom.tokens, 1.0)
    per_unit = like / max(denom.units, 1.0)
    if cfg.aggregation == "seq-mean-token-mean":
        return per_unit / sample.size[sample.unit]
    return per_unit / cfg.aggregation_tokens if cfg.aggregation == "seq-mean-token-sum-norm" else per_unit


def _log_ratio(sample: _Sample, cfg: LossConfig) -> Tensor:
    difference = sample.new - sample.old
    if cfg.ratio_level == "token":
        return difference.clamp(-20.0, 20.0)
    # The value is the unit's, the gradient each token's own.
    own = sample.new - sample.new.detach()
    return (own + sample.unit_mean(difference)[sample.unit]).clamp(max=10.0)


def _kept(sample: _Sample, cfg: LossConfig) -> Tensor:
    """Return which units the sequence mask keeps: (U,) bool."""
    assert cfg.mask_delta is not None
    stale = sample.unit_mean(sample.old - sample.new) > cfg.mask_delta
    return ~(stale & (sample.unit_mean(sample.advantage) < 0.0))


def _clip(sample: _Sample, ratio: Tensor, cfg: LossConfig) -> tuple[Tensor, Tensor]:
    plain = -sample.advantage * ratio
    clipped = -sample.advantage * ratio.clamp(1.0 - cfg.clip_low, 1.0 + cfg.clip_high)
    surrogate = torch.maximum(plain, clipped)
    if cfg.dual_clip_c is not None:
        capped = torch.minimum(surrogate, -sample.advantage * cfg.dual_clip_c)
        surrogate = torch.where(sample.advantage < 0.0, capped, surrogate)
    return surrogate, clipped > plain


def _sapo(sample: _Sample, ratio: Tensor, cfg: LossConfig) -> tuple[Tensor, Tensor]:
    is_positive = (sample.unit_mean(sample.advantage) > 0.0)[sample.unit]
    tau = torch.where(is_positive, cfg.sapo_tau_pos, cfg.sapo_tau_neg).to(ratio.dtype)
    gate = torch.sigmoid(tau * (ratio - 1.0)) * (4.0 / tau)
    above, below = ratio > 1.0 + cfg.clip_high, ratio < 1.0 - cfg.clip_low
    beyond = torch.where(sample.advantage > 0.0, above, below & (sample.advantage < 0.0))
    return -sample.advantage * gate, beyond


def _cispo(sample: _Sample, ratio: Tensor, cfg: LossConfig) -> tuple[Tensor, Tensor]:
    low, high = 1.0 - cfg.clip_low, 1.0 + cfg.clip_high
    if cfg.cispo_sides == "both":
        bounded = ratio.clamp(low, high)
    else:
        bounded = torch.where(sample.advantage < 0.0, ratio.clamp(min=low), ratio.clamp(max=high))
    return -bounded.detach() * sample.advantage * sample.new, bounded != ratio


_SURROGATES = {"clip": _clip, "sapo": _sapo, "cispo": _cispo}


def _ratio_stats(
    sample: _Sample, ratio: Tensor, was_clipped: Tensor, cfg: LossConfig, denom: Denominators
) -> dict[str, Tensor]:
    outside = (ratio < 1.0 - cfg.clip_low) | (ratio > 1.0 + cfg.clip_high)
    sums = {
        "loss/clip_frac": was_clipped,
        "loss/clip_frac_pos": outside & (sample.advantage > 0.0),
        "loss/clip_frac_neg": outside & (sample.advantage < 0.0),
        "loss/approx_kl": sample.old - sample.new.detach(),
        "loss/ratio_mean": ratio,
    }
    return {key: value.sum().to(ratio.dtype) / max(denom.tokens, 1.0) for key, value in sums.items()}
