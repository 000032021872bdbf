"""Episodes of the native loop, to be played again through the loops of others."""

from collections import Counter
from contextlib import closing
from typing import Any

from arl_gym.agents.policies import ScriptedPolicy, respond_in
from arl_gym.agents.rollout import rollout
from arl_gym.agents.tasks import task_ids
from arl_gym.agents.types import Episode, Request, Trajectory
from arl_gym.make import make_chat_vec


def play(env_id: str, n: int, **kwargs: Any) -> list[Trajectory]:
    """Play the first n training tasks, in turns as the expert, with one slip, with two, and badly."""
    with closing(make_chat_vec(env_id, n, **{"window": None, "expert": True, **kwargs})) as vec:
        episodes = [Episode(task_id=task_id, group=i) for i, task_id in enumerate(task_ids(vec, "train")[:n])]
        return rollout(vec, ScriptedPolicy(_players(env_id)), episodes, env_id=env_id, seed=0)


def _players(env_id: str) -> Any:
    respond = respond_in("default", env_id)
    turns: Counter[int] = Counter()

    def answer(request: Request) -> str:
        turns[request.key] += 1
        player, turn = request.key % 4, turns[request.key]
        if player == 1 and turn == 1:
            return "I forgot how to answer"
        if player == 2 and turn < 3:
            return ("", respond("hm", "?! sideways 好"))[turn - 1]
        if player == 3:
            return respond("I am lost.", "look")
        return respond(request.info["expert_thought"], request.info["expert_action"])

    return answer


def rewards(trajectory: Trajectory) -> list[float]:
    """Return the turns' rewards as an environment gives them, penalties subtracted."""
    return [turn.env_reward - turn.format_penalty for turn in trajectory.turns]
