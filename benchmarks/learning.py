"""Does reinforcement learning improve the cloned agent? Three seeds of the demo, with GRPO beside SAMPO.

    python benchmarks/learning.py --out runs/learning --seeds 1 2 3

Runs `arl-gym demo --compare GRPO` once a seed, two at a time with one thread each, and prints the table that
stands in RESULTS.md. Every number is on the test split, of which no choice was made: the preset was tuned
on the validation split with seed 100. What this script does not know goes to `arl-gym demo`, e.g. a preset:

    python benchmarks/learning.py --out runs/alfworld --seeds 1 2 --compare --config alfworld-tiny
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Z95 = statistics.NormalDist().inv_cdf(0.975)


def run(folder: Path, seed: int, compare: Sequence[str], extra: Sequence[str]) -> dict[str, Any]:
    """Run the demo of one seed, unless its result is there already, and return the result."""
    result = folder / "result.json"
    if not result.exists():
        command = [sys.executable, "-m", "arl_gym.cli", "demo", "--seed", str(seed), "--run-dir", str(folder)]
        with open(f"{folder}.log", "w") as log:
            subprocess.run(
                [*command, "--compare", *compare, *extra],
                check=True,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
    data: dict[str, Any] = json.loads(result.read_text())
    return data


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95% interval (normal)."""
    mean = statistics.fmean(values)
    half = Z95 * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def main() -> None:
    """Run all seeds and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--compare", nargs="*", default=["GRPO"], help="methods beside SAMPO")
    args, extra = parser.parse_known_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(args.at_once) as pool:
        results = list(pool.map(lambda s: run(args.out / f"seed-{s}", s, args.compare, extra), args.seeds))
    assert len({r["content_hash"] for r in results}) == 1, "the seeds were tested on different tasks"

    names = [row["name"] for row in results[0]["rows"]]
    rows = [{row["name"]: row for row in r["rows"]} for r in results]
    print("| agent | " + " | ".join(f"seed {s}" for s in args.seeds) + " | mean | training s |")
    print("|---|" + "---|" * (len(args.seeds) + 2))
    for name, kind in [(name, kind) for kind in ("greedy", "sampled") for name in names]:
        if rows[0][name][kind] is None:  # random play is kept as greedy
            continue
        rates = [r[name][kind]["success_rate"] for r in rows]
        shown = " | ".join(f"{x:.3f}" for x in rates)
        seconds = statistics.fmean(r[name]["seconds"] for r in rows)
        label = name if name == "random" else f"{name} ({kind})"
        print(f"| {label} | {shown} | {statistics.fmean(rates):.3f} | {seconds:.0f} |")
    print()
    print("| greedy gain over BC | " + " | ".join(f"seed {s}" for s in args.seeds) + " | mean, paired 95% |")
    print("|---|" + "---|" * (len(args.seeds) + 1))
    for name in names[2:]:
        gains = [
            [a - b for a, b in zip(r[name]["successes"], r["BC"]["successes"], strict=True)] for r in rows
        ]
        shown = " | ".join("{:+.3f} [{:+.3f}, {:+.3f}]".format(*interval(g)) for g in gains)
        # A task counts once: its gain is averaged over the seeds before the interval is taken.
        pooled = [statistics.fmean(task) for task in zip(*gains, strict=True)]
        print(f"| {name} | {shown} | " + "{:+.3f} [{:+.3f}, {:+.3f}] |".format(*interval(pooled)))


if __name__ == "__main__":
    main()
