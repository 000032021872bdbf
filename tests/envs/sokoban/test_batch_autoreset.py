"""What ends and begins when: the three autoreset modes, seeds and masks."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from arl_gym.envs.sokoban.env import DEADLOCKS
from arl_gym.errors import ConfigError, EpisodeOverError
from tests.envs.sokoban.batches import (
    BACKENDS,
    DOWN,
    LEFT,
    RIGHT,
    SHORT,
    TALL,
    UP,
    assert_same,
    draw,
    make,
    make_single,
    random_actions,
)

SHARED = ("success", "score", "action_effective", "boxes_on_target", "optimal_moves")
"""Infos that are numbers in the single environment too."""


def assert_same_infos(infos, theirs, task_ids):
    """Compare infos with those that Gymnasium gathers from single environments, by its masks."""
    for key in SHARED:
        mask = theirs[f"_{key}"]
        np.testing.assert_array_equal(infos[key][mask], theirs[key][mask])
    for i in np.flatnonzero(theirs["_state_key"]):
        assert f"{infos['state_key'][i]:016x}" == theirs["state_key"][i]
        assert task_ids[infos["task_index"][i]] == theirs["task_id"][i]
        assert DEADLOCKS[infos["deadlock"][i]] == theirs["deadlock"][i]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("obs_mode", ["grid", "planes", "image"])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_batch_equals_gymnasiums_loop_over_single_environments(backend, obs_mode, mode):
    kwargs = {"num_tasks": 12, "num_boxes": 2, "optimal": (3, 9), "max_steps": 9}
    kwargs |= {"obs_mode": obs_mode, "tile_size": 16, "exact_states": 0}
    ours = make(4, backend=backend, autoreset_mode=mode, **kwargs)
    theirs = SyncVectorEnv([lambda: make_single(**kwargs)] * 4, autoreset_mode=mode)
    obs, infos = ours.reset(seed=5)
    their_obs, their_infos = theirs.reset(seed=5)
    np.testing.assert_array_equal(obs, their_obs)
    assert_same_infos(infos, their_infos, ours.task_ids())
    for actions in random_actions(80, 4):
        *results, infos = ours.step(actions)
        *their_results, their_infos = theirs.step(actions)
        assert_same(tuple(results), tuple(their_results))
        assert_same_infos(infos, their_infos, ours.task_ids())
        ended = results[2] | results[3]
        assert ("final_obs" in infos) == ("final_obs" in their_infos)
        if "final_obs" in infos:
            np.testing.assert_array_equal(infos["_final_obs"], their_infos["_final_obs"])
            np.testing.assert_array_equal(infos["_final_info"], ended)
            np.testing.assert_array_equal(
                infos["final_obs"][ended], np.stack(their_infos["final_obs"][ended])
            )
            assert_same_infos(infos["final_info"], their_infos["final_info"], ours.task_ids())
        if mode is AutoresetMode.DISABLED and ended.any():
            obs, infos = ours.reset(options={"reset_mask": ended})
            their_obs, their_infos = theirs.reset(options={"reset_mask": ended})
            np.testing.assert_array_equal(obs, their_obs)
            assert_same_infos(infos, their_infos, ours.task_ids())


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_step_after_an_episode_ignores_the_action_and_begins_the_next(backend):
    env = make(2, levels=SHORT, backend=backend)
    env.reset()
    _, rewards, terminations, _, infos = env.step([RIGHT, LEFT])
    assert (rewards.tolist(), terminations.tolist()) == ([10.9, -0.1], [True, False])
    assert infos["success"].tolist() == [True, False]
    boards, rewards, terminations, _, infos = env.step([RIGHT, RIGHT])
    assert draw(boards[0]) == "#####\n#PXO#\n#####"
    assert (rewards.tolist(), terminations.tolist()) == ([0, 10.9], [False, True])
    assert infos["success"].tolist() == [False, True]
    assert infos["action_effective"].tolist() == [False, True]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("copy", [True, False])
def test_same_step_shows_the_next_episode_and_keeps_the_last_state(backend, copy):
    env = make(2, levels=SHORT, backend=backend, autoreset_mode="SameStep", copy=copy)
    env.reset()
    boards, rewards, terminations, _, infos = env.step([RIGHT, LEFT])
    assert (rewards.tolist(), terminations.tolist()) == ([10.9, -0.1], [True, False])
    assert [draw(board) for board in boards] == ["#####\n#PXO#\n#####"] * 2
    assert infos["success"].tolist() == [False, False]
    assert draw(infos["final_obs"][0]) == "#####\n#_P√#\n#####"
    assert infos["final_info"]["success"].tolist() == [True, False]
    assert infos["_final_obs"].tolist() == infos["_final_info"].tolist() == [True, False]
    *_, later = env.step([LEFT, LEFT])
    assert "final_obs" not in later
    assert "_final_info" not in later
    assert draw(infos["final_obs"][0]) == "#####\n#_P√#\n#####"


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_autoreset_a_finished_board_is_refused_until_it_is_reset(backend):
    env = make(3, levels=[SHORT, TALL], backend=backend, autoreset_mode="Disabled", max_steps=2)
    env.reset(options={"task_id": ["level:0", "level:1", "level:0"]})
    assert env.step([RIGHT, RIGHT, LEFT])[2].tolist() == [True, False, False]
    with pytest.raises(EpisodeOverError, match=r"envs \[0\] have no running episode"):
        env.step([RIGHT, UP, RIGHT])
    options = {"reset_mask": np.array([True, False, False]), "task_id": "level:1"}
    boards, infos = env.reset(options=options)
    assert "reset_mask" in options
    assert draw(boards[0]) == "####_\n".replace("_", "#") + "#P_##\n#X_##\n#__##\n#O_##\n#####"
    assert infos["task_index"].tolist() == [1, 1, 0]
    *_, terminations, truncations, _ = env.step([DOWN, UP, RIGHT])
    assert terminations.tolist() == [False, False, True]
    assert truncations.tolist() == [False, True, False]  # its second step; the win is no truncation


def test_a_reset_in_the_middle_of_an_episode_begins_a_new_one():
    env = make(2, levels=TALL, max_steps=3)
    env.reset()
    env.step([RIGHT, RIGHT])
    env.step([RIGHT, RIGHT])
    env.reset(options={"reset_mask": np.array([True, False])})
    assert env.step([RIGHT, RIGHT])[3].tolist() == [False, True]


def test_the_same_seed_plays_the_same_tasks_and_a_list_seeds_each_board():
    env, other, third = make(3), make(3), make(3)
    env.reset(seed=7)
    other.reset(seed=[7, 8, 9])
    third.reset(seed=8)
    tasks = [[e.reset()[1]["task_index"].tolist() for _ in range(20)] for e in (env, other, third)]
    assert tasks[0] == tasks[1]
    assert [each[1:] for each in tasks[0]] == [each[:2] for each in tasks[2]]


def test_a_seed_of_none_lets_a_boards_stream_go_on():
    env, other = make(2), make(2)
    env.reset(seed=0)
    other.reset(seed=0)
    _, infos = env.reset(seed=[4, None])
    _, expected = other.reset()
    assert infos["task_index"][1] == expected["task_index"][1]


def test_a_chosen_task_draws_nothing():
    env, other = make(2), make(2)
    env.reset(seed=0)
    other.reset(seed=0)
    ids = env.task_ids()
    _, infos = env.reset(options={"task_id": [ids[3], None]})
    assert infos["task_index"][0] == 3
    _, drawn = other.reset()
    assert infos["task_index"][1] == drawn["task_index"][1]
    _, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert infos["task_index"][0] == drawn["task_index"][0]


def test_without_a_seed_boards_play_different_tasks():
    env = make(64)
    _, infos = env.reset()
    assert len(set(infos["task_index"].tolist())) > 4


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"seed": [1]}, "seed needs one entry per env, 2"),
        ({"seed": [1, -1]}, "got -1 for env 1"),
        ({"seed": ["a", 1]}, "got 'a' for env 0"),
        ({"options": {"task_id": ["level:0"]}}, "task_id needs one entry per env, 2"),
        ({"options": {"reset_mask": [True]}}, r"bool array of shape \(2,\)"),
        ({"options": {"reset_mask": np.array([1, 0])}}, "bool array"),
        ({"options": {"reset_mask": np.array([False, False])}}, "with a True"),
        ({"options": {"reset_mask": np.array([True, False])}}, r"leaves out \[1\]"),
    ],
)
def test_wrong_resets_are_refused(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        make(2, levels=SHORT).reset(**kwargs)


def test_the_mode_stands_in_the_metadata_and_may_be_a_string():
    assert make(levels=SHORT).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    env = make(levels=SHORT, autoreset_mode="SameStep")
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
