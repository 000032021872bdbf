"""Every method from one cloned start a seed, on the tiny Sokoban: who learns, who collapses.

    python -m benchmarks.methods --out runs/methods --seeds 1 2 --jobs 2

All runs have the same steps, the same episodes trained on in a step (8 groups of 8) and 4 optimiser steps per
rollout batch, so that ratios leave 1 and the losses differ; the filter plays more episodes, which the table
shows. What is not the method's own: the KL coefficient is 0.01 for all, as in the paper's agents; bounds on
the ratio of a sequence, the mask's included, are ten times the paper's, because this model moves that much
further in a step (learning rate 3e-4 instead of 1e-6); and group statistics are taken over turns, as the
preset says. Bounds on the ratio of a token are the paper's. The start is the preset's cloning, once a seed.

Finished runs and tests are skipped, so the same command goes on where it was stopped. Tests are on the test
split, of which no choice was made. Intervals are over the tasks, each averaged over the seeds: they do not
say how much another seed would differ.
"""

import argparse
import dataclasses
import json
import multiprocessing
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from arl_gym.assets import assets_root
from arl_gym.train.config import RunConfig, load_toml
from arl_gym.train.files import write_atomically
from arl_gym.train.jobs import run_all
from arl_gym.train.methods import METHODS, resolve
from arl_gym.train.metrics import Row, read_metrics
from arl_gym.train.sweep import SUCCESS, Run, check_runs, configure, planned
from benchmarks.learning import interval

SHARED: Mapping[str, Any] = {
    "optim.minibatches": 4,
    "loss.kl_coef": 0.01,
    "filter.oversample": 1.0,
    "filter.max_tries": 3,
    "eval.every": 4,
    "eval.episodes": 64,
    "trajectories_every": 0,
}
WIDER = 10.0
"""Times the paper's bounds on the ratio of a sequence."""

Tested = dict[str, dict[str, Any]]
"""Of one model: "greedy" and "sampled" → its success on each test task, and its share of valid turns."""


def base(steps: int) -> RunConfig:
    """Return what all runs share."""
    preset = resolve(load_toml(assets_root() / "presets" / "sokoban-tiny.toml"), "sokoban-tiny")
    return configure(dataclasses.replace(preset, steps=steps), SHARED)


def arm(shared: RunConfig, method: str, settings: Mapping[str, Any] | None = None) -> RunConfig:
    """Return the configuration of a method, with the choices above and further settings."""
    return configure(
        widened(configure(shared, {"method": method, "advantage.group_stats": "turn"})), settings or {}
    )


def widened(cfg: RunConfig) -> RunConfig:
    """Return `cfg` with wider bounds on the ratio of a sequence."""
    loss = cfg.loss
    if loss.ratio_level != "token":
        loss = dataclasses.replace(loss, clip_low=loss.clip_low * WIDER, clip_high=loss.clip_high * WIDER)
    if loss.mask_delta is not None:
        loss = dataclasses.replace(loss, mask_delta=loss.mask_delta * WIDER)
    return dataclasses.replace(cfg, loss=loss)


def start(out: Path, seed: int) -> Path:
    """Return the folder of the run that cloned the start of a seed."""
    return out / "BC" / f"seed-{seed}"


def runs_of(
    arms: Mapping[str, RunConfig], *, seeds: Sequence[int], out: Path, cloned: bool = True
) -> list[Run]:
    """Return the runs of named configurations, each from the clone of its seed or from random weights."""
    runs = []
    for name, cfg in arms.items():
        for seed in seeds:
            path = str(start(out, seed) / "model") if cloned else cfg.model.path
            model = dataclasses.replace(cfg.model, path=path)
            runs.append(planned(dataclasses.replace(cfg, model=model), name, seed=seed, out=out))
    return runs


def clone(shared: RunConfig, folder: Path, seed: int) -> None:
    """Clone the start of a seed, unless it is there."""
    from arl_gym.train.bc import clone_run

    if folder.exists():
        return
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    clone_run(dataclasses.replace(shared, seed=seed, run_dir=str(partial)))
    partial.rename(folder)


def measure(cfg: RunConfig, episodes: int) -> Tested:
    """Return how the model in a run folder does on the test tasks; kept in a file beside the folder."""
    from arl_gym.train.demo import load
    from arl_gym.train.trainer import evaluate_policy

    folder = Path(cfg.run_dir)
    file = folder.with_name(f"{folder.name}.test-{episodes}.json")
    if file.exists():
        return json.loads(file.read_text())  # type: ignore[no-any-return]
    tested = {}
    for kind, temperature in (("greedy", 0.0), ("sampled", cfg.rollout.temperature)):
        policy = load(cfg, str(folder / "model"), temperature=temperature)
        result = evaluate_policy(cfg, policy, split="test", episodes=episodes)
        tested[kind] = {
            "content_hash": result.content_hash,
            "successes": [int(s) for s in result.successes],
            "valid": result.format_valid_share,
        }
    write_atomically(file, json.dumps(tested).encode())
    return tested


def collapse(rows: Sequence[Row]) -> str:
    """Return why a run counts as collapsed, or an empty text.

    "not finite": a loss, divergence or gradient norm was not, or a step was skipped for it. "format": in the
    last fifth of the steps fewer than half of the turns were valid. "success": in the last fifth it was less
    than half of what it was in the best stretch of that length.
    """
    watched = ("loss/policy", "loss/approx_kl", "loss/kl", "optim/grad_norm")
    if any(row.get(key, 0.0) is None for row in rows for key in watched) or rows[-1].get(
        "optim/skipped_steps"
    ):
        return "not finite"
    size = -(-len(rows) // 5)
    if _mean(rows[-size:], "rollout/format_valid_frac") < 0.5:
        return "format"
    stretches = [_mean(rows[i : i + size], SUCCESS) for i in range(len(rows) - size + 1)]
    return "success" if stretches[-1] < 0.5 * max(stretches) else ""


def _values(rows: Sequence[Row], key: str) -> list[float]:
    found = [row.get(key) for row in rows]
    return [value for value in found if value is not None]


def _mean(rows: Sequence[Row], key: str) -> float:
    values = _values(rows, key)
    return statistics.fmean(values) if values else 0.0


def curve(rows: Sequence[Row], cfg: RunConfig) -> dict[str, Any]:
    """Return what the table says about the course of a run."""
    panel = _values(rows, "eval/success_rate")
    return {
        "panel_last": panel[-1],
        "panel_best": max(panel),
        "collapse": collapse(rows),
        "approx_kl_max": max(_values(rows, "loss/approx_kl"), default=0.0),
        "kl_max": max(_values(rows, "loss/kl"), default=0.0),
        "grad_norm_max": max(_values(rows, "optim/grad_norm"), default=0.0),
        "clip_frac": _mean(rows, "loss/clip_frac"),
        "episodes": sum(_values(rows, "rollout/groups_played")) * cfg.rollout.group_size,
        "minutes": sum(_values(rows, "time/step_s")) / 60,
    }


def per_task(tests: Sequence[Tested], kind: str) -> list[float]:
    """Return the success on each test task, averaged over the seeds."""
    of_seeds = [tested[kind]["successes"] for tested in tests]
    return [statistics.fmean(task) for task in zip(*of_seeds, strict=True)]


def difference(a: Sequence[Tested], b: Sequence[Tested], kind: str) -> tuple[float, float, float]:
    """Return the success of `a` minus that of `b`, paired by test task, with its 95% interval."""
    hashes = {tested[kind]["content_hash"] for tested in (*a, *b)}
    assert len(hashes) == 1, "the models were tested on different tasks"
    pairs = zip(per_task(a, kind), per_task(b, kind), strict=True)
    return interval([x - y for x, y in pairs])


def train_and_test(
    runs: Sequence[Run], shared: RunConfig, args: argparse.Namespace
) -> dict[str, list[Tested]]:
    """Clone, train and test whatever is missing, and return the tests of every finished point, with BC's."""
    check_runs(runs)
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        folders = [start(args.out, seed) for seed in args.seeds]
        list(pool.map(clone, [shared] * len(folders), folders, args.seeds))
        outcomes = run_all(runs, jobs=args.jobs, say=_say)
        if any(o.status == "stopped" for o in outcomes):
            sys.exit("stopped: the same command goes on")
        clones = [
            dataclasses.replace(shared, seed=seed, run_dir=str(folder))
            for seed, folder in zip(args.seeds, folders, strict=True)
        ]
        finished = [o.run for o in outcomes if not o.reason]
        cfgs = [*clones, *(run.cfg for run in finished)]
        tests = list(pool.map(measure, cfgs, [args.episodes] * len(cfgs)))
    points: dict[str, list[Tested]] = {}
    for name, tested in zip(["BC"] * len(clones) + [run.point for run in finished], tests, strict=True):
        points.setdefault(name, []).append(tested)
    # A point that lacks a seed would be averaged over other seeds than the rest.
    return {name: found for name, found in points.items() if len(found) == len(args.seeds)}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def with_interval(values: tuple[float, float, float], form: str = ".2f") -> str:
    """Return a mean and its interval as text."""
    mean, low, high = (format(value, form) for value in values)
    return f"{mean} [{low}, {high}]"


def table(points: Mapping[str, Sequence[Tested]], curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the Markdown table: means over the seeds, maxima over them, and how many collapsed."""
    heads = ["method", "greedy", "sampled", "greedy - BC", "sampled - BC", "panel last, best", "collapsed"]
    heads += ["max KL to sampler", "max KL to start", "max grad norm", "clipped", "episodes", "minutes"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, tests in points.items():
        cells = [name, *(with_interval(interval(per_task(tests, kind))) for kind in ("greedy", "sampled"))]
        if name in curves:
            cells += [
                with_interval(difference(tests, points["BC"], k), "+.2f") for k in ("greedy", "sampled")
            ]
            cells += _course(curves[name])
        lines.append(f"| {' | '.join(cells + [''] * (len(heads) - len(cells)))} |")
    return "\n".join(lines)


def _course(seeds: Sequence[Mapping[str, Any]]) -> list[str]:
    def over(fold: Callable[[list[float]], float], key: str) -> float:
        return fold([seed[key] for seed in seeds])

    reasons = [seed["collapse"] for seed in seeds if seed["collapse"]]
    mean = statistics.fmean
    return [
        f"{over(mean, 'panel_last'):.2f}, {over(mean, 'panel_best'):.2f}",
        f"{len(reasons)}/{len(seeds)} {', '.join(reasons)}".rstrip(),
        f"{over(max, 'approx_kl_max'):.3f}",
        f"{over(max, 'kl_max'):.3f}",
        f"{over(max, 'grad_norm_max'):.1f}",
        f"{over(mean, 'clip_frac'):.3f}",
        f"{over(mean, 'episodes'):.0f}",
        f"{over(mean, 'minutes'):.1f}",
    ]


def courses(runs: Sequence[Run], points: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the courses of the runs of every point that was tested."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        if run.point in points:
            rows = read_metrics(run.folder / "metrics.jsonl")
            found.setdefault(run.point, []).append(curve(rows, run.cfg))
    return found


def options(description: str | None) -> argparse.ArgumentParser:
    """Return the options that this script and `findings.py` share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the same for both scripts: they share runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--episodes", type=int, default=256, help="test tasks")
    return parser


def main() -> None:
    """Run all methods and print the table."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", default=list(METHODS), metavar="METHOD")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    shared = base(args.steps)
    runs = runs_of({method: arm(shared, method) for method in args.only}, seeds=args.seeds, out=args.out)
    points = train_and_test(runs, shared, args)
    curves = courses(runs, points)
    result = {"seeds": args.seeds, "steps": args.steps, "tests": points, "courses": curves}
    write_atomically(args.out / "methods.json", json.dumps(result).encode())
    print(table(points, curves))


if __name__ == "__main__":
    main()
