import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import arl_gym  # noqa: F401 - registers the ids
from arl_gym.core import INFO_TYPES, SPLITS
from arl_gym.envs.sokoban.env import SokobanEnv
from arl_gym.errors import ActionError, ConfigError, DataError, EpisodeOverError, UnknownNameError

PUSH = "######\n#@$ .#\n#    #\n######"


def start(board, **kwargs):
    env = SokobanEnv(levels=[board], text_format="compact", **kwargs)
    env.reset()
    return env


def rewards(env, *actions):
    return [env.step(action)[1] for action in actions]


def test_gymnasium_s_own_check_passes():
    check_env(gym.make("ARL/Sokoban-v0").unwrapped)
    check_env(gym.make("ARL/Sokoban-v0", action_mode="discrete").unwrapped)


def test_a_spec_survives_json():
    spec = gym.make("ARL/Sokoban-v0", dim_room=(7, 6), optimal=(4, 9)).spec
    assert spec is not None
    again = gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))
    first = gym.make(spec)
    assert again.reset(seed=1)[0] == first.reset(seed=1)[0]


# ---- rewards


def test_the_solving_step_gives_10_9_and_ends_the_episode():
    env = start(PUSH)
    assert env.step("right")[1:4] == (-0.1, False, False)
    obs, reward, terminated, truncated, info = env.step("right")
    assert obs == "######\n#__P√#\n#____#\n######"
    assert (reward, terminated, truncated) == (10.9, True, False)
    assert info["success"] is True
    assert (info["score"], info["boxes_on_target"]) == (1.0, 1)
    with pytest.raises(EpisodeOverError):
        env.step("left")


def test_blocked_moves_and_garbage_cost_a_step_and_only_garbage_is_invalid():
    env = start(PUSH)
    for action, valid in [
        ("up", True),
        ("", False),
        ("still", False),
        ("go up", False),
        ("not up, left", False),
    ]:
        obs, reward, *_, info = env.step(action)
        assert (reward, info["action_valid"], info["action_effective"]) == (-0.1, valid, False)
        assert obs.split("\n")[1] == "#PX_O#"


def test_blanks_and_letter_case_around_an_action_do_not_matter():
    env = start(PUSH)
    *_, info = env.step("  DOWN\n")
    assert info["action_valid"] is True
    assert info["action_effective"] is True


def test_a_box_pushed_off_its_target_costs_one():
    # Off the target, and after a walk around it back on: -1.1, then +0.9 (the other box is still off).
    env = start("########\n#      #\n#@*  $.#\n#      #\n########")
    assert rewards(env, "right") == [-1.1]
    assert rewards(env, "up", "right", "right", "down", "left") == [-0.1, -0.1, -0.1, -0.1, 0.9]


def test_a_level_that_starts_with_a_box_on_target_gives_no_false_bonus():
    env = start("########\n#@ *  ##\n#  $ . #\n########")
    assert rewards(env, "right", "left") == [-0.1, -0.1]
    _, info = env.reset()
    assert (info["boxes_on_target"], info["score"]) == (1, 0.5)


def test_a_box_from_one_target_to_the_next_changes_nothing():
    env = start("########\n#@*. $ #\n#      #\n########")
    assert rewards(env, "right") == [-0.1]


def test_a_room_solved_in_n_moves_returns_11_minus_a_tenth_of_n():
    env = SokobanEnv()
    for seed in range(20):
        _, info = env.reset(seed=seed)
        total, done = 0.0, False
        while not done:
            _, reward, done, _, info = env.step(env.expert_action())
            total += reward
        assert total == pytest.approx(11 - 0.1 * info["optimal_moves"])


def test_truncated_at_max_steps_but_not_when_the_last_step_solves():
    env = start(PUSH, max_steps=2)
    assert env.step("nothing")[3] is False
    assert env.step("nothing")[2:4] == (False, True)
    env.reset()
    env.step("right")
    assert env.step("right")[2:4] == (True, False)


# ---- observations and actions


def test_spaced_compact_and_inner_show_the_same_board():
    seen = {f: SokobanEnv(levels=[PUSH], text_format=f).reset()[0] for f in ("spaced", "compact", "inner")}
    assert seen["compact"] == "######\n#PX_O#\n#____#\n######"
    assert seen["inner"] == "PX_O\n____"
    assert seen["spaced"].split("\n")[1] == " # \t P \t X \t _ \t O \t # \t"
    assert seen["spaced"].replace(" ", "").replace("\t", "") == seen["compact"]


def test_discrete_actions_are_up_down_left_right():
    env = SokobanEnv(
        levels=["#####\n#   #\n# @ #\n# $ #\n# . #\n#####"], action_mode="discrete", text_format="inner"
    )
    after = {}
    for i, name in enumerate(("up", "down", "left", "right")):
        env.reset()
        after[name] = env.step(np.int64(i))[0].split("\n")
    assert after["up"] == ["_P_", "___", "_X_", "_O_"]
    assert after["down"] == ["___", "___", "_P_", "_√_"]
    assert after["left"] == ["___", "P__", "_X_", "_O_"]
    assert after["right"] == ["___", "__P", "_X_", "_O_"]
    env.reset()
    for bad in ("up", 4, -1, None):
        with pytest.raises(ActionError, match="0 to 3"):
            env.step(bad)
    with pytest.raises(ActionError):
        start(PUSH).step(1)


def test_render_modes():
    assert start(PUSH, render_mode="ansi").render() == "######\n#PX_O#\n#____#\n######"
    image = start(PUSH, render_mode="rgb_array").render()
    assert image.dtype == np.uint8
    assert image.shape[2] == 3


# ---- infos, snapshots


@pytest.mark.parametrize("split", SPLITS)
def test_infos_have_their_types_on_reset_and_step(split):
    env = SokobanEnv(split=split)
    counts = ("optimal_moves", "moves_left", "boxes_on_target", "max_steps")
    types = INFO_TYPES | dict.fromkeys(counts, int) | {"deadlock": str, "action_effective": bool}
    _, info = env.reset(seed=2)
    for _ in range(3):
        assert {key: type(value) for key, value in info.items()} == types
        assert info["dataset"] == "generated"
        assert info["split"] == split
        assert info["task_id"].startswith(split + "-")
        *_, info = env.step("left")


def test_state_key_is_the_board_and_content_hash_the_room():
    env = start(PUSH)
    _, first = env.reset()
    *_, moved = env.step("down")
    *_, back = env.step("up")
    assert moved["state_key"] != first["state_key"] == back["state_key"]
    assert moved["content_hash"] == first["content_hash"]
    mirrored = SokobanEnv(levels=["######\n#. $@#\n#    #\n######"])
    _, other = mirrored.reset()
    assert other["content_hash"] == first["content_hash"]
    assert other["state_key"] != first["state_key"]


def test_a_task_id_is_one_room_whatever_came_before():
    env = SokobanEnv()
    first, _ = env.reset(options={"task_id": "train-000123"})
    env.reset(seed=9)
    again, info = env.reset(options={"task_id": "train-000123"})
    assert first == again == SokobanEnv().reset(seed=4, options={"task_id": "train-000123"})[0]
    assert info["task_id"] == "train-000123"
    with pytest.raises(UnknownNameError, match="task_id 'val-000001'"):
        env.reset(options={"task_id": "val-000001"})


@given(st.lists(st.sampled_from(["up", "down", "left", "right", "?"]), max_size=10))
def test_a_snapshot_survives_json_and_is_replayed(actions):
    env = SokobanEnv(levels=[PUSH], max_steps=11)
    env.reset()
    for action in actions:
        if env.step(action)[2]:
            break
    other = SokobanEnv(levels=[PUSH], max_steps=11)
    obs, info = other.set_state(json.loads(json.dumps(env.get_state())))
    assert obs == env._observation()
    assert info == env._info()


def test_a_discrete_snapshot_survives_json():
    env = SokobanEnv(action_mode="discrete")
    env.reset(seed=1)
    obs = env.step(np.int64(2))[0]
    assert SokobanEnv(action_mode="discrete").set_state(json.loads(json.dumps(env.get_state())))[0] == obs


# ---- the expert


@pytest.mark.parametrize("split", SPLITS)
def test_the_expert_solves_64_rooms_in_exactly_the_optimum(split):
    env = SokobanEnv(split=split)
    for task_id in env.task_ids()[:64]:
        _, info = env.reset(options={"task_id": task_id})
        n, done = 0, False
        while not done:
            thought, action = env.expert_thought(), env.expert_action()
            boxes = env._boxes
            _, _, done, truncated, _ = env.step(action)
            assert not truncated
            assert f" {action}" in thought
            assert ("I push it" in thought) == (env._boxes != boxes)
            n += 1
        assert n == info["optimal_moves"]


def test_the_expert_recovers_after_other_moves():
    env = start("#######\n#     #\n# $ . #\n#@    #\n#######")
    _, info = env.reset()
    assert info["optimal_moves"] == 3
    for action in ("right", "right", "right", "garbage", "up"):
        env.expert_action()
        env.step(action)
    moves = []
    while env._running:
        moves.append(env.expert_action())
        env.step(moves[-1])
    # From right of the box, over or under it, to its left side.
    assert len(moves) == 7
    assert env._success()


def test_the_expert_of_a_lost_game_still_moves():
    env = start("#####\n#   #\n#@$.#\n#   #\n#####")
    for action in ("down", "right", "up", "left"):  # the box goes up to the wall: lost
        env.step(action)
    assert "no way" in env.expert_thought()
    assert env.step(env.expert_action())[4]["action_effective"] is True


# ---- levels


def test_levels_have_ids_and_a_dataset_of_their_own():
    env = SokobanEnv(levels=[PUSH, "#####\n#.$@#\n#####"], split="val")
    assert list(env.task_ids()) == ["level:0", "level:1"]
    _, info = env.reset(options={"task_id": "level:1"})
    assert (info["dataset"], info["split"], info["optimal_moves"]) == ("levels", "val", 1)


def test_a_range_keeps_the_levels_that_need_so_many_moves():
    one, two = "#####\n#@$.#\n#####", PUSH
    assert list(SokobanEnv(levels=[one, two], optimal=(2, 5)).task_ids()) == ["level:1"]
    assert list(SokobanEnv(levels=[one, two], optimal=[1, 2]).task_ids()) == ["level:0", "level:1"]
    with pytest.raises(ConfigError, match="none of the 2 levels is solved in 8 to 9 moves"):
        SokobanEnv(levels=[one, two], optimal=(8, 9))


def test_an_unsolvable_level_is_refused_at_its_first_reset_with_its_place(tmp_path):
    path = tmp_path / "set.txt"
    path.write_text("; 0\n########\n#@$$.. #\n########\n")
    env = SokobanEnv(levels=str(path))
    with pytest.raises(DataError, match=r"set\.txt, level 0 \(line 2\): the level has no solution"):
        env.reset()


def test_real_levels_are_chosen_by_optimum(real_levels):
    file = real_levels / "boxoban" / "unfiltered_valid_000_first200.txt"
    env = SokobanEnv(levels=file, optimal=(3, 12))
    # The rows of optimal.csv with 3 <= optimal_moves <= 12.
    assert list(env.task_ids()) == [f"{file.stem}:{i}" for i in (32, 38, 47, 48, 176)]
    for task_id, optimum in zip(env.task_ids(), (11, 7, 10, 11, 12), strict=True):
        _, info = env.reset(options={"task_id": task_id})
        assert info["optimal_moves"] == optimum


# ---- bad settings


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"split": "valid"}, "split 'valid'.*did you mean 'val'"),
        ({"text_format": "spacd"}, "text_format 'spacd'.*did you mean 'spaced'"),
        ({"action_mode": "int"}, "action_mode 'int'"),
        ({"dim_room": 6}, "dim_room must be two whole numbers, got 6"),
        ({"dim_room": (6, 6, 6)}, "dim_room must be two"),
        ({"dim_room": (6.0, 6)}, r"dim_room must be a whole number, got 6\.0"),
        ({"num_boxes": True}, "num_boxes must be a whole number"),
        ({"optimal": (10, 3)}, "lo <= hi"),
        ({"optimal": (90, 99)}, "found no room"),
        ({"levels": [PUSH], "optimal": (0, 3)}, "1 <= lo"),
        ({"max_steps": 0}, "max_steps"),
        ({"render_mode": "text"}, "render_mode 'text'"),
    ],
)
def test_bad_settings_are_refused(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        SokobanEnv(**kwargs)
