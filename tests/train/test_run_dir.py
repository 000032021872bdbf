import subprocess
import sys
from typing import Any

import pytest

from arl_gym.errors import ConfigError
from arl_gym.train.methods import resolve
from arl_gym.train.run_dir import open_run_dir

HOLD = """
import sys
from arl_gym.train.methods import resolve
from arl_gym.train.run_dir import open_run_dir
run = open_run_dir(resolve({"run_dir": sys.argv[1]}), resume=True)
print("held", flush=True)
sys.stdin.read()
"""


def cfg(folder, **changes):
    return resolve({"run_dir": str(folder), **changes})


def test_a_new_folder_gets_the_configuration(tmp_path):
    with open_run_dir(cfg(tmp_path / "run", seed=3)) as run:
        assert not run.resumed
        assert "seed = 3" in (tmp_path / "run" / "config.toml").read_text()


def test_a_used_folder_is_refused_unless_the_run_is_resumed(tmp_path):
    open_run_dir(cfg(tmp_path / "run")).close()
    with pytest.raises(ConfigError, match="not empty: choose another run_dir, or go on with --resume auto"):
        open_run_dir(cfg(tmp_path / "run"))
    with open_run_dir(cfg(tmp_path / "run"), resume=True) as run:
        assert run.resumed


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"no config.toml: there is no run to resume"):
        open_run_dir(cfg(tmp_path), resume=True)


def test_resuming_with_another_setting_names_every_change(tmp_path):
    open_run_dir(cfg(tmp_path / "run")).close()
    other = cfg(tmp_path / "run", seed=1, loss={"clip_low": 0.1})
    with pytest.raises(ConfigError, match=r"loss.clip_low was 0.003, is 0.1; seed was 0, is 1"):
        open_run_dir(other, resume=True)


@pytest.mark.parametrize("workers", [2, "ray:16"])
def test_a_run_may_go_on_for_longer_and_on_other_hardware(tmp_path, workers):
    open_run_dir(cfg(tmp_path / "run")).close()
    changes = {"steps": 999, "optim": {"micro_tokens": 64, "zero_stage": 3}, "env": {"workers": workers}}
    open_run_dir(cfg(tmp_path / "run", **changes), resume=True).close()
    assert "steps = 999" in (tmp_path / "run" / "config.toml").read_text()


def test_a_setting_of_one_of_several_environments_counts_too(tmp_path):
    envs: list[dict[str, Any]] = [{"id": "ARL/Sokoban-v0"}, {"id": "ARL/ALFWorld-v0"}]
    open_run_dir(cfg(tmp_path / "run", envs=envs)).close()
    envs[1] |= {"penalty": 0.5, "workers": 1}
    with pytest.raises(ConfigError, match=r"settings: envs.1.penalty was 0.1, is 0.5\. Resume"):
        open_run_dir(cfg(tmp_path / "run", envs=envs), resume=True)


def test_a_folder_in_use_is_refused_and_a_dead_owner_holds_nothing(tmp_path):
    folder = tmp_path / "run"
    owner = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdin=-1, stdout=-1, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=rf"is in use by process {owner.pid} on "):
            open_run_dir(cfg(folder), resume=True)
    finally:
        owner.kill()
        owner.communicate()
    with open_run_dir(cfg(folder), resume=True) as run:
        assert run.resumed


def test_discarding_removes_a_new_folder_and_leaves_an_old_run_alone(tmp_path):
    with open_run_dir(cfg(tmp_path / "new")) as run:
        run.discard()
    assert not (tmp_path / "new").exists()
    open_run_dir(cfg(tmp_path / "old")).close()
    with open_run_dir(cfg(tmp_path / "old"), resume=True) as run:
        run.discard()
    assert (tmp_path / "old" / "config.toml").is_file()
