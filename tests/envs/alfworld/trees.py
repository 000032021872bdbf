"""Small ALFWorld data: one hand-made kitchen, its six tasks, and the folders the download has."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from arl_gym.assets import asset
from arl_gym.envs.alfworld.pddl import write_goal
from arl_gym.envs.alfworld.scene import Goal

# Task type: receptacle or lamp of the goal, and how the task is worded. The object is always a mug.
TASKS = {
    "pick_and_place_simple": ("desk", "put a mug in desk."),
    "look_at_obj_in_light": ("desklamp", "look at mug under the desklamp."),
    "pick_clean_then_place_in_recep": ("desk", "put a clean mug in desk."),
    "pick_heat_then_place_in_recep": ("desk", "put a hot mug in desk."),
    "pick_cool_then_place_in_recep": ("desk", "put a cool mug in desk."),
    "pick_two_obj_and_place": ("desk", "put two mug in desk."),
}

_PROBLEM = """(define (problem plan_trial) (:domain alfred)
(:objects agent1 - agent)
(:init
 (receptacleType Fridge_bar_1 FridgeType) (receptacleAtLocation Fridge_bar_1 loc_bar_1)
 (openable Fridge_bar_1)
 (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType)
 (receptacleAtLocation Sink_bar_1_bar_SinkBasin loc_bar_2)
 (receptacleType Microwave_bar_1 MicrowaveType) (receptacleAtLocation Microwave_bar_1 loc_bar_3)
 (openable Microwave_bar_1)
 (receptacleType Desk_bar_1 DeskType) (receptacleAtLocation Desk_bar_1 loc_bar_4)
 (receptacleType CounterTop_bar_1 CounterTopType) (receptacleAtLocation CounterTop_bar_1 loc_bar_5)
 (canContain DeskType MugType) (canContain CounterTopType MugType) (canContain FridgeType MugType)
 (objectType DeskLamp_bar_1 DeskLampType) (toggleable DeskLamp_bar_1)
 (inReceptacle DeskLamp_bar_1 Desk_bar_1) (objectAtLocation DeskLamp_bar_1 loc_bar_4)
 MUGS
 (atLocation agent1 loc_bar_6) (= (totalCost) 0)
)
(:goal GOAL)
(:metric minimize (totalCost))
)
"""
_MUG = (
    "(objectType Mug_bar_{k} MugType) (pickupable Mug_bar_{k}) (cleanable Mug_bar_{k}) (heatable Mug_bar_{k})"
    " (coolable Mug_bar_{k}) (inReceptacle Mug_bar_{k} {at}) (objectAtLocation Mug_bar_{k} loc_bar_{loc})"
)


def problem(
    task_type: str, *, mugs: int = 2, goal: str = "", at: tuple[str, int] = ("Fridge_bar_1", 1)
) -> str:
    """Return a problem with some mugs, the goal that of the task unless another is given."""
    goal = goal or write_goal(Goal(task_type, "mug", TASKS[task_type][0]))
    lines = "\n ".join(_MUG.format(k=k, at=at[0], loc=at[1]) for k in range(mugs))
    return _PROBLEM.replace("MUGS", lines).replace("GOAL", goal)


@cache
def _asset(name: str) -> str:
    return asset(f"alfworld/{name}").read_text()


def record(task_type: str, *, mugs: int = 2) -> dict[str, Any]:
    """Return what a game file of the benchmark holds."""
    return {
        "pddl_domain": _asset("alfred.pddl"),
        "grammar": _asset("alfred.twl2").replace("UNKNOWN GOAL.", TASKS[task_type][1]),
        "pddl_problem": problem(task_type, mugs=mugs),
        "solvable": True,
        "walkthrough": None,
    }


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
