"""How fast is Sokoban? Rooms, steps, images and the solver, each beside its peer in the same run.

    python -m venv peers && peers/bin/pip install gym-sokoban==0.0.6 gym==0.26.2 envpool==1.2.5
    python benchmarks/sokoban.py --peers peers/bin/python

Every measurement runs in a process of its own, ours and the peer's in turn, five times; the table shows the
medians, the best (on a shared machine the least disturbed) and the ratio of the medians. Without `--peers`
only ours are measured. `--levels` (default ../shared/data/sokoban) is a folder with Boxoban and XSB levels
and their `optimal.csv`; without it the solver is left out.
"""

import argparse
import csv
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import arl_gym  # noqa: F401 - registers the ids
from arl_gym.envs.sokoban.batch_views import Pictures
from arl_gym.envs.sokoban.env import SokobanEnv
from arl_gym.envs.sokoban.levels import load_levels
from arl_gym.envs.sokoban.rooms import rooms as room_source
from arl_gym.envs.sokoban.rules import Level
from arl_gym.envs.sokoban.solver import Objective, Solution, solve

HERE = Path(__file__).resolve()
ID = "ARL/Sokoban-v0"
BOXOBAN_LIKE: dict[str, Any] = {"dim_room": (10, 10), "num_boxes": 4}


def rate(once: Callable[[], int], seconds: float) -> float:
    """Return how much `once` does a second; it returns how much it did. The first call warms up."""
    once()
    n, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        n += once()
    return n / passed


def rooms(seconds: float, size: int, boxes: int, fresh: bool) -> float:
    """New rooms of the train split, or resets to its first 256 tasks over and over."""
    env = SokobanEnv(dim_room=(size, size), num_boxes=boxes)
    source = room_source(height=size, width=size, boxes=boxes, split="train")
    ids = env.task_ids()
    at = 0

    def reset() -> int:
        nonlocal at
        at += 1
        if fresh:
            source[at % len(source)]
        else:
            env.reset(options={"task_id": ids[at % 256]})
        return 1

    for _ in range(6000 if fresh else 256):  # numba comes in after about 3,000 rooms
        reset()
    return rate(reset, seconds)


def batch_steps(seconds: float, num_envs: int = 64, **kwargs: Any) -> float:
    """Steps of a batch at random play, automatic resets included, rooms loaded beforehand."""
    vec = gym.make_vec(ID, num_envs=num_envs, action_mode="discrete", num_tasks=1000, **kwargs)
    vec.reset(seed=0)
    moves = np.random.default_rng(0).integers(0, 4, (1024, num_envs))
    at = 0

    def step() -> int:
        nonlocal at
        at += 1
        vec.step(moves[at % len(moves)])
        return num_envs

    for _ in range(200_000 // num_envs):
        step()
    return rate(step, seconds)


def redraws(seconds: float, backend: str) -> float:
    """Whole pictures of 6x6 boards, 96x96 pixels, 64 at a time."""
    pictures = Pictures(64, (6, 6), 16, backend)
    rooms = SokobanEnv(obs_mode="grid")
    boards = np.stack([rooms.reset(seed=i)[0].reshape(-1) for i in range(64)])

    def draw() -> int:
        pictures.forget()
        pictures.draw(boards)
        return 64

    return rate(draw, seconds)


def single_steps(seconds: float, obs_mode: str) -> float:
    """Steps of one environment at random play, resets included."""
    env = gym.make(ID, obs_mode=obs_mode, action_mode="discrete", num_tasks=256).unwrapped
    env.reset(seed=0)
    moves = np.random.default_rng(0).integers(0, 4, 4096).tolist()
    at = 0

    def step() -> int:
        nonlocal at
        at += 1
        _, _, terminated, truncated, _ = env.step(moves[at % len(moves)])
        if terminated or truncated:
            env.reset()
        return 1

    for _ in range(20_000):
        step()
    return rate(step, seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    ours: Callable[[float], float]
    peer: str = ""
    """A key of `sokoban_peers.MEASURES`."""


ROWS = (
    Row(name="rooms/s, 6x6, 1 box, new", ours=lambda s: rooms(s, 6, 1, True), peer="gym-sokoban-rooms"),
    Row(name="resets/s, 6x6, 1 box, seen", ours=lambda s: rooms(s, 6, 1, False)),
    Row(name="rooms/s, 10x10, 4 boxes, pool, new", ours=lambda s: rooms(s, 10, 4, True)),
    Row(name="resets/s, 10x10, 4 boxes, pool, seen", ours=lambda s: rooms(s, 10, 4, False)),
    Row(
        name="grid steps/s, 6x6, 64 envs, numba",
        ours=lambda s: batch_steps(s, obs_mode="grid", backend="numba"),
    ),
    Row(
        name="grid steps/s, 10x10, 64 envs, numba",
        ours=lambda s: batch_steps(s, obs_mode="grid", backend="numba", **BOXOBAN_LIKE),
        peer="envpool-2",
    ),
    Row(
        name="grid steps/s, 6x6, 64 envs, numpy",
        ours=lambda s: batch_steps(s, obs_mode="grid", backend="numpy"),
    ),
    Row(
        name="grid steps/s, 10x10, 64 envs, numpy",
        ours=lambda s: batch_steps(s, obs_mode="grid", backend="numpy", **BOXOBAN_LIKE),
        peer="envpool-1",
    ),
    Row(
        name="grid steps/s, 6x6, 1024 envs, numba",
        ours=lambda s: batch_steps(s, 1024, obs_mode="grid", backend="numba"),
    ),
    Row(
        name="image steps/s, 96x96, 64 envs, numba, shared",
        ours=lambda s: batch_steps(s, obs_mode="image", tile_size=16, backend="numba", copy=False),
        peer="gym-sokoban-rgb",
    ),
    Row(
        name="image steps/s, 96x96, 64 envs, numba, copied",
        ours=lambda s: batch_steps(s, obs_mode="image", tile_size=16, backend="numba"),
        peer="gym-sokoban-rgb",
    ),
    Row(
        name="image steps/s, 96x96, 64 envs, numpy, shared",
        ours=lambda s: batch_steps(s, obs_mode="image", tile_size=16, backend="numpy", copy=False),
        peer="gym-sokoban-rgb",
    ),
    Row(name="full redraws/s, 96x96, numba", ours=lambda s: redraws(s, "numba")),
    Row(name="full redraws/s, 96x96, numpy", ours=lambda s: redraws(s, "numpy")),
    Row(name="single steps/s, text", ours=lambda s: single_steps(s, "text")),
    Row(name="single steps/s, grid", ours=lambda s: single_steps(s, "grid")),
)


def apart(command: Sequence[str]) -> float:
    """Run a measurement in its own process and return the number it prints."""
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(next(line for line in out.splitlines() if line.startswith("result ")).split()[1])


def speed_table(peers: str | None, seconds: float, rounds: int) -> None:
    """Print one row a measurement: ours, the peer's, the ratio."""
    print("| measurement | median | best | peer | median | best | ratio |\n|---|---|---|---|---|---|---|")
    for i, row in enumerate(ROWS):
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(apart([sys.executable, str(HERE), "--row", str(i), "--seconds", str(seconds)]))
            if peers and row.peer:
                theirs.append(apart([peers, str(HERE.with_name("sokoban_peers.py")), row.peer, str(seconds)]))
        print(f"| {row.name} | {statistics.median(ours):,.0f} | {max(ours):,.0f} ", end="")
        if theirs:
            ratio = statistics.median(ours) / statistics.median(theirs)
            print(f"| {row.peer} | {statistics.median(theirs):,.0f} | {max(theirs):,.0f} | {ratio:,.0f} |")
        else:
            print("| | | | |")
        sys.stdout.flush()


def solver_table(folder: Path, max_nodes: int) -> None:
    """Print the solver's times by file, and compare its optima with `optimal.csv`."""
    objectives: tuple[Objective, ...] = ("moves", "pushes")
    with (folder / "optimal.csv").open() as file:
        known = {(row["file"], int(row["index"])): row for row in csv.DictReader(file)}
    solve(next(iter(load_levels(folder / "xsb").values())), max_nodes=10, backend="numba")  # compiles
    print("\n| levels | solved | ms median | mean | p95 | max | equal to optimal.csv |")
    print("|---|---|---|---|---|---|---|")
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".txt", ".xsb")):
        levels = list(load_levels(path).values())
        for objective in objectives:
            rows = [known.get((str(path.relative_to(folder)), i)) for i in range(len(levels))]
            optima = [int(row[f"optimal_{objective}"]) if row else -1 for row in rows]
            _solver_row(f"{path.stem}, {objective}", levels, optima, objective, max_nodes)


def _solver_row(
    name: str, levels: Sequence[Level], optima: Sequence[int], objective: Objective, cap: int
) -> None:
    times, equal, wrong, solved = [], 0, 0, 0
    for level, optimum in zip(levels, optima, strict=True):
        start = time.perf_counter()
        solution = solve(level, objective=objective, max_nodes=cap, backend="numba")
        times.append(1e3 * (time.perf_counter() - start))
        solved += solution.status == "solved"
        found = _length(solution, objective)
        equal += optimum > 0 and found == optimum
        wrong += optimum > 0 and found != optimum
    times.sort()
    known = f"{equal} of {equal + wrong}" if equal + wrong else ""
    median, mean, p95 = statistics.median(times), statistics.fmean(times), times[int(0.95 * len(times))]
    print(f"| {name} | {solved} of {len(levels)} ", end="")
    print(f"| {median:.1f} | {mean:.1f} | {p95:.0f} | {times[-1]:.0f} | {known} |", flush=True)


def _length(solution: Solution, objective: Objective) -> int:
    if solution.status != "solved":
        return 0
    return len(solution.moves) if objective == "moves" else solution.pushes


def main() -> None:
    """Print the tables, or one number for `--row`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peers", metavar="PYTHON", help="interpreter of a venv with gym-sokoban and envpool"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="per measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--levels", type=Path, default=HERE.parents[2] / "shared" / "data" / "sokoban")
    parser.add_argument("--max-nodes", type=int, default=3_000_000, help="of the solver, per level")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.row is not None:
        print("result", ROWS[args.row].ours(args.seconds))
        return
    speed_table(args.peers, args.seconds, args.rounds)
    if args.levels.is_dir():
        solver_table(args.levels, args.max_nodes)
    else:
        print(f"no levels under {args.levels}: the solver was not measured")


if __name__ == "__main__":
    main()
