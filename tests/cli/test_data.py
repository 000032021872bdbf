import pytest

from arl_gym.cli import data, main
from arl_gym.envs.alfworld import original
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import Settings
from arl_gym.envs.alfworld.scene import TASK_TYPES
from tests.envs.alfworld.trees import folder_name, record, write_game, write_tree

SIMPLE = "pick_and_place_simple"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))


def publish(monkeypatch, **games_per_type: int) -> None:
    published = {split: dict.fromkeys(TASK_TYPES, n) for split, n in games_per_type.items()}
    monkeypatch.setattr(original, "PUBLISHED", published)
    monkeypatch.setattr(data, "PUBLISHED", published)


def test_data_that_are_as_published_exit_0(monkeypatch, tmp_path, capsys):
    publish(monkeypatch, train=1, valid_seen=1)
    write_tree(tmp_path, per_type=1, splits=("train", "valid_seen"))
    assert main(["data", "check", "alfworld", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert f"  {'look_at_obj_in_light':<30}     1          1\n" in shown.out
    assert f"  {'all':<30}     6          6\n" in shown.out
    assert shown.err == ""


def test_a_difference_is_marked_and_exits_1(tmp_path, capsys):
    split = write_tree(tmp_path) / "valid_seen"
    write_game(split, SIMPLE, "trial_bad", game=None)
    write_game(split, SIMPLE, "trial_again", game=record(SIMPLE))
    assert main(["data", "check", "alfworld", str(tmp_path / "json_2.1.1")]) == 1
    shown = capsys.readouterr()
    assert f"  {SIMPLE:<30}     3         35  -32\n" in shown.out
    assert f"left out 1: no game.tw-pddl, e.g. {folder_name(SIMPLE)}/trial_bad\n" in shown.out
    assert "  1 games show and do the same as an earlier one\n" in shown.out
    (last,) = shown.err.splitlines()
    assert "valid_seen has 13 games, 140 are published" in last


def test_other_types_than_published_exit_1(monkeypatch, tmp_path, capsys):
    publish(monkeypatch, valid_seen=1)
    root = write_tree(tmp_path, per_type=1)
    (root / "valid_seen" / folder_name(SIMPLE) / "trial_T0" / "game.tw-pddl").unlink()
    write_game(
        root / "valid_seen",
        "look_at_obj_in_light",
        "trial_T1",
        game=record("look_at_obj_in_light", mugs=5),
    )
    assert main(["data", "check", "alfworld", str(tmp_path)]) == 1
    assert (
        capsys.readouterr().err
        == "arl-gym: valid_seen has as many games as published, but not of each type\n"
    )


def test_generated_games_are_never_the_benchmark(monkeypatch, tmp_path, capsys):
    publish(monkeypatch, valid_seen=1)
    root = write_tree(tmp_path, per_type=1)
    task = root / "valid_seen" / folder_name(SIMPLE) / "trial_T0" / "traj_data.json"
    task.write_text('{"task_type": "pick_and_place_simple", "generated_by": "arl_gym"}')
    assert main(["data", "check", "alfworld", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "arl-gym: 1 of the games are generated: never comparable with the benchmark\n"
    )


def test_games_with_unknown_rules_are_counted_and_named(tmp_path, capsys):
    split = write_tree(tmp_path, per_type=1) / "valid_seen"
    new = record(SIMPLE)
    new["grammar"] = new["grammar"].replace("You arrive at", "You walk to")
    write_game(split, SIMPLE, "trial_new", game=new)
    assert main(["data", "check", "alfworld", str(tmp_path)]) == 1
    assert '  1 games have unknown rules: they need engine="textworld"\n' in capsys.readouterr().out


def test_a_folder_without_games_exits_1(tmp_path, capsys):
    assert main(["data", "check", "alfworld", str(tmp_path)]) == 1
    assert "alfworld-download" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["checks", "alfworld"], "did you mean 'check'"),
        (["check", "alfwold", "x"], "did you mean 'alfworld'"),
        ([], "required: action, dataset"),
        (["check", "alfworld"], "required: DIR"),
        (["export", "alfworld", "x", "--split", "vall"], "did you mean 'val'"),
        (["export", "alfworld", "x", "--games", "0"], "must be at least 1"),
    ],
)
def test_bad_usage_exits_2_and_names_what_is_near(args, says, capsys):
    assert main(["data", *args]) == 2
    assert says in capsys.readouterr().err


def test_help_lists_the_actions(capsys):
    assert main(["data", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "\n  arl-gym data check alfworld …\n  arl-gym data export alfworld …\n" in shown


def test_exported_games_are_read_as_real_ones_and_known_as_generated(tmp_path, capsys):
    assert main(["data", "export", "alfworld", str(tmp_path), "--split", "val", "--games", "12"]) == 0
    assert capsys.readouterr().out.startswith("12 games of val ")
    games, drawn = original.OriginalGames(tmp_path), GeneratedGames(Settings())
    assert {games.game_id(task_id) for task_id in games.ids("val")} == {
        drawn.game_id(task_id) for task_id in drawn.ids("val")[:12]
    }
    assert {games.game(task_id).content_hash for task_id in games.ids("val")} == {
        drawn.game(task_id).content_hash for task_id in drawn.ids("val")[:12]
    }
    report = games.report().splits["valid_seen"]
    assert (report.types, report.skipped) == (dict.fromkeys(TASK_TYPES, 2), {})
    assert main(["data", "check", "alfworld", str(tmp_path)]) == 1
    assert "arl-gym: 12 of the games are generated: never comparable" in capsys.readouterr().err
