import numpy as np
import pytest

from arl_gym.errors import ConfigError
from arl_gym.train.advantages import turn_advantages
from arl_gym.train.config import AdvantageConfig
from tests.train.trajectories import trajectory, turn

GRPO = AdvantageConfig(step_weight=0.0)

# One group of two. Returns 1 and 0. With gamma 0.5 the returns-to-go are (0.5, 1) and (0, 0, 0).
GROUP = [
    trajectory(turn(anchor="s0"), turn(reward=1.0, anchor="s1")),
    trajectory(turn(anchor="s0"), turn(anchor="s1"), turn(anchor="s0"), copy=1),
]


def test_the_episode_part_is_the_same_for_all_turns():
    # Mean 0.5, std sqrt(0.5) = 0.70711: (1 - 0.5) / 0.70711 = 0.70711.
    won, lost = turn_advantages(GROUP, GRPO)
    assert won == pytest.approx([0.70711] * 2, rel=1e-4)
    assert lost == pytest.approx([-0.70711] * 3, rel=1e-4)
    assert won.dtype == lost.dtype == np.float32


def test_turn_statistics_weigh_long_episodes_more():
    # Samples 1, 1, 0, 0, 0: mean 0.4, variance (2 * 0.36 + 3 * 0.16) / 4 = 0.3, std 0.54772.
    won, lost = turn_advantages(GROUP, AdvantageConfig(step_weight=0.0, group_stats="turn"))
    assert won == pytest.approx([1.09545] * 2, rel=1e-4)
    assert lost == pytest.approx([-0.73030] * 3, rel=1e-4)


def test_the_step_part_compares_turns_with_the_same_anchor():
    # s0: scores 0.5, 0, 0: mean 1/6, std sqrt(1/12) = 0.28868 gives 1.15470, -0.57735, -0.57735.
    # s1: scores 1, 0: 0.70711, -0.70711.
    won, lost = turn_advantages(GROUP, AdvantageConfig(gamma=0.5, step_weight=2.0))
    assert won == pytest.approx([0.70711 + 2 * 1.15470, 0.70711 + 2 * 0.70711], rel=1e-4)
    assert lost == pytest.approx(
        [-0.70711 - 2 * 0.57735, -0.70711 - 2 * 0.70711, -0.70711 - 2 * 0.57735], rel=1e-4
    )


def test_without_the_division_both_parts_are_plain_differences():
    won, lost = turn_advantages(GROUP, AdvantageConfig(gamma=0.5, normalise="mean"))
    assert won == pytest.approx([0.5 + 1 / 3, 0.5 + 0.5])
    assert lost == pytest.approx([-0.5 - 1 / 6, -0.5 - 0.5, -0.5 - 1 / 6])


def test_the_return_to_go_discounts_by_turn():
    # D = 0 + 0.5 * (2 + 0.5 * 4) = 2 against 0; only the first turns share an anchor.
    first = trajectory(turn(anchor="a"), turn(reward=2, anchor="b"), turn(reward=4, anchor="c"))
    second = trajectory(turn(anchor="a"), copy=1)
    cfg = AdvantageConfig(gamma=0.5, normalise="mean")
    assert turn_advantages([first, second], cfg)[0] == pytest.approx([3 + 1, 3, 3])


def test_the_same_anchor_in_another_group_is_another_state():
    pair = [trajectory(turn(reward=5, anchor="a")), trajectory(turn(reward=5), copy=1)]
    other = [trajectory(turn(reward=1, anchor="a"), group=1), trajectory(turn(reward=1), group=1, copy=1)]
    assert np.concatenate(turn_advantages(pair + other, AdvantageConfig())) == pytest.approx([0, 0, 0, 0])


def test_a_penalty_lowers_its_own_turn_only_and_is_not_normalised():
    # Equal returns: a normalised penalty would be of size 1 whatever its own size.
    pair = [
        trajectory(turn(reward=1, anchor="a"), turn(penalty=0.1, anchor="b")),
        trajectory(turn(reward=1, anchor="a"), turn(anchor="b"), copy=1),
    ]
    punished, clean = turn_advantages(pair, AdvantageConfig())
    assert punished == pytest.approx([0.0, -0.1])
    assert clean == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("normalise", ["mean_std", "mean"])
def test_rounding_noise_is_not_blown_up(normalise):
    ten = trajectory(*[turn(reward=0.1, anchor=f"a{k}") for k in range(10)])
    one = trajectory(turn(reward=1.0), copy=1)
    assert ten.env_return != one.env_return
    values = turn_advantages([ten, one], AdvantageConfig(normalise=normalise))
    assert np.concatenate(values).tolist() == [0.0] * 11


def test_a_tiny_but_real_spread_is_normalised():
    pair = [trajectory(turn(reward=1e-3)), trajectory(turn(), copy=1)]
    # Std 7.0711e-4, plus the epsilon 1e-6: 5e-4 / 7.0811e-4.
    assert turn_advantages(pair, GRPO)[0] == pytest.approx([0.70611], rel=1e-4)


def test_a_lone_trajectory_has_nothing_to_compare_with():
    lone = trajectory(turn(reward=3, anchor="a"), turn(anchor="b", penalty=0.1))
    assert turn_advantages([lone], AdvantageConfig())[0] == pytest.approx([0.0, -0.1])


def test_the_order_of_trajectories_does_not_matter():
    other = [trajectory(turn(reward=r), group=1, copy=c) for c, r in enumerate((4.0, 0.0))]
    straight = turn_advantages(GROUP + other, AdvantageConfig())
    mixed = turn_advantages([other[1], GROUP[1], other[0], GROUP[0]], AdvantageConfig())
    for a, b in zip(straight, [mixed[3], mixed[1], mixed[2], mixed[0]], strict=True):
        assert a == pytest.approx(b)


def test_no_trajectories_give_no_advantages():
    assert turn_advantages([], AdvantageConfig()) == []


@pytest.mark.parametrize("gamma", [0.0, -0.5, 1.01, float("nan")])
def test_a_discount_outside_its_range_is_an_error(gamma):
    with pytest.raises(ConfigError, match=r"gamma must be in \(0, 1\]"):
        turn_advantages(GROUP, AdvantageConfig(gamma=gamma))


def test_a_negative_step_weight_is_an_error():
    with pytest.raises(ConfigError, match="step_weight must not be negative, got -1"):
        turn_advantages(GROUP, AdvantageConfig(step_weight=-1.0))
