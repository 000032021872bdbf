import json

import pytest

from arl_gym.core import SPLITS
from arl_gym.envs.alfworld.game import read_game
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import Settings
from arl_gym.envs.alfworld.house import House
from arl_gym.envs.alfworld.planner import plan
from arl_gym.envs.alfworld.scene import TASK_TYPES
from arl_gym.errors import UnknownNameError
from arl_gym.rng import digest

GAMES = GeneratedGames(Settings())


def test_splits_have_their_numbers_of_games():
    assert {split: len(GAMES.ids(split)) for split in SPLITS} == {
        "train": 4000,
        "val": 256,
        "test": 256,
        "test_ood": 256,
    }
    assert GAMES.ids("val")[7] == "val-000007"
    assert [GAMES.split_name(split) for split in SPLITS] == list(SPLITS)


def test_the_ids_of_the_task_types_divide_a_split():
    parts = {task_type: GAMES.ids("val", task_type) for task_type in TASK_TYPES}
    assert parts["look_at_obj_in_light"][:2] == ["val-000001", "val-000007"]
    assert [len(part) for part in parts.values()] == [43, 43, 43, 43, 42, 42]
    assert sorted(i for part in parts.values() for i in part) == list(GAMES.ids("val"))
    for task_type, part in parts.items():
        assert {GAMES.game(i).task_type for i in part} == {task_type}


def test_a_game_is_drawn_once_for_all_data_sets_of_its_settings():
    assert GAMES.game("test-000003") is GeneratedGames(Settings()).game("test-000003")
    small = GeneratedGames(Settings(num_objects=5))
    assert len(small.game("test-000003").objects) == 5


def test_a_game_answers_help_as_the_benchmark_s_do():
    house = House(GAMES.game("val-000000"))
    assert "help" in house.commands()
    assert house.act("help").startswith("Available commands:\n  look:")


def test_games_are_named_as_the_benchmark_names_its_folders():
    assert [GAMES.game_id(f"val-{i:06d}") for i in range(6)] == [
        "pick_and_place_simple-CellPhone-None-SideTable-generated_living/trial_val_000000",
        "look_at_obj_in_light-Newspaper-None-DeskLamp-generated_living/trial_val_000001",
        "pick_clean_then_place_in_recep-Potato-None-Fridge-generated_kitchen/trial_val_000002",
        "pick_heat_then_place_in_recep-Bread-None-CounterTop-generated_kitchen/trial_val_000003",
        "pick_cool_then_place_in_recep-Plate-None-CounterTop-generated_kitchen/trial_val_000004",
        "pick_two_obj_and_place-ToiletPaper-None-GarbageCan-generated_bathroom/trial_val_000005",
    ]


@pytest.mark.parametrize("settings", [Settings(), Settings(num_receptacles=4, num_objects=6)])
def test_the_file_of_a_game_reads_as_the_game(settings):
    games = GeneratedGames(settings)
    rooms = set()
    for split in SPLITS:
        for task_id in games.ids(split)[:60]:
            text = games.file_text(task_id)
            assert read_game(text).content_hash == games.game(task_id).content_hash
            assert json.loads(text)["solvable"] is True
            rooms.add((games.game(task_id).task_type, games.game_id(task_id).split("/")[0].split("_")[-1]))
    assert len(rooms) == 14  # every task type in every room that allows it


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: GAMES.split_name("dev"), "unknown split 'dev'"),
        (lambda: GAMES.ids("valid_seen"), "unknown split 'valid_seen'"),
        (lambda: GAMES.ids("val", "pick_and_place"), "unknown task type 'pick_and_place'.*did you mean"),
        (lambda: GAMES.game("val-000256"), "unknown task_id 'val-000256' in split 'val'"),
        (lambda: GAMES.game("val-7"), "unknown task_id 'val-7'"),
        (lambda: GAMES.game_id("nothing"), "unknown split ''"),
    ],
)
def test_names_that_are_unknown_are_refused(ask, says):
    with pytest.raises(UnknownNameError, match=says):
        ask()


def test_task_types_that_the_settings_lack_have_no_ids():
    games = GeneratedGames(Settings(task_types=("pick_two_obj_and_place",)))
    assert len(games.ids("train", "pick_two_obj_and_place")) == 4000
    with pytest.raises(UnknownNameError, match="unknown task type 'look_at_obj_in_light'"):
        games.ids("train", "look_at_obj_in_light")


def test_all_default_games_differ_are_solved_in_50_steps_and_are_the_same_everywhere():
    hashes = []
    for split in SPLITS:
        for task_id in GAMES.ids(split):
            house = House(GAMES.game(task_id))
            commands = plan(house)
            assert 0 < len(commands) <= 50
            won = [house.won for command in commands if house.act(command)]
            assert won == [False] * (len(commands) - 1) + [True], task_id
            hashes.append(house.content_hash)
    assert len(set(hashes)) == len(hashes) == 4000 + 3 * 256
    assert digest("".join(hashes)) == "78c30ef0e673a0b2"
