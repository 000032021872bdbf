"""What an episode's record and a trajectory of the native loop must both say."""

from collections.abc import Mapping
from typing import Any

from arl_gym.agents.types import Trajectory
from tests.adapters.scripted import rewards_of


def outline(trajectory: Trajectory) -> dict[str, Any]:
    turns = trajectory.turns
    return {
        "task_id": trajectory.task_id,
        "success": trajectory.success,
        "stop": trajectory.stop,
        "rewards": rewards_of(trajectory),
        "anchors": [turn.anchor for turn in turns],
        "actions": [turn.action for turn in turns],
        "format_valid": [turn.format_valid for turn in turns],
        "action_valid": [turn.action_valid for turn in turns],
    }


def outline_of(record: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("task_id", "success", "stop", "rewards", "anchors", "actions", "format_valid", "action_valid")
    return {key: record[key] for key in keys}
