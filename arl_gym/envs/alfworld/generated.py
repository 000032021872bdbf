"""The data set of drawn games.

>>> GeneratedGames(Settings()).game_id("val-000000")
'pick_and_place_simple-CellPhone-None-SideTable-generated_living/trial_val_000000'
"""

from collections.abc import Sequence
from functools import cache, lru_cache

from arl_gym.core import SPLITS, TaskIds
from arl_gym.envs.alfworld.export import game_file, grammar_text
from arl_gym.envs.alfworld.game import Game
from arl_gym.envs.alfworld.generator import Settings, draw
from arl_gym.envs.alfworld.grammars import read_grammar
from arl_gym.envs.alfworld.house import House
from arl_gym.envs.alfworld.planner import plan
from arl_gym.envs.alfworld.vocabulary import vocabulary
from arl_gym.errors import UnknownNameError

N_GAMES = {"train": 4000, "val": 256, "test": 256, "test_ood": 256}


class GeneratedGames:
    """The games of a setting, drawn when they are asked for."""

    def __init__(self, settings: Settings):
        self.settings = settings

    def split_name(self, split: str) -> str:
        """Return the name itself.

        Raises:
            UnknownNameError: If there is no such split.
        """
        if split not in N_GAMES:
            raise UnknownNameError("split", split, SPLITS, "generated games")
        return split

    def ids(self, split: str, task_type: str | None = None) -> Sequence[str]:
        """Return the task ids of a split, of one task type or of all.

        Raises:
            UnknownNameError: If there is no such split, or the settings lack the task type.
        """
        everything, task_types = TaskIds(split, N_GAMES[self.split_name(split)]), self.settings.task_types
        if task_type is None:
            return everything
        if task_type not in task_types:
            raise UnknownNameError("task type", task_type, task_types, "generated games")
        return everything[task_types.index(task_type) :: len(task_types)]

    def game(self, task_id: str) -> Game:
        """Return the game of a task.

        Raises:
            UnknownNameError: If there is no such task.
        """
        return _game(self.settings, *self._number(task_id))[0]

    def game_id(self, task_id: str) -> str:
        """Return the folder of the game below its split, as the benchmark names it."""
        split, index = self._number(task_id)
        game, room = _game(self.settings, split, index)
        spelling, (task_type, o, place) = vocabulary().spelling, game.goal
        folder = f"{task_type}-{spelling[o]}-None-{spelling[place]}-generated_{room}"
        return f"{folder}/trial_{split}_{index:06d}"

    def file_text(self, task_id: str) -> str:
        """Return the `.tw-pddl` file of the game, with the planner's walkthrough."""
        drawn = draw(self.settings, *self._number(task_id))
        return game_file(drawn, plan(House(self.game(task_id))))

    def _number(self, task_id: str) -> tuple[str, int]:
        split = task_id.rpartition("-")[0]
        ids = self.ids(split)
        if task_id not in ids:
            raise UnknownNameError("task_id", task_id, [ids[0], "…", ids[-1]], f"split {split!r}")
        return split, ids.index(task_id)


@lru_cache(maxsize=256)
def _game(settings: Settings, split: str, index: int) -> tuple[Game, str]:
    """Return a game and its kind of room, kept for the games played last."""
    drawn = draw(settings, split, index)
    return Game.of_scene(drawn.scene, drawn.goal, task=drawn.task, help=_help()), drawn.room


@cache
def _help() -> str:
    return read_grammar(grammar_text(""))[2]
