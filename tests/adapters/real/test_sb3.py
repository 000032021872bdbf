"""The adapter in Stable-Baselines3 itself: its checker, its vector environments, short PPO runs."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv

from arl_gym.adapters.sb3 import BoardsVecEnv, make_sb3, make_sb3_vec
from tests.adapters.examples import run_example
from tests.adapters.page import run_section

PLANES = {"obs_mode": "planes", "num_tasks": 50}
PICTURES = {"obs_mode": "image", "action_mode": "discrete", "tile_size": 16, "num_tasks": 50}
HOUSE = {"max_actions": 60, "features": 16}
SHOP = {"num_products": 200, "features": 16}


class Played(BaseCallback):
    """Keeps the actions, rewards and infos of a run."""

    def __init__(self):
        super().__init__()
        self.steps = []

    def _on_step(self):
        # Copies: PPO adds the value of what a truncation cuts off to the array of rewards.
        self.steps.append([self.locals[key].copy() for key in ("actions", "rewards", "dones", "infos")])
        return True


def replay(env_id, steps, slot, seed, **kwargs):
    """Assert that a slot's rewards and ends are those of the native env that begins with the seed."""
    env = gym.make(env_id, **kwargs)
    _, info = env.reset(seed=seed)
    for actions, rewards, dones, infos in steps:
        action: int | str = int(actions[slot])
        if env.action_space.dtype == np.dtype(str):
            names = info["admissible_actions"]
            action = names[int(action)] if int(action) < len(names) else ""
        _, reward, terminated, truncated, info = env.step(action)
        assert infos[slot]["task_id"] == info["task_id"]
        assert rewards[slot] == pytest.approx(reward)
        assert dones[slot] == (terminated or truncated)
        assert infos[slot]["TimeLimit.truncated"] == truncated
        assert infos[slot]["is_success"] == info["success"]
        if dones[slot]:
            _, info = env.reset()


@pytest.mark.filterwarnings("ignore")  # what it recommends: pictures of 36x36 and more, flat vectors
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("ARL/Sokoban-v0", PLANES),
        ("ARL/Sokoban-v0", PICTURES),
        ("ARL/ALFWorld-v0", HOUSE),
        ("ARL/WebShop-v0", SHOP),
    ],
    ids=["planes", "pictures", "alfworld", "webshop"],
)
def test_the_checker_finds_no_fault(env_id, kwargs):
    check_env(make_sb3(env_id, **kwargs))


def test_the_checker_has_nothing_to_say_about_pictures():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make_sb3("ARL/Sokoban-v0", **PICTURES))


@pytest.mark.parametrize("kwargs", [PLANES, PICTURES], ids=["planes", "pictures"])
def test_boards_step_as_single_envs_do_in_its_own_vector_env(kwargs):
    boards = make_sb3_vec("ARL/Sokoban-v0", 3, **kwargs)
    assert isinstance(boards.venv, BoardsVecEnv)
    singles = DummyVecEnv([lambda: make_sb3("ARL/Sokoban-v0", **kwargs)] * 3)
    for vec in (boards, singles):
        vec.seed(11)
    assert (boards.reset() == singles.reset()).all()
    moves = np.random.default_rng(0).integers(0, 4, (60, 3))
    n_ended = 0
    for actions in moves:
        seen, rewards, dones, infos = boards.step(actions)
        seen2, rewards2, dones2, infos2 = singles.step(actions)
        assert (seen == seen2).all()
        assert (seen.dtype, rewards.dtype, dones.dtype) == (seen2.dtype, rewards2.dtype, dones2.dtype)
        assert (rewards == rewards2).all()
        assert (dones == dones2).all()
        for info, info2 in zip(infos, infos2, strict=True):
            for key in ("task_id", "score", "is_success", "TimeLimit.truncated", "boxes_on_target"):
                assert (info[key], type(info[key])) == (info2[key], type(info2[key]))
            assert ("terminal_observation" in info) == ("terminal_observation" in info2)
            if "terminal_observation" in info:
                assert (info["terminal_observation"] == info2["terminal_observation"]).all()
        n_ended += int(dones.sum())
        reset_tasks = [[info["task_id"] for info in vec.reset_infos] for vec in (boards.venv, singles)]
        assert reset_tasks[0] == reset_tasks[1]
    assert n_ended >= 12


def test_ppo_learns_from_planes_with_the_native_rewards():
    model = PPO(
        "MlpPolicy",
        make_sb3_vec("ARL/Sokoban-v0", 4, **PLANES),
        n_steps=16,
        batch_size=32,
        n_epochs=1,
        seed=3,
    )
    assert model.rollout_buffer.observations.shape == (16, 4, 7, 6, 6)
    played = Played()
    model.learn(2 * 16 * 4, callback=played)
    assert len(played.steps) == 32
    for slot in range(4):
        replay("ARL/Sokoban-v0", played.steps, slot, 3 + slot, **PLANES)
    assert len(model.ep_info_buffer) > 0
    assert len(model.ep_success_buffer) == len(model.ep_info_buffer)


def test_ppo_learns_from_pictures_with_its_own_network():
    vec = make_sb3_vec("ARL/Sokoban-v0", 2, **PICTURES)
    model = PPO("CnnPolicy", vec, n_steps=8, batch_size=16, n_epochs=1, seed=3)
    played = Played()
    model.learn(2 * 8 * 2, callback=played)
    assert model.observation_space.shape == (3, 96, 96)  # channels first, by its own wrapper
    for slot in range(2):
        replay("ARL/Sokoban-v0", played.steps, slot, 3 + slot, **PICTURES)


def test_ppo_learns_from_the_vectors_of_alfworld_with_the_native_rewards():
    vec = make_sb3_vec("ARL/ALFWorld-v0", 2, max_steps=6, **HOUSE)
    model = PPO("MultiInputPolicy", vec, n_steps=8, batch_size=16, n_epochs=1, seed=3)
    assert model.rollout_buffer.observations["actions"].shape == (8, 2, 60, 16)
    played = Played()
    model.learn(2 * 8 * 2, callback=played)
    for slot in range(2):
        replay("ARL/ALFWorld-v0", played.steps, slot, 3 + slot, max_steps=6)


def test_masks_are_where_maskable_algorithms_ask_for_them():
    vec = make_sb3_vec("ARL/ALFWorld-v0", 2, **HOUSE)
    vec.seed(0)
    obs = vec.reset()
    assert vec.has_attr("action_masks")
    assert (np.stack(vec.env_method("action_masks")) == obs["action_mask"].astype(bool)).all()


def test_evaluation_counts_whole_episodes():
    model = PPO("MlpPolicy", make_sb3_vec("ARL/Sokoban-v0", 2, **PLANES), n_steps=8, batch_size=16)
    rooms = make_sb3_vec(
        "ARL/Sokoban-v0",
        2,
        obs_mode="planes",
        max_steps=4,
        levels=["######\n#@___#\n#_$__#\n#___.#\n#____#\n######\n"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns where no monitor says what an episode is
        returns, lengths = evaluate_policy(model, rooms, n_eval_episodes=4, return_episode_rewards=True)
    assert lengths == [4] * 4  # the room needs 6 moves
    assert returns == pytest.approx([-0.4] * 4)


def test_the_example_runs(tmp_path):
    assert "after 4,096 steps" in run_example("sb3_ppo.py", tmp_path, "--steps", "4096")


def test_the_code_on_the_page_makes_models():
    made = run_section("Stable-Baselines3")
    assert made["model"].predict(made["model"].env.reset())[0].shape == (128,)
    assert made["houses"].predict(made["houses"].env.reset())[0].shape == (8,)
