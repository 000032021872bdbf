"""Every wrapper survives the trip through an EnvSpec and stands alone on a plain Gymnasium env."""

import pickle

import gymnasium as gym
import pytest

from arl_gym.wrappers import AnchorObservation, ExpertInfo, FormatPenalty, MemoryWindow, RecordEpisode
from tests.wrappers.fakes import terse


@pytest.fixture(autouse=True)
def _registered():
    gym.register("Fake/Corridor-v0", "tests.wrappers.fakes:Corridor")
    gym.register("Fake/Full-v0", "tests.wrappers.fakes:FullCorridor")
    yield
    gym.registry.pop("Fake/Corridor-v0")
    gym.registry.pop("Fake/Full-v0")


WRAPPERS = {
    "anchor": lambda env, _: AnchorObservation(env, "observation"),
    "format": lambda env, _: FormatPenalty(env, format="lenient", penalty=0.3, penalise="action"),
    "window": lambda env, _: MemoryWindow(env, window=1, prompt=terse),
    "expert": lambda env, _: ExpertInfo(env),
    "record": lambda env, folder: RecordEpisode(env, folder),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_pickled_spec_rebuilds_the_same_env(name, tmp_path):
    env = WRAPPERS[name](gym.make("Fake/Full-v0", length=2), tmp_path)
    again = gym.make(pickle.loads(pickle.dumps(env.spec)))
    assert type(again) is type(env)
    assert again.spec == env.spec
    assert env.reset(seed=1) == again.reset(seed=1)
    response = "<think>a</think><action>right</action>"
    assert env.step(response) == again.step(response)


@pytest.mark.parametrize("name", ["anchor", "format", "window", "record"])
def test_each_wrapper_stands_alone_on_a_minimal_env(name, tmp_path):
    env = WRAPPERS[name](gym.make("Fake/Corridor-v0"), tmp_path)
    obs, info = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    for _ in range(3):
        obs, _, terminated, truncated, info = env.step("<think>a</think><action>right</action>")
        assert env.observation_space.contains(obs)
        assert info["task_id"] == "corridor"
    assert (terminated, truncated) == (name == "format", False)
    env.close()
    env.close()
