import json

import pytest

from arl_gym.assets import asset
from arl_gym.envs.alfworld.export import export_games, game_file
from arl_gym.envs.alfworld.game import read_game
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import Settings, draw
from arl_gym.errors import ConfigError, DataError, UnknownNameError

GAMES = GeneratedGames(Settings())


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_game_file_has_the_benchmark_s_parts():
    drawn = draw(Settings(), "val", 2)
    record = json.loads(game_file(drawn, ["look", "inventory"]))
    assert list(record) == ["pddl_domain", "grammar", "pddl_problem", "solvable", "walkthrough"]
    assert record["pddl_domain"] == asset("alfworld/alfred.pddl").read_text()
    assert f'"rhs": "Your task is to: {drawn.task}"' in record["grammar"]
    assert "UNKNOWN" not in record["grammar"]
    assert record["walkthrough"] == ["look", "inventory"]
    assert json.loads(game_file(drawn))["walkthrough"] is None


@pytest.mark.parametrize(
    ("split", "named"),
    [("train", "train"), ("val", "valid_seen"), ("test_ood", "valid_unseen"), ("test", "test")],
)
def test_splits_go_to_the_benchmark_s_folders(tmp_path, split, named):
    calls = []
    assert export_games(GAMES, split, tmp_path, 2, progress=lambda *done: calls.append(done)) == 2
    assert calls == [(1, 2), (2, 2)]
    assert files(tmp_path) == sorted(
        f"json_2.1.1/{named}/{GAMES.game_id(task_id)}/{name}"
        for task_id in GAMES.ids(split)[:2]
        for name in ("game.tw-pddl", "traj_data.json")
    )


def test_a_whole_split_is_written_and_reads_as_its_games(tmp_path):
    assert export_games(GAMES, "val", tmp_path) == 256
    root = tmp_path / "json_2.1.1" / "valid_seen"
    assert len(files(root)) == 512
    for task_id in GAMES.ids("val")[::20]:
        game = read_game((root / GAMES.game_id(task_id) / "game.tw-pddl").read_text())
        assert game.content_hash == GAMES.game(task_id).content_hash


def test_what_lies_beside_a_game_says_what_it_asks_for(tmp_path):
    export_games(GAMES, "val", tmp_path, 2)
    place, look = (
        json.loads(
            (tmp_path / "json_2.1.1/valid_seen" / GAMES.game_id(task_id) / "traj_data.json").read_text()
        )
        for task_id in GAMES.ids("val")[:2]
    )
    assert place == {
        "task_type": "pick_and_place_simple",
        "task_id": "trial_val_000000",
        "pddl_params": {
            "object_target": "CellPhone",
            "parent_target": "SideTable",
            "toggle_target": "",
            "mrecep_target": "",
            "object_sliced": False,
        },
        "scene": {"scene_num": 200, "floor_plan": "generated_living"},
        "turk_annotations": {"anns": []},
        "generated_by": "arl_gym",
    }
    assert look["pddl_params"] == {
        "object_target": "Newspaper",
        "parent_target": "",
        "toggle_target": "DeskLamp",
        "mrecep_target": "",
        "object_sliced": False,
    }


def test_writing_again_gives_the_same_files(tmp_path):
    export_games(GAMES, "val", tmp_path, 2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    export_games(GAMES, "val", tmp_path, 2)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == before


@pytest.mark.parametrize("beside", [None, "{}", "[]", "no JSON", '{"task_type": "pick_and_place_simple"}'])
def test_a_folder_with_another_s_game_is_left_alone(tmp_path, beside):
    folder = tmp_path / "json_2.1.1" / "valid_seen" / GAMES.game_id("val-000000")
    folder.mkdir(parents=True)
    (folder / "game.tw-pddl").write_text("theirs")
    if beside is not None:
        (folder / "traj_data.json").write_text(beside)
    with pytest.raises(DataError, match="has no generated game"):
        export_games(GAMES, "val", tmp_path, 1)
    assert (folder / "game.tw-pddl").read_text() == "theirs"


def test_what_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="unknown split 'dev'"):
        export_games(GAMES, "dev", tmp_path)
    with pytest.raises(ConfigError, match="n >= 1, got 0"):
        export_games(GAMES, "val", tmp_path, 0)
    assert files(tmp_path) == []
