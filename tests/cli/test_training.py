import json
import os
import re
import signal
import subprocess
import sys
from functools import partial

import pytest

from arl_gym.agents.records import read_trajectories
from arl_gym.cli import main
from arl_gym.cli.settings import preset, read_config
from arl_gym.errors import UnknownNameError
from arl_gym.train.methods import METHODS

TRAINING = ["demo", "tiny-model", "collect", "bc", "train", "methods", "plot", "show"]
TINY = [
    *("--config", "sokoban-tiny", "--steps", "1", "--rollout.groups", "2", "--rollout.group-size", "2"),
    *("--filter.max-tries", "1", "--clone.episodes", "4", "--clone.val-episodes", "2", "--clone.steps", "1"),
]


@pytest.mark.parametrize("name", TRAINING)
def test_every_command_explains_itself(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"arl-gym {name}" in capsys.readouterr().out


def config(*args):
    return read_config("train", "", args)[0]


def test_the_command_line_beats_the_file_and_the_file_beats_the_method(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('method = "GSPO"\n[loss]\nclip_low = 0.5\n')
    cfg = config("--config", str(file), "--loss.clip-high", "0.7")
    assert (cfg.method, cfg.loss.clip_low, cfg.loss.clip_high) == ("GSPO", 0.5, 0.7)
    assert cfg.advantage.step_weight == METHODS["GSPO"].settings["advantage"]["step_weight"]


def test_a_method_given_on_the_command_line_brings_its_own_dials(tmp_path):
    cfg = config("--config", "sokoban-tiny", "--method", "grpo", "--loss.clip-low", "0.1")
    assert (cfg.method, cfg.loss.ratio_level) == ("GRPO", "token")
    assert (cfg.loss.clip_low, cfg.loss.clip_high) == (0.1, 0.2)
    assert not cfg.filter.enable
    assert cfg.rollout.groups == config("--config", "sokoban-tiny").rollout.groups


def test_model_is_short_for_the_model_path():
    assert config("--model", "some/folder").model.path == "some/folder"


def test_env_kwargs_survive_the_command_line():
    assert config("--config", "sokoban-tiny").env.kwargs == {"text_format": "inner"}


def test_env_options_add_to_the_kwargs_of_the_file():
    cfg = config("--config", "sokoban-tiny", "--env", "num_boxes=2", "--env", "dim_room=[7, 7]")
    assert cfg.env.kwargs == {"text_format": "inner", "num_boxes": 2, "dim_room": [7, 7]}


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'sokoban-tiny'"):
        preset("sokoban-tinny")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["train", "--config", "nope"], 1, "unknown preset 'nope'"),
        (["train", "--config", "nope.toml"], 1, "cannot read the configuration nope.toml"),
        (["train", "--method", "SAMPOO"], 1, "did you mean 'SAMPO'"),
        (["train", "--loss.clip-lo", "1"], 2, "clip-lo"),
        (["train", "--steps", "many"], 2, "many"),
        (["tiny-model"], 2, "folder"),
        (["collect"], 2, "--out"),
        (["show", "nothing"], 1, "no run folder"),
        (["plot", "nothing"], 1, "no run folder"),
    ],
)
def test_bad_usage_is_one_clear_error(args, code, message, capsys):
    assert main(args) == code
    out = capsys.readouterr()
    assert message in re.sub(r"\s+", " ", out.err + out.out)


def test_unknown_keys_in_a_file_name_the_nearest(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text("[loss]\nclip_lo = 0.5\n")
    assert main(["train", "--config", str(file)]) == 1
    err = capsys.readouterr().err
    assert "did you mean 'clip_low'" in err
    assert str(file) in err


def test_a_dry_run_prints_the_whole_configuration_and_writes_nothing(tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", *TINY, "--run-dir", str(run), "--dry-run"]) == 0
    assert "clip_low = 0.03" in capsys.readouterr().out
    assert not run.exists()


def test_a_model_is_made_cloned_trained_evaluated_and_shown(tmp_path, capsys):
    start, cloned, trained = (str(tmp_path / name) for name in ("start", "cloned", "trained"))
    assert main(["tiny-model", start, "--seed", "3"]) == 0
    assert main(["tiny-model", start]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["bc", *TINY, "--model", start, "--run-dir", cloned]) == 0
    assert main(["train", *TINY, "--model", f"{cloned}/model", "--run-dir", trained]) == 0
    capsys.readouterr()
    assert main(["show", trained]) == 0
    assert "rollout/return_mean" in capsys.readouterr().out
    assert main(["plot", cloned, trained, "--out", str(tmp_path / "both.html")]) == 0
    assert main(["plot", trained]) == 0
    env = ["--window", "0", "--prompt", "compact", "--env", "text_format=inner", "--max-tokens", "8"]
    assert main(["eval", "ARL/Sokoban-v0", "--model", f"{trained}/model", "--episodes", "4", *env]) == 0
    assert "success rate" in capsys.readouterr().out
    assert main(["train", *TINY, "--run-dir", trained]) == 1
    assert "not empty" in capsys.readouterr().err


def test_a_tiny_vision_model_plays_by_its_pictures(tmp_path, capsys):
    model = str(tmp_path / "eyes")
    assert main(["tiny-model", model, "--vision"]) == 0
    env = ["--window", "1", "--env", "obs_mode=image", "--env", "tile_size=16", "--max-tokens", "4"]
    assert main(["eval", "ARL/Sokoban-v0", "--model", model, "--episodes", "2", *env]) == 0
    assert "success rate" in capsys.readouterr().out


def test_ctrl_c_ends_a_run_with_one_line_even_without_a_writable_home(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")} | {"HOME": "/proc/no-home"}
    many = [*TINY, "--steps", "100000", "--run-dir", str(tmp_path / "run")]
    with subprocess.Popen(
        [sys.executable, "-m", "arl_gym.cli", "train", *many],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        # Tests that run in the background of a script inherit that it is ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("step 1/100000")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.splitlines()[-1] == "arl-gym: interrupted"
    assert "Traceback" not in err
    rows = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert json.loads(rows.splitlines()[0])["step"] == 1
    assert not (tmp_path / "run" / "model").exists()


def test_demonstrations_are_recorded(tmp_path):
    out = tmp_path / "demonstrations.jsonl.gz"
    assert main(["collect", *TINY, "--split", "val", "--out", str(out)]) == 0
    played = read_trajectories(out)
    assert len(played) == 4
    assert all(t.success and t.split == "val" for t in played)


def test_methods_prints_every_method(capsys):
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in METHODS)
