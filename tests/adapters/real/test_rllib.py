"""The adapter in RLlib itself: environments made in Ray's workers, their rewards, and masked actions."""

import os

import gymnasium as gym
import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from arl_gym.adapters.rllib import register
from tests.adapters.examples import run_example
from tests.adapters.page import run_section
from tests.adapters.real.local_ray import local_ray

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def _cluster():
    with local_ray(num_cpus=2):
        yield


def assert_native(episode, env_id, **kwargs):
    """Assert that an episode's rewards and end are those of the native env in its task."""
    env = gym.make(env_id, **kwargs)
    infos = episode.get_infos()
    env.reset(options={"task_id": infos[0]["task_id"]})
    text = env.action_space.dtype == str
    actions = [info["action"] for info in infos[1:]] if text else [int(a) for a in episode.get_actions()]
    for action, reward in zip(actions, episode.get_rewards(), strict=True):
        _, native, terminated, truncated, info = env.step(action)
        assert reward == pytest.approx(native)
    assert (episode.is_terminated, episode.is_truncated) == (terminated, truncated)
    assert infos[-1]["state_key"] == info["state_key"]


def test_a_worker_makes_the_boards_and_ppo_trains_on_them():
    register("boards", "ARL/Sokoban-v0", obs_mode="planes")
    config = (
        PPOConfig()
        .environment("boards", env_config={"max_steps": 5})
        .env_runners(num_env_runners=1, num_envs_per_env_runner=2)
        .training(train_batch_size=64, minibatch_size=32, num_epochs=1)
        .rl_module(model_config=DefaultModelConfig(conv_filters=[[16, 3, 1], [16, 3, 1]]))
    )
    algorithm = config.build_algo()
    try:
        result = algorithm.train()["env_runners"]
        assert result["num_env_steps_sampled"] == 64
        assert 1 <= result["episode_len_mean"] <= 5
        [(pid, episodes)] = algorithm.env_runner_group.foreach_env_runner(
            lambda runner: (os.getpid(), runner.sample(num_episodes=6)), local_env_runner=False
        )
    finally:
        algorithm.stop()
    assert pid != os.getpid()
    assert len({episode.get_infos(0)["task_id"] for episode in episodes}) > 2
    assert episodes[0].get_observations(0).shape == (6, 6, 7)
    ended = [episode for episode in episodes if episode.is_done]
    assert len(ended) >= 6
    for episode in ended:
        assert_native(episode, "ARL/Sokoban-v0", obs_mode="planes", max_steps=5)


def test_its_action_masking_module_plays_admissible_actions_only():
    register("house", "ARL/ALFWorld-v0", max_actions=60, features=8, max_steps=8)
    config = (
        PPOConfig()
        .environment("house")
        .env_runners(num_env_runners=0)
        .training(train_batch_size=32, minibatch_size=32, num_epochs=1)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskingTorchRLModule, model_config={"fcnet_hiddens": [16, 16]}
            )
        )
    )
    algorithm = config.build_algo()
    try:
        assert algorithm.train()["env_runners"]["num_env_steps_sampled"] == 32
        [episode] = algorithm.env_runner.sample(num_episodes=1)
    finally:
        algorithm.stop()
    assert len(episode) == 8
    assert all(info["action_valid"] for info in episode.get_infos())
    assert_native(episode, "ARL/ALFWorld-v0", max_steps=8)


def test_the_example_runs(tmp_path):
    printed = run_example("rllib_ppo.py", tmp_path, "--iterations", "1", timeout_s=200)
    assert "iteration 1:" in printed


def test_the_code_on_the_page_makes_a_configuration():
    config = run_section("RLlib")["config"].env_runners(num_env_runners=0, num_envs_per_env_runner=1)
    algorithm = config.build_algo()
    try:
        (episode,) = algorithm.env_runner.sample(num_episodes=1, random_actions=True)
    finally:
        algorithm.stop()
    assert_native(episode, "ARL/Sokoban-v0", obs_mode="planes", split="train")
