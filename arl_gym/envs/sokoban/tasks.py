r"""Where the rooms of an environment come from: drawn, taken from a shipped pool, or read from files.

>>> LevelTasks("#####\n#@$.#\n#####", None, max_nodes=1000).level("level:0").optimal
1
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from arl_gym.core import TaskIds
from arl_gym.envs.sokoban.levels import Source, load_levels
from arl_gym.envs.sokoban.rooms import RoomSource, rooms
from arl_gym.envs.sokoban.rules import Level
from arl_gym.envs.sokoban.solver import Solution, solve
from arl_gym.errors import ConfigError, DataError


class Tasks(Protocol):
    """The rooms that an environment plays."""

    @property
    def canvas(self) -> tuple[int, int]:
        """Rows and columns that hold every room."""
        ...

    def ids(self, split: str, n: int | None) -> Sequence[str]:
        """Return the first n task ids of a split, all if n is None."""
        ...

    def level(self, task_id: str) -> Level:
        """Return the room of a task of the environment's own split, its optimum filled in where known."""
        ...


class RoomTasks:
    """Generated rooms of one setting and split.

    Args:
        size: Rows and columns, border included.
        boxes: Boxes.
        optimal: Range of the fewest moves; None is the setting's own, as far as `max_steps` reaches.
        max_steps: Limit of every episode, if there is one.
        split: One of `SPLITS`.

    Raises:
        ConfigError: If the setting is impossible, or a room may need more than `max_steps`.
    """

    def __init__(
        self,
        size: tuple[int, int],
        boxes: int,
        optimal: tuple[int, int] | None,
        max_steps: int | None,
        split: str,
    ):
        self._size, self._boxes, self._split, self._optimal = size, boxes, split, optimal
        if max_steps is not None:
            if optimal is None:
                usual = self._source(split)
                optimal = (min(usual.lo, max_steps), min(usual.hi, max_steps))
            elif optimal[1] > max_steps:
                raise ConfigError(
                    f"Sokoban: rooms that need up to {optimal[1]} moves (optimal={optimal}) do not fit "
                    f"max_steps={max_steps}"
                )
        self._optimal = optimal
        self._rooms = self._source(split)
        self._all_ids = TaskIds(split, len(self._rooms))
        first = self._rooms[0]
        self.canvas = (first.height, first.width)

    def _source(self, split: str) -> RoomSource:
        height, width = self._size
        return rooms(height=height, width=width, boxes=self._boxes, split=split, optimal=self._optimal)

    def ids(self, split: str, n: int | None) -> TaskIds:
        """Return the first n task ids of a split, all if n is None."""
        total = len(self._rooms if split == self._split else self._source(split))
        return TaskIds(split, total if n is None else min(n, total))

    def level(self, task_id: str) -> Level:
        """Return the room of a task."""
        return _room(self._rooms, self._all_ids.index(task_id))


@lru_cache(maxsize=4096)
def _room(source: RoomSource, index: int) -> Level:
    """Make a room once for all copies of a task: what is computed of it is kept with it."""
    return source[index]


class LevelTasks:
    """Levels of the user's own; the split is a label only.

    Args:
        levels: What `load_levels` takes.
        optimal: Keeps the levels whose fewest moves lie in this range and are found within `max_nodes`.
        max_nodes: States that the solver may expand for one level.

    Raises:
        ConfigError: If no level is in the range.
        DataError: If a level is malformed or has no solution.
    """

    def __init__(self, levels: Source | Sequence[Source], optimal: tuple[int, int] | None, *, max_nodes: int):
        self._levels: Mapping[str, Level] = load_levels(levels)
        self._max_nodes = max_nodes
        if optimal is not None:
            self._levels = _in_range(self._levels, *optimal, max_nodes)
        self._ids = tuple(self._levels)
        self.canvas = (
            max(level.height for level in self._levels.values()),
            max(level.width for level in self._levels.values()),
        )

    def ids(self, split: str, n: int | None) -> Sequence[str]:
        """Return the ids of the first n levels, of all if n is None."""
        return self._ids[:n]

    def level(self, task_id: str) -> Level:
        """Return a level, solved if the solver can.

        Raises:
            DataError: If the level is proven to have no solution.
        """
        return _solved(self._levels[task_id], self._max_nodes)


@lru_cache(maxsize=4096)
def _solved(level: Level, max_nodes: int) -> Level:
    solution = first_solution(level, max_nodes)
    if solution.status == "unsolvable":
        raise DataError(f"{level.where}: the level has no solution")
    return replace(level, optimal=len(solution.moves))


@lru_cache(maxsize=4096)
def first_solution(level: Level, max_nodes: int) -> Solution:
    """Solve a level from its first state, once a process: all copies of a task ask."""
    return solve(level, max_nodes=max_nodes)


@lru_cache(maxsize=1 << 16)
def _bounded_solution(level: Level, hi: int, max_nodes: int) -> Solution:
    """Solve a level in at most `hi` moves, once a process: all environments of a vector env ask."""
    return solve(level, max_moves=hi, max_nodes=max_nodes)


def _in_range(levels: Mapping[str, Level], lo: int, hi: int, max_nodes: int) -> dict[str, Level]:
    if not 1 <= lo <= hi:
        raise ConfigError(f"Sokoban: optimal must be (lo, hi) with 1 <= lo <= hi, got ({lo}, {hi})")
    kept = {}
    for task_id, level in levels.items():
        solution = _bounded_solution(level, hi, max_nodes)
        if solution.status == "unsolvable":
            raise DataError(f"{level.where}: the level has no solution")
        if lo <= len(solution.moves) <= hi:
            kept[task_id] = level
    if not kept:
        raise ConfigError(
            f"Sokoban: none of the {len(levels)} levels is solved in {lo} to {hi} moves (optimal)"
        )
    return kept
