"""A player without a model: what it says follows from the info alone, so that every loop hears the same.

On half of the tasks it follows the expert, on the others it says anything; now and then its format is broken.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from arl_gym.agents.policies import FALLBACK_ACTIONS, ScriptedPolicy, respond_in
from arl_gym.agents.rollout import rollout
from arl_gym.agents.types import Episode, Trajectory
from arl_gym.make import make_chat_vec
from arl_gym.rng import Rng

FIRST_TASKS = {
    "ARL/ALFWorld-v0": 4,
    "ARL/Sokoban-v0": 8,
    "ARL/TIRMath-v0": 4,
    "ARL/WebShop-v0": 4,
}
"""How many episodes of each environment make the twenty."""


def response_to(env_id: str, info: Mapping[str, Any]) -> str:
    """Return what the player says where the env, made with `expert=True`, tells `info`."""
    say = respond_in("default", env_id)
    rng = Rng("player", info["task_id"], info["state_key"])
    if info["format_valid"] and rng.below(4) == 0:  # once: the state, and so the draw, stays the same
        return f"I would say {info['expert_action']}"
    if Rng("skill", info["task_id"]).below(2):
        return say(info["expert_thought"], info["expert_action"])
    return say("Who knows.", rng.choice(info["admissible_actions"] or FALLBACK_ACTIONS))


def native_episodes(env_id: str, task_ids: Sequence[str], **kwargs: Any) -> list[Trajectory]:
    """Return the player's episodes as this package's own loop plays them."""
    player = ScriptedPolicy(lambda request: response_to(env_id, request.info))
    episodes = [Episode(task_id=task_id, group=i) for i, task_id in enumerate(task_ids)]
    with closing(make_chat_vec(env_id, len(task_ids), **{"window": None, "expert": True, **kwargs})) as vec:
        return rollout(vec, player, episodes, env_id=env_id, seed=0)


def rewards_of(trajectory: Trajectory) -> list[float]:
    """Return one reward a turn, penalties subtracted."""
    return [turn.env_reward - turn.format_penalty for turn in trajectory.turns]
