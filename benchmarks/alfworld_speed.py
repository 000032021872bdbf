"""How fast and how small is ALFWorld? Steps, resets, memory, drawing the games, opening an index.

    python benchmarks/alfworld_speed.py --games 3553

Every measurement runs in a process of its own, `--rounds` times; the table shows the median and the best (on
a shared machine the least disturbed). The comparison with the real TextWorld, step by step and in the same
run, is `alfworld_equality.py`. `--games` sets how many games the index has; they are drawn and written to a
temporary folder first, which takes a minute. 0 leaves the index out.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from arl_gym.core import SPLITS
from arl_gym.envs.alfworld.env import ALFWorldEnv
from arl_gym.envs.alfworld.export import export_games
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import Settings
from arl_gym.envs.alfworld.house import House
from arl_gym.envs.alfworld.planner import plan
from arl_gym.rng import Rng, digest

HERE = Path(__file__).resolve()


def engine_steps(n: int = 40_000) -> float:
    """Random admissible commands a second in the engine alone, commands, key and goal asked every step."""
    games = GeneratedGames(Settings())
    houses = [House(games.game(f"train-{k:06d}")) for k in range(12)]
    rng, start = Rng("engine"), time.process_time()
    for k in range(n):
        house = houses[k % len(houses)]
        commands = house.commands()
        house.act(commands[rng.below(len(commands))])
        _ = house.won, house.state_key
    return n / (time.process_time() - start)


def env_steps(n: int = 40_000) -> float:
    """Random admissible actions a second through `step`, observations and infos included, resets not."""
    env = ALFWorldEnv(num_tasks=64)
    rng, spent, done = Rng("env"), 0.0, 0
    while done < n:
        _, info = env.reset(seed=done)
        terminated = truncated = False
        while not (terminated or truncated):
            actions = info["admissible_actions"]
            action = actions[rng.below(len(actions))]
            start = time.process_time()
            _, _, terminated, truncated, info = env.step(action)
            spent += time.process_time() - start
            done += 1
    return done / spent


def new_resets(n: int = 500) -> float:
    """Microseconds of a reset to a game this process has not met, drawing it included."""
    env = ALFWorldEnv()
    ids = env.task_ids()
    env.reset(options={"task_id": ids[n]})
    return _microseconds(lambda k: env.reset(options={"task_id": ids[k]}), n)


def seen_resets(n: int = 2000) -> float:
    """Microseconds of a reset to one of 64 games met before."""
    env = ALFWorldEnv(num_tasks=64)
    ids = env.task_ids()
    for task_id in ids:
        env.reset(options={"task_id": task_id})
    return _microseconds(lambda k: env.reset(options={"task_id": ids[k % 64]}), n)


def plans(n: int = 300) -> float:
    """Microseconds of a plan from the start of a game."""
    games = GeneratedGames(Settings())
    houses = [House(games.game(f"train-{k:06d}")) for k in range(n)]
    return _microseconds(lambda k: plan(houses[k]), n)


def _microseconds(once: Callable[[int], object], n: int) -> float:
    start = time.process_time()
    for k in range(n):
        once(k)
    return (time.process_time() - start) / n * 1e6


def all_games() -> float:
    """CPU seconds to draw every game of the default splits, and to prove it solvable in 50 steps."""
    start = time.process_time()
    games, hashes = GeneratedGames(Settings()), []
    for split in SPLITS:
        for task_id in games.ids(split):
            house = House(games.game(task_id))
            hashes.append(house.content_hash)
            commands = plan(house)
            for command in commands:
                house.act(command)
            if not house.won or len(commands) > 50:
                raise SystemExit(f"{task_id} is not solved by {commands}")
    sys.stderr.write(f"{len(hashes)} games, content {digest(''.join(hashes))}\n")
    return time.process_time() - start


def many_envs(n: int = 64) -> float:
    """Megabytes of a process with 64 environments in their first episodes, 20 steps each."""
    envs = [ALFWorldEnv() for _ in range(n)]
    for k, env in enumerate(envs):
        _, info = env.reset(seed=k)
        for _ in range(20):
            info = env.step(info["admissible_actions"][k % len(info["admissible_actions"])])[4]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def episodes_growth(n: int = 50_000) -> float:
    """Megabytes that n more episodes of 4 steps add after a first tenth of them."""
    env = ALFWorldEnv()

    def play(first: int, last: int) -> int:
        for k in range(first, last):
            _, info = env.reset(seed=k)
            for _ in range(4):
                actions = info["admissible_actions"]
                info = env.step(actions[k % len(actions)])[4]
                if info["success"]:
                    break
        return _resident_kib()

    before = play(0, n // 10)
    return (play(n // 10, n // 10 + n) - before) / 1024


def _resident_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def index_start(folder: str) -> float:
    """Seconds from nothing to an environment of the original data set and its first reset."""
    start = time.perf_counter()
    ALFWorldEnv(dataset="original", data_dir=folder).reset(seed=0)
    return time.perf_counter() - start


MEASUREMENTS: dict[str, tuple[Callable[..., float], str, bool]] = {
    "engine steps per CPU-second": (engine_steps, "", True),
    "env steps per CPU-second, infos included": (env_steps, "", True),
    "reset to a new game, drawn": (new_resets, "µs", False),
    "reset to a game met before": (seen_resets, "µs", False),
    "expert's plan from the start": (plans, "µs", False),
    "64 envs in a process": (many_envs, "MB", False),
}
ONCE: dict[str, tuple[Callable[..., float], str]] = {
    "all default games drawn and solved": (all_games, "s CPU"),
    "growth over 50,000 more episodes": (episodes_growth, "MB"),
}


def measure(name: str, *args: str) -> float:
    """Run a function of this module in a new process and return what it returns."""
    code = f"import {HERE.stem} as b; print(b.{name}({', '.join(map(repr, args))}))"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True
    )
    return float(out.stdout)


def index_rows(n: int) -> None:
    """Print how long an index of n games takes to open, the first time and later."""
    with tempfile.TemporaryDirectory() as folder:
        games = GeneratedGames(Settings())
        export_games(games, "train", Path(folder), min(n, len(games.ids("train"))))
        cold = measure("index_start", folder)
        warm = [measure("index_start", folder) for _ in range(3)]
    row(f"index of {n} games, first start", [cold], "s")
    row(f"index of {n} games, later starts", warm, "s")


def row(name: str, values: list[float], unit: str, *, more_is_better: bool = False) -> None:
    """Print one row of the table."""
    best = max(values) if more_is_better else min(values)
    digits = 0 if best >= 100 else 2
    print(
        f"| {name} | {statistics.median(values):,.{digits}f} {unit} | {best:,.{digits}f} {unit} |", flush=True
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--games", type=int, default=3553, help="games of the index; 0 leaves it out")
    options = parser.parse_args()
    print("| measurement | median | best |\n|---|---|---|")
    for name, (function, unit, more) in MEASUREMENTS.items():
        values = [measure(function.__name__) for _ in range(options.rounds)]
        row(name, values, unit, more_is_better=more)
    for name, (function, unit) in ONCE.items():
        row(name, [measure(function.__name__)], unit)
    if options.games:
        index_rows(options.games)


if __name__ == "__main__":
    main()
