"""How long are the expert's plans for ALFWorld, beside those of the planner inside TextWorld (FastDownward)?

    make test-alfworld                    # once: builds .venv-alfworld with the real packages
    .venv-alfworld/bin/python benchmarks/alfworld_plans.py --games json_2.1.1/valid_seen

Reads every `game.tw-pddl` below `--games`. The peer plans each game in a process of its own and is given up
after `--limit-s` seconds; such games count for neither. Prints a line per game to stderr, and a table: for
each task type the games both planned, the mean and total commands of both, and the ratio of the totals.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from arl_gym.envs.alfworld.game import Game, read_game
from arl_gym.envs.alfworld.house import House
from arl_gym.envs.alfworld.planner import plan
from arl_gym.envs.alfworld.scene import TASK_TYPES

PEER = """
import json, sys
from pathlib import Path
from arl_gym.envs.alfworld.reference import ReferenceGame
print("plan", json.dumps(ReferenceGame(Path(sys.argv[1]).read_text()).plan()))
"""


def our_plan(game: Game) -> list[str]:
    """Return the expert's plan, after playing it."""
    house = House(game)
    commands = plan(house)
    for command in commands:
        if house.won:
            raise SystemExit(f"{command!r} comes after the game is won")
        house.act(command)
    if not house.won:
        raise SystemExit(f"the plan does not win: {commands}")
    return commands


def peer_plan(path: Path, limit_s: float) -> list[str] | None:
    """Return TextWorld's plan; None if it finds none in time."""
    command = [sys.executable, "-c", PEER, str(path)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    lines = [line for line in run.stdout.splitlines() if line.startswith("plan ")]
    if run.returncode or not lines:
        raise SystemExit(f"TextWorld cannot plan {path}:\n{run.stderr[-2000:]}")
    return json.loads(lines[-1].removeprefix("plan ")) or None


def compare(paths: Sequence[Path], limit_s: float) -> Iterator[tuple[str, int, int]]:
    """Yield task type, our length and the peer's of every game both plan."""
    for path in paths:
        game = read_game(path.read_text(encoding="utf-8"))
        ours = our_plan(game)
        start = time.perf_counter()
        theirs = peer_plan(path, limit_s)
        seconds = time.perf_counter() - start
        length = f"{len(theirs)}" if theirs else "none"
        print(f"{game.task_type} {len(ours)} {length} ({seconds:.0f} s) {path}", file=sys.stderr, flush=True)
        if theirs:
            yield game.task_type, len(ours), len(theirs)


def print_table(rows: Sequence[tuple[str, int, int]]) -> None:
    """Print the lengths per task type and of all."""
    print("| task type | games | mean, ours | mean, peer | total, ours | total, peer | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in (*TASK_TYPES, "all"):
        lengths = [(ours, theirs) for task_type, ours, theirs in rows if name in (task_type, "all")]
        if lengths:
            n, ours, theirs = len(lengths), *map(sum, zip(*lengths, strict=True))
            means = f"{ours / n:.2f} | {theirs / n:.2f}"
            print(f"| {name} | {n} | {means} | {ours} | {theirs} | {ours / theirs:.3f} |")


def main() -> None:
    """Compare the two planners on the games of a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", type=Path, required=True)
    parser.add_argument("--limit-s", type=float, default=180.0)
    args = parser.parse_args()
    # By the folder of the trial, so that the task types come in turn.
    paths = sorted(args.games.rglob("*.tw-pddl"), key=lambda path: path.parent.name)
    if not paths:
        raise SystemExit(f"no *.tw-pddl below {args.games}")
    rows = list(compare(paths, args.limit_s))
    print(f"{len(rows)} of {len(paths)} games planned by both within {args.limit_s:.0f} s each\n")
    print_table(rows)


if __name__ == "__main__":
    main()
