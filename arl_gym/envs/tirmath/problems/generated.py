"""Generated problems: endless families, of which finite splits are drawn.

The splits are disjoint by content: a digest of a problem's content says which one it is of, whatever else is
drawn. The held-out families are of "test_ood" and of no other split.

>>> problems = GeneratedProblems(families=["modular_power"], levels=[1])
>>> problems.problem("train", 0).family
'modular_power'
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from threading import Lock
from typing import TypeVar

from arl_gym.core import SPLITS, TaskIds
from arl_gym.envs.tirmath.problems.families import TABLE
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.rng import Rng, derive, digest

T = TypeVar("T")

VERSION = 1
"""Raised whenever a problem changes."""

FAMILIES = tuple(name for name, family in TABLE.items() if not family.tiny)
HELD_OUT_FAMILIES = tuple(name for name in FAMILIES if TABLE[name].held_out)
TINY_FAMILIES = tuple(name for name, family in TABLE.items() if family.tiny)
LEVELS = (1, 2, 3, 4, 5)

N_PROBLEMS = {"train": 8000, "val": 500, "test": 500, "test_ood": 500}
N_PER_FAMILY_AND_LEVEL = {"train": 600, "val": 60, "test": 60, "test_ood": 100}
"""The most problems of one family and level: the small ones of level 1 would run out."""

_PATIENCE = 5000
"""Draws after which a family has no more to give; the worst needs less than half for all its problems."""


class GeneratedProblems:
    """The problems of a choice of families and levels, drawn when they are asked for.

    A split goes round its families and levels, so that its first problems have some of each.

    Args:
        families: Names from `FAMILIES` or `TINY_FAMILIES`; None is `FAMILIES`.
        levels: From 1 to 5; None is all. The tiny families have level 1 only.

    Raises:
        UnknownNameError: If there is no such family or level.
        ConfigError: If no family is chosen, or none has one of the levels.
    """

    def __init__(self, families: Sequence[str] | None = None, levels: Sequence[int] | None = None):
        self.families = _chosen("family", FAMILIES if families is None else families, tuple(TABLE))
        self.levels = _chosen("level", LEVELS if levels is None else levels, LEVELS)
        cells = [
            _Cell.of(name, level)
            for level in self.levels
            for name in self.families
            if level in TABLE[name].levels
        ]
        if not cells:
            raise ConfigError(f"none of the families {self.families} has one of the levels {self.levels}")
        held_out = [cell for cell in cells if TABLE[cell.name].held_out]
        others = [cell for cell in cells if not TABLE[cell.name].held_out]
        self._cells = {split: held_out if split == "test_ood" else others for split in SPLITS}
        key = [VERSION, [(cell.name, cell.level) for cell in cells]]
        self.content_hash = digest(json.dumps(key))
        """Of the choice and the generator's version, which together determine every problem."""

    def ids(self, split: str) -> TaskIds:
        """Return the task ids of a split; none where no chosen family has problems in it.

        Raises:
            UnknownNameError: If there is no such split.
        """
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS, "generated problems")
        most = len(self._cells[split]) * N_PER_FAMILY_AND_LEVEL[split]
        return TaskIds(split, min(N_PROBLEMS[split], most))

    def problem(self, split: str, index: int) -> Problem:
        """Return a problem of a split; the same in every process, and for every choice with the same cells.

        Raises:
            UnknownNameError: If there is no such split.
            IndexError: If it has no such problem.
        """
        n = len(self.ids(split))
        if not 0 <= index < n:
            raise IndexError(f"problem {index} of the split {split!r}, which has {n}")
        cells = self._cells[split]
        return cells[index % len(cells)].problem(split, index // len(cells))


def _chosen(kind: str, names: Sequence[T], known: tuple[T, ...]) -> tuple[T, ...]:
    """Return the chosen names in the order of all of them."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise ConfigError(f"expected a list with at least one {kind}, got {names!r}")
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known, "generated problems")
    return tuple(name for name in known if name in names)


class _Cell:
    """The problems of a family and level, one stream that is dealt out to the splits."""

    def __init__(self, name: str, level: int):
        self.name, self.level = name, level
        self._n_drawn = 0
        self._seen = set[int]()
        self._dealt: dict[str, list[Problem]] = {split: [] for split in SPLITS}
        self._lock = Lock()

    @staticmethod
    @cache
    def of(name: str, level: int) -> "_Cell":
        """Return the cell, one for all users of a process."""
        return _Cell(name, level)

    def problem(self, split: str, k: int) -> Problem:
        """Return problem k of a split, after drawing as many as that takes."""
        dealt = self._dealt[split]
        with self._lock:
            most = self._n_drawn + _PATIENCE
            while len(dealt) <= k:
                if self._n_drawn == most:
                    raise ConfigError(
                        f"{self.name} level {self.level} gave {len(dealt)} problems for {split!r} and no more"
                    )
                self._draw()
        return dealt[k]

    def _draw(self) -> None:
        drawn = TABLE[self.name].draw(Rng("tirmath", self.name, self.level, self._n_drawn), self.level)
        self._n_drawn += 1
        content = derive("tirmath content", drawn.program)
        if content not in self._seen:
            self._seen.add(content)
            self._dealt[self._split(content)].append(replace(drawn, family=self.name, level=self.level))

    def _split(self, content: int) -> str:
        if TABLE[self.name].held_out:
            return "test_ood"
        return _SHARES[content % len(_SHARES)]


_SHARES = ("train",) * 8 + ("val", "test")
