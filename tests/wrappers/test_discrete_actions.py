import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import arl_gym  # noqa: F401 - registers the ids
from arl_gym.errors import ActionError, ConfigError
from arl_gym.wrappers import DiscreteActions
from tests.wrappers.fakes import Corridor, FullCorridor


class Doors(FullCorridor):
    """A corridor that lists one action more in every cell: "right", "door 1", "door 2" and so on."""

    def _admissible(self):
        return ["right", *(f"door {i + 1}" for i in range(self.cell))]


def test_a_number_plays_the_action_at_its_place():
    env = DiscreteActions(FullCorridor(), max_actions=4)
    env.reset(seed=0)
    obs, reward, *_, info = env.step(1)  # ["left", "right"]
    assert (obs, reward, info["action"], info["action_valid"]) == ("cell 1", -0.5, "right", True)


def test_a_number_beyond_the_list_is_an_invalid_action_that_costs_a_step():
    env = DiscreteActions(FullCorridor(max_steps=1), max_actions=4)
    env.reset(seed=0)
    obs, reward, _, truncated, info = env.step(2)
    assert (obs, reward, truncated) == ("cell 0", -0.5, True)
    assert (info["action"], info["action_valid"]) == ("", False)


def test_the_mask_follows_the_list():
    env = DiscreteActions(Doors(), max_actions=3)
    _, info = env.reset(seed=0)
    assert info["action"] == ""
    assert info["action_mask"].tolist() == [1, 0, 0]
    assert env.action_masks().tolist() == [True, False, False]
    *_, info = env.step(0)
    assert info["action_mask"].tolist() == [1, 1, 0]
    assert info["action_mask"].dtype == np.int8
    assert env.step(1)[4]["action"] == "door 1"


def test_samples_under_the_mask_are_admissible():
    env = DiscreteActions(Doors(), max_actions=9)
    _, info = env.reset(seed=0)
    *_, info = env.step(0)
    env.action_space.seed(0)
    assert {int(env.action_space.sample(info["action_mask"])) for _ in range(40)} == {0, 1}


def test_more_actions_than_numbers_are_refused_with_both_counts():
    env = DiscreteActions(Doors(), max_actions=1)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="lists 2 admissible actions, more than max_actions=1"):
        env.step(0)


def test_more_actions_where_allowed_leave_the_last_without_a_number():
    env = DiscreteActions(Doors(), max_actions=1, allow_more=True)
    assert env.reset(seed=0)[1]["n_left_out"] == 0
    env.step(0)
    info = env.step(0)[4]  # right, door 1, door 2
    assert (info["n_left_out"], info["action_mask"].tolist()) == (2, [1])


def test_an_env_without_a_list_of_actions_is_named():
    with pytest.raises(ConfigError, match=r"Corridor.* gives none"):
        DiscreteActions(Corridor()).reset(seed=0)
    with pytest.raises(ConfigError, match=r"TIRMathEnv.* gives none"):
        DiscreteActions(gym.make("ARL/TIRMath-v0", dataset="generated")).reset(seed=0)


def test_actions_that_are_numbers_already_are_refused():
    with pytest.raises(ConfigError, match=r"strings; .*SokobanEnv.* takes Discrete\(4\)"):
        DiscreteActions(gym.make("ARL/Sokoban-v0", obs_mode="planes"))


@pytest.mark.parametrize("action", [-1, 4, 1.0, "right"])
def test_what_is_no_number_of_an_action_is_refused(action):
    env = DiscreteActions(FullCorridor(), max_actions=4)
    env.reset(seed=0)
    with pytest.raises(ActionError, match="takes 0 to 3"):
        env.step(action)


def test_webshop_has_one_search_and_no_action_after_the_purchase():
    env = DiscreteActions(gym.make("ARL/WebShop-v0", num_products=200))
    _, info = env.reset(seed=0)
    assert info["admissible_actions"] == [f"search[{info['task']}]"]
    *_, info = env.step(0)
    *_, info = env.step(
        next(k for k, name in enumerate(info["admissible_actions"]) if name.startswith("click[b0"))
    )
    assert info["page"] == "item"
    *_, terminated, _, info = env.step(info["admissible_actions"].index("click[buy now]"))
    assert terminated
    assert info["action_mask"].sum() == 0


def test_the_expert_of_alfworld_wins_by_numbers():
    env = DiscreteActions(gym.make("ARL/ALFWorld-v0"))
    _, info = env.reset(seed=0)
    play = env.get_wrapper_attr("expert_action")
    done, rewards = False, []
    while not done:
        k = info["admissible_actions"].index(play())
        _, reward, terminated, truncated, info = env.step(k)
        done = terminated or truncated
        rewards.append(reward)
    assert (sum(rewards), info["success"]) == (10.0, True)


def test_gymnasium_finds_no_fault():
    check_env(DiscreteActions(Doors()), skip_render_check=True)


def test_a_pickled_spec_rebuilds_the_same_env():
    env = DiscreteActions(gym.make("ARL/ALFWorld-v0"), max_actions=70, allow_more=True)
    again = gym.make(pickle.loads(pickle.dumps(env.spec)))
    assert (again.action_space, again.get_wrapper_attr("allow_more")) == (gym.spaces.Discrete(70), True)
