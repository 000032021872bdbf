import tomllib

import pytest

from arl_gym.cli import main
from arl_gym.cli.settings import preset
from arl_gym.train.methods import resolve


@pytest.mark.parametrize("command", ["train", "bc", "demo"])
def test_a_dry_run_is_a_file_that_gives_the_same_run(command, capsys):
    assert main([command, "--config", "webshop-qwen3-4b", "--dry-run", "--gpus", "4"]) == 0
    out = capsys.readouterr().out
    assert resolve(tomllib.loads(out)) == resolve(*preset("webshop-qwen3-4b"))
    assert "# a try plays 16 groups x 8 = 128 episodes; a step trains on 16 groups\n" in out
    assert "of 80 GiB: fits\n" in out


def test_conflicts_follow_the_configuration_and_fail(capsys):
    args = ["train", "--config", "sokoban-tiny", "--rollout.temperature", "0", "--rollout.group-size", "1"]
    assert main([*args, "--dry-run"]) == 1
    done = capsys.readouterr()
    assert tomllib.loads(done.out)["rollout"]["group_size"] == 1
    assert "# == conflicts\n# - rollout.temperature=0.0: expected more than 0\n" in done.out
    assert done.err == "arl-gym: the configuration cannot be run: its conflicts are listed above (2)\n"


def test_the_papers_presets_refuse_generated_data_unless_told(capsys):
    args = ["train", "--config", "webshop-qwen3-4b", "--gpus", "4", "--dry-run"]
    generated = ["--env", "dataset=generated"]
    assert main([*args, *generated]) == 1
    assert "# - env.kwargs.dataset='generated': paper=true" in capsys.readouterr().out
    assert main([*args, *generated, "--no-paper"]) == 0


@pytest.mark.parametrize("value", ["0", "many"])
def test_a_number_of_gpus_is_positive(value, capsys):
    assert main(["train", "--dry-run", "--gpus", value]) == 2
    assert "--gpus" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "workers"), [("2", 2), ("ray:16", "ray:16")])
def test_workers_of_a_run_are_processes_or_actors(text, workers, capsys):
    assert main(["train", "--config", "sokoban-tiny", "--env.workers", text, "--dry-run"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["env"]["workers"] == workers
