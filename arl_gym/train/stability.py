"""How steadily a run learned, from its success rate over the steps.

print(stability(read_metrics(run_dir / "metrics.jsonl")))
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SUCCESS = "rollout/played_success_rate"
WINDOW = 5
"""Steps of the means below: the success of one step is a matter of a few episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """Success over the steps of a run in numbers. Windows are means over consecutive steps."""

    window: int
    """Steps of a window: `WINDOW`, or all of a shorter run."""
    variance: float
    """Population variance of the single steps over the last fifth of the run: the paper's measure. It also
    counts steady progress, and a run that collapsed early has none."""
    final: float
    """The last window."""
    best: float
    """The highest window."""
    best_step: int
    """Last step of that window; the first of several."""
    max_drawdown: float
    """Deepest fall from the highest window so far, in the unit of the success rate."""
    collapse_step: int | None
    """First step from which on all windows stay below half of the highest window before them; None if the
    run ends above that."""


def stability(rows: Sequence[Mapping[str, float | None]], key: str = SUCCESS) -> Stability | None:
    """Return how steady the metric `key` was; None if no row has it.

    References:
        ARLArena, arXiv:2602.21534, for the variance over the last fifth.
    """
    points = sorted(
        (row["step"] or 0, v) for row in rows if (v := row.get(key)) is not None and math.isfinite(v)
    )
    if not points:
        return None
    values = [v for _, v in points]
    width = min(WINDOW, len(values))
    means = [math.fsum(values[end - width : end]) / width for end in range(width, len(values) + 1)]
    steps = [int(step) for step, _ in points[width - 1 :]]
    peaks = [max(means[: i + 1]) for i in range(len(means))]
    return Stability(
        window=width,
        variance=statistics.pvariance(values[-math.ceil(len(values) / 5) :]),
        final=means[-1],
        best=max(means),
        best_step=steps[means.index(max(means))],
        max_drawdown=max(peak - mean for peak, mean in zip(peaks, means, strict=True)),
        collapse_step=_collapse(steps, means, peaks),
    )


def _collapse(steps: Sequence[int], means: Sequence[float], peaks: Sequence[float]) -> int | None:
    low = [mean < peak / 2 for mean, peak in zip(means, peaks, strict=True)]
    since = len(low)
    while since and low[since - 1]:
        since -= 1
    return steps[since] if since < len(low) else None


def describe_stability(s: Stability) -> str:
    """Return the numbers as two sentences."""
    fall = (
        f"it fell below half of its best for good at step {s.collapse_step}"
        if s.collapse_step is not None
        else f"its deepest fall from a peak was {s.max_drawdown:.2f}"
    )
    return (
        f"Success in training, mean of {s.window} steps: {s.final:.2f} at the end, {s.best:.2f} at best "
        f"(step {s.best_step}); {fall}. Variance over the last fifth of the steps: {s.variance:.4f}."
    )
