"""The rooms of a setting and the ids of its tasks: out of a pool where one has them, drawn otherwise.

>>> source = rooms(height=6, width=6, boxes=1, split="train")
>>> len(source), source[123].optimal
(1000000, 3)
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from arl_gym.core import SPLITS
from arl_gym.envs.sokoban.generator import N_HELD_OUT, RoomSpec, check_possible, room
from arl_gym.envs.sokoban.pools import find_pool
from arl_gym.envs.sokoban.rules import Level
from arl_gym.errors import UnknownNameError

_N_TRAIN = 1_000_000
_RANGE = (3, 10)
"""Optima of drawn rooms unless others are asked for."""


class RoomSource(Protocol):
    """The rooms of a split by the number of the task, made when asked for."""

    @property
    def lo(self) -> int:
        """Least optimum asked for."""

    @property
    def hi(self) -> int:
        """Greatest optimum asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Level: ...

    def __hash__(self) -> int: ...


@lru_cache(maxsize=64)
def rooms(
    *,
    height: int,
    width: int,
    boxes: int,
    split: str,
    optimal: tuple[int, int] | None = None,
    backend: str = "auto",
) -> RoomSource:
    """Return the rooms of a split.

    They come out of the pool of this size and number of boxes if it holds all optima asked for. Else they are
    drawn: a million for train, 512 for each held-out split. Rooms of test_ood are two cells larger each way
    and have one box more.

    Args:
        height: Rows, border included.
        width: Columns, border included.
        boxes: Boxes.
        split: One of `SPLITS`.
        optimal: Range of the optimum, both ends included. None: that of the pool of this size and number of
            boxes, 3 to 10 where there is none.
        backend: "numba", "numpy" or "auto", see `generator`.

    Raises:
        UnknownNameError: If the split is unknown.
        ConfigError: If the size, the number of boxes or the range is impossible, or no room turns up.
        DataError: If the file of the pool is damaged.
    """
    _check_split(split)
    if optimal is None:
        pool = find_pool(height, width, boxes)
        optimal = (pool.lo, pool.hi) if pool else _RANGE
    spec = RoomSpec(height=height, width=width, boxes=boxes, lo=optimal[0], hi=optimal[1])
    if split == "test_ood":
        spec = spec.out_of_distribution
    pool = find_pool(spec.height, spec.width, spec.boxes)
    if pool and pool.lo <= spec.lo and spec.hi <= pool.hi:
        # What is test of one setting is out of distribution for another: no setting trains on either.
        return pool.rooms("test" if split == "test_ood" else split, spec.lo, spec.hi)
    check_possible(spec, split, backend)
    return DrawnRooms(spec=spec, split=split, backend=backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRooms:
    """Rooms of a split, drawn when asked for."""

    spec: RoomSpec
    split: str
    backend: str = "auto"

    @property
    def lo(self) -> int:
        """Least optimum asked for."""
        return self.spec.lo

    @property
    def hi(self) -> int:
        """Greatest optimum asked for."""
        return self.spec.hi

    def __len__(self) -> int:
        return _N_TRAIN if self.split == "train" else N_HELD_OUT

    def __getitem__(self, index: int) -> Level:
        return room(self.spec, self.split, range(len(self))[index], self.backend)


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS, "Sokoban")
