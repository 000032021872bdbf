import dataclasses
from itertools import permutations

import numpy as np
import pytest

from arl_gym.errors import ConfigError, DataError
from arl_gym.train.advantages import overlong_penalties, turn_advantages
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


def test_a_penalty_may_be_normalised_with_the_return_of_its_turn():
    # Samples 1, 1, 0.9, 0 over turns: mean 0.725, variance (2 * 0.275^2 + 0.175^2 + 0.725^2) / 3 = 0.235833.
    pair = [
        trajectory(turn(reward=1), turn(), turn(penalty=0.1)),
        trajectory(turn(), copy=1),
    ]
    cfg = AdvantageConfig(step_weight=0.0, group_stats="turn", normalise_penalty=True)
    won, lost = turn_advantages(pair, cfg)
    assert won == pytest.approx([0.275 / 0.485627] * 2 + [0.175 / 0.485627], rel=1e-4)
    assert lost == pytest.approx([-0.725 / 0.485627], rel=1e-4)


def test_the_sample_of_a_trajectory_is_the_mean_of_its_turns():
    # Samples (1 + 0.9) / 2 = 0.95 and 0: mean 0.475, std 0.95 / sqrt(2) = 0.671751.
    pair = [trajectory(turn(reward=1), turn(penalty=0.1)), trajectory(turn(), copy=1)]
    won, lost = turn_advantages(pair, dataclasses.replace(GRPO, normalise_penalty=True))
    assert won == pytest.approx([0.525 / 0.671751, 0.425 / 0.671751], rel=1e-4)
    assert lost == pytest.approx([-0.475 / 0.671751], rel=1e-4)


def test_a_normalised_penalty_does_not_reach_the_turns_before_it():
    pair = [
        trajectory(turn(anchor="a"), turn(reward=1, penalty=0.2, anchor="b")),
        trajectory(turn(anchor="a"), turn(reward=1, anchor="b"), copy=1),
    ]
    cfg = AdvantageConfig(normalise="mean", normalise_penalty=True)
    # Episode samples 0.9 and 1, mean 0.95: rows 1, 0.8 and 1, 1. Step: equal at a; 0.8 and 1 at b.
    punished, clean = turn_advantages(pair, cfg)
    assert punished == pytest.approx([0.05, -0.15 - 0.1])
    assert clean == pytest.approx([0.05, 0.05 + 0.1])


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


EMPG = AdvantageConfig(step_weight=0.0, normalise="mean", empg=True)
# Advantages 0.5, 0.5 and -0.5; entropies 1, 3 and 5 scaled to 0, 0.5 and 1.
SURE_AND_UNSURE = [trajectory(turn(reward=1), turn()), trajectory(turn(), copy=1)]
ENTROPIES = [np.array([1.0, 3.0], np.float32), np.array([5.0], np.float32)]


@pytest.mark.parametrize(
    ("dials", "expected"),
    [
        # exp(-H): 1, 0.606531, 0.367879, mean 0.658137: scales 1.519442, 0.921588, 0.558971. Bonus of the
        # first turn 0.05 * 0.606531: 0.790047, 0.460794, -0.279485, mean 0.323785.
        ({}, (0.466262, 0.137009, -0.603271)),
        # exp(-2 H): 1, 0.367879, 0.135335, mean 0.501072: scales 1.995723, 0.734185, 0.270092. Bonus
        # 0.1 * exp(-3 / 2) = 0.022313: 1.020174, 0.367093, -0.135046, mean 0.417407.
        ({"empg_k": 2.0, "empg_k_future": 3.0, "empg_zeta": 0.1}, (0.602767, -0.050314, -0.552453)),
    ],
)
def test_empg_scales_by_entropy_adds_a_bonus_and_centres(dials, expected):
    cfg = dataclasses.replace(EMPG, **dials)
    won, lost = turn_advantages(SURE_AND_UNSURE, cfg, entropies=ENTROPIES)
    assert [*won, *lost] == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("unread", [np.nan, 99.0])
def test_turns_without_tokens_stay_out_of_empg(unread):
    # Scaled entropies 0 and 1 of the two turns with tokens: exp(0) = 1, exp(-1) = 0.367879, mean 0.683940, so
    # 0.731059 and -0.268941, mean 0.231059. The first turn gets no bonus of a turn that has no tokens.
    played = [trajectory(turn(reward=1), turn(n_kept=0)), trajectory(turn(), copy=1)]
    entropies = [np.array([1.0, unread], np.float32), np.array([5.0], np.float32)]
    won, lost = turn_advantages(played, EMPG, entropies=entropies)
    assert won == pytest.approx([0.5, 0.5])
    assert lost == pytest.approx([-0.5])


def test_equal_entropies_leave_only_the_bonus():
    entropies = [np.full(2, 3.0, np.float32), np.full(1, 3.0, np.float32)]
    won, lost = turn_advantages(SURE_AND_UNSURE, EMPG, entropies=entropies)
    # 0.55, 0.5 and -0.5, mean 0.55 / 3.
    assert [*won, *lost] == pytest.approx([0.55 - 0.55 / 3, 0.5 - 0.55 / 3, -0.5 - 0.55 / 3])


@pytest.mark.parametrize(
    ("entropies", "message"),
    [
        (None, "empg needs the entropy of every turn, got none"),
        (ENTROPIES[:1], r"expected \[2, 1\] values per trajectory, got \[2\]"),
        ([ENTROPIES[0], np.array([np.nan], np.float32)], "turn 2 of 3 has tokens but its entropy is nan"),
    ],
)
def test_empg_needs_the_entropy_of_every_turn_with_tokens(entropies, message):
    with pytest.raises(DataError, match=message):
        turn_advantages(SURE_AND_UNSURE, EMPG, entropies=entropies)


def test_empg_of_nothing_but_empty_turns_is_the_advantage_itself():
    played = [trajectory(turn(reward=1, n_kept=0)), trajectory(turn(n_kept=0), copy=1)]
    entropies = [np.full(1, np.nan, np.float32)] * 2
    assert np.concatenate(turn_advantages(played, EMPG, entropies=entropies)).tolist() == [0.5, -0.5]


def alike(*anchors: str) -> list[float]:
    """Step advantages of episodes of one turn with returns 1, 2, 3, … and the given anchors."""
    played = [trajectory(turn(reward=k + 1, anchor=a), copy=k) for k, a in enumerate(anchors)]
    cfg = AdvantageConfig(normalise="mean", anchor_similarity=0.75)
    episode = dataclasses.replace(cfg, step_weight=0.0)
    both, one = (np.concatenate(turn_advantages(played, c)) for c in (cfg, episode))
    return list(both - one)


def test_similar_anchors_share_a_group():
    # abcd and abce have 3 of 4 letters in common: 2 * 3 / 8 = 0.75. abcd and abxy: 0.5.
    assert alike("abcd", "abce", "abxy") == pytest.approx([-0.5, 0.5, 0.0])


def test_an_anchor_joins_the_first_that_is_similar_to_it():
    # abfe is like abce (0.75), but that one is represented by abcd, which it is not like (0.5).
    assert alike("abcd", "abce", "abfe") == pytest.approx([-0.5, 0.5, 0.0])
    assert alike("abce", "abcd", "abfe") == pytest.approx([-1.0, 0.0, 1.0])


def test_common_letters_of_long_texts_count():
    assert alike("x" + "ab" * 150, "y" + "ab" * 150) == pytest.approx([-0.5, 0.5])


def test_similar_anchors_do_not_depend_on_who_ended_first():
    played = [
        trajectory(turn(reward=k, anchor=a), copy=k) for k, a in enumerate(("abcd", "abce", "abfe", "wxyz"))
    ]
    cfg = AdvantageConfig(anchor_similarity=0.75)
    straight = np.concatenate(turn_advantages(played, cfg))
    backwards = np.concatenate(turn_advantages(played[::-1], cfg))
    assert backwards[::-1] == pytest.approx(straight)


def test_an_overlong_response_costs_more_the_nearer_it_is_to_the_limit():
    # Of 10 tokens the last 2: nothing up to 8, then 0.1 / 2 a token.
    lengths = [trajectory(*[turn(completion=[2] * n) for n in (7, 8, 9, 10)])]
    cfg = AdvantageConfig(overlong_penalty=0.1)
    assert overlong_penalties(lengths, cfg, 10)[0] == pytest.approx([0.0, 0.0, 0.05, 0.1])
    wider = dataclasses.replace(cfg, overlong_buffer=5)
    assert overlong_penalties(lengths, wider, 10)[0] == pytest.approx([0.04, 0.06, 0.08, 0.1])
    shortest = [trajectory(turn(completion=[2] * 3), turn(completion=[2] * 4))]
    assert overlong_penalties(shortest, cfg, 4)[0] == pytest.approx([0.0, 0.1])  # a slope of one token


def test_overlong_responses_lower_their_own_turns():
    pair = [
        trajectory(turn(completion=[2] * 10, anchor="a"), turn(penalty=0.3, anchor="b")),
        trajectory(turn(anchor="a"), turn(completion=[2] * 9, anchor="b"), copy=1),
    ]
    first, second = turn_advantages(pair, AdvantageConfig(overlong_penalty=0.1), max_tokens=10)
    assert [*first, *second] == pytest.approx([-0.1, -0.3, 0.0, -0.05])


def test_the_overlong_penalty_needs_a_limit_that_holds_its_buffer():
    cfg = AdvantageConfig(overlong_penalty=0.1, overlong_buffer=11)
    with pytest.raises(DataError, match=r"overlong_penalty=0\.1 needs max_tokens, got none"):
        turn_advantages(GROUP, cfg)
    with pytest.raises(ConfigError, match="overlong_buffer must be at most 10 tokens, got 11"):
        turn_advantages(GROUP, cfg, max_tokens=10)


@pytest.mark.parametrize("step_weight", [0.0, 1.0])
@pytest.mark.parametrize("group_stats", ["trajectory", "turn"])
def test_a_constant_added_to_all_returns_changes_nothing(step_weight, group_stats):
    # The constant comes with the last reward, and without discount it reaches every return-to-go.
    cfg = AdvantageConfig(gamma=1.0, step_weight=step_weight, group_stats=group_stats)

    def richer(t):
        *before, last = t.turns
        return dataclasses.replace(
            t, turns=(*before, dataclasses.replace(last, env_reward=last.env_reward + 8.0))
        )

    plain, shifted = (turn_advantages(g, cfg) for g in (GROUP, [richer(t) for t in GROUP]))
    assert np.concatenate(shifted) == pytest.approx(np.concatenate(plain), abs=1e-6)


@pytest.mark.parametrize("cfg", [GRPO, AdvantageConfig(), EMPG], ids=["GRPO", "GiGPO", "EMPG"])
def test_the_order_within_a_group_changes_nothing(cfg):
    played = [trajectory(turn(anchor="a"), turn(reward=r, anchor="b"), copy=r) for r in range(3)]
    entropies = [np.array([r, 1.0], np.float32) for r in range(3)]
    straight = turn_advantages(played, cfg, entropies=entropies)
    for order in permutations(range(3)):
        mixed = turn_advantages([played[i] for i in order], cfg, entropies=[entropies[i] for i in order])
        for i, values in zip(order, mixed, strict=True):
            assert values == pytest.approx(straight[i], abs=1e-7)


@pytest.mark.parametrize("cfg", [GRPO, AdvantageConfig(), EMPG], ids=["GRPO", "GiGPO", "EMPG"])
def test_an_invalid_turn_among_equal_returns_moves_no_other(cfg):
    def played(penalty):
        first = trajectory(turn(anchor="a", reward=1), turn(anchor="b", penalty=penalty))
        return [first, *(trajectory(turn(anchor="a", reward=1), turn(anchor="b"), copy=c) for c in (1, 2))]

    entropies = [np.array([r, 1.0], np.float32) for r in range(3)]
    clean, punished = (np.concatenate(turn_advantages(played(p), cfg, entropies=entropies)) for p in (0, 0.1))
    moved = punished != clean
    assert moved.tolist() == [False, True, False, False, False, False]
    assert punished[1] == pytest.approx(clean[1] - 0.1)


def test_no_trajectories_give_no_advantages():
    assert turn_advantages([], AdvantageConfig()) == []


@pytest.mark.parametrize("gamma", [0.0, -0.5, 1.01, float("nan")])
def test_a_discount_outside_its_range_is_an_error(gamma):
    with pytest.raises(ConfigError, match=r"gamma must be in \(0, 1\]"):
        turn_advantages(GROUP, AdvantageConfig(gamma=gamma))


@pytest.mark.parametrize("dial", ["step_weight", "empg_k", "empg_k_future", "empg_zeta", "overlong_penalty"])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_negative_weight_is_an_error(dial, value):
    with pytest.raises(ConfigError, match=rf"advantage\.{dial} must not be negative, got {value}"):
        turn_advantages(GROUP, AdvantageConfig(**{dial: value}))


@pytest.mark.parametrize("value", [0.0, 1.01])
def test_a_similarity_outside_its_range_is_an_error(value):
    with pytest.raises(ConfigError, match=rf"anchor_similarity must be in \(0, 1\], got {value}"):
        turn_advantages(GROUP, AdvantageConfig(anchor_similarity=value))
