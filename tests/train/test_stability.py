import pytest

from arl_gym.train.stability import describe_stability, stability


def rows(*values):
    return [{"step": i, "rollout/played_success_rate": v} for i, v in enumerate(values, start=1)]


def steadiness(values):
    s = stability(values)
    assert s is not None
    return s


def test_steady_success_has_neither_variance_nor_a_fall():
    s = steadiness(rows(*[0.5] * 20))
    assert (s.variance, s.max_drawdown, s.collapse_step) == (0.0, 0.0, None)
    assert (s.final, s.best, s.best_step) == (0.5, 0.5, 5)


def test_the_variance_is_of_the_last_fifth_of_the_steps():
    # Of 10 steps the last 2: 0.2 and 0.6 about 0.4.
    assert steadiness(rows(*[0.9] * 8, 0.2, 0.6)).variance == pytest.approx(0.04)


def test_a_collapse_begins_where_the_mean_of_five_falls_below_half_of_its_best_for_good():
    # Means of five from step 5 on: 1, .8, .6, .4, .2, 0. Half of the best is 0.5: below it from step 8 on.
    s = steadiness(rows(*[1.0] * 5, *[0.0] * 5))
    assert (s.best, s.best_step, s.final) == (1.0, 5, 0.0)
    assert s.collapse_step == 8
    assert s.max_drawdown == 1.0
    assert "below half of its best for good at step 8" in describe_stability(s)


def test_a_fall_that_is_made_good_is_no_collapse():
    s = steadiness(rows(*[1.0] * 5, *[0.0] * 4, *[1.0] * 5))
    assert s.collapse_step is None
    assert s.max_drawdown == pytest.approx(0.8)  # one of five is left at step 9
    assert "deepest fall from a peak was 0.80" in describe_stability(s)


def test_a_short_run_is_one_window():
    s = steadiness(rows(0.2, 0.4))
    assert (s.window, s.final, s.best_step) == (2, pytest.approx(0.3), 2)
    assert "mean of 2 steps" in describe_stability(s)


def test_steps_count_in_their_order_and_nulls_not_at_all():
    s = steadiness(rows(*[1.0] * 5, None, *[0.0] * 5)[::-1])
    assert s.final == 0.0
    assert s.collapse_step == 9


def test_a_run_without_success_rate_has_no_stability():
    assert stability([{"step": 1, "loss/kl": 0.1}]) is None
