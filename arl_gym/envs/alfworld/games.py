"""What the environment asks of a data set: ids of tasks, and the game of an id."""

from collections.abc import Sequence
from typing import Protocol

from arl_gym.envs.alfworld.game import Game


class Games(Protocol):
    """The games of one data set, all splits of it."""

    def split_name(self, split: str) -> str:
        """Return the data set's own name of a split.

        Raises:
            UnknownNameError: If it has no such split.
        """
        ...

    def ids(self, split: str, task_type: str | None = None) -> Sequence[str]:
        """Return the task ids of a split, of one task type or of all."""
        ...

    def game(self, task_id: str) -> Game:
        """Return the game of a task.

        Raises:
            DataError: If its file has gone or changed.
        """
        ...

    def game_id(self, task_id: str) -> str:
        """Return the folder of the game below its split, as the benchmark names it."""
        ...

    def file_text(self, task_id: str) -> str:
        """Return the `.tw-pddl` file of the game."""
        ...
