"""The adapter to Stable-Baselines3 against a stand-in for it; `real/test_sb3.py` has the library itself."""

import importlib
import sys

import gymnasium as gym
import numpy as np
import pytest

from arl_gym.errors import ConfigError, DependencyMissing
from arl_gym.wrappers import TextFeatures
from tests.adapters import peer_sb3

ADAPTER = "arl_gym.adapters.sb3"
UP, DOWN, LEFT, RIGHT = range(4)
PUSH_TWICE = ["######\n#@_$.#\n######\n", "######\n#@$_.#\n######\n"]
"""Two rooms: walk right and push right once; push right twice."""


@pytest.fixture
def adapter(monkeypatch):
    for name, module in peer_sb3.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    yield importlib.import_module(ADAPTER)
    sys.modules.pop(ADAPTER, None)


def boards(adapter, num_envs=2, **kwargs):
    vec = adapter.make_sb3_vec("ARL/Sokoban-v0", num_envs, obs_mode="planes", **kwargs)
    assert isinstance(vec, peer_sb3.VecMonitor)
    assert isinstance(vec.venv, adapter.BoardsVecEnv)
    return vec.venv


def test_without_the_library_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    with pytest.raises(DependencyMissing, match=r"pip install 'arl-gym\[sb3\]'"):
        importlib.import_module(ADAPTER)


def test_a_solved_room_ends_within_the_step_and_shows_the_next_room(adapter):
    vec = boards(adapter, levels=PUSH_TWICE, max_steps=5)
    vec.set_options({"task_id": "level:1"})
    first = vec.reset()
    vec.step(np.array([RIGHT, UP]))
    seen, rewards, dones, infos = vec.step(np.array([RIGHT, UP]))
    assert rewards.tolist() == pytest.approx([10.9, -0.1])
    assert rewards.dtype == np.float32
    assert dones.tolist() == [True, False]
    assert [info["is_success"] for info in infos] == [True, False]
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]
    assert [info["task_id"] for info in infos] == ["level:1", "level:1"]
    last = infos[0]["terminal_observation"]
    assert last[3, 1, 4] == 1  # the box on its target
    assert "terminal_observation" not in infos[1]
    assert (seen[1] == first[1]).all()
    assert seen[0, 4].sum() == 1  # a new room: its box is on no target
    assert vec.reset_infos[0]["score"] == 0.0
    assert vec.reset_infos[0]["task_id"] in ("level:0", "level:1")


def test_the_step_limit_is_said_to_cut_the_episode(adapter):
    vec = boards(adapter, levels=PUSH_TWICE, max_steps=1)
    vec.seed(0)
    vec.reset()
    _, _, dones, infos = vec.step(np.array([UP, UP]))
    assert dones.tolist() == [True, True]
    assert [info["TimeLimit.truncated"] for info in infos] == [True, True]
    assert [info["is_success"] for info in infos] == [False, False]


def test_every_board_plays_the_tasks_of_a_single_env_with_its_seed(adapter):
    vec = boards(adapter, num_envs=3, max_steps=1)
    vec.seed(5)
    vec.reset()
    played = [[info["task_id"] for info in vec.step(np.zeros(3, int))[3]] for _ in range(4)]
    env = gym.make("ARL/Sokoban-v0")
    for i in range(3):
        tasks = [env.reset(seed=5 + i)[1]["task_id"]] + [env.reset()[1]["task_id"] for _ in range(3)]
        assert [step[i] for step in played] == tasks


def test_seeds_and_options_are_used_once(adapter):
    vec = boards(adapter)
    vec.set_options({"task_id": "train-000007"})
    vec.reset()
    assert [info["task_id"] for info in vec.reset_infos] == ["train-000007"] * 2
    vec.seed(1)
    vec.reset()
    first = [info["task_id"] for info in vec.reset_infos]
    vec.reset()
    assert [info["task_id"] for info in vec.reset_infos] != first


def test_settings_of_text_mean_nothing_to_boards(adapter):
    assert boards(adapter, max_actions=9, allow_more=True, features=8).action_space == gym.spaces.Discrete(4)


def test_text_envs_are_stepped_one_after_another(adapter):
    vec = adapter.make_sb3_vec("ARL/ALFWorld-v0", 3, max_actions=60, features=8)
    assert isinstance(vec.venv, peer_sb3.DummyVecEnv)
    assert len({id(env.unwrapped) for env in vec.venv.envs}) == 3
    env = vec.venv.envs[2]
    assert isinstance(env.env, TextFeatures)
    env.reset(seed=0)
    assert env.step(0)[4]["is_success"] is False


def test_boards_give_their_pictures_and_attributes_and_nothing_of_single_envs(adapter):
    vec = boards(adapter, render_mode="rgb_array")
    vec.reset()
    assert [picture.shape for picture in vec.get_images()] == [(192, 192, 3)] * 2
    assert vec.get_attr("render_mode", [0]) == ["rgb_array"]
    assert vec.env_is_wrapped(gym.Wrapper) == [False, False]
    with pytest.raises(ConfigError, match="no method 'expert_action'"):
        vec.env_method("expert_action")
    with pytest.raises(ConfigError, match="no attribute 'max_steps'"):
        vec.set_attr("max_steps", 3)
    vec.close()


def test_too_few_envs_are_refused(adapter):
    with pytest.raises(ConfigError, match="num_envs must be a whole number of at least 1, got 0"):
        adapter.make_sb3_vec("ARL/Sokoban-v0", 0, obs_mode="planes")
