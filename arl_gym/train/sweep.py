"""Sweeps: from a grid of settings to runs, and from their curves to the point each method is judged by.

Plans and picks; `jobs.run_all` runs. Folders say what they hold: `OUT/method=GRPO,optim.lr=0.0003/seed-1`.

runs = plan(base, {"method": ["SAMPO", "GRPO"], "optim.lr": [1e-4, 3e-4]}, seeds=[1, 2], out=Path("runs/lr"))
"""

import dataclasses
import itertools
import json
import re
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from arl_gym.errors import ConfigError, DataError
from arl_gym.train.config import RunConfig, from_mapping, load_toml, to_mapping
from arl_gym.train.envs import check_step_advantage
from arl_gym.train.loss import check_loss
from arl_gym.train.methods import method_settings, resolve
from arl_gym.train.metrics import Row, read_metrics

SUCCESS = "rollout/played_success_rate"
"""What a point is judged by: over all episodes of a step, also those that the filter drops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a sweep."""

    point: str
    """Name of its settings, and of the folder that holds the runs with these settings."""
    cfg: RunConfig
    """Seed and run folder included."""

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"{self.point}/seed-{self.cfg.seed}".lstrip("/")

    @property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.cfg.run_dir)

    @property
    def file(self) -> Path:
        """The configuration it is started with, beside the folder: that must be new for a new run."""
        return self.folder.with_name(f"{self.folder.name}.toml")

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended by itself."""
        return (self.folder / "finished.json").is_file()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How the runs of one point did over the last fifth of their steps."""

    method: str
    point: str
    seeds: tuple[int, ...]
    success_mean: float
    success_variance: float
    """Variance over those steps within a run, mean over the seeds."""


def grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every combination of the values, the last axis changing fastest; no axes give one empty point.

    Args:
        axes: Dotted setting, e.g. "loss.clip_high" → its values.

    Raises:
        ConfigError: If an axis has no value, or is one that the sweep itself sets.
    """
    for key, values in axes.items():
        if key in ("seed", "run_dir"):
            raise ConfigError(f"a grid cannot hold {key}, which the sweep sets (seeds have their own option)")
        if not values:
            raise ConfigError(f"a grid needs at least one value of {key}, got none")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def plan(base: RunConfig, axes: Mapping[str, Sequence[Any]], *, seeds: Sequence[int], out: Path) -> list[Run]:
    """Return the runs of a grid, point by point and seed by seed, after checking every one of them.

    Args:
        base: What all runs share. A method in the grid brings its own dials, as on the command line.
        axes: See `grid`.
        seeds: Seeds of each point.
        out: Folder of all run folders.

    Raises:
        ConfigError: If there is no seed, a setting is unknown or of the wrong type, or `check_runs` objects.
    """
    if not seeds:
        raise ConfigError("a sweep needs at least one seed, got none")
    runs = []
    for settings in grid(axes):
        cfg = configure(base, settings)
        point = point_name(cfg, axes)
        runs += [planned(cfg, point, seed=seed, out=out) for seed in seeds]
    check_runs(runs)
    return runs


def planned(cfg: RunConfig, point: str, *, seed: int, out: Path) -> Run:
    """Return the run of a point with a seed, in its folder below `out`."""
    folder = out / point / f"seed-{seed}"
    return Run(point=point, cfg=dataclasses.replace(cfg, seed=seed, run_dir=str(folder)))


def configure(base: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """Return `base` with dotted settings changed; a method among them is set first, with its dials.

    Raises:
        ConfigError: If a setting is unknown or has the wrong type.
    """
    cfg = base
    if "method" in settings:
        method = resolve({"method": settings["method"]}).method
        cfg = from_mapping(RunConfig, {"method": method, **method_settings(method)}, method, base=cfg)
    for key, value in settings.items():
        if key != "method":
            cfg = from_mapping(RunConfig, _nested(cfg, key.split("."), value), "", base=cfg)
    return cfg


def _nested(base: Any, path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return a dotted setting as nested tables; the other keys of an open table (`env.kwargs`) are kept."""
    head, *rest = path
    if not rest:
        return {head: value}
    inner = getattr(base, head, None)
    if isinstance(inner, dict):
        return {head: {**inner, ".".join(rest): value}}
    return {head: _nested(inner, rest, value)}


def point_name(cfg: RunConfig, keys: Sequence[str] | Mapping[str, Any]) -> str:
    """Return the name of a point: its settings as resolved, the method first, the others by name.

    Neither the order of the axes nor the spelling of a value (0.20, 2e-1) makes another name.
    """

    def text(key: str) -> str:
        value: Any = cfg
        for part in key.split(".", 2 if key.startswith("env.kwargs.") else -1):
            value = value[part] if isinstance(value, dict) else getattr(value, part)
        shown = value if isinstance(value, str) else json.dumps(value)
        return f"{key}={re.sub(r'[^A-Za-z0-9._+-]+', '-', shown)}"

    return ",".join(text(key) for key in sorted(keys, key=lambda k: (k != "method", k)))


def check_runs(runs: Sequence[Run]) -> None:
    """Check that every run can be run, and is the one that its folder holds already.

    Raises:
        ConfigError: If settings contradict one another or cannot be written as TOML, if two runs have one
            name, or if a folder holds a run with other settings.
    """
    names = [run.name for run in runs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"a sweep needs runs with different names, got {twice[0]} twice")
    for run in runs:
        try:
            check_loss(run.cfg.loss)
            check_step_advantage(run.cfg)
        except ConfigError as err:
            raise ConfigError(f"{run.name}: {err}") from err
        if lost := _difference(run.cfg, _reread(run)):
            # TOML has no null: None is written as nothing, and its method's own value would come back.
            raise ConfigError(f"{run.name}: a configuration file cannot hold {lost}")
        if run.folder.exists() and run.file.is_file():
            begun = resolve(load_toml(run.file), str(run.file))
            if changed := _difference(run.cfg, dataclasses.replace(begun, run_dir=run.cfg.run_dir)):
                raise ConfigError(f"{run.folder} holds no run with {changed}: choose another folder")


def _reread(run: Run) -> RunConfig:
    try:
        text = tomli_w.dumps(to_mapping(run.cfg))
    except TypeError as err:
        raise ConfigError(f"{run.name}: a configuration file cannot hold this: {err}") from err
    return resolve(tomllib.loads(text), run.name)


def _difference(a: RunConfig, b: RunConfig) -> str:
    """Return the first setting that differs, with the value of `a` and that of `b`, or an empty text."""
    of_a, of_b = dict(_leaves(a)), dict(_leaves(b))
    keys = [key for key in {**of_a, **of_b} if of_a.get(key) != of_b.get(key)]
    return f"{keys[0]}={of_a.get(keys[0])!r} (but {of_b.get(keys[0])!r})" if keys else ""


def _leaves(cfg: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for f in dataclasses.fields(cfg):
        value = getattr(cfg, f.name)
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, f"{prefix}{f.name}.")
        else:
            yield prefix + f.name, value


def final_successes(rows: Sequence[Row]) -> list[float]:
    """Return the success of every step in the last fifth of a run, rounded up to whole steps.

    Raises:
        DataError: If there is no step, or a step does not say its success.
    """
    last = rows[len(rows) - -(-len(rows) // 5) :]
    values = [row.get(SUCCESS) for row in last]
    known = [value for value in values if value is not None]
    if not values or len(known) < len(values):
        raise DataError(f"expected {SUCCESS} in every step, got it in {len(known)} of {len(values)}")
    return known


def scores(runs: Sequence[Run]) -> list[Score]:
    """Return the score of every point whose runs are all finished, in the order of the runs.

    Raises:
        DataError: If the metrics of a finished run cannot be read.
    """
    points: dict[str, list[Run]] = {}
    for run in runs:
        points.setdefault(run.point, []).append(run)
    return [_score(of_point) for of_point in points.values() if all(run.is_finished for run in of_point)]


def _score(runs: Sequence[Run]) -> Score:
    curves = [final_successes(read_metrics(run.folder / "metrics.jsonl")) for run in runs]
    return Score(
        method=runs[0].cfg.method,
        point=runs[0].point,
        seeds=tuple(run.cfg.seed for run in runs),
        success_mean=statistics.fmean(statistics.fmean(curve) for curve in curves),
        success_variance=statistics.fmean(statistics.pvariance(curve) for curve in curves),
    )


def pick(points: Sequence[Score], *, max_variance: float) -> dict[str, Score]:
    """Return the point that each method is judged by: the best success among the calm ones.

    Args:
        points: Scores of any number of methods.
        max_variance: Calm is a variance of success below this.

    Returns:
        Method → its point, the first of equally good ones; a method without a calm point is missing.

    References:
        ARLArena, arXiv:2602.21534: its grid search per method. The threshold is not stated there.
    """
    picks: dict[str, Score] = {}
    for score in points:
        best = picks.get(score.method)
        if score.success_variance < max_variance and (best is None or score.success_mean > best.success_mean):
            picks[score.method] = score
    return picks
