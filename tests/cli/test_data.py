import pytest

from arl_gym.cli import main
from arl_gym.envs.alfworld import original
from arl_gym.envs.alfworld.scene import TASK_TYPES
from tests.envs.alfworld.trees import folder_name, record, write_game, write_tree

SIMPLE = "pick_and_place_simple"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARL_GYM_CACHE", str(tmp_path / "cache"))


def publish(monkeypatch, **games_per_type: int) -> None:
    published = {split: dict.fromkeys(TASK_TYPES, n) for split, n in games_per_type.items()}
    monkeypatch.setattr(original, "PUBLISHED", published)
    monkeypatch.setattr("arl_gym.cli.data.PUBLISHED", published)


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
        (["chek", "alfworld"], "did you mean 'check'"),
        (["check", "alfwold", "x"], "did you mean 'alfworld'"),
        ([], "required: action, dataset"),
        (["check", "alfworld"], "required: DIR"),
    ],
)
def test_bad_usage_exits_2_and_names_what_is_near(args, says, capsys):
    assert main(["data", *args]) == 2
    assert says in capsys.readouterr().err


def test_help_lists_the_actions(capsys):
    assert main(["data", "--help"]) == 0
    assert "\n  arl-gym data check alfworld …\n" in capsys.readouterr().out
