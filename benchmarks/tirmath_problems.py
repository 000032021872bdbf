"""TIR-Math's problems: how long all of them take to draw, and whether every reference program scores 1.

    python benchmarks/tirmath_problems.py
    python benchmarks/tirmath_problems.py --tier landlock --each 10    # every tenth problem

Each program runs in the sandbox, and what it prints is graded against the reference answer. Prints the table
that stands in RESULTS.md; the exit code is 1 if a program misses.
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from arl_gym.core import SPLITS
from arl_gym.envs.tirmath.grading import shared_grader
from arl_gym.envs.tirmath.problems.generated import TINY_FAMILIES, GeneratedProblems
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.envs.tirmath.sandbox import shared_sandbox


def draw() -> list[Problem]:
    """Draw the default problems of all splits, and the tiny ones."""
    sets = (GeneratedProblems(), GeneratedProblems(TINY_FAMILIES))
    return [p.problem(split, i) for p in sets for split in SPLITS for i in range(len(p.ids(split)))]


def main() -> int:
    """Print the table."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--tier", default="auto")
    parser.add_argument("--each", type=int, default=1, help="run one program of so many")
    options = parser.parse_args()
    began = time.process_time()
    problems = draw()
    drawn_s = time.process_time() - began
    sandbox, grader = shared_sandbox(options.tier), shared_grader()

    def scores(problem: Problem) -> bool:
        execution = sandbox.run(problem.program)
        right = execution.status == "ok" and grader.check(problem.answer, execution.stdout.strip()).equal
        if not right:
            print(f"{problem.family} {problem.level}: {problem.question} -> {execution}", file=sys.stderr)
        return right

    began = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(scores, problems[:: options.each]))
    run_s = time.perf_counter() - began
    print("| problems drawn | CPU s | programs run | tier | score 1 | wall s |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {len(problems):,} | {drawn_s:.2f} | {len(results):,} | {sandbox.tier} | {sum(results):,} "
        f"| {run_s:.0f} |"
    )
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
