"""Training curves: one chart a key, several runs or groups of runs over each other.

drawing = curves({"SAMPO": [read_metrics(run_dir / "metrics.jsonl")]})["rollout/played_success_rate"]
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import numpy as np

from arl_gym.errors import ConfigError, DataError
from arl_gym.train.analysis import Band, Series, band
from arl_gym.train.canvas import PALETTE, Cell, Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Rows = Sequence[Mapping[str, float | None]]
"""Of one `metrics.jsonl`."""
Axis = Literal["step", "tokens", "hours"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How one key is shown."""

    title: str
    unit: str
    names: tuple[str, str] = ("", "")
    """With `also`: what the two lines are called."""
    also: str = ""
    """A second key, drawn dashed in the same chart."""
    from_zero: bool = False
    """Whether the axis starts at 0: for shares whose absolute size matters."""
    raw: bool = False
    """Never smoothed: the mean would lag behind a steep fall."""


CHARTS: dict[str, Chart] = {
    "rollout/played_success_rate": Chart(
        title="Success in training", unit="share of episodes", from_zero=True
    ),
    "eval/success_rate": Chart(title="Success in evaluation", unit="share of tasks", from_zero=True),
    "rollout/played_return_mean": Chart(title="Return before penalties", unit="mean per episode"),
    "rollout/format_valid_frac": Chart(title="Valid format", unit="share of turns"),
    "loss/approx_kl": Chart(title="KL to the sampling policy", unit="nats per token"),
    "loss/kl": Chart(title="KL to the reference model", unit="nats per token"),
    "loss/clip_frac": Chart(title="Clipped", unit="share of tokens", from_zero=True),
    "loss/clip_frac_pos": Chart(
        title="Outside the clip range",
        unit="share of tokens",
        from_zero=True,
        also="loss/clip_frac_neg",
        names=("A > 0", "A < 0"),
    ),
    "loss/masked_frac": Chart(title="Masked", unit="share of sequences", from_zero=True),
    "rollout/entropy_mean": Chart(title="Entropy", unit="nats per token"),
    "optim/grad_norm": Chart(title="Gradient norm", unit="before clipping", from_zero=True),
    "rollout/tries": Chart(title="Rollouts needed", unit="per step", from_zero=True),
    "clone/val_loss": Chart(
        title="Cloning loss",
        unit="nats per token",
        also="clone/train_loss",
        raw=True,
        names=("validation", "training"),
    ),
}
CURVES = tuple(CHARTS)

_AXES: dict[str, tuple[str, str, float]] = {  # key to add up, label, divisor
    "tokens": ("optim/tokens", "tokens trained on", 1.0),
    "hours": ("time/step_s", "hours", 3600.0),
}
_FEW_POINTS = 40
_COLUMNS = ("line", "metric", "step", "x", "value", "low", "high", "runs")


def curves(
    lines: Mapping[str, Sequence[Rows]],
    keys: Sequence[str] = CURVES,
    *,
    smooth: int = 1,
    x: Axis = "step",
    charts: Mapping[str, Chart] = CHARTS,
) -> dict[str, Drawing]:
    """Return one chart for every key that some run has.

    A line of one run is that run, with a gap at a null. A line of several runs is their mean with its 95%
    bootstrap band; where not all of them have a value it is dotted and has no band (see `analysis.band`).

    Args:
        lines: By the label of a line, the rows of its runs.
        keys: Metrics to draw; one that `charts` does not have is its own title.
        smooth: Steps of the trailing mean, taken of each run; above 1 the plain values of a single run are
            drawn pale behind it. Keys with few values (evaluations) are never smoothed; they get markers.
        x: What the horizontal axis is: the step, or the sum up to and with it of the tokens trained on
            (`optim/tokens`) or of the wall hours (`time/step_s`). The mean of several runs stands at the
            mean of theirs.
        charts: How keys are shown.

    Returns:
        The charts in the order of `keys`.

    Raises:
        ConfigError: If `smooth` is below 1.
        DataError: If a run with a value has nothing to add up for `x`.
    """
    if smooth < 1:
        raise ConfigError(f"smooth must be at least 1 step, got {smooth}")
    shown = {}
    for key in dict.fromkeys(keys):
        chart = charts.get(key, Chart(title=key, unit=""))
        traces = _traces(lines, key, chart, smooth, x)
        if any(t.key == key for t in traces):
            shown[key] = Drawing(
                name="curve-" + key.replace("/", "-"),
                text=_words(traces, chart, x),
                columns=_COLUMNS,
                data=[row for trace in traces for row in trace.table()],
                draw=partial(_draw, traces, chart, x, named=len(lines) > 1 or len(traces) > 1),
            )
    return shown


PARTS: dict[str, Chart] = {
    "rollout/success_rate": Chart(
        title="Success in training, by part", unit="share of episodes", from_zero=True
    ),
    "eval/success_rate": Chart(title="Success in evaluation, by part", unit="share of tasks", from_zero=True),
}


def parts(runs: Sequence[Rows], *, smooth: int = 1, x: Axis = "step") -> list[Drawing]:
    """Return success in training and in evaluation with one line for each part of the tasks.

    A part is an environment in a run over several, or a kind of task: what follows "success_rate_" in a key.

    Args:
        runs: The rows of a run, or of the runs of a group.
        smooth: As in `curves`.
        x: As in `curves`.

    Returns:
        At most two charts; none where there are no parts.
    """
    drawn: list[Drawing] = []
    for key, chart in PARTS.items():
        names = dict.fromkeys(
            name.removeprefix(f"{key}_")
            for rows in runs
            for row in rows
            for name in row
            if name.startswith(f"{key}_")
        )
        lines = {name: [_of_part(rows, key, name) for rows in runs] for name in names}
        drawn += curves(lines, (key,), smooth=smooth, x=x, charts={key: chart}).values()
    return [dataclasses.replace(drawing, name=f"{drawing.name}-by-part") for drawing in drawn]


def _of_part(rows: Rows, key: str, name: str) -> Rows:
    """Return the rows with the value of a part in place of the whole's."""
    part = f"{key}_{name}"
    return [
        {k: v for k, v in row.items() if k != key} | ({key: row[part]} if part in row else {}) for row in rows
    ]


def trailing_mean(values: Sequence[float], width: int) -> list[float]:
    """Return the mean of the last `width` values at every place, leaving out NaN; NaN over nothing."""
    out = []
    for end in range(1, len(values) + 1):
        window = [v for v in values[max(0, end - width) : end] if math.isfinite(v)]
        out.append(math.fsum(window) / len(window) if window else math.nan)
    return out


# ---- from rows to traces


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trace:
    """One line of a chart."""

    line: str
    key: str
    name: str
    """In the legend."""
    colour: str
    style: str
    runs: Sequence[Sequence[tuple[int, float, float]]]
    """By run with a value: (step, x, value), NaN for null."""
    width: int
    """Steps of the trailing mean; 1 for none."""

    def smooth(self) -> list[list[tuple[int, float, float]]]:
        """Return the runs, smoothed."""
        return [
            [(s, x, m) for (s, x, _), m in zip(r, trailing_mean([p[2] for p in r], self.width), strict=True)]
            for r in self.runs
        ]

    def band(self) -> Band:
        series: list[Series] = [
            {step: (x, y) for step, x, y in run if math.isfinite(y)} for run in self.smooth()
        ]
        return band(series)

    def table(self) -> list[tuple[Cell, ...]]:
        if len(self.runs) == 1:
            return [(self.line, self.key, s, x, _cell(y), None, None, 1) for s, x, y in self.runs[0]]
        b = self.band()
        steps = sorted({s for run in self.smooth() for s, _, y in run if math.isfinite(y)})
        return [
            (self.line, self.key, s, *map(_cell, (b.x[i], b.mean[i], b.low[i], b.high[i])), int(b.count[i]))
            for i, s in enumerate(steps)
        ]


def _cell(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _traces(
    lines: Mapping[str, Sequence[Rows]], key: str, chart: Chart, smooth: int, x: Axis
) -> list[_Trace]:
    traces = []
    for i, (label, runs) in enumerate(lines.items()):
        for which, metric in enumerate(filter(None, (key, chart.also))):
            points = [p for rows in runs if (p := _points(rows, metric, x))]
            if points:
                width = 1 if chart.raw or all(len(p) <= _FEW_POINTS for p in points) else smooth
                traces.append(
                    _Trace(
                        line=label,
                        key=metric,
                        name=_name(label, chart, len(lines), which, len(points)),
                        colour=PALETTE[i % len(PALETTE)],
                        style="--" if which else ("-", "-.", ":")[i // len(PALETTE) % 3],
                        runs=points,
                        width=width,
                    )
                )
    return traces


def _points(rows: Rows, key: str, axis: Axis) -> list[tuple[int, float, float]]:
    """Return (step, x, value) in order of steps, NaN for null; [] if nothing is finite."""
    ordered = sorted((row for row in rows), key=lambda row: row["step"] or 0)
    if not any((v := row.get(key)) is not None and math.isfinite(v) for row in ordered):
        return []
    xs = _positions(ordered, axis)
    return [
        (int(row["step"] or 0), x, math.nan if (value := row[key]) is None else float(value))
        for row, x in zip(ordered, xs, strict=True)
        if key in row
    ]


def _positions(rows: Rows, axis: Axis) -> list[float]:
    if axis == "step":
        return [float(row["step"] or 0) for row in rows]
    key, _, divisor = _AXES[axis]
    if not any(row.get(key) for row in rows):
        raise DataError(f"the axis of {axis} adds up {key}, which metrics.jsonl does not have")
    # A step that trained on nothing has no tokens.
    return [total / divisor for total in accumulate(row.get(key) or 0.0 for row in rows)]


def _name(label: str, chart: Chart, n_lines: int, which: int, n_runs: int) -> str:
    own = f"{label} ({n_runs} runs)" if n_runs > 1 else label
    if not chart.also:
        return own
    return f"{own}, {chart.names[which]}" if n_lines > 1 or n_runs > 1 else chart.names[which]


def _words(traces: Sequence[_Trace], chart: Chart, x: Axis) -> str:
    """Say what a chart shows: first and last value of every line."""
    parts = [f"{chart.title}, {chart.unit}" if chart.unit else chart.title]
    for trace in traces:
        known = [row for row in trace.table() if row[4] is not None]
        first, last = known[0], known[-1]
        at = "step {0[2]}" if x == "step" else "{0[3]:.3g} " + x
        parts.append(
            f"{trace.name}: {first[4]:.3g} at {at.format(first)}, {last[4]:.3g} at {at.format(last)}"
        )
    return ". ".join(parts) + "."


# ---- drawing


def _draw(traces: Sequence[_Trace], chart: Chart, x: Axis, *, named: bool) -> "Figure":
    from matplotlib.figure import Figure

    columns = 2 if max(len(trace.name) for trace in traces) <= 24 else 1
    # Below the plot, where it hides nothing.
    legend = 0.19 * math.ceil(len(traces) / columns) if named else 0.0
    height = 2.5 + legend
    # Fixed margins: charts in a grid line up, and a layout engine would draw everything twice.
    box = (0.19, (0.45 + legend) / height, 0.79 if x == "step" else 0.76, 1.775 / height)
    axes = (figure := Figure(figsize=(4.2, height))).add_axes(box)
    drawn = [line for trace in traces for line in (_band if len(trace.runs) > 1 else _line)(axes, trace)]
    if legend:
        figure.legend(
            handles=drawn,
            labels=[str(line.get_label()) for line in drawn],
            loc="lower left",
            bbox_to_anchor=(0.16, 0.0),
            ncols=columns,
            borderpad=0.2,
            labelspacing=0.3,
        )
    _label(axes, chart, x)
    return figure


def _line(axes: "Axes", trace: _Trace) -> "list[Line2D]":
    (run,) = trace.runs
    xs = [p[1] for p in run]
    if trace.width > 1:
        axes.plot(xs, [p[2] for p in run], color=trace.colour, alpha=0.35, linewidth=0.8)
    (smoothed,) = trace.smooth()
    # No clipping: half a marker would be lost at the ends of the axes.
    return axes.plot(
        xs,
        [p[2] for p in smoothed],
        color=trace.colour,
        linestyle=trace.style,
        marker="o" if len(run) <= _FEW_POINTS else "",
        label=trace.name,
        clip_on=False,
    )


def _band(axes: "Axes", trace: _Trace) -> "list[Line2D]":
    b = trace.band()
    whole = np.isfinite(b.low)
    axes.fill_between(b.x, b.low, b.high, where=whole, color=trace.colour, alpha=0.2, linewidth=0)
    if not whole.all():
        # With its neighbours, or there would be a gap on both sides.
        odd = ~whole
        odd[1:] |= ~whole[:-1]
        odd[:-1] |= ~whole[1:]
        axes.plot(b.x, np.where(odd, b.mean, np.nan), color=trace.colour, linestyle=":", linewidth=1.2)
    return axes.plot(
        b.x,
        np.where(whole, b.mean, np.nan),
        color=trace.colour,
        linestyle=trace.style,
        marker="o" if len(b.x) <= _FEW_POINTS else "",
        label=trace.name,
        clip_on=False,
    )


def _label(axes: "Axes", chart: Chart, x: Axis) -> None:
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.set_title(chart.title)
    axes.set_xlabel("step" if x == "step" else _AXES[x][1])
    axes.set_ylabel(chart.unit)
    axes.yaxis.set_label_coords(-0.2, 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=x == "step", steps=[1, 2, 5, 10]))
    if x == "tokens":
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if chart.from_zero:
        axes.set_ylim(bottom=0)
