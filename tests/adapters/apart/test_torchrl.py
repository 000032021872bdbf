"""The adapter in torchrl itself: its spec checker, scripted rollouts, and several environments at once."""

import functools
from typing import Any

import gymnasium as gym
import pytest
from tensordict import NonTensorStack
from torchrl.envs import GymEnv, GymWrapper, ParallelEnv, SerialEnv
from torchrl.envs.utils import check_env_specs

from arl_gym import make_chat_env
from arl_gym.adapters.torchrl import make_torchrl
from tests.adapters.examples import run_example
from tests.adapters.page import run_section

SHOP: dict[str, Any] = {"num_products": 200}
ENVS: list[tuple[str, dict[str, Any]]] = [
    ("ARL/ALFWorld-v0", {}),
    ("ARL/WebShop-v0", SHOP),
    ("ARL/Sokoban-v0", {}),
]


def expert(env):
    """Return a policy that plays the expert of an environment."""

    def act(td):
        td["action"] = env.unwrapped.expert_action()
        return td

    return act


def native(env_id, kwargs, seed):
    """Play the expert's episode; return observations, rewards and infos, the reset's first."""
    env = gym.make(env_id, **kwargs)
    obs, info = env.reset(seed=seed)
    seen, rewards, infos, done = [obs], [], [info], False
    play = env.get_wrapper_attr("expert_action")
    while not done:
        obs, reward, terminated, truncated, info = env.step(play())
        done = terminated or truncated
        seen.append(obs)
        rewards.append(reward)
        infos.append(info)
    return seen, rewards, infos


@pytest.mark.parametrize(("env_id", "kwargs"), ENVS)
def test_its_checker_finds_no_fault(env_id, kwargs):
    check_env_specs(make_torchrl(env_id, **kwargs))
    check_env_specs(GymEnv(env_id, **kwargs))


def test_its_checker_finds_no_fault_in_tirmath_chat_and_planes():
    check_env_specs(make_torchrl("ARL/TIRMath-v0", dataset="generated"))
    check_env_specs(GymWrapper(make_chat_env("ARL/Sokoban-v0")))
    check_env_specs(make_torchrl("ARL/Sokoban-v0", obs_mode="planes"))


@pytest.mark.parametrize(("env_id", "kwargs"), ENVS)
def test_a_rollout_of_the_expert_equals_the_native_episode(env_id, kwargs):
    seen, rewards, infos = native(env_id, kwargs, seed=3)
    env = make_torchrl(env_id, **kwargs)
    data = env.rollout(100, expert(env), auto_reset=False, tensordict=env.reset(seed=3))
    assert list(data["observation"]) == seen[:-1]
    assert list(data["next", "observation"]) == seen[1:]
    assert data["next", "reward"].ravel().tolist() == pytest.approx(rewards)
    assert data["next", "terminated"].ravel().tolist() == [False] * (len(rewards) - 1) + [True]
    for key in ("task_id", "task", "state_key", "admissible_actions"):
        assert list(data[key]) == [info[key] for info in infos[:-1]]
        assert list(data["next", key]) == [info[key] for info in infos[1:]]
    for key in ("success", "score", "action_valid"):
        assert data["next", key].tolist() == pytest.approx([info[key] for info in infos[1:]])


def test_a_plain_gym_env_speaks_text_once_the_adapter_is_imported():
    env = GymEnv("ARL/Sokoban-v0")
    data = env.reset(options={"task_id": "train-000005"})
    assert data["observation"] == gym.make("ARL/Sokoban-v0").reset(options={"task_id": "train-000005"})[0]
    data["action"] = "no move"
    assert env.step(data)["next", "reward"].item() == pytest.approx(-0.1)


def test_chat_messages_pass_through():
    env = GymWrapper(make_chat_env("ARL/Sokoban-v0"))
    data = env.reset(seed=0)
    assert data["observation"] == make_chat_env("ARL/Sokoban-v0").reset(seed=0)[0]


@pytest.mark.parametrize(
    ("several", "said", "valid"),
    [
        (SerialEnv, ("search[red]", "click[nothing]"), [[True], [False]]),
        (functools.partial(ParallelEnv, use_buffers=False), ("search[red]",), [[True]]),
    ],
    ids=["serial", "parallel"],
)
def test_environments_side_by_side_get_their_own_texts(several, said, valid):
    env = several(len(said), functools.partial(make_torchrl, "ARL/WebShop-v0", **SHOP))
    try:
        td = env.rollout(1, lambda td: td.set("action", NonTensorStack(*said)))
    finally:
        env.close()
    assert td["next", "action_valid"].tolist() == valid
    assert list(td["action"]) == [[text] for text in said]


def test_boards_in_arrays_run_without_autoreset():
    vec = gym.make_vec(
        "ARL/Sokoban-v0", num_envs=3, obs_mode="planes", autoreset_mode="Disabled", max_steps=4
    )
    data = GymWrapper(vec, categorical_action_encoding=True).rollout(9, break_when_any_done=False)
    assert data["next", "observation"].shape == (3, 9, 7, 6, 6)
    assert data["next", "done"].sum(1).ravel().tolist() >= [2, 2, 2]


def test_the_example_runs(tmp_path):
    assert "return 10.0" in run_example("torchrl_rollout.py", tmp_path)


def test_the_code_on_the_page_makes_environments():
    made = run_section("torchrl")
    assert made["env"].reset()["observation"]
    assert made["with_infos"].reset()["task_id"].startswith("train-")
