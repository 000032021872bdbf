"""The ablations of ARLArena in small: what a change to one setting does to the success after training.

    python -m benchmarks.findings --out runs/methods --seeds 1 2 --jobs 2

Base, start, tests and intervals are those of `benchmarks/methods.py`, whose runs in the same folder are used
again. Each row is a pair of runs a seed, the change minus what it is compared with, paired by test task.

Updates per batch are varied as in the paper: 2, 8 or 32 groups a batch in optimiser steps of 2 groups, with
as many steps as give all three the same number of episodes and of optimiser steps.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arl_gym.train.config import RunConfig
from arl_gym.train.files import write_atomically
from arl_gym.train.methods import METHODS
from benchmarks.methods import Tested, arm, base, courses, difference, options, runs_of, train_and_test
from benchmarks.methods import with_interval as shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One row: a change of a setting, by the names of its two arms."""

    question: str
    before: str
    after: str


CHANGES = tuple(
    Change(question=question, before=before, after=after)
    for question, before, after in (
        ("cloned start", "GRPO-random", "GRPO"),
        ("cloned start", "SAMPO-random", "SAMPO"),
        ("format penalty", "GRPO-penalty-0", "GRPO"),
        ("format penalty", "SAMPO-penalty-0", "SAMPO"),
        ("KL 0.01", "GRPO-kl-0", "GRPO"),
        ("KL 0.05", "GRPO", "GRPO-kl-0.05"),
        ("KL 0.05", "SAPO", "SAPO-kl-0.05"),
        ("KL 0.05", "CISPO", "CISPO-kl-0.05"),
        ("sequence mask", "GRPO", "GRPO_SM"),
        ("sequence mask", "SAPO", "SAPO_SM"),
        ("sequence mask", "CISPO", "CISPO_SM"),
        ("4 updates per batch, not 1", "GRPO-updates-1", "GRPO"),
        ("16 updates per batch, not 4", "GRPO", "GRPO-updates-16"),
        ("mean per turn, not per token", "GRPO", "GRPO_ST"),
        ("mean per turn, not per token", "SAMPO", "SAMPO-turn-mean"),
        ("clip per turn, not per token", "GRPO", "GSPO"),
        ("step advantage", "GRPO", "GIGPO"),
        ("dynamic filter, wider clip", "GRPO", "DAPO_GRPO"),
        ("dynamic filter, wider clip", "GIGPO", "DAPO_GIGPO"),
    )
)

TURN_MEAN = {"loss.aggregation": "seq-mean-token-mean"}


def batches(steps: int, *, groups: int) -> dict[str, Any]:
    """Return the settings of batches with `groups` groups, at the episodes of `steps` steps with 8 groups."""
    return {
        "rollout.groups": groups,
        "optim.minibatches": groups // 2,
        "steps": steps * 8 // groups,
        "eval.every": max(1, 32 // groups),
    }


def changed(shared: RunConfig) -> dict[str, RunConfig]:
    """Return the arms that `benchmarks/methods.py` does not have and that start from the clone."""
    settings: list[tuple[str, str, Mapping[str, Any]]] = [
        ("GRPO-penalty-0", "GRPO", {"env.penalty": 0.0}),
        ("SAMPO-penalty-0", "SAMPO", {"env.penalty": 0.0}),
        ("GRPO-kl-0", "GRPO", {"loss.kl_coef": 0.0}),
        *((f"{m}-kl-0.05", m, {"loss.kl_coef": 0.05}) for m in ("GRPO", "SAPO", "CISPO")),
        ("GRPO-updates-1", "GRPO", batches(shared.steps, groups=2)),
        ("GRPO-updates-16", "GRPO", batches(shared.steps, groups=32)),
        ("SAMPO-turn-mean", "SAMPO", TURN_MEAN),
    ]
    return {name: arm(shared, method, change) for name, method, change in settings if method in METHODS}


def table(changes: Sequence[Change], points: Mapping[str, Sequence[Tested]]) -> str:
    """Return the Markdown table of the changes, with the difference of every seed beside the mean."""
    lines = ["| change | from | to | greedy | each seed | sampled | each seed |", "|---" * 7 + "|"]
    for change in changes:
        before, after = points[change.before], points[change.after]
        cells = [change.question, change.before, change.after]
        for kind in ("greedy", "sampled"):
            cells.append(shown(difference(after, before, kind), "+.2f"))
            seeds = [difference([a], [b], kind)[0] for a, b in zip(after, before, strict=True)]
            cells.append(", ".join(f"{mean:+.2f}" for mean in seeds))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing and print the table."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="changes with one of these in their row")
    args = parser.parse_args()
    if args.steps % 4:
        parser.error("--steps must be a multiple of 4: batches of 32 groups take a quarter of the steps")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    shared = base(args.steps)
    random = {f"{method}-random": arm(shared, method) for method in ("GRPO", "SAMPO")}
    arms = {method: arm(shared, method) for method in METHODS} | changed(shared)
    wanted = [
        c
        for c in CHANGES
        if {c.before, c.after} <= arms.keys() | random.keys()
        and (not args.only or any(word in f"{c.question} {c.before} {c.after}" for word in args.only))
    ]
    names = {name for c in wanted for name in (c.before, c.after)}
    runs = [
        run
        for some, cloned in ((arms, True), (random, False))
        for run in runs_of(some, seeds=args.seeds, out=args.out, cloned=cloned)
        if run.point in names
    ]
    points = train_and_test(runs, shared, args)
    known = [c for c in wanted if {c.before, c.after} <= points.keys()]
    result = {"seeds": args.seeds, "steps": args.steps, "tests": points, "courses": courses(runs, points)}
    write_atomically(args.out / "findings.json", json.dumps(result).encode())
    print(table(known, points))


if __name__ == "__main__":
    main()
