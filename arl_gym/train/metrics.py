"""The numbers of a run: one JSON object a line in `metrics.jsonl`, and what they say about episodes.

No torch, no plots. Keys read `area/what_unit`; those under `time/` depend on the machine, all others only on
the configuration. A metric never steers the run.

    with MetricsWriter(run_dir / "metrics.jsonl") as metrics:
        metrics.write(step, summarise(trajectories), stats)
"""

import io
import json
import math
import numbers
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, SupportsFloat

from arl_gym.agents.types import Trajectory
from arl_gym.errors import ArlGymError, DataError
from arl_gym.train.files import write_atomically
from arl_gym.train.repetition import is_repetitive

Progress = Callable[[int, int, Mapping[str, float]], None]
"""Called after every step of a loop with (step, steps in all, the metrics of the step)."""

Row = dict[str, float | None]
"""One line: "step" and the metrics of that step. None stands for a number that was not finite."""


class MetricsWriter:
    """Appends one line a step, each written whole, so that a killed run loses at most its last line.

    Args:
        path: The file; its folder is made.
        resume_step: Lines after this step are dropped first, because the resumed run writes them again.
            None keeps every whole line.

    Raises:
        ArlGymError: If the file cannot be written.
        DataError: If `resume_step` is given and the file is corrupt.
    """

    def __init__(self, path: Path, *, resume_step: int | None = None):
        self._path = path
        # A pipe or a device has no earlier lines.
        if path.is_file():
            _drop_lines(path, resume_step)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: io.FileIO = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by `close`
        except OSError as err:
            raise ArlGymError(f"cannot write metrics to {path}: {err.strerror or err}") from err

    def write(self, step: int, *parts: Mapping[str, SupportsFloat | None]) -> None:
        """Write the line of `step`, with the metrics of all `parts`; a number that is not finite is null.

        Raises:
            ArlGymError: If the line cannot be written, for example because the disk is full.
        """
        row: Row = {"step": step}
        for part in parts:
            row.update((key, _plain(value)) for key, value in part.items())
        line = json.dumps(row, allow_nan=False).encode() + b"\n"
        try:
            # Unbuffered: one write is one system call, and a disk that fills up says so on the next one.
            while line:
                line = line[self._file.write(line) :]
        except OSError as err:
            raise ArlGymError(f"cannot write metrics to {self._path}: {err.strerror or err}") from err

    def close(self) -> None:
        """Close the file; twice is fine."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _plain(value: SupportsFloat | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else None


def _drop_lines(path: Path, resume_step: int | None) -> None:
    data = _read(path)
    whole = data[: data.rfind(b"\n") + 1]
    if resume_step is not None:
        lines = whole.splitlines(keepends=True)
        kept = [
            line for line, row in zip(lines, _parse(lines, path), strict=True) if _step(row) <= resume_step
        ]
        whole = b"".join(kept)
    if whole != data:
        write_atomically(path, whole)


def _step(row: Row) -> float:
    step = row["step"]
    assert step is not None, "checked by _parse"
    return step


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        raise DataError(f"cannot read metrics from {path}: {err.strerror or err}") from err


def read_metrics(path: Path) -> list[Row]:
    """Return the rows of a metrics file; a torn last line, left by a killed run, is ignored.

    Raises:
        DataError: If the file cannot be read, or a line is no JSON object with a whole number as "step" and
            numbers or null otherwise.
    """
    data = _read(path)
    return _parse(data[: data.rfind(b"\n") + 1].splitlines(), path)


def _parse(lines: Iterable[bytes], path: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError as err:
            raise DataError(f"{path}, line {number}: expected a JSON object, got {line[:60]!r}") from err
        if not isinstance(row, dict) or type(row.get("step")) is not int:
            raise DataError(
                f'{path}, line {number}: expected an object with a whole "step", got {line[:60]!r}'
            )
        for key, value in row.items():
            if value is not None and type(value) not in (int, float):
                raise DataError(f"{path}, line {number}: {key} must be a number or null, got {value!r}")
        rows.append(row)
    return rows


def without_timings(row: Mapping[str, float | None]) -> Row:
    """Return the row without the keys under `time/`: what two runs with one seed share exactly."""
    return {key: value for key, value in row.items() if not key.startswith("time/")}


def summarise(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return what the episodes of one rollout look like, under `rollout/`.

    Means over episodes, each counting once whatever its length, and episodes that an env error ended counting
    as far as they came: `return_mean` (before penalties), `return_std` (of the population), `success_rate`,
    `score_mean`, `turns_mean`, `truncated_frac` (the env's step limit), `env_error_frac`, and where there are
    several kinds of task `success_rate_KIND` with `episodes_KIND`. Over successes: `turns_to_success_mean`.

    Means over all turns: `format_valid_frac`, `action_valid_frac`, `penalty_mean`, `length_capped_frac` (the
    response reached the token limit), `repeated_frac` (it repeats itself). Means over the turns whose ids are
    known: `prompt_tokens_mean` and `completion_tokens_mean`.

    A mean over nothing has no key; no episodes give an empty dict.
    """
    if not trajectories:
        return {}
    returns = [t.env_return for t in trajectories]
    turns = [turn for t in trajectories for turn in t.turns]
    out = {
        "return_mean": statistics.fmean(returns),
        "return_std": statistics.pstdev(returns),
        "success_rate": statistics.fmean(t.success for t in trajectories),
        "score_mean": statistics.fmean(t.score for t in trajectories),
        "turns_mean": statistics.fmean(len(t.turns) for t in trajectories),
        "truncated_frac": statistics.fmean(t.stop == "truncated" for t in trajectories),
        "env_error_frac": statistics.fmean(t.stop == "env_error" for t in trajectories),
    }
    if won := [len(t.turns) for t in trajectories if t.success]:
        out["turns_to_success_mean"] = statistics.fmean(won)
    for kind in sorted({t.task_type for t in trajectories if t.task_type}):
        successes = [t.success for t in trajectories if t.task_type == kind]
        out[f"success_rate_{kind}"] = statistics.fmean(successes)
        out[f"episodes_{kind}"] = len(successes)
    if turns:
        out |= {
            "format_valid_frac": statistics.fmean(t.format_valid for t in turns),
            "action_valid_frac": statistics.fmean(t.action_valid for t in turns),
            "penalty_mean": statistics.fmean(t.format_penalty for t in turns),
            "repeated_frac": statistics.fmean(is_repetitive(t.response) for t in turns),
            "length_capped_frac": statistics.fmean(t.finish == "length" for t in turns),
        }
    for key, ids in (
        ("prompt_tokens_mean", [t.prompt_ids for t in turns]),
        ("completion_tokens_mean", [t.completion_ids for t in turns]),
    ):
        lengths = [len(i) for i in ids if i is not None]
        if lengths:
            out[key] = statistics.fmean(lengths)
    return {f"rollout/{key}": value for key, value in out.items()}
