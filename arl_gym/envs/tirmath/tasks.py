"""The problems of a data set by task id."""

import os
from collections.abc import Sequence
from typing import Protocol

from arl_gym.core import SPLITS, NumberedIds, TaskIds
from arl_gym.envs.tirmath.problems.generated import GeneratedProblems
from arl_gym.envs.tirmath.problems.original import OriginalProblems
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.errors import ConfigError, UnknownNameError

DATA_VARIABLE = "ARL_TIRMATH_DATA"
"""Names the file of problems where no argument does."""


class Problems(Protocol):
    """The problems of one data set."""

    dataset: str

    def ids(self, split: str, most: int | None = None) -> NumberedIds:
        """Return the task ids of a split, at most so many, at least one.

        Raises:
            UnknownNameError: If it has no such split.
            ConfigError: If the split is empty.
        """
        ...

    def problem(self, task_id: str) -> Problem:
        """Return the problem of a task of any split."""
        ...


class Generated:
    """Problems that are drawn; see `GeneratedProblems`."""

    dataset = "generated"

    def __init__(self, families: Sequence[str] | None, levels: Sequence[int] | None):
        self._problems = GeneratedProblems(families, levels)

    def ids(self, split: str, most: int | None = None) -> NumberedIds:
        """Return the task ids of a split, at most so many.

        Raises:
            UnknownNameError: If there is no such split.
            ConfigError: If no chosen family has problems in it.
        """
        n = len(self._problems.ids(split))
        if n == 0:
            raise ConfigError(f"split {split!r} has no problem of the families {self._problems.families}")
        return TaskIds(split, n if most is None else min(n, most))

    def problem(self, task_id: str) -> Problem:
        """Return the problem of a task."""
        split = task_id.rpartition("-")[0]
        return self._problems.problem(split, self.ids(split).index(task_id))


class Original:
    """The problems of a file, which are all of one split.

    Raises:
        ConfigError: If nothing says which file.
        DataError: If the file is not what it should be.
    """

    dataset = "original"

    def __init__(self, data: str | None, split: str):
        path = data or os.environ.get(DATA_VARIABLE)
        if not path:
            raise ConfigError(f"dataset='original' needs data=, or the file in {DATA_VARIABLE}")
        self._split = split
        self._problems = OriginalProblems(path)

    def ids(self, split: str, most: int | None = None) -> NumberedIds:
        """Return the task ids of the file's split, at most so many."""
        if split != self._split:
            raise UnknownNameError(
                "split", split, [self._split], f"{self._problems.path}, which is one split"
            )
        n = len(self._problems)
        return TaskIds(split, n if most is None else min(n, most))

    def problem(self, task_id: str) -> Problem:
        """Return the problem of a task."""
        return self._problems.problem(self.ids(self._split).index(task_id))


def open_problems(
    dataset: str,
    split: str,
    *,
    families: Sequence[str] | None = None,
    levels: Sequence[int] | None = None,
    data: str | None = None,
) -> Problems:
    """Return the problems that the arguments of the environment name.

    Raises:
        UnknownNameError: If the data set, the split, a family or a level is unknown.
        ConfigError: If an argument belongs to the other data set.
    """
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS, "TIRMathEnv")
    if dataset == "generated":
        if data is not None:
            raise ConfigError(f"data goes with dataset='original', got data={data!r}")
        return Generated(families, levels)
    if dataset != "original":
        raise UnknownNameError("dataset", dataset, ("generated", "original"), "TIRMathEnv")
    if families is not None or levels is not None:
        raise ConfigError(f"families and levels go with dataset='generated', got {families=}, {levels=}")
    return Original(data, split)
