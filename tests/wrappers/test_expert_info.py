import pytest

from arl_gym.errors import ConfigError
from arl_gym.wrappers import AnchorObservation, ExpertInfo
from tests.wrappers.fakes import Corridor, FullCorridor


def expert(info):
    return info["expert_action"], info["expert_thought"]


def test_the_expert_speaks_until_the_episode_ends():
    env = ExpertInfo(FullCorridor(length=2))
    assert expert(env.reset(seed=0)[1]) == ("right", "2 to go")
    assert expert(env.step("right")[4]) == ("right", "1 to go")
    *_, terminated, _, info = env.step("right")
    assert terminated
    assert expert(info) == ("", "")


def test_the_expert_is_silent_after_a_truncation():
    env = ExpertInfo(FullCorridor(max_steps=1))
    env.reset(seed=0)
    assert expert(env.step("left")[4]) == ("", "")


def test_an_expert_without_thoughts_is_enough():
    class Guided(Corridor):
        def expert_action(self):
            return "right"

    assert expert(ExpertInfo(AnchorObservation(Guided())).reset(seed=0)[1]) == ("right", "")


def test_an_env_without_an_expert_is_named():
    with pytest.raises(ConfigError, match="Corridor has not"):
        ExpertInfo(Corridor())


def test_an_expert_that_is_not_implemented_is_named_on_reset():
    class Lost(FullCorridor):
        def expert_action(self):
            raise NotImplementedError

    with pytest.raises(ConfigError, match="Lost has not"):
        ExpertInfo(Lost()).reset(seed=0)
