"""Which figures runs have: what the report shows and what is exported as files.

for title, draw in details(run):
    drawings = draw()
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arl_gym.errors import DataError
from arl_gym.train.actions import move_types, transitions
from arl_gym.train.canvas import Drawing
from arl_gym.train.figures import class_stream, sequence_scatter
from arl_gym.train.plots import CURVES, Axis, curves, parts
from arl_gym.train.recordings import RecordedStep
from arl_gym.train.runs import Run
from arl_gym.train.sankey import sankey

_SMOOTH_FROM = 40
"""Steps; shorter runs are shown as they are."""
_DELTA = 3e-3
"""Bound of the sequence mask that is shaded where a run had none: the paper's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How curves are shown."""

    keys: tuple[str, ...] = CURVES
    smooth: int | None = None
    """Steps of the trailing mean; None: a twentieth of a long run, nothing of a short one."""
    x: Axis = "step"

    def width(self, lines: Mapping[str, Sequence[Run]]) -> int:
        """Return the steps of the trailing mean over these runs."""
        if self.smooth is not None:
            return self.smooth
        # Not those of cloning, whose curves are never smoothed.
        training = [
            {row["step"] for row in run.rows if "clone/train_loss" not in row}
            for runs in lines.values()
            for run in runs
        ]
        steps = max(map(len, training))
        return max(1, steps // 20) if steps > _SMOOTH_FROM else 1


def curve_drawings(lines: Mapping[str, Sequence[Run]], shown: Shown) -> list[Drawing]:
    """Return the curves of runs, or of groups of runs; those of cloning only over steps.

    A single line is followed by its success in each environment and kind of task, where there are several.

    Raises:
        DataError: If no run has any of the keys, or has nothing to add up for `shown.x`.
    """
    rows = {
        label: [run.rows if shown.x == "step" else run.steps for run in runs] for label, runs in lines.items()
    }
    drawn = list(curves(rows, shown.keys, smooth=shown.width(lines), x=shown.x).values())
    if len(rows) == 1 and shown.keys == CURVES:
        (own,) = rows.values()
        drawn += parts(own, smooth=shown.width(lines), x=shown.x)
    if not drawn:
        raise DataError("metrics.jsonl has no finished step with any of the metrics to draw")
    return drawn


def details(run: Run) -> list[tuple[str, Callable[[], list[Drawing]]]]:
    """Return the figures of a run's recorded steps: by title, what draws them.

    Drawing raises an `ArlGymError` that says what the run lacks.
    """
    return [
        ("Sequences of one step", lambda: [_sequences(run)]),
        ("Classes of turns", lambda: [class_stream(_scored(run))]),
        ("Actions that follow one another", lambda: _actions(run)),
    ]


def _scored(run: Run) -> list[RecordedStep]:
    scored = [step for step in run.recorded if step.turns]
    if not scored:
        raise DataError(f"the trajectories of {run.label} were recorded without scores of their tokens")
    return scored


def _sequences(run: Run) -> Drawing:
    """Draw the last recorded step in the sequences that the mask decides about."""
    delta, level = run.settings.get("loss.mask_delta"), run.settings.get("loss.ratio_level")
    unit = run.settings.get("loss.sequence", "turn") if level == "token" else level
    in_use = isinstance(delta, float)
    bound = delta if isinstance(delta, float) else _DELTA
    return sequence_scatter(_scored(run)[-1], unit=str(unit), delta=bound, in_use=in_use)


def _actions(run: Run) -> list[Drawing]:
    """Draw the last recorded step, one figure an environment."""
    episodes = run.recorded[-1].episodes
    drawings = []
    for env_id in dict.fromkeys(e.env_id for e in episodes):
        counts = {
            won: transitions(
                move_types(env_id, e.moves) for e in episodes if (e.env_id, e.success) == (env_id, won)
            )
            for won in (True, False)
        }
        if any(counts.values()):
            name = env_id.rpartition("/")[2]
            drawings.append(
                sankey(counts, name=f"actions-{name}", title=f"{name}, step {run.recorded[-1].step}")
            )
    if not drawings:
        raise DataError(f"no episode of the last recorded step of {run.label} has two turns")
    return drawings
