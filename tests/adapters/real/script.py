"""One script, played natively and through a library: what the model says, by task and what it sees."""

from collections.abc import Callable, Mapping
from typing import Any

from arl_gym.agents.policies import ScriptedPolicy, format_response
from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Episode, Trajectory
from arl_gym.make import make_chat_vec

N_TASKS = {"ARL/Sokoban-v0": 6, "ARL/ALFWorld-v0": 4, "ARL/WebShop-v0": 4, "ARL/TIRMath-v0": 6}
"""Twenty episodes."""

Say = Callable[[Mapping[str, Any]], str]
"""From an env's info to a response."""


def action(info: Mapping[str, Any]) -> str:
    """Return the expert's action, nonsense, or the first that is possible: always the same for a task."""
    kind = sum(map(ord, info["task_id"])) % 3
    possible = info["admissible_actions"] or ["\\boxed{-7}"]
    return str([info["expert_action"], "no such thing", possible[0]][kind])


def tagged(info: Mapping[str, Any]) -> str:
    """Return the action in the strict format, and broken where it is nonsense."""
    said = format_response("strict", "Well.", action(info))
    return said.removesuffix("</action>") if "no such thing" in said else said


def play(env_id: str, task_ids: list[str], say: Say, **kwargs: Any) -> list[Trajectory]:
    """Return what the native loop plays."""
    vec = make_chat_vec(env_id, 4, **{"window": None, "expert": True, **kwargs})
    policy = ScriptedPolicy(lambda request: say(request.info))
    try:
        episodes = [Episode(task_id=task_id, group=i) for i, task_id in enumerate(task_ids)]
        return rollout(vec, policy, episodes, env_id=env_id, seed=0)
    finally:
        vec.close()


def outline(trajectory: Trajectory) -> dict[str, Any]:
    """Return what an episode's record must say as well."""
    turns = trajectory.turns
    return {
        "task_id": trajectory.task_id,
        "success": trajectory.success,
        "stop": trajectory.stop,
        "rewards": [turn.env_reward - turn.format_penalty for turn in turns],
        "anchors": [turn.anchor for turn in turns],
        "actions": [turn.action for turn in turns],
        "format_valid": [turn.format_valid for turn in turns],
        "action_valid": [turn.action_valid for turn in turns],
    }


def outline_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same of an episode's record."""
    keys = ("task_id", "success", "stop", "rewards", "anchors", "actions", "format_valid", "action_valid")
    return {key: record[key] for key in keys}
