"""WebShop: speed, memory, baselines and the expert, of the text environment.

    python benchmarks/webshop.py speed                          # steps and resets, start cold and warm
    python benchmarks/webshop.py baselines                      # random, first result, expert, on every split
    python benchmarks/webshop.py soak --steps 200000            # exceptions and memory over random steps
    python benchmarks/webshop.py scale --products 1000 10000 100000 1000000

Prints the tables that stand in RESULTS.md. CPU seconds are those of the process; machines are noisy, so
speeds are the best of five turns. The search engine is compared with Lucene in `webshop_search.py`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym

import arl_gym
from arl_gym.agents.evaluate import wilson_interval
from arl_gym.rng import Rng

gym.register_envs(arl_gym)

ID = "ARL/WebShop-v0"
SPLITS = ("train", "val", "test", "test_ood")


def make(**kwargs: Any) -> Any:
    """Make the environment as a trainer does."""
    return gym.make(ID, disable_env_checker=True, **kwargs)


def goals(env: Any, split: str, most: int | None = None) -> Iterator[tuple[str, Any]]:
    """Give the task ids of a split and their goals."""
    for task_id in env.unwrapped.task_ids(split)[:most]:
        yield task_id, env.unwrapped.goal(task_id)


def play(env: Any, rng: Rng, queries: Iterator[str]) -> Iterator[bool]:
    """Play at random for ever: what can be clicked, the next query on the search page. Give episode ends."""
    ids = env.unwrapped.task_ids()
    while True:
        _, info = env.reset(options={"task_id": rng.choice(ids)})
        over = False
        while not over:
            action = rng.choice(info["admissible_actions"])
            if action.startswith("search["):
                action = f"search[{next(queries)}]"
            _, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            yield over


def instructions(env: Any, n: int) -> list[str]:
    """Return the instructions of n training goals."""
    return [goal.instruction for _, goal in goals(env, "train", n)]


def cold(texts: list[str], rng: Rng) -> Iterator[str]:
    """Give queries that hardly ever repeat: an instruction with two of its words left out."""
    while True:
        words = rng.choice(texts).split()
        for _ in range(2):
            words.pop(rng.below(len(words)))
        yield " ".join(words)


def warm(texts: list[str], rng: Rng) -> Iterator[str]:
    """Give one of 50 queries."""
    while True:
        yield rng.choice(texts[:50])


def speed() -> None:
    """Print steps and resets per CPU second."""
    print("| products | queries | steps per CPU-second | share of searches | reset, us | with a seed, us |")
    print("|---|---|---|---|---|---|")
    for products in (1000, 5000):
        env = make(num_products=products)
        texts = instructions(env, 2000)
        for name, source in (("new ones", cold), ("50", warm)):
            rng = Rng("bench", products)
            steps = play(env, rng, counted := Counted(source(texts, rng)))
            rates, n = [], 0
            for _ in range(6):
                began = time.process_time()
                for _ in range(5000):
                    next(steps)
                    n += 1
                rates.append(5000 / (time.process_time() - began))
            resets = f"{reset_us(env, False):.0f} | {reset_us(env, True):.0f}"
            print(f"| {products} | {name} | {max(rates[1:]):,.0f} | {counted.n / n:.2f} | {resets} |")
        env.close()


class Counted:
    """An iterator that counts what it gave."""

    def __init__(self, items: Iterator[str]):
        self._items, self.n = items, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.n += 1
        return next(self._items)


def reset_us(env: Any, by_seed: bool) -> float:
    """Return the CPU microseconds of a reset to another task, the best of five turns."""
    ids, times = env.unwrapped.task_ids(), []
    for turn in range(5):
        began = time.process_time()
        for k in range(1000 * turn, 1000 * (turn + 1)):
            if by_seed:
                env.reset(seed=k)
            else:
                env.reset(options={"task_id": ids[k % len(ids)]})
        times.append((time.process_time() - began) * 1000)
    return min(times)


_START = f"""
import time; began = time.perf_counter()
import gymnasium, arl_gym
imported = time.perf_counter()
env = gymnasium.make("{ID}"); env.reset(seed=0)
print(imported - began, time.perf_counter() - imported)
"""


def start() -> None:
    """Print how long the first `gym.make` takes with an empty cache, and the next ones."""
    print("\n| start | import, s | gym.make and reset, s |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        for name in ("cold", "warm", "warm again"):
            out = subprocess.run(
                [sys.executable, "-c", _START],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, "ARL_GYM_CACHE": cache},
            ).stdout.split()
            print(f"| {name} | {float(out[0]):.2f} | {float(out[1]):.2f} |")


def random_purchase(env: Any, task_id: str, rng: Rng) -> dict[str, Any]:
    """Play one task with random admissible actions."""
    _, info = env.reset(options={"task_id": task_id})
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(rng.choice(info["admissible_actions"]))
        over = terminated or truncated
    return dict(info)


def first_result(env: Any, task_id: str, rng: Rng) -> dict[str, Any]:
    """Search for the instruction, open the first result, buy it as it is."""
    _, info = env.reset(options={"task_id": task_id})
    *_, info = env.step(f"search[{info['task']}]")
    first = next(
        a for a in info["admissible_actions"] if a[6:-1] not in ("back to search", "< prev", "next >")
    )
    env.step(first)
    *_, info = env.step("click[buy now]")
    return dict(info)


def expert(env: Any, task_id: str, rng: Rng) -> dict[str, Any]:
    """Do what the environment's own expert does."""
    _, info = env.reset(options={"task_id": task_id})
    over, n = False, 0
    while not over:
        _, _, terminated, truncated, info = env.step(env.unwrapped.expert_action())
        over, n = terminated or truncated, n + 1
    return {**info, "steps": n}


def baselines() -> None:
    """Print success and score of three policies that need no training, on all tasks of each split."""
    print(
        "| policy | split | tasks | success, 95% interval | mean score | steps |\n|---|---|---|---|---|---|"
    )
    for policy in (random_purchase, first_result, expert):
        for split in SPLITS:
            env = make(split=split)
            rng = Rng("baseline", split)
            infos = [policy(env, task_id, rng) for task_id in env.unwrapped.task_ids()]
            wins = sum(info["success"] for info in infos)
            low, high = wilson_interval(wins, len(infos))
            score = statistics.fmean(info["score"] for info in infos)
            steps = f"{statistics.fmean(i['steps'] for i in infos):.1f}" if policy is expert else ""
            print(
                f"| {policy.__name__} | {split} | {len(infos)} | {wins / len(infos):.3f} "
                f"[{low:.3f}, {high:.3f}] | {score:.3f} | {steps} |"
            )
            env.close()


def private_mb() -> float:
    """Return the memory of this process that is not of a mapped file, which others share, in MB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1024


def soak(n: int) -> None:
    """Print the private memory along n random steps, with ever new queries."""
    env = make()
    rng = Rng("soak")
    steps = play(env, rng, cold(instructions(env, 4000), rng))
    print("| random steps | episodes | private memory, MB |\n|---|---|---|")
    episodes = 0
    for k in range(1, n + 1):
        episodes += next(steps)
        if k % max(1, n // 10) == 0:
            print(f"| {k:,} | {episodes:,} | {private_mb():.1f} |", flush=True)


_BUILD = """
import json, resource, sys, time
from arl_gym.envs.webshop.generated import generated_store
began = time.process_time(), time.perf_counter()
generated_store("full", int(sys.argv[1]))
peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps([time.process_time() - began[0], time.perf_counter() - began[1], peak / 1024]))
"""


def scale(sizes: list[int]) -> None:
    """Print the cost of generated catalogues of several sizes."""
    print("| products | build, CPU s | build, s | peak MB | disk MB | open s | search ms | p99 | worker MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n in sizes:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["ARL_GYM_CACHE"] = cache
            built = subprocess.run(
                [sys.executable, "-c", _BUILD, str(n)], check=True, capture_output=True, text=True
            ).stdout
            cpu, wall, peak = json.loads(built)
            disk = sum(f.stat().st_size for f in Path(cache).rglob("*") if f.is_file()) / 1e6
            used = subprocess.run(
                [sys.executable, __file__, "_use", "--products", str(n)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            opened, median, p99, private = json.loads(used)
            print(
                f"| {n:,} | {cpu:.0f} | {wall:.0f} | {peak:.0f} | {disk:.0f} | {opened:.2f} "
                f"| {median:.2f} | {p99:.1f} | {private:.0f} |",
                flush=True,
            )


def use(n: int) -> None:
    """Print, as JSON, seconds to open a catalogue, ms of a search (median, p99), and MB of this process."""
    began = time.perf_counter()
    env = make(num_products=n)
    opened = time.perf_counter() - began
    shop = env.unwrapped.shop
    rng = Rng("scale")
    texts = instructions(env, 500)
    times = []
    for query in texts:
        began = time.perf_counter()
        shop.search(query)
        times.append(1000 * (time.perf_counter() - began))
    steps = play(env, rng, cold(texts, rng))
    for _ in range(2000):
        next(steps)
    times.sort()
    print(json.dumps([opened, times[len(times) // 2], times[int(0.99 * len(times))], private_mb()]))


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "baselines", "soak", "scale", "_use"])
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--products", type=int, nargs="+", default=[1000, 10_000, 100_000])
    args = parser.parse_args()
    if args.what == "speed":
        speed()
        start()
    elif args.what == "baselines":
        baselines()
    elif args.what == "soak":
        soak(args.steps)
    elif args.what == "scale":
        scale(args.products)
    else:
        use(args.products[0])


if __name__ == "__main__":
    main()
