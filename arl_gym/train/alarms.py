"""Alarms for a run that collapses: limits on the metrics of a step.

Pure: rows in, alarms out. Nothing is stopped or changed here.

    alarms = Alarms(cfg.monitor)
    for alarm in alarms.update(step, row):
        print(alarm.text)
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from arl_gym.train.config import MonitorConfig, from_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A metric that is where it should not be."""

    metric: str
    value: float | None
    """None: not a finite number."""
    limit: float | None
    """The limit that was crossed; None where the value is not finite."""
    text: str
    """One sentence: what came, what was expected, what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watch:
    metric: str
    field: str
    """The limit's name in `MonitorConfig`."""
    side: Literal["below", "above"]
    what: str
    advice: str


_WATCHES = (
    _Watch(
        metric="rollout/format_valid_frac",
        field="min_format_valid",
        side="below",
        what="the share of turns with a valid format",
        advice="look at the responses (arl-gym show RUN --where 'not format_valid'); raise env.penalty, "
        "clone longer before training, or lower optim.lr",
    ),
    _Watch(
        metric="loss/approx_kl",
        field="max_kl",
        side="above",
        what="the divergence from the sampling policy",
        advice="lower optim.lr or optim.minibatches, or narrow loss.clip_low and loss.clip_high",
    ),
    _Watch(
        metric="loss/kl",
        field="max_kl",
        side="above",
        what="the divergence from the reference",
        advice="raise loss.kl_coef or lower optim.lr",
    ),
    _Watch(
        metric="optim/grad_norm",
        field="max_grad_norm",
        side="above",
        what="the gradient norm",
        advice="lower optim.lr, clip ratios over turns, or mask sequences with loss.mask_delta",
    ),
    _Watch(
        metric="rollout/repeated_frac",
        field="max_repeated",
        side="above",
        what="the share of responses that repeat themselves",
        advice="look at the responses (arl-gym show RUN --html); go on from an earlier checkpoint with a "
        "lower optim.lr",
    ),
    _Watch(
        metric="rollout/entropy_mean",
        field="min_entropy",
        side="below",
        what="the entropy per token, in nats,",
        advice="raise loss.entropy_coef or rollout.temperature",
    ),
)


def check(row: Mapping[str, float | None], cfg: MonitorConfig) -> list[Alarm]:
    """Return an alarm for every metric of the row beyond its limit, and for every one that is not finite.

    A metric that the row does not have raises none, and neither does a limit of 0.
    """
    alarms = [
        _not_finite(metric) for metric, value in row.items() if value is None or not math.isfinite(value)
    ]
    for watch in _WATCHES:
        value, limit = row.get(watch.metric), getattr(cfg, watch.field)
        if value is not None and math.isfinite(value) and limit and _is_beyond(watch, value, limit):
            text = f"{watch.metric}: {watch.what} is {value:.3g}, {watch.side} {limit:g}: {watch.advice}"
            alarms.append(Alarm(metric=watch.metric, value=value, limit=limit, text=text))
    return alarms


def _is_beyond(watch: _Watch, value: float, limit: float) -> bool:
    # A mean of differences of log-probabilities can be far off on either side.
    return abs(value) > limit if watch.side == "above" else value < limit


def _not_finite(metric: str) -> Alarm:
    text = f"{metric}: not finite: look for what else went wrong in this step, and lower optim.lr"
    return Alarm(metric=metric, value=None, limit=None, text=text)


class Alarms:
    """The alarms of a run: each is raised when a limit is crossed, and again only after the metric was back.

    What it knows follows from the rows alone, so a resumed run builds it again by feeding the rows so far.

    Attributes:
        raised: All alarms so far, each with its step.
    """

    def __init__(self, cfg: MonitorConfig):
        self._cfg = cfg
        self._beyond: set[str] = set()
        self.raised: list[tuple[int, Alarm]] = []

    def update(self, step: int, row: Mapping[str, float | None]) -> list[Alarm]:
        """Take the row of a step and return the alarms that are new.

        A metric that the row does not have stays where it was.
        """
        alarms = check(row, self._cfg)
        new = [alarm for alarm in alarms if alarm.metric not in self._beyond]
        self._beyond = (self._beyond - row.keys()) | {alarm.metric for alarm in alarms}
        self.raised += [(step, alarm) for alarm in new]
        return new


def alarms_of(
    rows: Iterable[Mapping[str, float | None]], config: Mapping[str, Any]
) -> list[tuple[int, Alarm]]:
    """Return the alarms of a recorded run, each with its step.

    Args:
        rows: Of one metrics file, in order of steps.
        config: The run's configuration as `config.toml` has it.

    Raises:
        ConfigError: If its limits are none.
    """
    alarms = Alarms(from_mapping(MonitorConfig, config.get("monitor", {}), "config.toml: monitor"))
    for row in rows:
        alarms.update(int(row["step"] or 0), row)
    return alarms.raised
