"""Dynamic filtering: keep the groups whose members differ, play again while there are too few.

Pure functions of trajectories; what is played, and where, is the caller's business. Does not compute
advantages.

    collected = collect_groups(play, cfg.filter, n_groups=16, step=step)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from arl_gym.agents.types import Trajectory
from arl_gym.errors import ConfigError, DataError
from arl_gym.train.config import FilterConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSplit:
    """Groups of valid members, in the order they came."""

    signal: list[list[Trajectory]]
    """Groups whose metric differs between members."""
    uniform: list[list[Trajectory]]
    """Groups whose members all have the same metric."""
    n_dropped: int
    """Groups with fewer than two valid members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStats:
    """What collecting took; group counts are over all tries, before the surplus is cut."""

    tries: int
    groups_played: int
    groups_signal: int
    groups_uniform: int
    groups_dropped: int
    groups_backfilled: int
    """Uniform groups that are trained on only because the tries ran out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The groups of one training step; empty if nothing was usable, and then there is nothing to train on."""

    groups: list[list[Trajectory]]
    stats: CollectStats


def split_groups(
    trajectories: Sequence[Trajectory], cfg: FilterConfig, group_size: int | None = None
) -> GroupSplit:
    """Sort trajectories into groups, and groups by whether they carry a signal.

    Members that failed for want of infrastructure, or have no turn, are left out first.

    Args:
        trajectories: Members of whole groups; groups keep the order of their first member.
        cfg: Metric and tolerance; whether the filter is enabled does not matter here.
        group_size: Most members a group can have; None checks nothing.

    Raises:
        DataError: If a group has more than `group_size` members: two groups share a number.
    """
    groups: dict[int, list[Trajectory]] = {}
    for t in trajectories:
        groups.setdefault(t.group, []).append(t)
    signal, uniform, n_dropped = [], [], 0
    for number, members in groups.items():
        if group_size is not None and len(members) > group_size:
            raise DataError(f"group {number}: expected at most {group_size} members, got {len(members)}")
        valid = [t for t in members if t.is_valid]
        if len(valid) < 2:
            n_dropped += 1
        elif _spread(valid, cfg) > cfg.tolerance:
            signal.append(valid)
        else:
            uniform.append(valid)
    return GroupSplit(signal=signal, uniform=uniform, n_dropped=n_dropped)


def _spread(members: Sequence[Trajectory], cfg: FilterConfig) -> float:
    values = [t.env_return if cfg.metric == "return" else float(t.success) for t in members]
    return max(values) - min(values)


def collect_groups(
    play: Callable[[int], Sequence[Trajectory]], cfg: FilterConfig, *, n_groups: int, step: int
) -> Collected:
    """Play until `n_groups` groups carry a signal or the tries run out.

    The filter is active iff it is enabled and `step` is past the cold start. Inactive: one try, and every
    valid group is kept. Active: groups with a signal add up over tries and the surplus is cut; after the last
    try, uniform groups of that try fill up. Within a try groups count by their number, never by which episode
    happened to end first.

    Args:
        play: From the index of the try (0, 1, …) to the trajectories of whole groups. Group numbers must
            differ between tries.
        cfg: The filter.
        n_groups: Groups wanted.
        step: Training step, counted from 1.

    Raises:
        ConfigError: If no try is allowed.
        DataError: If two tries share a group number.
    """
    if cfg.max_tries < 1:
        raise ConfigError(f"filter.max_tries must be at least 1, got {cfg.max_tries}")
    active = cfg.enable and step > cfg.cold_start_steps
    splits: list[GroupSplit] = []
    seen: set[int] = set()
    signal: list[list[Trajectory]] = []
    while len(splits) < (cfg.max_tries if active else 1) and len(signal) < n_groups:
        trajectories = sorted(play(len(splits)), key=lambda t: (t.group, t.copy))
        numbers = {t.group for t in trajectories}
        if seen & numbers:
            raise DataError(f"try {len(splits)} repeats the group numbers {sorted(seen & numbers)}")
        seen |= numbers
        splits.append(split_groups(trajectories, cfg))
        signal += splits[-1].signal
    backfill: list[list[Trajectory]] = []
    if active:
        backfill = splits[-1].uniform[: max(0, n_groups - len(signal))] if splits else []
        groups = signal[:n_groups] + backfill
    else:
        groups = sorted(signal + [g for s in splits for g in s.uniform], key=lambda g: g[0].group)
    stats = CollectStats(
        tries=len(splits),
        groups_played=len(seen),
        groups_signal=len(signal),
        groups_uniform=sum(len(s.uniform) for s in splits),
        groups_dropped=sum(s.n_dropped for s in splits),
        groups_backfilled=len(backfill),
    )
    return Collected(groups=groups, stats=stats)


def silence_invalid(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the trajectories, those with an invalid turn without a token to learn from.

    References:
        SimpleTIR, arXiv:2509.02479: void turns.
    """
    return [t if all(turn.action_valid for turn in t.turns) else _silent(t) for t in trajectories]


def _silent(trajectory: Trajectory) -> Trajectory:
    turns = tuple(replace(turn, n_kept=0) for turn in trajectory.turns)
    return replace(trajectory, turns=turns)
