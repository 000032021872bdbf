"""The environment with the real engine: equal episodes, and games with rules that `House` does not know."""

import json
from typing import Any

import pytest

from arl_gym.envs.alfworld.env import ALFWorldEnv
from arl_gym.envs.alfworld.export import export_games
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import Settings
from arl_gym.errors import DataError

SMALL: dict[str, Any] = {"num_receptacles": 5, "num_objects": 5}


def test_an_episode_is_the_same_with_both_engines():
    native, real = ALFWorldEnv(**SMALL), ALFWorldEnv(engine="textworld", **SMALL)
    task = {"task_id": "train-000003"}
    seen = [env.reset(seed=0, options=task) for env in (native, real)]
    over = False
    while not over:
        (observation, info), (same, real_info) = seen
        assert observation == same
        assert info | {"engine": "textworld"} == real_info
        action = native.expert_action()
        assert real.expert_action() == action
        assert real.expert_thought() == native.expert_thought()
        steps = [env.step(action) for env in (native, real)]
        assert steps[0][1:4] == steps[1][1:4]
        seen = [(step[0], step[4]) for step in steps]
        over = steps[0][2]
    assert seen[1][1]["success"]
    real.close()
    real.close()


def other_words(folder):
    """Export two games and give one of them words of its own; return the folder and the task's id."""
    export_games(GeneratedGames(Settings(num_receptacles=5, num_objects=5)), "val", folder, 2)
    files = sorted((folder / "json_2.1.1" / "valid_seen").glob("*/*/game.tw-pddl"))
    record = json.loads(files[0].read_text())
    record["grammar"] = record["grammar"].replace("You arrive at", "You walk over to")
    files[0].write_text(json.dumps(record))
    return "valid_seen/" + files[0].parent.relative_to(folder / "json_2.1.1" / "valid_seen").as_posix()


def test_a_game_with_other_words_needs_the_real_engine(tmp_path):
    task_id = other_words(tmp_path)
    data: dict[str, Any] = {"dataset": "original", "data_dir": str(tmp_path), "split": "val"}
    with pytest.raises(DataError, match=r'1 of the 2 games .* use engine="textworld"'):
        ALFWorldEnv(**data)
    env = ALFWorldEnv(engine="textworld", **data)
    _, info = env.reset(options={"task_id": task_id})
    start = info["state_key"]
    go_to = next(a for a in info["admissible_actions"] if a.startswith("go to "))
    observation, _, _, _, info = env.step(go_to)
    assert observation.startswith(f"You walk over to {go_to.removeprefix('go to ')}. ")
    assert (info["grammar_version"], info["score"], info["action_valid"]) == ("unknown", 0.0, True)
    assert info["state_key"] != start
    assert info["task"] == env.reset(options={"task_id": task_id})[1]["task"]
    with pytest.raises(NotImplementedError, match="no expert"):
        env.expert_action()
    env.close()
