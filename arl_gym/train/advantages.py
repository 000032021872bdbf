"""Group-relative advantages for multi-turn trajectories.

Numpy only; no torch. Takes what the rollout produced, returns one float per turn. Does not filter groups (see
`filtering.collect_groups`) and does not touch tokens.

    advantages = turn_advantages(trajectories, cfg.advantage)
"""

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt

from arl_gym.agents.types import Trajectory
from arl_gym.errors import ConfigError, DataError
from arl_gym.train.config import AdvantageConfig

FloatArray = npt.NDArray[np.float32]
_Values = npt.NDArray[np.float64]

_EPS = 1e-6
_SAME = 1e-9
_EMPG_EPS = 1e-8


def turn_advantages(
    trajectories: Sequence[Trajectory],
    cfg: AdvantageConfig,
    *,
    entropies: Sequence[FloatArray] | None = None,
    max_tokens: int | None = None,
) -> list[FloatArray]:
    """Return one advantage per turn for every trajectory.

    Episode part: the return, normalised within the group, the same for all turns. Step part: the
    discounted return-to-go, normalised over the turns of the same group that share `anchor`. Both are made of
    env rewards before penalties. EMPG then weighs the sum by how sure the policy was. Last, each turn's own
    penalties are subtracted, or with `normalise_penalty` before normalising.

    Normalising is `(x - mean) / (std + 1e-6)` with the unbiased standard deviation. Where all scores are
    equal (to a relative 1e-9: rounding is no signal), or there is only one, the result is 0: there is nothing
    to compare with.

    Args:
        trajectories: In any order; groups are told apart by `group`.
        cfg: The dials.
        entropies: For EMPG: the mean entropy in nats of each turn's kept tokens before the update, one array
            (K_i,) per trajectory (`batch.turn_means`); what turns without kept tokens have is not read.
        max_tokens: For the overlong penalty: the limit of one response.

    Returns:
        One float32 array of shape (K_i,) per trajectory, K_i its number of turns.

    Raises:
        ConfigError: If a dial is out of its range (see `check_advantage`).
        DataError: If a dial needs entropies or a limit that are not given, or do not fit the turns.

    References:
        GRPO, arXiv:2402.03300 (outcome supervision): the episode part.
        GiGPO, arXiv:2505.10978 (anchor-state grouping, step relative advantage): the step part and the sum.
        EMPG, arXiv:2509.09265: the weighing by entropy.
    """
    check_advantage(cfg)
    if not trajectories:
        return []
    n_turns = np.array([len(t.turns) for t in trajectories])  # (J,)
    penalty = _penalties(trajectories, cfg, max_tokens)  # (M,)
    inside = penalty if cfg.normalise_penalty else np.zeros_like(penalty)
    total = _episode_part(trajectories, n_turns, inside, cfg)  # (M,)
    if cfg.step_weight > 0.0:
        to_go = np.concatenate([_returns_to_go(t, cfg.gamma) for t in trajectories]) - inside
        anchors = _anchors(trajectories, cfg.anchor_similarity)
        total += cfg.step_weight * _normalised(to_go, anchors, to_go, anchors, cfg)
    if cfg.empg:
        total = _weighed(total, _flat_entropies(trajectories, entropies), n_turns, cfg)
    total -= penalty - inside
    return [a.astype(np.float32) for a in np.split(total, np.cumsum(n_turns)[:-1])]


def check_advantage(cfg: AdvantageConfig) -> None:
    """Raise a `ConfigError` if a dial of the advantage is out of its range."""
    if not 0.0 < cfg.gamma <= 1.0:
        raise ConfigError(f"advantage.gamma must be in (0, 1], got {cfg.gamma}")
    if not 0.0 < cfg.anchor_similarity <= 1.0:
        raise ConfigError(f"advantage.anchor_similarity must be in (0, 1], got {cfg.anchor_similarity}")
    for name in (
        "step_weight",
        "empg_k",
        "empg_k_future",
        "empg_zeta",
        "overlong_penalty",
        "overlong_buffer",
    ):
        if not getattr(cfg, name) >= 0:
            raise ConfigError(f"advantage.{name} must not be negative, got {getattr(cfg, name)}")


def overlong_penalties(
    trajectories: Sequence[Trajectory], cfg: AdvantageConfig, max_tokens: int
) -> list[FloatArray]:
    """Return what every turn's response costs by its length: 0 up to the buffer, then linear to the limit.

    Args:
        trajectories: With the completion ids of their turns.
        cfg: `overlong_penalty` is the cost at the limit, `overlong_buffer` the length of the slope in tokens.
        max_tokens: The limit of one response.

    Returns:
        One float32 array (K_i,) per trajectory, of numbers of at least 0.

    Raises:
        ConfigError: If the buffer is longer than the limit.

    References:
        DAPO, arXiv:2503.14476 (soft overlong punishment).
    """
    buffer = cfg.overlong_buffer or max(1, max_tokens // 5)
    if buffer > max_tokens:
        raise ConfigError(f"advantage.overlong_buffer must be at most {max_tokens} tokens, got {buffer}")
    return [
        np.array(
            [
                cfg.overlong_penalty * max(0, len(turn.completion_ids or ()) - (max_tokens - buffer)) / buffer
                for turn in t.turns
            ],
            dtype=np.float32,
        )
        for t in trajectories
    ]


def _penalties(trajectories: Sequence[Trajectory], cfg: AdvantageConfig, max_tokens: int | None) -> _Values:
    out = np.array([turn.format_penalty for t in trajectories for turn in t.turns], dtype=np.float64)
    if cfg.overlong_penalty > 0.0:
        if max_tokens is None:
            raise DataError(f"advantage.overlong_penalty={cfg.overlong_penalty} needs max_tokens, got none")
        out += np.concatenate(overlong_penalties(trajectories, cfg, max_tokens))
    return out


def _episode_part(
    trajectories: Sequence[Trajectory],
    n_turns: npt.NDArray[np.int64],
    inside: _Values,
    cfg: AdvantageConfig,
) -> _Values:
    returns = np.array([t.env_return for t in trajectories], dtype=np.float64)  # (J,)
    rows = np.repeat(returns, n_turns) - inside  # (M,)
    groups = [t.group for t in trajectories]
    row_groups = [t.group for t in trajectories for _ in t.turns]
    if cfg.group_stats == "turn":
        return _normalised(rows, row_groups, rows, row_groups, cfg)
    mean_penalty = [a.mean() if a.size else 0.0 for a in np.split(inside, np.cumsum(n_turns)[:-1])]
    return _normalised(rows, row_groups, returns - np.array(mean_penalty), groups, cfg)


def _returns_to_go(trajectory: Trajectory, gamma: float) -> _Values:
    out = np.zeros(len(trajectory.turns))
    later = 0.0
    for k in reversed(range(len(out))):
        later = trajectory.turns[k].env_reward + gamma * later
        out[k] = later
    return out


def _anchors(trajectories: Sequence[Trajectory], similarity: float) -> list[Hashable]:
    """Return the key of the step group of every turn."""
    if similarity == 1.0:
        return [(t.group, turn.anchor) for t in trajectories for turn in t.turns]
    chosen: dict[tuple[int, str], str] = {}
    kept: dict[int, list[str]] = {}
    # By member, not by who ended first: which anchor represents the others depends on the order.
    for t in sorted(trajectories, key=lambda t: (t.group, t.copy)):
        for turn in t.turns:
            if (t.group, turn.anchor) not in chosen:
                known = kept.setdefault(t.group, [])
                same = next((k for k in known if _alike(k, turn.anchor, similarity)), None)
                if same is None:
                    known.append(turn.anchor)
                chosen[t.group, turn.anchor] = turn.anchor if same is None else same
    return [(t.group, chosen[t.group, turn.anchor]) for t in trajectories for turn in t.turns]


def _alike(a: str, b: str, similarity: float) -> bool:
    # Without autojunk: it would ignore all common letters of a text of 200 characters or more.
    match = SequenceMatcher(None, a, b, autojunk=False)
    bounds = (match.real_quick_ratio, match.quick_ratio, match.ratio)  # each at least the next, and dearer
    return all(bound() >= similarity for bound in bounds)


def _normalised(
    scores: _Values,
    keys: Sequence[Hashable],
    samples: _Values,
    sample_keys: Sequence[Hashable],
    cfg: AdvantageConfig,
) -> _Values:
    """Normalise scores by the mean and std of the samples of equal key."""
    out = np.zeros_like(scores)
    members, sampled = _by_key(keys), _by_key(sample_keys)
    for key, index in members.items():
        sample = samples[sampled[key]]
        if sample.size < 2 or np.ptp(sample) <= _SAME * np.abs(sample).max():
            continue
        centred = scores[index] - sample.mean()
        out[index] = centred / (sample.std(ddof=1) + _EPS) if cfg.normalise == "mean_std" else centred
    return out


def _by_key(keys: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    out: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        out.setdefault(key, []).append(i)
    return out


def _flat_entropies(trajectories: Sequence[Trajectory], entropies: Sequence[FloatArray] | None) -> _Values:
    """Return the entropy of every turn: (M,), NaN where no token was kept."""
    if entropies is None:
        raise DataError("advantage.empg needs the entropy of every turn, got none")
    expected, got = [len(t.turns) for t in trajectories], [len(e) for e in entropies]
    if got != expected:
        raise DataError(f"entropies: expected {expected} values per trajectory, got {got}")
    has_tokens = np.array([turn.n_kept > 0 for t in trajectories for turn in t.turns], dtype=bool)
    flat = np.where(has_tokens, np.concatenate(entropies).astype(np.float64), np.nan)
    if not np.isfinite(flat[has_tokens]).all():
        bad = int(np.flatnonzero(has_tokens & ~np.isfinite(flat))[0])
        raise DataError(f"entropies: turn {bad} of {len(flat)} has tokens but its entropy is {flat[bad]}")
    return flat


def _weighed(
    advantages: _Values, entropy: _Values, n_turns: npt.NDArray[np.int64], cfg: AdvantageConfig
) -> _Values:
    """Apply EMPG to the turns that have an entropy: scale, add the bonus of the next turn, centre."""
    seen = np.isfinite(entropy)
    if not seen.any():
        return advantages
    low, high = entropy[seen].min(), entropy[seen].max()
    unsure = (entropy - low) / (high - low + _EMPG_EPS)  # (M,), in [0, 1], NaN without tokens
    scale = np.exp(-cfg.empg_k * unsure)
    scale /= scale[seen].mean() + _EMPG_EPS
    is_last = np.zeros(len(entropy), dtype=bool)
    is_last[np.cumsum(n_turns)[n_turns > 0] - 1] = True
    clear_next = np.where(is_last, 0.0, np.nan_to_num(np.exp(-cfg.empg_k_future * np.roll(unsure, -1))))
    out = scale * advantages + cfg.empg_zeta * clear_next
    return np.where(seen, out - out[seen].mean(), advantages)
