import json
import subprocess
import sys
import threading
import tracemalloc
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from arl_gym import check_text_env, evaluate, make_chat_env
from arl_gym.envs.alfworld.env import ALFWorldEnv
from arl_gym.envs.alfworld.export import export_games
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import Settings
from arl_gym.envs.alfworld.scene import TASK_TYPES
from arl_gym.errors import ConfigError, DataError, EpisodeOverError, UnknownNameError
from arl_gym.rng import Rng

ID = "ARL/ALFWorld-v0"


def play(env: ALFWorldEnv, seed: int, n: int) -> list[tuple[str, str]]:
    """Return (action, observation) of n random admissible actions, fewer if the game ends."""
    rng, log = Rng("test-alfworld", seed), []
    _, info = env.reset(seed=seed)
    for _ in range(n):
        action = rng.choice(info["admissible_actions"])
        observation, _, terminated, truncated, info = env.step(action)
        log.append((action, observation))
        if terminated or truncated:
            break
    return log


def test_the_first_observation_lists_the_receptacles_and_the_task():
    observation, info = ALFWorldEnv().reset(seed=0)
    assert observation.startswith(
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        "You are in the middle of a room. Looking quickly around you, you see a "
    )
    assert observation.endswith(f"\n\nYour task is to: {info['task']}")
    assert info["task"].endswith(".")


def test_the_expert_gets_the_reward_at_its_last_step_only():
    env = ALFWorldEnv(split="val")
    for kind in TASK_TYPES:
        _, info = env.reset(seed=3, options={"task_type": kind})
        assert info["task_type"] == kind
        rewards = []
        while not info["success"]:
            _, reward, terminated, truncated, info = env.step(env.expert_action())
            rewards.append(reward)
            assert info["action_valid"]
        assert rewards == [0.0] * (len(rewards) - 1) + [10.0]
        assert (terminated, truncated) == (True, False)
        assert info["score"] == info["goal_condition_success"] == 1.0


def test_a_closed_env_and_one_at_its_end_say_so():
    env = ALFWorldEnv()
    env.reset(seed=0)
    env.close()
    with pytest.raises(EpisodeOverError, match="reset"):
        env.step("look")
    with pytest.raises(EpisodeOverError, match="expert needs a running episode"):
        env.expert_action()
    observation, _ = env.reset(seed=0)
    assert observation == ALFWorldEnv().reset(seed=0)[0]


def test_sparse1_pays_one():
    env = ALFWorldEnv(reward_mode="sparse1")
    _, info = env.reset(seed=0)
    reward = 0.0
    while not info["success"]:
        _, reward, _, _, info = env.step(env.expert_action())
    assert reward == 1.0


def test_help_answers_but_is_no_admissible_action():
    env = ALFWorldEnv()
    _, info = env.reset(seed=1)
    assert "help" not in info["admissible_actions"]
    observation, _, _, _, info = env.step("help")
    assert observation.startswith("Available commands:\n  look: ")
    assert (info["action_valid"], info["command"]) == (False, "help")


@pytest.mark.parametrize("action", ["", "Look", "go  to fridge 1", "dance", "x" * 10_000_000, "\udcff\x00"])
def test_what_is_no_command_costs_a_step_in_which_nothing_happens(action):
    env = ALFWorldEnv()
    _, before = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, reward, terminated, truncated) == ("Nothing happens.", 0.0, False, False)
    assert not info["action_valid"]
    assert info["state_key"] == before["state_key"]
    assert info["admissible_actions"] == before["admissible_actions"]


def test_an_episode_ends_after_50_steps():
    env = ALFWorldEnv()
    env.reset(seed=1)
    ends = [env.step("look")[2:4] for _ in range(50)]
    assert ends == [(False, False)] * 49 + [(False, True)]


def test_lenient_reads_near_misses_and_says_what_it_read():
    strict, lenient = ALFWorldEnv(), ALFWorldEnv(lenient=True)
    for env in (strict, lenient):
        _, info = env.reset(seed=1)
        place = next(a for a in info["admissible_actions"] if a.startswith("go to ")).removeprefix("go to ")
        _, _, _, _, info = env.step(f"Go to the  {place}.")
        assert info["action_valid"] == (env is lenient)
        assert info["command"] == (f"go to {place}" if env is lenient else f"Go to the  {place}.")


def test_kinds_of_task_can_be_chosen_for_an_env_and_for_a_reset():
    env = ALFWorldEnv(task_types=["pick_heat_then_place_in_recep", "look_at_obj_in_light"])
    assert env.task_types == ("look_at_obj_in_light", "pick_heat_then_place_in_recep")
    seen = {env.reset(seed=seed)[1]["task_type"] for seed in range(12)}
    assert seen == set(env.task_types)
    with pytest.raises(UnknownNameError, match="did you mean 'pick_heat_then_place_in_recep'"):
        env.reset(options={"task_type": "pick_heat_then_place"})
    with pytest.raises(UnknownNameError, match="pick_two_obj_and_place"):
        ALFWorldEnv(task_types=["pick_three_obj_and_place"])


def test_a_few_tasks_can_be_taken():
    env = ALFWorldEnv(num_tasks=3)
    assert list(env.task_ids()) == ["train-000000", "train-000001", "train-000002"]
    with pytest.raises(ConfigError, match="no task of split 'train' has task_type="):
        env.reset(seed=0, options={"task_type": TASK_TYPES[5]})
    with pytest.raises(UnknownNameError, match="task_id 'train-000003'"):
        env.reset(options={"task_id": "train-000003"})


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"dataset": "orig"}, "did you mean 'original'"),
        ({"engine": "texworld"}, "did you mean 'textworld'"),
        ({"reward_mode": "dense"}, "sparse1"),
        ({"data_dir": "/somewhere"}, "data_dir goes with dataset='original'"),
        ({"num_tasks": 0}, "num_tasks must be a whole number of at least 1, got 0"),
        ({"task_types": []}, "task_types must be a list"),
        ({"task_types": "look_at_obj_in_light"}, "task_types must be a list"),
        (
            {"dataset": "original", "rooms": ["kitchen"], "data_dir": "."},
            "rooms goes with dataset='generated'",
        ),
        ({"rooms": ["garage"]}, "garage"),
    ],
)
def test_a_wrong_argument_is_one_clear_error(kwargs, says):
    with pytest.raises(ConfigError, match=says):
        ALFWorldEnv(**kwargs)


def test_missing_data_says_what_to_run_and_that_generated_games_exist(tmp_path):
    with pytest.raises(DataError, match=r"alfworld-download.*generated"):
        ALFWorldEnv(dataset="original", data_dir=str(tmp_path / "none"))


def test_exported_games_are_played_alike_and_never_pass_for_the_benchmarks(tmp_path):
    drawn = ALFWorldEnv(split="val")
    export_games(GeneratedGames(Settings()), "val", tmp_path, 12)
    files = ALFWorldEnv(dataset="original", data_dir=str(tmp_path), split="val", task_types=[TASK_TYPES[3]])
    assert (files.dataset, files.split, len(files.task_ids())) == ("generated", "valid_seen", 2)
    for task_id in files.task_ids():
        _, info = files.reset(options={"task_id": task_id})
        number = int(task_id.rpartition("_")[2])
        _, same = drawn.reset(options={"task_id": f"val-{number:06d}"})
        for key in ("content_hash", "task", "task_type", "game_id", "state_key", "admissible_actions"):
            assert info[key] == same[key]
        assert info["dataset"] == "generated"


def test_the_contract_holds_for_games_from_files(tmp_path):
    for split in ("train", "val", "test_ood"):
        export_games(GeneratedGames(Settings()), split, tmp_path, 6)
    check_text_env(partial(gym.make, ID, dataset="original", data_dir=str(tmp_path)), episodes=1)


def test_generated_results_carry_their_dataset():
    result = evaluate("expert", ID, split="test", episodes=12)
    assert (result.dataset, result.success_rate) == ("generated", 1.0)
    assert result.success_by_type == dict.fromkeys(TASK_TYPES, (2, 2))


def test_the_state_key_forgets_the_way_and_knows_the_state():
    env = ALFWorldEnv()
    _, info = env.reset(seed=1)
    start = info["state_key"]
    goes = [a for a in info["admissible_actions"] if a.startswith("go to ")][:2]
    keys = []
    for actions in (goes, goes[::-1], [goes[1]], [goes[1], "look"]):
        env.reset(seed=1)
        for action in actions:
            info = env.step(action)[4]
        keys.append(info["state_key"])
    assert keys[0] == keys[2] == keys[3] != keys[1]
    assert start not in keys
    assert len(start) == 16


def test_threads_play_like_one_alone():
    alone = [play(ALFWorldEnv(), seed, 40) for seed in range(8)]
    together: dict[int, list[tuple[str, str]]] = {}

    def run(seed: int) -> None:
        together[seed] = play(ALFWorldEnv(), seed, 40)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[seed] for seed in range(8)] == alone


def test_another_process_with_another_hash_seed_plays_the_same(tmp_path):
    script = (
        "import json, sys; from tests.envs.alfworld.test_env import play, ALFWorldEnv;"
        "print(json.dumps([play(ALFWorldEnv(), seed, 30) for seed in range(4)]))"
    )
    env = {"PYTHONHASHSEED": "12345", "PATH": "", "ARL_GYM_CACHE": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=env, timeout=60)
    here = [[list(pair) for pair in play(ALFWorldEnv(), seed, 30)] for seed in range(4)]
    assert json.loads(out.stdout) == here


def test_memory_does_not_grow_with_episodes():
    env = ALFWorldEnv(num_tasks=300, num_receptacles=4, num_objects=3)  # more games than a process keeps

    def episodes(n: int) -> int:
        for k in range(n):
            play(env, k, 3)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = episodes(600)
        after = episodes(600)
    finally:
        tracemalloc.stop()
    assert after - before < 200_000, f"{(after - before) / 600:.0f} bytes an episode"


def test_playing_imports_no_simulator():
    script = (
        "import sys, arl_gym, gymnasium as gym; env = gym.make('ARL/ALFWorld-v0'); env.reset(seed=0);"
        "env.step('look'); env.unwrapped.expert_action();"
        "print([m for m in ('textworld', 'alfworld', 'spacy', 'torch', 'PIL') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.strip() == "[]"


def test_the_text_is_drawn():
    env = gym.make(ID, render_mode="ansi")
    observation, _ = env.reset(seed=0)
    assert env.render() == observation
    env.step("look")
    assert str(env.render()).startswith("> look\n\nYou are in the middle of a room.")


def test_a_picture_of_the_text_is_no_wider_than_a_page():
    env = gym.make(ID, render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    assert max(map(len, observation.split("\n"))) > 200
    height, width, _ = np.asarray(env.render()).shape
    assert width < 800
    assert height > 60
    env.close()


def test_the_prompt_has_the_task_on_every_turn():
    for prompt in ("default", "compact"):
        env = make_chat_env(ID, prompt=prompt, window=2, expert=True)
        messages, info = env.reset(seed=4)
        for _ in range(3):
            assert info["task"] in messages[0]["content"]
            assert f"- {info['expert_action']}" in messages[0]["content"] or prompt == "compact"
            response = f"<think>t</think><action>{info['expert_action']}</action>"
            messages, *_, info = env.step(response)


def test_games_are_drawn_once_for_all_envs_of_a_process():
    games = GeneratedGames(Settings())
    assert GeneratedGames(Settings()).game("train-000007") is games.game("train-000007")
