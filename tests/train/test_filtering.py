import dataclasses

import pytest

from arl_gym.agents.types import Trajectory
from arl_gym.errors import ConfigError, DataError
from arl_gym.train.config import FilterConfig
from arl_gym.train.filtering import CollectStats, collect_groups, silence_invalid, split_groups
from tests.train.trajectories import trajectory, turn


def group(number: int, *returns: float) -> list[Trajectory]:
    return [trajectory(turn(reward=r), group=number, copy=c) for c, r in enumerate(returns)]


def numbers(groups: list[list[Trajectory]]) -> list[int]:
    return [g[0].group for g in groups]


def test_groups_with_different_returns_carry_signal():
    split = split_groups(group(5, 0, 1) + group(3, 2, 2) + group(4, 1, 0), FilterConfig())
    assert numbers(split.signal) == [5, 4]
    assert numbers(split.uniform) == [3]
    assert split.n_dropped == 0


def test_the_metric_is_the_return_before_penalties():
    members = [trajectory(turn(reward=1, penalty=0.1)), trajectory(turn(reward=1), copy=1)]
    assert len(split_groups(members, FilterConfig()).uniform) == 1


def test_success_and_return_differ_when_rewards_are_graded():
    members = [
        trajectory(turn(reward=9.2), success=True),
        trajectory(turn(reward=9.0), copy=1, success=True),
    ]
    assert len(split_groups(members, FilterConfig(metric="return")).signal) == 1
    assert len(split_groups(members, FilterConfig(metric="success")).uniform) == 1


def test_rounding_is_no_signal():
    # Ten times 0.1 sums to 1 - 1.1e-16.
    ten = trajectory(*[turn(reward=0.1) for _ in range(10)])
    one = trajectory(turn(reward=1.0), copy=1)
    assert ten.env_return != one.env_return
    assert len(split_groups([ten, one], FilterConfig()).uniform) == 1


@pytest.mark.parametrize(
    "broken",
    [trajectory(turn(reward=7), copy=2, stop="env_error"), trajectory(copy=2)],
    ids=["env_error", "no turns"],
)
def test_broken_members_are_left_out(broken):
    split = split_groups([*group(0, 1, 1), broken], FilterConfig())
    assert [len(g) for g in split.uniform] == [2]
    assert split.signal == []


def test_a_group_with_one_valid_member_is_dropped_and_counted():
    members = [*group(0, 0, 1), trajectory(turn(reward=1), group=1), trajectory(group=1, copy=1)]
    split = split_groups(members, FilterConfig())
    assert numbers(split.signal) == [0]
    assert split.n_dropped == 1


def test_a_group_larger_than_the_group_size_is_an_error():
    with pytest.raises(DataError, match="group 3: expected at most 2 members, got 3"):
        split_groups(group(3, 0, 1, 1), FilterConfig(), 2)


TRIES = [
    group(0, 0, 0) + group(1, 0, 1) + group(2, 1, 1),
    group(3, 1, 1) + group(4, 0, 1) + group(5, 0, 0),
    group(6, 0, 0) + group(7, 1, 1) + group(8, 0, 0),
]


def test_tries_add_up_and_the_last_one_backfills_in_order():
    out = collect_groups(TRIES.__getitem__, FilterConfig(max_tries=3), n_groups=4, step=1)
    assert numbers(out.groups) == [1, 4, 6, 7]
    assert out.stats == CollectStats(
        tries=3, groups_played=9, groups_signal=2, groups_uniform=7, groups_dropped=0, groups_backfilled=2
    )


def test_playing_stops_when_enough_groups_carry_signal():
    out = collect_groups(TRIES.__getitem__, FilterConfig(max_tries=3), n_groups=2, step=1)
    assert numbers(out.groups) == [1, 4]
    assert (out.stats.tries, out.stats.groups_backfilled) == (2, 0)


def test_surplus_is_cut_by_group_number_not_by_who_ended_first():
    late_first = group(3, 0, 1) + group(1, 1, 0) + group(2, 0, 1) + group(0, 1, 1) + group(4, 0, 0)
    out = collect_groups(lambda i: late_first, FilterConfig(), n_groups=2, step=1)
    assert numbers(out.groups) == [1, 2]
    assert out.stats.groups_signal == 3


@pytest.mark.parametrize(("step", "tries"), [(15, 1), (16, 3)])
def test_the_filter_turns_on_one_step_after_the_cold_start(step, tries):
    cfg = FilterConfig(cold_start_steps=15, max_tries=3)
    out = collect_groups(TRIES.__getitem__, cfg, n_groups=3, step=step)
    assert out.stats.tries == tries


def test_an_inactive_filter_keeps_every_valid_group_of_one_try():
    played = TRIES[0] + [trajectory(group=9), trajectory(group=9, copy=1)]
    out = collect_groups(lambda i: played, FilterConfig(enable=False), n_groups=3, step=99)
    assert numbers(out.groups) == [0, 1, 2]
    assert out.stats == CollectStats(
        tries=1, groups_played=4, groups_signal=1, groups_uniform=2, groups_dropped=1, groups_backfilled=0
    )


def test_nothing_usable_gives_no_groups():
    out = collect_groups(
        lambda i: [trajectory(group=i, stop="env_error")], FilterConfig(max_tries=2), n_groups=1, step=1
    )
    assert out.groups == []
    assert (out.stats.tries, out.stats.groups_dropped) == (2, 2)


def test_tries_that_share_a_group_number_are_an_error():
    with pytest.raises(DataError, match=r"try 1 repeats the group numbers \[0\]"):
        collect_groups(lambda i: group(0, 1, 1), FilterConfig(max_tries=2), n_groups=1, step=1)


def test_zero_tries_are_an_error():
    with pytest.raises(ConfigError, match="max_tries must be at least 1, got 0"):
        collect_groups(TRIES.__getitem__, FilterConfig(max_tries=0), n_groups=1, step=1)


def test_episodes_with_an_invalid_turn_lose_their_tokens_and_nothing_else():
    good = trajectory(turn(), turn(reward=1))
    void = trajectory(turn(), dataclasses.replace(turn(reward=1), action_valid=False))
    kept, silent = silence_invalid([good, void])
    assert kept == good
    assert [t.n_kept for t in silent.turns] == [0, 0]
    assert [t.completion_ids for t in silent.turns] == [[2], [2]]
    assert silent.env_return == 1
