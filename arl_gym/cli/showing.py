"""`arl-gym show`: what a run did, in numbers, and in the episodes it recorded."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from arl_gym.cli.options import parser, positive_int
from arl_gym.cli.recorded import columns, counted, show_episodes
from arl_gym.cli.settings import say
from arl_gym.errors import ConfigError, DataError
from arl_gym.train.alarms import alarms_of
from arl_gym.train.config import load_toml, to_mapping
from arl_gym.train.methods import resolve
from arl_gym.train.metrics import Row, read_metrics
from arl_gym.train.recordings import recording_paths
from arl_gym.train.runs import env_ids, flatten

_LAST = 10
_NEWEST = -1
_WIDTH = 40


def run(args: list[str]) -> int:
    """Run `arl-gym show`."""
    options = parser("show", "Show what a run did; with an option other than RUN, its recorded episodes.")
    options.add_argument("run", type=Path, metavar="RUN", help="run folder")
    options.add_argument(
        "--step",
        type=int,
        nargs="?",
        const=_NEWEST,
        metavar="N",
        help="episodes of this training step; without N the last recorded one",
    )
    options.add_argument(
        "--where",
        metavar="EXPR",
        help='turns that match, e.g. "not format_valid and success", "return > 5", "\'drawer\' in action", '
        '"len(response) > 200", "any(ratios > 1.5)"; an unknown name lists the fields',
    )
    options.add_argument("--group", type=int, metavar="G", help="episodes of this group only")
    options.add_argument(
        "--limit", type=positive_int, metavar="K", help="most turns (10), or most episodes (all)"
    )
    options.add_argument(
        "--html",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="FILE",
        help="write a page to look through them; without FILE, RUN/step-N.html",
    )
    known = options.parse_args(args)
    if not (known.run / "config.toml").is_file():
        raise ConfigError(f"{known.run} is no run folder: it has no config.toml")
    chosen = (known.step, known.where, known.group, known.limit, known.html)
    if all(option is None for option in chosen):
        for line in summary(known.run):
            say(line)
        return 0
    step = None if known.step == _NEWEST else known.step
    for line in show_episodes(
        known.run, step=step, where=known.where, group=known.group, limit=known.limit, html=known.html
    ):
        say(line)
    return 0


def summary(run: Path) -> Iterator[str]:
    """Yield what a run is, how its metrics went, its alarms, and what there is to look at.

    Raises:
        DataError: If its files are not those of a run.
    """
    raw = load_toml(run / "config.toml")
    names = ", ".join(dict.fromkeys(env_ids(raw)))
    yield f"{run}: {raw.get('method', 'SAMPO')} on {names}, seed {raw.get('seed', 0)}"
    yield from _settings(raw)
    for name, title in (("clone.jsonl", "cloning"), ("metrics.jsonl", "training")):
        if (run / name).is_file() and (rows := read_metrics(run / name)):
            yield f"\n{title}, step {rows[-1]['step']}"
            yield from _metrics(rows)
            yield from _alarms(rows, raw)
    try:
        steps = list(recording_paths(run))
    except DataError:
        return
    newest = f"the last {_LAST}: " if len(steps) > _LAST else ""
    yield f"\nsteps with recorded episodes: {len(steps)} ({newest}{', '.join(map(str, steps[-_LAST:]))})"
    yield f"  arl-gym show {run} --step {steps[-1]} [--where EXPR] [--html]"


def _settings(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings in which a run differs from its method's own."""
    named = {key: raw[key] for key in ("method", "variant") if key in raw}
    usual = flatten(to_mapping(resolve(named, "config.toml")))
    # Each of several environments differs from the settings of a single one.
    usual |= {
        f"envs.{i}.{key.removeprefix('env.')}": value
        for i in range(len(raw.get("envs", ())))
        for key, value in list(usual.items())
        if key.startswith("env.")
    }
    own = {
        key: value
        for key, value in flatten(raw).items()
        if key not in ("run_dir", "seed") and value != usual.get(key)
    }
    if own:
        yield f"\nunlike {raw.get('method', 'SAMPO')}'s defaults"
        rows = [
            [f"  {key}", _short(value), f"({_short(usual[key])})" if key in usual else ""]
            for key, value in own.items()
        ]
        yield from columns(rows, "<<<")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _metrics(rows: Sequence[Row]) -> Iterator[str]:
    table = [["  metric", "first", f"mean of last {_LAST}", "last"]]
    for key in dict.fromkeys(key for row in rows for key in row if key != "step"):
        values = [row[key] for row in rows if key in row]
        finite = [value for value in values[-_LAST:] if value is not None]
        mean = statistics.fmean(finite) if finite else None
        table.append([f"  {key}", _number(values[0]), _number(mean), _number(values[-1])])
    yield from columns(table, "<>>>")


def _number(value: float | None) -> str:
    return "not finite" if value is None or not math.isfinite(value) else f"{value:.4g}"


def _alarms(rows: Sequence[Row], raw: Mapping[str, Any]) -> Iterator[str]:
    if raised := alarms_of(rows, raw):
        yield f"\n{counted(len(raised), 'alarm')}"
        yield from (f"  step {step}: {alarm.text}" for step, alarm in raised)
