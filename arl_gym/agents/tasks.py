"""Which tasks there are to play, also in environments that have no task ids of their own."""

from collections.abc import Sequence
from typing import Any, overload

from gymnasium.envs.registration import EnvSpec

from arl_gym.make import env_parameters, find_spec
from arl_gym.rng import derive
from arl_gym.vector import TextVectorEnv


class SeedTasks(Sequence[str]):
    """Names for the episodes of an environment without task ids: others in every split.

    `rollout` seeds an episode by its name, so that equal names begin equal episodes.
    """

    def __init__(self, split: str):
        self._split = split

    def __len__(self) -> int:
        return 1 << 31

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [f"{self._split}-{i}" for i in numbers]
        return f"{self._split}-{numbers}"


def split_kwargs(id: str | EnvSpec, split: str) -> dict[str, Any]:
    """Return `{"split": split}`, or {} for an environment that knows no splits."""
    known = env_parameters(find_spec(id))
    return {"split": split} if known is None or "split" in known else {}


def task_ids(vec: TextVectorEnv, split: str) -> Sequence[str]:
    """Return the task ids of a split of the environments in `vec`."""
    if not vec.call(0, "has_wrapper_attr", "task_ids"):
        return SeedTasks(split)
    ids: Sequence[str] = vec.call(0, "task_ids", split)
    return ids


def episode_seed(task_id: str) -> int:
    """Return the 31-bit seed of a task's reset: an environment without task ids draws its task from it.

    Equal for the copies of a task, in every run.
    """
    return derive("env", task_id) >> 33
