import math

import pytest

from arl_gym.train.alarms import Alarms, check
from arl_gym.train.config import MonitorConfig

CFG = MonitorConfig(min_format_valid=0.5, max_kl=1.0, max_grad_norm=100.0, max_repeated=0.3, min_entropy=0.01)


def test_a_healthy_row_raises_nothing():
    row = {
        "rollout/format_valid_frac": 0.5,
        "loss/approx_kl": 1.0,
        "loss/kl": 0.2,
        "optim/grad_norm": 100.0,
        "rollout/repeated_frac": 0.3,
        "rollout/entropy_mean": 0.01,
        "time/step_s": 1e9,
    }
    assert check(row, CFG) == []
    assert check({}, CFG) == []


@pytest.mark.parametrize(
    ("metric", "value", "limit", "off"),
    [
        ("rollout/format_valid_frac", 0.49, 0.5, "min_format_valid"),
        ("loss/approx_kl", 1.5, 1.0, "max_kl"),
        ("loss/approx_kl", -1.5, 1.0, "max_kl"),
        ("loss/kl", 1.01, 1.0, "max_kl"),
        ("optim/grad_norm", 250.0, 100.0, "max_grad_norm"),
        ("rollout/repeated_frac", 0.31, 0.3, "max_repeated"),
        ("rollout/entropy_mean", 0.001, 0.01, "min_entropy"),
    ],
)
def test_a_metric_beyond_its_limit_raises_one_alarm_unless_the_limit_is_zero(metric, value, limit, off):
    (alarm,) = check({"step": 3, metric: value}, CFG)
    assert (alarm.metric, alarm.value, alarm.limit) == (metric, value, limit)
    assert f"is {value:.3g}, " in alarm.text
    assert check({metric: value}, MonitorConfig(**{off: 0.0})) == []


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_any_metric_that_is_not_finite_raises_an_alarm_that_says_so(value):
    (alarm,) = check({"step": 3, "loss/policy": value}, CFG)
    assert (alarm.metric, alarm.value, alarm.limit) == ("loss/policy", None, None)
    assert "not finite" in alarm.text


def test_the_sentence_says_what_came_what_was_expected_and_what_to_try():
    (alarm,) = check({"loss/kl": 2.5}, CFG)
    assert alarm.text == (
        "loss/kl: the divergence from the reference is 2.5, above 1: raise loss.kl_coef or lower optim.lr"
    )


def rows(*entropies: float | None) -> list[dict[str, float | None]]:
    return [{"rollout/entropy_mean": e} for e in entropies]


def steps_of_alarms(alarms: Alarms, rows) -> list[int]:
    return [step for step, row in enumerate(rows, start=1) if alarms.update(step, row)]


def test_an_alarm_is_raised_again_only_after_the_metric_was_back_inside():
    series = rows(0.5, 0.001, 0.002, 0.5, 0.003, 0.003)
    assert steps_of_alarms(Alarms(CFG), series) == [2, 5]


def test_a_step_without_the_metric_is_not_a_return_to_normal():
    assert steps_of_alarms(
        Alarms(CFG), [{"rollout/entropy_mean": 0.001}, {}, {"rollout/entropy_mean": 0.001}]
    ) == [1]


def test_a_value_that_stops_being_finite_while_beyond_the_limit_is_no_second_alarm():
    assert steps_of_alarms(Alarms(CFG), rows(0.001, None, 0.001, 0.5, None)) == [1, 5]


def test_a_resumed_run_that_feeds_the_rows_so_far_goes_on_as_if_it_had_not_stopped():
    series = rows(0.001, 0.001, 0.5, 0.001, 0.001)
    whole, resumed = Alarms(CFG), Alarms(CFG)
    for step, row in enumerate(series, start=1):
        whole.update(step, row)
    for step, row in enumerate(series[:4], start=1):
        resumed.update(step, row)
    assert [step for step, _ in whole.raised] == [1, 4]
    assert resumed.update(5, series[4]) == []
    assert resumed.raised == whole.raised


def test_metrics_raise_their_alarms_separately():
    alarms = Alarms(CFG)
    assert [a.metric for a in alarms.update(1, {"loss/kl": 9.0})] == ["loss/kl"]
    assert [a.metric for a in alarms.update(2, {"loss/kl": 9.0, "loss/approx_kl": 9.0})] == ["loss/approx_kl"]
