"""Group-relative advantages for multi-turn trajectories.

Numpy only; no torch. Takes what the rollout produced, returns one float per turn. Does not filter groups (see
`filtering.collect_groups`) and does not touch tokens.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from arl_gym.agents.types import Trajectory
from arl_gym.errors import ConfigError
from arl_gym.train.config import AdvantageConfig

FloatArray = npt.NDArray[np.float32]

_EPS = 1e-6
_SAME = 1e-9


def turn_advantages(trajectories: Sequence[Trajectory], cfg: AdvantageConfig) -> list[FloatArray]:
    """Return one advantage per turn for every trajectory.

    Episode part: the return, normalised within the group, the same for all turns. Step part: the
    discounted return-to-go, normalised over the turns of the same group that share `anchor`. Both are made of
    env rewards before penalties; each turn's own format penalty is subtracted from the sum.

    Normalising is `(x - mean) / (std + 1e-6)` with the unbiased standard deviation. Where all scores are
    equal (to a relative 1e-9: rounding is no signal), or there is only one, the result is 0: there is nothing
    to compare with.

    Args:
        trajectories: In any order; groups are told apart by `group`.
        cfg: The dials.

    Returns:
        One float32 array of shape (K_i,) per trajectory, K_i its number of turns.

    Raises:
        ConfigError: If `gamma` is outside (0, 1], or `step_weight` is negative.

    References:
        GRPO, arXiv:2402.03300 (outcome supervision): the episode part.
        GiGPO, arXiv:2505.10978 (anchor-state grouping, step relative advantage): the step part and the sum.
    """
    if not 0.0 < cfg.gamma <= 1.0:
        raise ConfigError(f"advantage.gamma must be in (0, 1], got {cfg.gamma}")
    if cfg.step_weight < 0.0:
        raise ConfigError(f"advantage.step_weight must not be negative, got {cfg.step_weight}")
    if not trajectories:
        return []
    n_turns = np.array([len(t.turns) for t in trajectories])  # (J,)
    turns = [(t.group, turn) for t in trajectories for turn in t.turns]
    by_length = cfg.group_stats == "turn"
    episode = _normalised(
        np.array([t.env_return for t in trajectories], dtype=np.float64),
        [t.group for t in trajectories],
        n_turns if by_length else np.ones_like(n_turns),
        cfg,
    )
    total = np.repeat(episode, n_turns)  # (M,)
    if cfg.step_weight > 0.0:
        to_go = np.concatenate([_returns_to_go(t, cfg.gamma) for t in trajectories])
        anchors = [(group, turn.anchor) for group, turn in turns]
        total += cfg.step_weight * _normalised(to_go, anchors, np.ones(len(turns), dtype=np.int64), cfg)
    total -= np.array([turn.format_penalty for _, turn in turns])
    return [a.astype(np.float32) for a in np.split(total, np.cumsum(n_turns)[:-1])]


def _returns_to_go(trajectory: Trajectory, gamma: float) -> npt.NDArray[np.float64]:
    out = np.zeros(len(trajectory.turns))
    later = 0.0
    for k in reversed(range(len(out))):
        later = trajectory.turns[k].env_reward + gamma * later
        out[k] = later
    return out


def _normalised(
    scores: npt.NDArray[np.float64],
    keys: Sequence[Hashable],
    repeats: npt.NDArray[np.int64],
    cfg: AdvantageConfig,
) -> npt.NDArray[np.float64]:
    """Normalise scores among those of equal key; score i counts `repeats[i]` times in mean and std."""
    members: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        members.setdefault(key, []).append(i)
    out = np.zeros_like(scores)
    for index in members.values():
        sample = np.repeat(scores[index], repeats[index])
        if sample.size < 2 or np.ptp(sample) <= _SAME * np.abs(sample).max():
            continue
        centred = scores[index] - sample.mean()
        out[index] = centred / (sample.std(ddof=1) + _EPS) if cfg.normalise == "mean_std" else centred
    return out
