from typing import Any, cast

import gymnasium as gym
import pytest

from arl_gym import evaluate, make_chat_vec
from arl_gym.agents.policies import ScriptedPolicy
from arl_gym.agents.tasks import SeedTasks, split_kwargs, task_ids
from arl_gym.core import Unicode


class Password(gym.Env[str, str]):
    """Somebody else's environment: the required keys only, no splits, no task ids."""

    observation_space = action_space = Unicode()
    WORDS = ("oak", "elm", "ash", "fir", "yew")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.word = self.WORDS[self.np_random.integers(5)]
        return self.word, {"task_id": self.word, "success": False}

    def step(self, action):
        right = action == self.word
        return "", float(right), True, False, {"task_id": self.word, "success": right}


@pytest.fixture(autouse=True)
def registered():
    gym.register("Test/Password-v0", cast(Any, Password))
    yield
    del gym.registry["Test/Password-v0"]


def test_names_are_a_lazy_sequence_that_differs_by_split():
    ids = SeedTasks("val")
    assert (ids[0], ids[3], ids[1:3]) == ("val-0", "val-3", ["val-1", "val-2"])
    assert ids[len(ids) - 1] == f"val-{2**31 - 1}"
    with pytest.raises(IndexError):
        ids[len(ids)]


def test_only_environments_that_know_splits_are_told_of_them():
    assert split_kwargs("Test/Password-v0", "test") == {}
    assert split_kwargs("ARL/Sokoban-v0", "test") == {"split": "test"}


def test_an_environment_with_task_ids_gives_its_own():
    vec = make_chat_vec("ARL/Sokoban-v0", 1, split="val")
    assert task_ids(vec, "val")[0] == "val-000000"
    vec.close()


def test_the_tasks_of_a_foreign_environment_depend_on_the_split_only():
    seen: dict[tuple[str, int], list[str]] = {}

    def words(split, seed):
        def say(request):
            seen.setdefault((split, seed), []).append(request.info["task_id"])
            return f"<action>{request.info['task_id']}</action>"

        result = evaluate(
            ScriptedPolicy(say), "Test/Password-v0", split=split, seed=seed, episodes=12, format="action_only"
        )
        assert result.success_rate == 1
        return seen[split, seed]

    assert words("val", 0) == words("val", 1)
    assert words("val", 0) != words("test", 0)
    assert len(set(words("val", 2))) > 2
