"""The contract of every registered environment, over the whole registration table."""

import importlib
import json
import pickle
from functools import partial
from itertools import islice

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from arl_gym import check_text_env, evaluate, make_chat_env
from arl_gym.core import INFO_TYPES
from arl_gym.envs import ENVS
from arl_gym.errors import UnknownNameError

pytestmark = pytest.mark.parametrize("env_id", ENVS)


def test_gymnasiums_check_passes(env_id):
    check_env(gym.make(env_id).unwrapped)


def test_our_own_check_passes(env_id):
    check_text_env(partial(gym.make, f"arl_gym:{env_id}"))


def test_the_spec_pickles_and_survives_json(env_id):
    spec = gym.spec(env_id)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert EnvSpec.from_json(spec.to_json()) == spec


def test_splits_share_no_content(env_id):
    seen: dict[str, str] = {}
    for split in ("train", "val", "test"):
        env = gym.make(env_id, split=split)
        for task_id in islice(env.get_wrapper_attr("task_ids")(split), 40):
            _, info = env.reset(options={"task_id": task_id})
            assert info["split"] == split
            assert seen.setdefault(info["content_hash"], split) == split
        env.close()


def test_an_unknown_split_is_named(env_id):
    with pytest.raises(UnknownNameError, match="did you mean 'test'"):
        gym.make(env_id, split="tst")


def test_infos_are_json_and_complete(env_id):
    env = gym.make(env_id)
    _, info = env.reset(seed=1)
    assert set(INFO_TYPES) <= set(info)
    json.dumps(info)
    env.close()


def test_make_vec_gives_our_vector_env_with_gymnasiums_autoreset(env_id):
    vec = gym.make_vec(env_id, num_envs=3)
    assert type(vec).__name__ == "TextVectorEnv"
    assert vec.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
    observations, infos = vec.reset(seed=5)
    assert len(observations) == 3
    assert len(infos["task_id"]) == 3
    vec.close()


def test_prompts_are_messages_of_the_chat_space(env_id):
    prompts = importlib.import_module(ENVS[env_id].prompts).PROMPTS
    assert "default" in prompts
    for name in prompts:
        for window in (0, 2, None):
            env = make_chat_env(env_id, prompt=name, window=window, expert=True)
            messages, info = env.reset(seed=0)
            assert env.observation_space.contains(messages)
            response = f"<think></think><action>{info['expert_action']}</action>"
            messages, *_ = env.step(response)
            assert env.observation_space.contains(messages)
            env.close()


def test_the_expert_beats_random_play(env_id):
    scores = [evaluate(p, env_id, split="val", episodes=8).return_mean for p in ("expert", "random")]
    assert scores[0] > scores[1]
