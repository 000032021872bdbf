import doctest
from typing import Any

import pytest

from arl_gym.agents.policies import RandomPolicy, respond_in
from arl_gym.agents.records import read_trajectories
from arl_gym.errors import ConfigError
from arl_gym.train import collecting
from arl_gym.train.collecting import collect_episodes, runs_by_env, share_out
from arl_gym.train.methods import resolve
from tests.agents.counting import ID


def config(**changes):
    return resolve({"env": {"id": ID}, **changes})


def play(cfg, **changes):
    policy = RandomPolicy(0, respond_in("default", ID))
    dials: dict[str, Any] = {"split": "train", "episodes": 5}
    return collect_episodes(cfg, policy, **(dials | changes))


def test_the_examples_of_shares_hold():
    assert doctest.testmod(collecting).failed == 0


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0]])
def test_weights_must_share_something(weights):
    with pytest.raises(ConfigError, match="at least 0"):
        share_out(3, weights)


def test_each_environment_gets_its_share_and_none_plays_for_nothing():
    envs = [{"id": ID, "weight": 3}, {"id": "ARL/Sokoban-v0"}, {"id": "ARL/WebShop-v0", "weight": 0}]
    runs = runs_by_env(config(envs=envs), 8)
    assert [(run.env.id, n) for run, n in runs] == [(ID, 6), ("ARL/Sokoban-v0", 2)]
    assert [run.all_envs for run, _ in runs] == [(run.env,) for run, _ in runs]


def test_tasks_are_different_ones_each_played_as_often_as_told():
    played = play(config(), samples=2)
    names = [(t.task_id, t.copy) for t in played]
    assert len(set(names)) == 10
    assert [t.group for t in played] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert all(t.split == "train" for t in played)
    assert played == play(config(), samples=2, num_envs=3)
    assert names != [(t.task_id, t.copy) for t in play(config(seed=1), samples=2)]


def test_a_split_with_fewer_tasks_is_played_whole():
    assert len({t.task_id for t in play(config(), split="val", episodes=99)}) == 12


def test_collecting_goes_on_where_it_ended(tmp_path):
    file = tmp_path / "e.jsonl"
    whole = play(config(), resume=file)
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))
    assert play(config(), resume=file) == whole == play(config())
    assert len(read_trajectories(file)) == 5
    with pytest.raises(ConfigError, match=r"penalty=0\.1, now it is 0\.5"):
        play(config(env={"id": ID, "penalty": 0.5}), resume=file)


def test_nothing_to_collect_is_an_error():
    with pytest.raises(ConfigError, match="at least 1, got 0, 1, 64"):
        play(config(), episodes=0)
