import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.wrappers import AnchorObservation
from arl_gym.wrappers.anchor_observation import observation_key
from tests.wrappers.fakes import Corridor, FullCorridor


def test_the_anchor_is_the_text_that_the_next_action_answers():
    env = AnchorObservation(Corridor())
    obs, info = env.reset(seed=0)
    assert (obs, info["anchor"]) == ("cell 0", "cell 0")
    obs, *_, info = env.step("right")
    assert (obs, info["anchor"]) == ("cell 1", "cell 1")


def test_the_state_anchor_is_the_state_key():
    env = AnchorObservation(FullCorridor(), anchor="state")
    assert env.reset(seed=0)[1]["anchor"] == "key0"
    assert env.step("right")[4]["anchor"] == "key1"


@pytest.mark.parametrize("obs_mode", ["image", "both"])
def test_pictures_become_a_digest_that_is_equal_for_equal_pictures(obs_mode):
    env = AnchorObservation(FullCorridor(obs_mode=obs_mode))
    first = env.reset(seed=0)[1]["anchor"]
    stayed, moved = env.step("stay")[4]["anchor"], env.step("right")[4]["anchor"]
    assert len(first) == 16
    assert first == stayed != moved


def test_a_digest_sees_shape_type_and_nesting():
    zeros = np.zeros(4, dtype=np.uint8)
    different = [
        zeros,
        zeros.reshape(2, 2),
        zeros.view(np.int8),
        {"a": zeros},
        {"b": zeros},
        {"a": zeros, "b": zeros},
        [zeros],
        [zeros, zeros],
        ["ab", "c"],
        ["a", "bc"],
        0,
        None,
    ]
    assert len(set(map(observation_key, different))) == len(different)


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=4))
def test_the_order_of_a_dict_does_not_matter(items):
    assert observation_key(items) == observation_key(dict(reversed(items.items())))


def test_an_env_without_state_key_cannot_be_anchored_by_state():
    with pytest.raises(ConfigError, match="state_key"):
        AnchorObservation(Corridor(), anchor="state").reset(seed=0)


def test_an_unknown_anchor_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'state'"):
        AnchorObservation(Corridor(), anchor="stat")
