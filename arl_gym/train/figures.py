"""Figures of recorded steps: the sequences of one step, and the eight classes of turns over the steps.

drawing = sequence_scatter(step, unit="turn", delta=3e-3, in_use=False)
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from arl_gym.errors import DataError
from arl_gym.train.analysis import (
    CLASSES,
    ClassShares,
    SequencePoints,
    class_shares,
    sequence_points,
    whole_trajectories,
)
from arl_gym.train.canvas import INK, Drawing
from arl_gym.train.recordings import Floats, RecordedStep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MANY_POINTS = 2000
"""More are one picture inside the SVG: every point as a shape would take megabytes."""

# Advantage by hue (warm is not above 0), entropy by depth, and of each pair the second for "more likely".
_CLASS_COLOURS = (
    *("#f6c177", "#e69f00", "#e8825c", "#b04a00"),
    *("#9ccff0", "#56b4e9", "#2f86c4", "#004a7a"),
)


def sequence_scatter(step: RecordedStep, *, unit: str, delta: float, in_use: bool) -> Drawing:
    """Draw every sequence of a step: how much less likely the update made it, against its advantage.

    Args:
        step: Recorded with scores.
        unit: What a sequence is, "turn" or "trajectory".
        delta: Bound of the sequence mask, whose region is shaded.
        in_use: Whether the run masked; else the region is called what a mask would drop.

    Raises:
        DataError: If the step has no scores.
    """
    if not step.turns:
        raise DataError(f"step {step.step} was recorded without scores of its tokens")
    whole = unit == "trajectory"
    points = sequence_points(whole_trajectories(step.turns) if whole else step.turns)
    n, total = int(points.masked(delta).sum()), len(points.gap)
    verb = "masked" if in_use else "a mask would drop"
    title = f"Step {step.step}: {verb} {n} of {total} {'trajectories' if whole else 'turns'} (δ = {delta:g})"
    return Drawing(
        name="sequences",
        text=f"{title}. Mean of old minus new log-probability of each against its advantage.",
        columns=("step", "old_minus_new_mean", "advantage", "entropy_mean", "in_mask_region"),
        data=[
            (step.step, *map(float, row), int(m))
            for *row, m in zip(
                points.gap, points.advantage, points.entropy, points.masked(delta), strict=True
            )
        ],
        draw=partial(_scatter, points, delta, title),
    )


def _scatter(points: SequencePoints, delta: float, title: str) -> "Figure":
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8.6, 3.6))
    axes = figure.add_axes((0.08, 0.15, 0.79, 0.74))
    xs, ys = _limits(points.gap, -delta, 2 * delta), _limits(points.advantage, -1.0, 1.0)
    axes.add_patch(
        Rectangle((delta, ys[0]), xs[1] - delta, -ys[0], facecolor=INK, alpha=0.1, linewidth=0, zorder=0)
    )
    axes.axhline(0, color=INK, linewidth=0.8, alpha=0.5, zorder=1)
    axes.axvline(0, color=INK, linewidth=0.8, alpha=0.5, zorder=1)
    shown = axes.scatter(
        points.gap,
        points.advantage,
        c=points.entropy,
        cmap=colormaps["viridis"].resampled(12),
        vmin=0,
        s=16,
        alpha=0.85,
        linewidth=0,
        rasterized=len(points.gap) > _MANY_POINTS,
    )
    bar = figure.colorbar(shown, cax=figure.add_axes((0.9, 0.15, 0.02, 0.74)))
    bar.set_label("mean entropy, nats per token")
    bar.outline.set_visible(False)
    axes.grid(visible=False)
    axes.set_xlim(xs)
    axes.set_ylim(ys)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7))
    axes.set_xlabel("mean of old − new log-probability, nats per token (right: made less likely)")
    axes.set_ylabel("advantage")
    axes.set_title(title)
    return figure


def _limits(values: Floats, low: float, high: float) -> tuple[float, float]:
    bottom, top = min(low, float(values.min())), max(high, float(values.max()))
    room = 0.05 * (top - bottom)
    return bottom - room, top + room


def class_stream(steps: Sequence[RecordedStep]) -> Drawing:
    """Draw how the eight classes of turns share each recorded step: of all turns, and by divergence.

    The second panel is the paper's: a softmax over the classes' mean divergence to the reference, which is
    near equal shares of the classes that occur while divergences are small. It is left out where a step was
    recorded without reference.

    Raises:
        DataError: If fewer than two of the steps have scores.
    """
    shares = class_shares(steps)
    if len(shares.steps) < 2:
        raise DataError(
            f"a stream needs at least two steps recorded with scores of their tokens, got {len(shares.steps)}"
        )
    told = ". ".join(
        f"{name}: {shares.turns[0, c]:.0%} of the turns, then {shares.turns[-1, c]:.0%}"
        for c, name in enumerate(CLASSES)
        if shares.turns[:, c].any()
    )
    return Drawing(
        name="classes",
        text=f"Eight classes of turns from step {shares.steps[0]} to {shares.steps[-1]}. {told}.",
        columns=("step", "class", "share_of_turns", "softmax_of_divergence"),
        data=[
            (
                s,
                name,
                float(shares.turns[i, c]),
                None if shares.divergence is None else float(shares.divergence[i, c]),
            )
            for i, s in enumerate(shares.steps)
            for c, name in enumerate(CLASSES)
        ],
        draw=partial(_stream, shares),
    )


def _stream(shares: ClassShares) -> "Figure":
    from matplotlib.figure import Figure

    panels = [("Share of turns", shares.turns)]
    if shares.divergence is not None:
        panels.append(("Softmax of the divergence to the reference", shares.divergence))
    figure = Figure(figsize=(8.6, 3.6))
    width = 0.9 if len(panels) == 1 else 0.42
    for i, (title, values) in enumerate(panels):
        _stack(figure.add_axes((0.065 + 0.5 * i, 0.29, width, 0.62)), title, shares.steps, values)
    present = [c for c in range(8) if shares.turns[:, c].any()]
    handles = [_patch(c) for c in present]
    figure.legend(handles=handles, loc="lower center", ncols=min(4, len(handles)), fontsize=7.5)
    return figure


def _patch(number: int) -> object:
    from matplotlib.patches import Patch

    return Patch(color=_CLASS_COLOURS[number], label=CLASSES[number])


def _stack(axes: "Axes", title: str, steps: Sequence[int], values: Floats) -> None:
    from matplotlib.ticker import MaxNLocator

    present = [c for c in range(8) if values[:, c].any()]
    axes.stackplot(
        steps,
        np.transpose(values[:, present]),
        colors=[_CLASS_COLOURS[c] for c in present],
        linewidth=0,
    )
    axes.set_title(title)
    axes.set_xlabel("step")
    axes.set_xlim(steps[0], steps[-1])
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_ylabel("share")
    axes.grid(visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
