import pickle
import subprocess
import sys
from itertools import pairwise

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

import arl_gym  # noqa: F401 - registers the ids
from arl_gym.errors import ConfigError
from arl_gym.wrappers import DiscreteActions, TextFeatures, text_vector
from tests.wrappers.fakes import Corridor, FullCorridor


def wrapped(**kwargs):
    return TextFeatures(DiscreteActions(FullCorridor(**kwargs), max_actions=3), size=64)


def test_words_and_pairs_count_one_each_and_the_length_is_one():
    vector = text_vector("red cup, red", 1 << 16)  # red x2, cup, "," / "red cup", "cup ,", ", red"
    sizes = sorted(abs(vector[vector != 0]))
    assert sizes == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 2 / 3])  # 4 + 5 x 1 = 9


def test_letter_case_and_white_space_say_nothing():
    assert (text_vector(" Take\n the CUP", 64) == text_vector("take the cup", 64)).all()


def test_the_order_of_words_says_something():
    assert (text_vector("drawer 1 cup 2", 1 << 12) != text_vector("drawer 2 cup 1", 1 << 12)).any()


def test_a_text_without_words_is_the_zero_vector():
    assert text_vector(" \n", 8).tolist() == [0.0] * 8


def test_texts_that_share_words_are_closer():
    apple, same, other = (
        text_vector(text, 256) for text in ("take apple 1 from table 1", "take apple 1", "heat the mug")
    )
    assert apple @ same > 0.5 > 0.3 > abs(apple @ other)


def test_vectors_are_equal_in_every_process():
    code = "from arl_gym.wrappers import text_vector; print(text_vector('go to shelf 1', 16).tolist())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={
        "PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path),
    })  # fmt: skip
    assert told.stdout.strip() == str(text_vector("go to shelf 1", 16).tolist())
    # printf '["cup"]' | b2sum -l 64: 6a6286b674b2af6a, little-endian an even number; its half modulo 8 is 5.
    assert text_vector("cup", 8).tolist() == [0, 0, 0, 0, 0, -1, 0, 0]


def test_observation_task_and_actions_are_their_texts_vectors():
    env = wrapped()
    obs, _ = env.reset(seed=0)
    assert (obs["observation"] == text_vector("cell 0", 64)).all()
    assert (obs["task"] == text_vector("walk to the end", 64)).all()
    assert (obs["actions"][0] == text_vector("left", 64)).all()
    assert (obs["actions"][1] == text_vector("right", 64)).all()
    assert not obs["actions"][2].any()
    assert obs["action_mask"].tolist() == [1, 1, 0]
    obs, reward, *_, info = env.step(1)
    assert (obs["observation"] == text_vector("cell 1", 64)).all()
    assert (reward, info["action"]) == (-0.5, "right")


def test_an_env_without_tasks_in_words_has_a_zero_task():
    class Listed(Corridor):
        def _info(self):
            return {**super()._info(), "admissible_actions": ["right"]}

    obs, _ = TextFeatures(DiscreteActions(Listed(), max_actions=2)).reset(seed=0)
    assert not obs["task"].any()


def test_observations_are_fresh_arrays():
    env = wrapped()
    first, _ = env.reset(seed=0)
    kept = {key: value.copy() for key, value in first.items()}
    second, *_ = env.step(0)
    for key in ("task", "actions", "action_mask"):
        second[key][...] = 9
        assert (first[key] == kept[key]).all()
    assert (env.reset(seed=0)[0]["task"] == kept["task"]).all()


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [("ARL/ALFWorld-v0", {}), ("ARL/WebShop-v0", {"num_products": 200, "mark_clicked": True})],
)
def test_every_observation_of_an_episode_is_in_the_space(env_id, kwargs):
    env = TextFeatures(DiscreteActions(gym.make(env_id, **kwargs)))
    obs, info = env.reset(seed=0)
    play = env.get_wrapper_attr("expert_action")
    seen, done = [obs], False
    while not done:
        names = info["admissible_actions"]
        k = names.index(play()) if len(names) > 1 else 0  # WebShop's one search
        obs, _, terminated, truncated, info = env.step(k)
        done = terminated or truncated
        seen.append(obs)
    assert all(map(env.observation_space.contains, seen))
    assert all((a["observation"] != b["observation"]).any() for a, b in pairwise(seen))
    assert info["success"]


def test_observations_that_are_no_text_are_refused():
    with pytest.raises(ConfigError, match=r"text observations; .*SokobanEnv.* gives Box"):
        TextFeatures(DiscreteActions(gym.make("ARL/Sokoban-v0", obs_mode="image")))


def test_actions_without_numbers_are_refused():
    with pytest.raises(ConfigError, match="put DiscreteActions around"):
        TextFeatures(FullCorridor())


def test_gymnasium_finds_no_fault():
    check_env(wrapped(), skip_render_check=True)


def test_a_pickled_spec_rebuilds_the_same_env():
    env = TextFeatures(DiscreteActions(gym.make("ARL/ALFWorld-v0"), max_actions=70), size=16)
    again = gym.make(pickle.loads(pickle.dumps(env.spec)))
    assert again.observation_space == env.observation_space
    rows = again.reset(seed=1)[0]["actions"]
    assert rows.shape == (70, 16)
    assert (rows == env.reset(seed=1)[0]["actions"]).all()
