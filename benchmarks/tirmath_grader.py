"""TIR-Math's grader: labelled pairs, sweeps over gold answers, latency, deadline, restart.

    python benchmarks/tirmath_grader.py --data ../shared/data/math

Prints one table. Needs the extra `math`. The labelled pairs are also given to math-verify as its README uses
it, in the same run. A sweep takes every gold answer of a data set and checks it against harmless rewritings
of itself (must be equal) and, for integers, against its neighbour (must differ).
"""

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from arl_gym.envs.tirmath.grading import GRADER_VERSION, Grader, extract_boxed
from arl_gym.envs.tirmath.grading.worker import Worker

Row = dict[str, Any]
BOMB = r"\sqrt{3}+((9^{9999})^{9999})^{99}"
"""Passes the caps and keeps sympy busy for longer than any deadline."""
BARE_INTEGER = re.compile(r"-?\d+")
LEFT = re.compile(r"(?<!\\left)(?<!\\sqrt)([(\[])")
SIMPLE_FRACTION = re.compile(r"(-?)\\d?frac\{(\d+)\}\{(\d+)\}")


def jsonl(path: Path) -> list[Row]:
    """Read one JSON object a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def golds(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Give each data set's name and gold answers."""
    import pyarrow.parquet as parquet

    yield "MATH-500", [row["answer"] for row in jsonl(data / "math500.simplerl.jsonl")]
    gsm8k = jsonl(data / "gsm8k_test.openai.jsonl")
    yield "GSM8K test", [row["answer"].rpartition("####")[2].strip() for row in gsm8k]
    yield "AIME 2024", [str(row["answer"]) for row in jsonl(data / "aime24.qwen25math.jsonl")]
    table = parquet.read_table(data / "simplelr_math_35_train_new.arlarena.parquet")
    yield "MATH levels 3-5, train", table.column("gt_answer").to_pylist()


REWRITINGS: dict[str, Callable[[str], str]] = {
    "itself": lambda gold: gold,
    "dfrac": lambda gold: gold.replace(r"\frac", r"\dfrac"),
    "spaces": lambda gold: f"  {gold.replace('+', ' + ').replace('{', '{ ').replace('=', ' = ')} ",
    "left, right": lambda gold: (
        gold
        if r"\text" in gold
        else re.sub(r"(?<!\\right)([)\]])", r"\\right\1", LEFT.sub(r"\\left\1", gold))
    ),
    "dollars": lambda gold: f"${gold}$" if "$" not in gold else gold,
    "full stop": lambda gold: f"{gold}.",
    "named": lambda gold: f"x = {gold}" if BARE_INTEGER.fullmatch(gold) else gold,
    "python": lambda gold: SIMPLE_FRACTION.sub(r"\1\2/\3", gold) if SIMPLE_FRACTION.fullmatch(gold) else gold,
    "Fraction": lambda gold: (
        SIMPLE_FRACTION.sub(r"\1Fraction(\2, \3)", gold) if SIMPLE_FRACTION.fullmatch(gold) else gold
    ),
    "float": lambda gold: f"{gold}.0" if BARE_INTEGER.fullmatch(gold) else gold,
}


def sweep(grader: Grader, rows: list[str]) -> tuple[int, list[tuple[str, str]], float]:
    """Return the number of checks, the wrong ones and the longest time of one."""
    checks, wrong, longest = 0, [], 0.0
    for gold in filter(None, dict.fromkeys(rows)):
        cases = [(name, rewrite(gold), True) for name, rewrite in REWRITINGS.items()]
        if BARE_INTEGER.fullmatch(gold):
            cases.append(("its neighbour", str(int(gold) + 1), False))
        for name, answer, expected in cases:
            start = time.perf_counter()
            equal = grader.check(gold, answer).equal
            longest = max(longest, time.perf_counter() - start)
            checks += 1
            if equal is not expected:
                wrong.append((name, gold))
    return checks, wrong, longest


def plain_math_verify(gold: str, response: str) -> bool:
    """Use math-verify as its README does."""
    from math_verify import parse, verify

    return bool(verify(parse(f"${gold}$"), parse(response)))


def pairs(grader: Grader, rows: list[Row]) -> None:
    """Print the labelled pairs that we and plain math-verify decide wrongly."""
    ours, theirs = [], []
    for row in rows:
        boxed = extract_boxed(row["pred"])
        if (boxed is not None and grader.check(row["gold"], boxed).equal) is not row["equal"]:
            ours.append(row["id"])
        if row["category"] != "injection" and plain_math_verify(row["gold"], row["pred"]) is not row["equal"]:
            theirs.append(row["id"])
    print(
        f"labelled pairs: {len(rows)}; wrong: grader {len(ours)} {ours}, math-verify {len(theirs)} {theirs}"
    )


def latencies(name: str, check: Callable[[int], object], times: int) -> None:
    """Print median and 99th percentile of `check`, called with 0, 1, 2 and so on."""
    took = []
    for i in range(times):
        start = time.perf_counter()
        check(i)
        took.append((time.perf_counter() - start) * 1e3)
    took.sort()
    print(f"{name}: p50 {statistics.median(took):.3f} ms, p99 {took[int(len(took) * 0.99)]:.3f} ms")


def round_trip(worker: Worker, i: int) -> object:
    """Have the worker compare two integers."""
    worker.post(str(i), str(i + 1))
    return worker.reply(2.0)


def speed(grader: Grader, memory_mb: int) -> None:
    """Print latencies, the time that a bomb takes and the time until the next check."""
    start = time.perf_counter()
    grader.check("x+1", "1+x")
    print(f"cold start of the worker: {time.perf_counter() - start:.2f} s")
    latencies("integer, shortcut", lambda i: grader.check(str(i), str(i + i % 2)), 5000)
    latencies(
        "expression, worker",
        lambda i: grader.check(rf"\frac{{\sqrt{{{i + 2}}}}}{{3}}", rf"\sqrt{{{i + 2}}}/3"),
        300,
    )
    latencies("polynomial, worker", lambda i: grader.check(f"x^2-{i}x", f"x(x-{i})"), 300)
    worker = Worker(memory_mb, limit_s=5.0)
    worker.wait_until_ready()
    latencies("integer, worker round trip", lambda i: round_trip(worker, i), 2000)
    worker.end()
    start = time.perf_counter()
    verdict = grader.check(r"\sqrt{2}", BOMB)
    print(f"bomb: {verdict.how} after {time.perf_counter() - start:.2f} s (deadline {grader.deadline_s:g} s)")
    start = time.perf_counter()
    grader.check("x+2", "2+x")
    print(f"check right after a bomb, waiting for the new worker: {time.perf_counter() - start:.2f} s")


def main() -> int:
    """Print the table; fail if a sweep found an error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the MATH, GSM8K and AIME files")
    data: Path = parser.parse_args().data
    print(f"grader {GRADER_VERSION}, Python {sys.version.split()[0]}")
    wrong_in_all = 0
    with Grader() as grader:
        speed(grader, grader.memory_mb)
        pairs(grader, jsonl(data / "answer_pairs.jsonl"))
        for name, rows in golds(data):
            checks, wrong, longest = sweep(grader, rows)
            wrong_in_all += len(wrong)
            empty = rows.count("")
            print(
                f"{name}: {len(rows)} rows ({empty} without an answer), {checks} checks, "
                f"{len(wrong)} wrong, longest {longest:.2f} s"
            )
            for case in wrong:
                print("   ", *case)
    return int(wrong_in_all > 0)


if __name__ == "__main__":
    sys.exit(main())
