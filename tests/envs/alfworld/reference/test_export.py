"""Exported games in ALFWorld's own environment: its walk over the folders, its loading, its end of a game."""

import json

import pytest

from arl_gym.envs.alfworld.export import export_games
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import Settings
from arl_gym.envs.alfworld.scene import TASK_TYPES

# Small rooms: TextWorld takes seconds to load a kitchen.
SETTINGS = Settings(num_receptacles=6, num_objects=6)
N = len(TASK_TYPES)


def alfworlds_config(folder):
    """Return the configuration of ALFWorld's environment for the games below a folder."""
    train = str(folder / "json_2.1.1" / "train")
    return {
        "dataset": {"data_path": train, "num_train_games": -1, "num_eval_games": -1},
        "env": {
            "task_types": list(range(1, N + 1)),
            "goal_desc_human_anns_prob": 0,
            "domain_randomization": False,
            "expert_type": "handcoded",
        },
        "general": {"training_method": "dqn"},
        "rl": {"training": {"max_nb_steps_per_episode": 50}},
    }


@pytest.mark.timeout(300)
def test_alfworld_finds_loads_and_wins_exported_games(tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))  # importing alfworld makes that folder
    from alfworld.agents.environment.alfred_tw_env import AlfredTWEnv

    export_games(GeneratedGames(SETTINGS), "train", tmp_path, N)
    theirs = AlfredTWEnv(alfworlds_config(tmp_path), train_eval="train")
    assert len(theirs.game_files) == N
    env = theirs.init_env(batch_size=1)
    try:
        for _ in range(N):
            _, infos = env.reset()
            (file,) = infos["extra.gamefile"]
            with open(file) as text:
                walkthrough = json.load(text)["walkthrough"]
            won = []
            for command in walkthrough:
                assert command in infos["admissible_commands"][0]
                _, _, _, infos = env.step([command])
                won += infos["won"]
            assert won == [False] * (len(walkthrough) - 1) + [True]
    finally:
        env.close()
