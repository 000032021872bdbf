"""The adapter to RLlib without it: what is registered, the spaces; `real/test_rllib.py` has the library."""

import pickle
import sys
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from arl_gym.adapters.rllib import make_rllib, register
from arl_gym.errors import ConfigError, DependencyMissing
from arl_gym.wrappers import text_vector

SOKOBAN = "ARL/Sokoban-v0"


@pytest.fixture
def registered(monkeypatch):
    """Stand in for Ray's registry, and return what is registered there."""
    creators: dict[str, Any] = {}
    for name in ("ray", "ray.tune", "ray.tune.registry"):
        module = ModuleType(name)
        vars(module)["register_env"] = creators.__setitem__
        monkeypatch.setitem(sys.modules, name, module)
    return creators


def test_without_the_library_registering_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DependencyMissing, match=r"pip install 'arl-gym\[rllib\]'"):
        register("boards", SOKOBAN)


def test_what_is_registered_travels_and_makes_the_env(registered):
    register("boards", SOKOBAN, obs_mode="planes", split="val")
    travelled = pickle.loads(pickle.dumps(registered["boards"]))
    assert travelled({}).reset(seed=0)[1]["split"] == "val"


def test_the_env_config_overrides_what_was_registered(registered):
    register("boards", SOKOBAN, obs_mode="planes", split="val")
    assert registered["boards"]({"split": "test"}).reset(seed=0)[1]["split"] == "test"


def test_planes_come_with_the_channels_last():
    env = make_rllib(SOKOBAN, {"obs_mode": "planes", "levels": "#######\n#@_$.##\n#######"}, {})
    obs, _ = env.reset(seed=0)
    assert (obs.shape, obs.dtype) == ((3, 7, 7), np.float32)
    assert obs.argmax(-1)[1].tolist() == [0, 5, 1, 4, 2, 0, 0]  # wall, player, floor, box, target, walls
    assert (obs.sum(-1) == 1).all()
    assert env.observation_space == gym.spaces.Box(0, 1, (3, 7, 7), np.float32)
    assert env.step(3)[0].argmax(-1)[1].tolist() == [0, 1, 5, 4, 2, 0, 0]


def test_pictures_come_as_shares_of_full_light():
    kwargs: dict[str, Any] = {"obs_mode": "image", "action_mode": "discrete", "tile_size": 16}
    env, native = make_rllib(SOKOBAN, kwargs, {}), gym.make(SOKOBAN, **kwargs)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    assert obs.dtype == np.float32
    assert obs * 255 == pytest.approx(native.reset(seed=0)[0], abs=1e-3)


def test_other_numbers_stay_as_they_are():
    env = make_rllib(SOKOBAN, {"obs_mode": "grid"}, {})
    assert env.observation_space == env.unwrapped.observation_space


def test_text_comes_in_one_row_beside_the_mask():
    env = make_rllib("ARL/ALFWorld-v0", {"max_actions": 60, "features": 8}, {})
    obs, info = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    assert obs["observations"].shape == (8 + 8 + 60 * 8,)
    assert (obs["observations"][8:16] == text_vector(info["task"], 8)).all()
    assert (obs["observations"][24:32] == text_vector(info["admissible_actions"][1], 8)).all()
    n = len(info["admissible_actions"])
    assert obs["action_mask"].tolist() == [1.0] * n + [0.0] * (60 - n)
    assert obs["action_mask"].dtype == np.float32


def test_a_request_for_a_vector_env_is_refused():
    with pytest.raises(ConfigError, match="gym_env_vectorize_mode must be SYNC or ASYNC"):
        make_rllib(SOKOBAN, {"obs_mode": "planes"}, {"num_envs": 4})
