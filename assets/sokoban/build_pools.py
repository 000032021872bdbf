"""Writes the room pools beside this file (needs the extra `fast`; about ten minutes on one core).

Each split gets equally many rooms of every optimum from 10 to 70 moves. Run without arguments it writes all
pools, with names (`10x10-4`) those. The result is the same on every machine.

    python assets/sokoban/build_pools.py 10x10-4
"""

import sys
from itertools import count
from pathlib import Path

from arl_gym.envs.sokoban.generator import RoomSpec, draw_room
from arl_gym.envs.sokoban.pools import encode
from arl_gym.envs.sokoban.rules import Level
from arl_gym.errors import ConfigError

N_HELD_OUT = 512
N_TRAIN = {(10, 4): 12_200, (12, 5): 2_440, (14, 6): 610}
"""Rooms of split train, by height (equal to the width) and number of boxes."""

OPTIMA = range(10, 71)


def main() -> None:
    """Write the pools that the command line names."""
    for (size, boxes), n_train in N_TRAIN.items():
        name = f"{size}x{size}-{boxes}"
        if name in (sys.argv[1:] or [name]):
            numbers = {"train": n_train, "val": N_HELD_OUT, "test": N_HELD_OUT}
            rooms = {split: draw_split(size, boxes, split, n) for split, n in numbers.items()}
            Path(__file__).with_name(f"{name}.pool").write_bytes(encode(rooms))
            sys.stdout.write(f"{name}: {numbers}\n")


def draw_split(size: int, boxes: int, split: str, n: int) -> list[Level]:
    """Return n different rooms, their optima in turn."""
    streams = {optimum: count() for optimum in OPTIMA}
    levels: list[Level] = []
    known: set[str] = set()
    while len(levels) < n:
        optimum = OPTIMA[len(levels) % len(OPTIMA)]
        spec = RoomSpec(height=size, width=size, boxes=boxes, lo=optimum, hi=optimum)
        try:
            level = draw_room(spec, split, next(streams[optimum]), known=known, backend="numba")
        except ConfigError:  # too rare for one stream's patience: the next may find one
            continue
        levels.append(level)
        known.add(level.content_hash)
    return levels


if __name__ == "__main__":
    main()
