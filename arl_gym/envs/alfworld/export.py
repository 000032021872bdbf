"""Writes generated games as the files and folders of the benchmark, for the real ALFWorld to play.

>>> export_games(GeneratedGames(Settings()), "val", Path("data"), n=10)  # doctest: +SKIP
10
"""

import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from arl_gym.assets import asset
from arl_gym.envs.alfworld.games import Games
from arl_gym.envs.alfworld.generator import Drawn
from arl_gym.envs.alfworld.pddl import write_problem
from arl_gym.envs.alfworld.scene import TASK_TYPES
from arl_gym.errors import ConfigError, DataError

_FOLDERS = {"train": "train", "val": "valid_seen", "test_ood": "valid_unseen"}
"""The benchmark's folder of a split; test, which it lacks, keeps its name."""
_MARK = {"generated_by": "arl_gym"}
# The benchmark numbers its scenes from 1, 201, 301 and 401 on: so these are none of them.
_SCENE_NUMBERS = {
    "generated_kitchen": 0,
    "generated_living": 200,
    "generated_bedroom": 300,
    "generated_bathroom": 400,
}


def game_file(drawn: Drawn, walkthrough: Sequence[str] | None = None) -> str:
    """Return the `.tw-pddl` file of a drawn game.

    Args:
        drawn: The game.
        walkthrough: Commands that solve it, for those who ask the file for a solution.
    """
    record = {
        "pddl_domain": _text("alfworld/alfred.pddl"),
        "grammar": grammar_text(drawn.task),
        "pddl_problem": write_problem(drawn.scene, drawn.goal),
        "solvable": True,
        "walkthrough": None if walkthrough is None else list(walkthrough),
    }
    return json.dumps(record)


def grammar_text(task: str) -> str:
    """Return ALFWorld's grammar with a task in it."""
    return _text("alfworld/alfred.twl2").replace("UNKNOWN GOAL.", json.dumps(task)[1:-1])


@cache
def _text(name: str) -> str:
    return asset(name).read_text(encoding="utf-8")


def export_games(
    games: Games,
    split: str,
    folder: Path,
    n: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write the first n games of a split, all if n is None, as the benchmark's folders; return their number.

    Args:
        games: Where they come from.
        split: Whose games: train goes to train, val to valid_seen, test_ood to valid_unseen, test to test.
        folder: What `ALFWORLD_DATA` is to name; the games go below `json_2.1.1` in it.
        n: How many.
        progress: Called after every game with the games written and their number.

    Raises:
        UnknownNameError: If there is no such split.
        ConfigError: If n is below 1.
        DataError: If another game than a generated one has one of the folders.
    """
    if n is not None and n < 1:
        raise ConfigError(f"export_games needs n >= 1, got {n}")
    root = folder / "json_2.1.1" / _FOLDERS.get(split, games.split_name(split))
    task_ids = games.ids(split)[:n]
    for number, task_id in enumerate(task_ids, 1):
        game_id = games.game_id(task_id)
        _check_free(root / game_id)
        _write(root / game_id / "traj_data.json", json.dumps(_traj_data(game_id), indent=1))
        _write(root / game_id / "game.tw-pddl", games.file_text(task_id))
        if progress is not None:
            progress(number, len(task_ids))
    return len(task_ids)


def _traj_data(game_id: str) -> dict[str, Any]:
    """Return what the benchmark's tools read beside a game."""
    folder, _, trial = game_id.partition("/")
    task_type, what, _, place, scene = folder.split("-")
    is_lamp = task_type == TASK_TYPES[1]
    return {
        "task_type": task_type,
        "task_id": trial,
        "pddl_params": {
            "object_target": what,
            "parent_target": "" if is_lamp else place,
            "toggle_target": place if is_lamp else "",
            "mrecep_target": "",
            "object_sliced": False,
        },
        "scene": {"scene_num": _SCENE_NUMBERS[scene], "floor_plan": scene},
        "turk_annotations": {"anns": []},
        **_MARK,
    }


def _check_free(folder: Path) -> None:
    if not folder.exists():
        return
    try:
        ours = _MARK.items() <= json.loads((folder / "traj_data.json").read_text(encoding="utf-8")).items()
    except (OSError, ValueError, AttributeError):
        ours = False
    if not ours:
        raise DataError(f"{folder} exists and has no generated game: choose another folder")


def _write(path: Path, text: str) -> None:
    """Write a file that is never seen half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
