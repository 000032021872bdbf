"""Training curves as small SVG charts: one chart a key, several runs overlaid.

No pyplot and no global state. The same rows give the same bytes; text stays text. Axes and letters are drawn
in `currentColor`, so that a page's light or dark scheme applies to a chart put into it.

    svg = curves({"SAMPO": read_metrics(run_dir / "metrics.jsonl")})["rollout/played_success_rate"]
"""

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arl_gym.errors import ConfigError, DependencyMissing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Rows = Sequence[Mapping[str, float | None]]


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

# Okabe and Ito's colours, told apart with any colour vision; those readable on white and on black come first.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_INK = "#010203"
_FEW_POINTS = 40
_STYLE: dict[Any, Any] = {  # matplotlib types its keys differently from version to version
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Arial", "sans-serif"],
    "text.parse_math": False,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.alpha": 0.15,
    "grid.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
}


def curves(runs: Mapping[str, Rows], keys: Sequence[str] = CURVES, *, smooth: int = 1) -> dict[str, bytes]:
    """Draw one chart for every key that some run has.

    Args:
        runs: Rows of `metrics.jsonl` by the label of the run.
        keys: Metrics to draw; those of `CHARTS` have a title and a unit, any other is its own title.
        smooth: Steps of the trailing mean; above 1 the plain values are drawn pale behind it. Keys with few
            values (evaluations) are never smoothed; they get markers.

    Returns:
        SVG documents without prologue, date or ids that two charts share, in the order of `keys`.

    Raises:
        ConfigError: If `smooth` is below 1.
        DependencyMissing: If matplotlib is not installed.
    """
    if smooth < 1:
        raise ConfigError(f"smooth must be at least 1 step, got {smooth}")
    shown = [key for key in dict.fromkeys(keys) if any(_points(rows, key) for rows in runs.values())]
    return {key: _draw(runs, key, smooth) for key in shown}


def describe(runs: Mapping[str, Rows], key: str) -> str:
    """Return in words what the chart of `key` shows: first and last value of every run."""
    chart = CHARTS.get(key, Chart(title=key, unit=""))
    parts = [f"{chart.title}, {chart.unit}" if chart.unit else chart.title]
    for label, rows in runs.items():
        points = [p for p in _points(rows, key) if math.isfinite(p[1])]
        if points:
            (x0, y0), (x1, y1) = points[0], points[-1]
            parts.append(f"{label}: {y0:.3g} at step {x0}, {y1:.3g} at step {x1}")
    return ". ".join(parts) + "."


def _points(rows: Rows, key: str) -> list[tuple[int, float]]:
    """Return (step, value) in order of steps, NaN for null; [] if nothing is finite."""
    points = [
        (int(row["step"] or 0), math.nan if (value := row[key]) is None else float(value))
        for row in rows
        if key in row
    ]
    return sorted(points, key=lambda p: p[0]) if any(math.isfinite(y) for _, y in points) else []


def _trailing_mean(values: Sequence[float], width: int) -> list[float]:
    out = []
    for end in range(1, len(values) + 1):
        window = [v for v in values[max(0, end - width) : end] if math.isfinite(v)]
        out.append(math.fsum(window) / len(window) if window else math.nan)
    return out


def _draw(runs: Mapping[str, Rows], key: str, smooth: int) -> bytes:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as err:
        raise DependencyMissing("plots", "train") from err

    chart = CHARTS.get(key, Chart(title=key, unit=""))
    smooth = 1 if chart.raw else smooth
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a user's matplotlibrc must not change the bytes
        matplotlib.rcParams.update({**_STYLE, "svg.hashsalt": key})
        # Fixed margins: charts in a grid line up, and a layout engine would draw everything twice.
        axes = (figure := Figure(figsize=(4.2, 2.5))).add_axes((0.19, 0.18, 0.79, 0.71))
        lines = []
        for i, (label, rows) in enumerate(runs.items()):
            colour, style = _PALETTE[i % len(_PALETTE)], ("-", "-.", ":")[i // len(_PALETTE) % 3]
            lines += _line(axes, _points(rows, key), smooth, colour, style, _name(label, chart, runs, 0))
            if chart.also:
                also = _points(rows, chart.also)
                lines += _line(axes, also, smooth, colour, "--", _name(label, chart, runs, 1))
        if len(lines) > 1:
            axes.legend(handles=lines, labels=[str(line.get_label()) for line in lines])
        _label(axes, chart)
        buffer = io.BytesIO()
        blank = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=blank)
    return _plain_svg(buffer.getvalue().decode()).encode()


def _name(label: str, chart: Chart, runs: Mapping[str, Rows], which: int) -> str:
    if not chart.also:
        return label
    return f"{label}, {chart.names[which]}" if len(runs) > 1 else chart.names[which]


def _line(
    axes: "Axes", points: list[tuple[int, float]], smooth: int, colour: str, style: str, name: str
) -> "list[Line2D]":
    if not points:
        return []
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    few = len(points) <= _FEW_POINTS
    if smooth > 1 and not few:
        axes.plot(xs, ys, color=colour, alpha=0.35, linewidth=0.8)
        ys = _trailing_mean(ys, smooth)
    marker = "o" if few else ""
    # No clipping: half a marker would be lost at the ends of the axes.
    return axes.plot(xs, ys, color=colour, linestyle=style, marker=marker, label=name, clip_on=False)


def _label(axes: "Axes", chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(chart.title)
    axes.set_xlabel("step")
    axes.set_ylabel(chart.unit)
    axes.yaxis.set_label_coords(-0.2, 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if chart.from_zero:
        axes.set_ylim(bottom=0)


def _plain_svg(text: str) -> str:
    """Drop prologue, page-wide style and the counted ids that two charts would share; free the ink."""
    text = text[text.index("<svg") :].replace("<svg", '<svg stroke-linejoin="round"', 1)
    text = re.sub(r"<style.*?</style>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)
    return text.replace(_INK, "currentColor")
