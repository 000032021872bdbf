"""The tasks of a shop: ids by split, and the goal of an id."""

import os
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from arl_gym.core import SPLITS, NumberedIds, TaskIds, check_count
from arl_gym.envs.webshop.generated import generated_store
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.original import SPLIT_MODES, GoalKind, goal_range, original_store
from arl_gym.envs.webshop.store import Store
from arl_gym.envs.webshop.tagger import TaggerKind
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.rng import digest

DATA_VARIABLE = "ARL_WEBSHOP_DATA"
"""Names the folder of the original's files where no argument does."""

DATASETS = ("generated", "original")

_DEFAULT_PRODUCTS = 5000


class Tasks(Protocol):
    """The tasks of one data set, all splits of it."""

    @property
    def store(self) -> Store:
        """The shop."""
        ...

    @property
    def splits(self) -> Sequence[str]:
        """The splits that have tasks."""
        ...

    def split_name(self, split: str) -> str:
        """Return the data set's own name of a split.

        Raises:
            UnknownNameError: If it has no such split.
        """
        ...

    def ids(self, split: str, most: int | None) -> NumberedIds:
        """Return the task ids of a split, at most so many, at least one.

        Raises:
            ConfigError: If there is none.
        """
        ...

    def goal(self, task_id: str) -> Goal:
        """Return the goal of a task of any split."""
        ...


class GeneratedTasks:
    """The tasks of a generated catalogue: `train-000000` and so on, numbered within their split."""

    def __init__(self, catalogue: str, num_products: int | None):
        n = _DEFAULT_PRODUCTS if num_products is None else num_products
        self.store = generated_store(catalogue, n)
        self.splits = [split for split in SPLITS if len(self.store.splits.get(split, ()))]

    def split_name(self, split: str) -> str:
        """Return the split, if there is one of this name."""
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS, "the generated WebShop")
        return split

    def ids(self, split: str, most: int | None) -> NumberedIds:
        """Return the task ids of a split, at most so many."""
        n = len(self.store.splits.get(split, ()))
        if n == 0:
            raise ConfigError(
                f"split {split!r} has no task in a catalogue of {len(self.store)} products: "
                "raise num_products"
            )
        return TaskIds(split, n if most is None else min(n, most))

    def goal(self, task_id: str) -> Goal:
        """Return the goal of a task."""
        split = task_id.rpartition("-")[0]
        numbers = self.store.splits[split]
        return self.store.goals[int(numbers[TaskIds(split, len(numbers)).index(task_id)])]


class OriginalTasks:
    """The tasks of the original's data: `human-001500` and so on, numbered in its own order.

    Raises:
        ConfigError: If an argument is unknown, or nothing says where the files are.
        DataError: If a file is missing or is not what it should be.
    """

    def __init__(
        self, data_dir: str | None, num_products: int | None, goals: str, split_mode: str, nouns: str
    ):
        if split_mode not in SPLIT_MODES:
            raise UnknownNameError("split_mode", split_mode, SPLIT_MODES)
        folder = data_dir or os.environ.get(DATA_VARIABLE)
        if not folder:
            raise ConfigError(f"dataset='original' needs data_dir=, or the folder in {DATA_VARIABLE}")
        self._kind, self._mode = goals, split_mode
        self.store = original_store(
            os.path.expanduser(folder), num_products, cast(GoalKind, goals), cast(TaggerKind, nouns)
        )
        n = len(self.store.goals)
        self.splits = [split for split, (first, _) in SPLIT_MODES[split_mode].items() if first < n]

    def split_name(self, split: str) -> str:
        """Return the split's name here; the paper calls "val" "eval"."""
        name = "val" if split == "eval" and self._mode == "paper" else split
        if name not in SPLIT_MODES[self._mode]:
            raise UnknownNameError("split", split, SPLIT_MODES[self._mode], f"split_mode {self._mode!r}")
        return name

    def ids(self, split: str, most: int | None) -> NumberedIds:
        """Return the task ids of a split, at most so many."""
        return NumberedIds(self._kind, goal_range(self._mode, split, len(self.store.goals))[:most])

    def goal(self, task_id: str) -> Goal:
        """Return the goal of a task."""
        everything = NumberedIds(self._kind, range(len(self.store.goals)))
        return self.store.goals[everything.index(task_id)]


def open_tasks(
    *,
    dataset: str = "generated",
    catalogue: str | None = None,
    num_products: int | None = None,
    data_dir: str | None = None,
    goals: str | None = None,
    split_mode: str | None = None,
    nouns: str | None = None,
) -> Tasks:
    """Return the tasks of a data set; the arguments are those of `WebShopEnv`.

    Raises:
        ConfigError: If an argument is unknown or goes with another data set.
        DataError: If a file is missing or is not what it should be.
    """
    if dataset not in DATASETS:
        raise UnknownNameError("dataset", dataset, DATASETS, "WebShopEnv")
    check_count("num_products", num_products)
    if dataset == "generated":
        only_original = {"data_dir": data_dir, "goals": goals, "split_mode": split_mode, "nouns": nouns}
        _refuse(only_original, "original")
        return GeneratedTasks(catalogue or "full", num_products)
    _refuse({"catalogue": catalogue}, "generated")
    return OriginalTasks(data_dir, num_products, goals or "human", split_mode or "paper", nouns or "spacy")


def _refuse(arguments: Mapping[str, object], dataset: str) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ConfigError(f"{name} goes with dataset={dataset!r}, got {name}={value!r}")


def find_goal(tasks: Tasks, task_id: str) -> Goal | None:
    """Return the goal of a task, None if there is no such task."""
    try:
        return tasks.goal(task_id)
    except (ValueError, KeyError):
        return None


def content_hash(store: Store, goal: Goal) -> str:
    """Return the digest of a task's content: the shop and what is asked for."""
    return digest(f"{store.content_hash}\n{goal.asin}\n{goal.instruction}")
