import pytest
from gymnasium.spaces import Discrete

from arl_gym.adapters.numeric import make_numeric
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.wrappers import DiscreteActions, TextFeatures


@pytest.mark.parametrize("kwargs", [{"obs_mode": "planes"}, {"obs_mode": "image", "action_mode": "discrete"}])
def test_numbers_stay_as_they_are(kwargs):
    env = make_numeric("ARL/Sokoban-v0", **kwargs)
    assert env.observation_space == env.unwrapped.observation_space
    assert env.action_space == Discrete(4)


def test_text_goes_through_numbers_and_vectors():
    env = make_numeric("ARL/ALFWorld-v0", max_actions=7, allow_more=True, features=16, split="val")
    assert isinstance(env, TextFeatures)
    assert isinstance(env.env, DiscreteActions)
    assert (env.action_space, env.size) == (Discrete(7), 16)
    assert env.reset(seed=0)[1]["split"] == "val"


@pytest.mark.parametrize("kwargs", [{"obs_mode": "image"}, {"action_mode": "discrete"}])
def test_text_on_one_side_only_is_refused(kwargs):
    with pytest.raises(ConfigError, match=r"text on one side only .*action_mode='discrete'"):
        make_numeric("ARL/Sokoban-v0", **kwargs)


def test_an_unknown_id_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'ARL/Sokoban-v0'"):
        make_numeric("ARL/Sokobann-v0")


def test_tirmath_has_no_view_in_numbers():
    with pytest.raises(ConfigError, match="its actions cannot be numbered"):
        make_numeric("ARL/TIRMath-v0").reset(seed=0)
