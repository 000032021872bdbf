"""Small ALFWorld data: one hand-made kitchen, its six tasks, and the folders the download has."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arl_gym.envs.alfworld.scene import Goal
from tests.envs.alfworld.plays import game_file

# Task type: receptacle or lamp of the goal, and how the task is worded. The object is always a mug.
TASKS = {
    "pick_and_place_simple": ("desk", "put a mug in desk."),
    "look_at_obj_in_light": ("desklamp", "look at mug under the desklamp."),
    "pick_clean_then_place_in_recep": ("desk", "put a clean mug in desk."),
    "pick_heat_then_place_in_recep": ("desk", "put a hot mug in desk."),
    "pick_cool_then_place_in_recep": ("desk", "put a cool mug in desk."),
    "pick_two_obj_and_place": ("desk", "put two mug in desk."),
}

# As `plays` has it.
_ROOM = """
agent1 at loc_bar_6
Fridge_bar_1 at loc_bar_1 openable
Sink_bar_1_bar_SinkBasin at loc_bar_2
Microwave_bar_1 at loc_bar_3 openable
Desk_bar_1 at loc_bar_4
CounterTop_bar_1 at loc_bar_5
DeskLamp_bar_1 in Desk_bar_1 toggleable
Desk CounterTop Fridge hold Mug
"""
_MUG = "Mug_bar_{k} in {at} pickupable cleanable heatable coolable\n"


def record(task_type: str, *, mugs: int = 2, at: str = "Fridge_bar_1") -> dict[str, Any]:
    """Return what a game file of the benchmark holds, some mugs all in one place."""
    place, task = TASKS[task_type]
    room = _ROOM + "".join(_MUG.format(k=k, at=at) for k in range(mugs))
    loaded: dict[str, Any] = json.loads(game_file(room, Goal(task_type, "mug", place), task))
    return loaded


def folder_name(task_type: str) -> str:
    """Return the name of the task's folder in scene 10."""
    place = "None-DeskLamp" if task_type == "look_at_obj_in_light" else "None-Desk"
    return f"{task_type}-Mug-{place}-10"


def write_game(
    split_dir: Path,
    task_type: str,
    trial: str,
    *,
    game: Mapping[str, Any] | str | None,
    task: Mapping[str, Any] | str | None = None,
    folder: str = "",
) -> Path:
    """Write the folder of a trial; text is written as it is, and no game at all if it is None."""
    path = split_dir / (folder or folder_name(task_type)) / trial
    path.mkdir(parents=True)
    (path / "traj_data.json").write_text(_text({"task_type": task_type} if task is None else task))
    if game is not None:
        (path / "game.tw-pddl").write_text(_text(game))
    return path


def _text(content: Mapping[str, Any] | str) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def write_tree(data_dir: Path, *, per_type: int = 2, splits: tuple[str, ...] = ("valid_seen",)) -> Path:
    """Write games of all types, no two alike, as the download has them; return the folder of the splits."""
    root = data_dir / "json_2.1.1"
    for split in splits:
        for task_type in TASKS:
            for k in range(per_type):
                write_game(root / split, task_type, f"trial_T{k}", game=record(task_type, mugs=2 + k))
    return root
