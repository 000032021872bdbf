"""The views of one board: text, grid, planes, image; and what the infos say of the outlook."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from arl_gym import check_text_env
from arl_gym.envs.sokoban.env import ObsMode, SokobanEnv
from arl_gym.envs.sokoban.rules import SYMBOLS
from arl_gym.envs.sokoban.tiles import tiles
from arl_gym.errors import ActionError, ConfigError, UnknownNameError

PUSH = "######\n#@$ .#\n#    #\n######"
SMALL, TALL = "#####\n#@$.#\n#####", "####\n#@ #\n#$ #\n#. #\n####"
MODES: tuple[ObsMode, ...] = ("text", "grid", "planes", "image", "both")


@pytest.mark.parametrize("obs_mode", MODES)
@pytest.mark.parametrize("action_mode", ["text", "discrete"])
def test_both_checks_pass_in_every_mode(obs_mode, action_mode):
    kwargs = {"obs_mode": obs_mode, "action_mode": action_mode, "num_tasks": 20}
    check_env(gym.make("ARL/Sokoban-v0", **kwargs).unwrapped)
    check_text_env(partial(gym.make, "ARL/Sokoban-v0", **kwargs), episodes=2)


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 99))
def test_every_view_shows_the_same_board(actions, task):
    envs = {mode: SokobanEnv(obs_mode=mode, action_mode="discrete", text_format="compact") for mode in MODES}
    options = {"task_id": f"train-{task:06d}"}
    seen = {mode: env.reset(options=options)[0] for mode, env in envs.items()}
    for action in [None, *actions]:
        if action is not None:
            results = {mode: env.step(action) for mode, env in envs.items()}
            seen = {mode: result[0] for mode, result in results.items()}
        rows = seen["text"].split("\n")
        assert seen["grid"].tolist() == [[SYMBOLS.index(symbol) for symbol in row] for row in rows]
        assert (seen["planes"].sum(axis=0) == 1).all()
        assert (seen["planes"].argmax(axis=0) == seen["grid"]).all()
        for (r, c), code in np.ndenumerate(seen["grid"]):
            tile = seen["image"][32 * r : 32 * r + 32, 32 * c : 32 * c + 32]
            assert (tile == tiles(32)[code]).all()
        assert seen["both"]["text"] == seen["text"]
        assert (seen["both"]["image"] == seen["image"]).all()
        if action is not None and results["text"][2]:
            break


@pytest.mark.parametrize(
    ("tile_size", "shape"), [(16, (96, 96, 3)), (28, (168, 168, 3)), (32, (192, 192, 3))]
)
def test_the_image_has_the_size_of_its_tiles(tile_size, shape):
    env = SokobanEnv(obs_mode="image", tile_size=tile_size, render_mode="rgb_array")
    obs, _ = env.reset(seed=0)
    assert obs.shape == env.observation_space.shape == shape
    assert (env.render() == obs).all()


def test_boards_of_different_sizes_get_walls_right_and_below():
    env = SokobanEnv(levels=[SMALL, TALL], obs_mode="grid")
    assert env.observation_space.shape == (5, 5)
    small, _ = env.reset(options={"task_id": "level:0"})
    assert small.tolist() == [[0] * 5, [0, 5, 4, 2, 0], [0] * 5, [0] * 5, [0] * 5]
    tall, _ = env.reset(options={"task_id": "level:1"})
    assert tall[:, 1].tolist() == [0, 5, 4, 2, 0]
    assert not tall[:, 4].any()


def test_actions_are_numbers_for_grid_and_planes_and_words_for_the_others():
    spaces = {mode: type(SokobanEnv(obs_mode=mode).action_space).__name__ for mode in MODES}
    assert spaces == {
        "text": "Unicode",
        "grid": "Discrete",
        "planes": "Discrete",
        "image": "Unicode",
        "both": "Unicode",
    }
    env = SokobanEnv(levels=PUSH, obs_mode="image", action_mode="discrete")
    env.reset()
    with pytest.raises(ActionError):
        env.step("right")
    assert env.step(3)[4]["action_effective"] is True


@pytest.mark.parametrize(
    ("kwargs", "name"),
    [
        ({"obs_mode": "grid"}, "SokobanVectorEnv"),
        ({"obs_mode": "planes"}, "SokobanVectorEnv"),
        ({"obs_mode": "image", "action_mode": "discrete"}, "SokobanVectorEnv"),
        ({"obs_mode": "image"}, "TextVectorEnv"),
        ({"obs_mode": "grid", "action_mode": "text"}, "TextVectorEnv"),
        ({}, "TextVectorEnv"),
    ],
)
def test_make_vec_steps_arrays_together_where_it_can(kwargs, name):
    vec = gym.make_vec("ARL/Sokoban-v0", num_envs=2, num_tasks=4, **kwargs)
    assert type(vec).__name__ == name
    vec.close()


def test_make_vec_names_an_unknown_argument():
    with pytest.raises(UnknownNameError, match="did you mean 'copy'"):
        gym.make_vec("ARL/Sokoban-v0", num_envs=2, obs_mode="grid", kopy=False)


# ---- step limits and tasks


def test_the_limit_is_15_or_one_and_a_half_times_the_optimum():
    long = "#" * 16 + "\n#@$" + " " * 11 + ".#\n" + "#" * 16
    env = SokobanEnv(levels=[PUSH, long])
    for task_id, optimum, limit in (("level:0", 2, 15), ("level:1", 12, 18)):
        _, info = env.reset(options={"task_id": task_id})
        assert (info["optimal_moves"], info["max_steps"]) == (optimum, limit)
    n, truncated = 0, False
    while not truncated:
        truncated = env.step("up")[3]
        n += 1
    assert n == 18


def test_a_level_that_the_solver_gives_up_has_200_steps_and_optimum_0():
    env = SokobanEnv(levels=["#######\n#     #\n# $ $ #\n#. @ .#\n#######"], max_nodes=1)
    _, info = env.reset()
    assert (info["optimal_moves"], info["max_steps"]) == (0, 200)


def test_a_limit_that_is_given_holds_for_every_room():
    _, info = SokobanEnv(levels=PUSH, max_steps=7).reset()
    assert info["max_steps"] == 7
    with pytest.raises(ConfigError, match="max_steps"):
        SokobanEnv(optimal=(3, 10), max_steps=9)
    env = SokobanEnv(max_steps=5)
    for task_id in env.task_ids()[:20]:
        _, info = env.reset(options={"task_id": task_id})
        assert 3 <= info["optimal_moves"] <= 5


def test_num_tasks_takes_the_first_tasks_of_the_split():
    env = SokobanEnv(num_tasks=3)
    assert list(env.task_ids()) == ["train-000000", "train-000001", "train-000002"]
    assert {env.reset(seed=seed)[1]["task_id"] for seed in range(40)} == set(env.task_ids())
    with pytest.raises(UnknownNameError, match="train-000003"):
        env.reset(options={"task_id": "train-000003"})
    with pytest.raises(ConfigError, match="num_tasks must be at least 1"):
        SokobanEnv(num_tasks=0)


# ---- the outlook


def outlook(board, *actions, **kwargs):
    env = SokobanEnv(levels=board, **kwargs)
    _, info = env.reset()
    for action in actions:
        *_, info = env.step(action)
    return info["deadlock"], info["moves_left"]


def test_moves_left_count_down_along_a_solution_and_up_away_from_it():
    env = SokobanEnv(levels=PUSH)
    _, info = env.reset()
    assert (info["deadlock"], info["moves_left"]) == ("none", 2)
    assert env.step("down")[4]["moves_left"] == 3
    assert env.step("up")[4]["moves_left"] == 2
    assert env.step("right")[4]["moves_left"] == 1
    assert env.step("right")[4]["moves_left"] == 0


def test_a_box_in_a_corner_is_a_dead_square():
    assert outlook("#####\n#   #\n# $ #\n#@.##\n#####", "right", "up") == ("dead_square", -1)


def test_two_boxes_that_hold_each_other_at_a_wall_freeze():
    board = "########\n#.    .#\n# $ $  #\n#      #\n#  @   #\n########"
    # One box up to the wall, the other one left and up beside it.
    actions = ["left", "up", "up", "down", "right", "right", "right", "up", "left", "down", "left"]
    assert outlook(board, *actions) == ("unknown", -1)
    assert outlook(board, *actions, exact_states=10_000)[0] == "none"
    assert outlook(board, *actions, "up") == ("freeze", -1)
    assert outlook(board, *actions, "up", exact_states=10_000) == ("freeze", -1)


def test_a_loss_that_no_simple_test_sees_is_exact_where_the_room_is_small_enough():
    # The box can come back only if somebody stands in the doorway, and it bars the way there.
    board = "########\n#   #  #\n#.$@   #\n#   #  #\n########"
    around = ("up", "left", "left", "down")
    assert outlook(board) == ("none", 1)
    assert outlook(board, *around) == ("none", 5)
    assert outlook(board, *around, "right") == ("exact", -1)
    assert outlook(board, *around, "right", exact_states=255) == ("unknown", -1)


def test_without_a_table_nothing_is_excluded():
    assert outlook(PUSH, exact_states=0) == ("unknown", -1)
    assert outlook(PUSH, "right", exact_states=0) == ("unknown", -1)
