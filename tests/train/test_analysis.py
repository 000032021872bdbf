import math

import numpy as np
import pytest

from arl_gym.errors import ConfigError
from arl_gym.train.analysis import (
    CLASSES,
    band,
    class_shares,
    clip_shares,
    divergence_to_reference,
    sequence_points,
    turn_class,
    whole_trajectories,
)
from arl_gym.train.recordings import RecordedStep
from tests.train.scores import turn

# Ratios 1.3 and 0.7 are outside [0.8, 1.2], 1.1 and 1.0 inside.
UP, DOWN = turn(1.0, [1.3, 1.1, 1.0]), turn(-1.0, [0.7], trajectory=1)


def step(number, *turns):
    return RecordedStep(step=number, episodes=(), turns=turns)


def shares(*turns, level="token", low=0.2, high=0.2):
    return clip_shares(turns, ratio_level=level, clip_low=low, clip_high=high)


def test_shares_outside_the_clip_range_are_of_all_tokens():
    assert shares(UP, DOWN) == (1 / 4, 1 / 4)


def test_a_turn_without_advantage_is_on_no_side():
    assert shares(turn(0.0, [2.0]), UP) == (1 / 4, 0.0)


def test_each_bound_counts_by_itself():
    assert shares(UP, DOWN, low=0.4) == (1 / 4, 0.0)
    assert shares(UP, DOWN, high=0.4) == (0.0, 1 / 4)


def test_the_ratio_of_a_turn_is_a_geometric_mean_shared_by_its_tokens():
    # 4 and 0.25 multiply to 1: no token of the turn is outside, though each alone would be.
    assert shares(turn(1.0, [4.0, 0.25])) == (1.0, 0.0)
    assert shares(turn(1.0, [4.0, 0.25]), level="turn") == (0.0, 0.0)
    # sqrt(1.69) = 1.3 is outside, for both tokens.
    assert shares(turn(1.0, [1.69, 1.0]), level="turn") == (1.0, 0.0)


def test_the_ratio_of_a_trajectory_spans_its_turns():
    first, second = turn(1.0, [4.0], trajectory=3), turn(-1.0, [0.25], trajectory=3)
    assert shares(first, second, level="turn") == (0.5, 0.5)
    assert shares(first, second, level="trajectory") == (0.0, 0.0)


def test_an_unknown_span_is_refused():
    with pytest.raises(ConfigError, match="got 'word'"):
        shares(UP, level="word")


def test_a_point_is_how_much_less_likely_a_turn_became_and_its_advantage():
    # -ln(0.5) = ln 2 and -ln(2) = -ln 2; over both tokens of the first turn (ln 2 - 0) / 2.
    points = sequence_points([turn(-1.0, [0.5, 1.0], entropy=0.3), turn(2.0, [2.0])])
    assert points.gap == pytest.approx([math.log(2) / 2, -math.log(2)])
    assert points.advantage.tolist() == [-1.0, 2.0]
    assert points.entropy == pytest.approx([0.3, 0.2])


def test_the_mask_drops_what_has_a_negative_advantage_and_fell_by_more_than_delta():
    down, up = [0.9], [1.1]  # old minus new: 0.105, -0.095
    turns = [turn(-1.0, down), turn(1.0, down), turn(-1.0, up), turn(0.0, down)]
    assert sequence_points(turns).masked(0.1).tolist() == [True, False, False, False]
    assert not sequence_points(turns).masked(0.11).any()


def test_a_trajectory_is_its_turns_joined_and_its_advantage_the_mean_over_tokens():
    turns = [turn(1.0, [2.0, 2.0, 2.0], trajectory=4), turn(-3.0, [0.5]), turn(-1.0, [1.0], trajectory=4)]
    whole, other = whole_trajectories(turns)
    assert whole.advantage == 0.5  # (3 * 1 - 1) / 4
    assert whole.new - whole.old == pytest.approx([math.log(2)] * 3 + [0.0])
    assert (other.trajectory, other.advantage) == (0, -3.0)


@pytest.mark.parametrize(
    ("scores", "name"),
    [
        (turn(1.0, [1.1], entropy=0.5), "A > 0, high entropy, more likely"),
        (turn(0.0, [0.9], entropy=0.45), "A ≤ 0, low entropy, less likely"),
        (turn(-1.0, [1.1], entropy=0.1), "A ≤ 0, low entropy, more likely"),
        (turn(2.0, [0.9], entropy=0.1), "A > 0, low entropy, less likely"),
    ],
)
def test_a_turn_is_of_the_class_of_its_three_bits(scores, name):
    assert CLASSES[turn_class(scores)] == name


def test_more_likely_is_decided_by_probabilities_not_by_their_logarithms():
    # Probabilities 0.4 to 0.6 and 0.01 to 0.001: +0.2 - 0.009 > 0, but ln 1.5 + ln 0.1 < 0.
    likely, rare = turn(1.0, [1.5], old=0.4), turn(1.0, [0.1], old=0.01)
    both = type(likely)(
        trajectory=0,
        advantage=1.0,
        old=np.concatenate([likely.old, rare.old]),
        new=np.concatenate([likely.new, rare.new]),
        ref=None,
        entropy=np.zeros(2),
    )
    assert np.sum(both.new - both.old) < 0
    assert CLASSES[turn_class(both)].endswith("more likely")


def test_divergence_is_the_mean_of_k3():
    # ref / new = 0.5 / 0.25 = 2: 2 - ln 2 - 1.
    assert divergence_to_reference(turn(1.0, [0.5], ref=0.5)) == pytest.approx(1 - math.log(2))
    assert divergence_to_reference(turn(1.0, [1.0], ref=0.5)) == 0.0


def test_divergence_is_at_most_ten_and_not_a_number_counts_as_zero():
    far = turn(1.0, [1.0, 1.0], ref=0.5)
    far.ref[:] = (50.0, math.nan)
    assert divergence_to_reference(far) == 5.0


def test_divergence_needs_a_reference():
    with pytest.raises(ValueError, match="no reference"):
        divergence_to_reference(turn(1.0, [1.0]))


def test_classes_share_every_step_by_turns_and_by_softmax_of_divergence():
    near, far = turn(1.0, [1.0], ref=0.5), turn(-1.0, [0.5], ref=0.5)
    got = class_shares([step(20, near), step(10, near, near, far)])
    assert got.steps == (10, 20)
    up, down = CLASSES.index("A > 0, low entropy, less likely"), 0
    assert got.turns[:, [up, down]].tolist() == [[2 / 3, 1 / 3], [1.0, 0.0]]
    assert got.divergence is not None
    # Means 0 and 1 - ln 2; exp(1 - ln 2) = e / 2.
    assert got.divergence[0, down] == pytest.approx((math.e / 2) / (1 + math.e / 2))
    assert got.divergence.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert np.count_nonzero(got.divergence[0]) == 2  # classes that do not occur have no share


def test_without_a_reference_there_is_no_share_by_divergence():
    assert class_shares([step(1, turn(1.0, [1.0], ref=0.5)), step(2, turn(1.0, [1.0]))]).divergence is None
    assert class_shares([step(1)]).steps == ()


def test_a_band_of_equal_runs_has_no_width():
    b = band([{1: (10.0, 0.5)}, {1: (30.0, 0.5)}])
    assert (b.x[0], b.mean[0], b.low[0], b.high[0]) == (20.0, 0.5, 0.5, 0.5)


def test_a_band_lies_within_the_runs_and_is_the_same_every_time():
    runs = [{1: (1.0, v)} for v in (0.0, 1.0, 2.0, 3.0, 4.0)]
    b = band(runs)
    assert b.mean[0] == 2.0
    # The mean of five draws has the standard deviation sqrt(2 / 5) = 0.63: about 2 -+ 1.2.
    assert b.low[0] == pytest.approx(0.8, abs=0.2)
    assert b.high[0] == pytest.approx(3.2, abs=0.2)
    assert band(runs).low == b.low


def test_a_step_that_a_run_lacks_has_a_mean_but_no_interval():
    b = band([{1: (1.0, 1.0), 2: (2.0, 1.0)}, {2: (2.0, 3.0), 3: (3.0, 3.0)}])
    assert b.count.tolist() == [1, 2, 1]
    assert b.mean.tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(b.low).tolist() == [True, False, True]
