"""`arl-gym sweep`: a grid of settings, several seeds each, and the point that every method is judged by."""

import argparse
import dataclasses
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from arl_gym.cli.options import literal, parser, positive_int
from arl_gym.cli.settings import quiet, read_config, say
from arl_gym.errors import ArlGymError, ConfigError
from arl_gym.train.config import load_toml
from arl_gym.train.files import write_atomically

if TYPE_CHECKING:
    from arl_gym.train.jobs import Outcome
    from arl_gym.train.sweep import Score

Axes = dict[str, list[Any]]

ABOUT = """Train over a grid of settings, several seeds each, and pick each method's best point.

arl-gym sweep --config sokoban-tiny --grid method=SAMPO,GRPO --grid optim.lr=1e-4,3e-4 --seeds 1,2 --out runs

--grid KEY=VALUE,... is one axis (values as in TOML) and may be repeated; --sweep FILE.toml has a [grid] table
and seeds instead. A method in the grid brings its own dials. Each combination is trained in its own process,
at most --jobs at once. Started again, the same command skips finished runs and continues the others. Of the
points whose success varies less than --max-variance over the last fifth of the steps, the best is picked."""


def run(args: list[str]) -> int:
    """Run `arl-gym sweep`."""

    def more(p: argparse.ArgumentParser) -> None:
        p.add_argument("--grid", action="append", type=axis, default=[])
        p.add_argument("--sweep", type=Path)
        p.add_argument("--seeds", type=seeds)
        p.add_argument("--out", type=Path)
        p.add_argument("--jobs", type=positive_int, default=1)
        p.add_argument("--max-variance", type=float, default=0.01)

    quiet()
    base, known = read_config("sweep", ABOUT, args, extra=more)
    if known.out is None:  # not `required`: --help must work without it
        parser("sweep", "").error("--out DIR is needed")
    axes, listed = read_sweep(known.sweep) if known.sweep else ({}, None)
    given = dict(known.grid)
    if len(given) < len(known.grid):
        parser("sweep", "").error("--grid: each key may be given once, with all its values")
    axes |= given
    from arl_gym.train.jobs import run_all
    from arl_gym.train.sweep import pick, plan, scores

    runs = plan(base, axes, seeds=known.seeds or listed or [base.seed], out=known.out)
    if known.dry_run:
        for r in runs:
            say(f"{r.name}: {'finished' if r.is_finished else 'begun' if r.folder.exists() else 'new'}")
        say(f"# {len(runs)} runs in {known.out}")
        return 0
    outcomes = run_all(runs, jobs=known.jobs, say=say)
    points = scores(runs)
    picks = pick(points, max_variance=known.max_variance)
    write_result(known.out / "sweep.json", outcomes, points, picks, max_variance=known.max_variance)
    if points:
        _print_points(points, picks, max_variance=known.max_variance)
    say(f"result: {known.out / 'sweep.json'}")
    unfinished = [f"{o.run.name} {o.reason}" for o in outcomes if o.reason]
    if unfinished:
        for line in unfinished:
            say(f"not finished: {line}")
        raise ArlGymError(
            f"{len(unfinished)} of {len(runs)} runs are not finished, the first: {unfinished[0]}"
        )
    return 0


def axis(text: str) -> tuple[str, list[Any]]:
    """Parse KEY=VALUE,...: TOML values, or words.

    >>> axis("loss.clip_high=0.02,4e-2"), axis("method=SAMPO,GRPO")
    (('loss.clip_high', [0.02, 0.04]), ('method', ['SAMPO', 'GRPO']))
    """
    key, equals, values = text.partition("=")
    if not equals or not all(part.isidentifier() for part in key.split(".")):
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE,..., got {text!r}")
    try:
        return key, tomllib.loads(f"values = [{values}]")["values"]
    except tomllib.TOMLDecodeError:
        return key, [literal(value) for value in values.split(",")]


def seeds(text: str) -> list[int]:
    """Parse whole numbers with commas between.

    >>> seeds("1,2")
    [1, 2]
    """
    return [int(part) for part in text.split(",")]


def read_sweep(path: Path) -> tuple[Axes, list[int] | None]:
    """Read the axes of a sweep file, and its seeds if it has some.

    Raises:
        ConfigError: If it cannot be read, or holds something else.
    """
    raw = load_toml(path)
    if unknown := raw.keys() - {"grid", "seeds"}:
        raise ConfigError(f"{path}: expected a [grid] table and seeds, got {', '.join(sorted(unknown))}")
    table, numbers = raw.get("grid", {}), raw.get("seeds")
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: grid must be a table of lists, got {table!r}")
    if numbers is not None and (not isinstance(numbers, list) or any(type(n) is not int for n in numbers)):
        raise ConfigError(f"{path}: seeds must be a list of whole numbers, got {numbers!r}")
    return _axes(table, path), numbers


def _axes(table: Mapping[str, Any], path: Path, prefix: str = "") -> Axes:
    axes: Axes = {}
    for key, values in table.items():
        if isinstance(values, dict):
            axes |= _axes(values, path, f"{prefix}{key}.")
        elif isinstance(values, list):
            axes[prefix + key] = values
        else:
            raise ConfigError(f"{path}: grid.{prefix}{key} must be a list of values, got {values!r}")
    return axes


def write_result(
    path: Path,
    outcomes: "Sequence[Outcome]",
    points: "Sequence[Score]",
    picks: "Mapping[str, Score]",
    *,
    max_variance: float,
) -> None:
    """Write `sweep.json`: what became of every run, the score of every finished point, and the picks."""
    result = {
        "max_variance": max_variance,
        "runs": [dataclasses.asdict(o) | {"run": o.run.name} for o in outcomes],
        "points": [dataclasses.asdict(score) for score in points],
        "picks": {method: score.point for method, score in picks.items()},
    }
    write_atomically(path, json.dumps(result, indent=1).encode())


def _print_points(points: "Sequence[Score]", picks: "Mapping[str, Score]", *, max_variance: float) -> None:
    table = Table(
        "point", "seeds", "success", "variance", "", title="Success over the last fifth of the steps"
    )
    for score in points:
        picked = "picked" if picks.get(score.method) == score else ""
        calm = "" if score.success_variance < max_variance else "too unsteady"
        table.add_row(
            score.point,
            str(len(score.seeds)),
            f"{score.success_mean:.3f}",
            f"{score.success_variance:.4f}",
            picked or calm,
        )
    Console().print(table)
