"""The wheel, installed into an empty environment, plays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(300)  # the first test also builds, and downloads what the package needs


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without the checkout on its path, and return what it prints."""
    env = {
        key: value
        for key, value in os.environ.items()
        if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=110)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return next(folder.glob("arl_gym-*.whl"))


@pytest.fixture(scope="module")
def empty_environment(wheel, tmp_path_factory):
    """Return the `bin` folder of an environment that holds the wheel and its core dependencies only."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    return python.parent


def test_an_installed_wheel_plays_an_episode_with_the_expert(empty_environment, tmp_path):
    episode = """
import gymnasium, arl_gym
env = gymnasium.make("ARL/Sokoban-v0")
observation, info = env.reset(seed=0)
done = False
while not done:
    observation, reward, terminated, truncated, info = env.step(env.unwrapped.expert_action())
    done = terminated or truncated
assert arl_gym.__file__.startswith(__import__("sys").prefix)
print(info["success"])
"""
    assert run(empty_environment / "python", "-c", episode, cwd=tmp_path).split() == ["True"]


def test_an_installed_wheel_holds_every_asset(empty_environment, tmp_path):
    listing = """
from arl_gym.assets import assets_root
files = [path for path in assets_root().rglob("*") if path.is_file() and path.suffix != ".pyc"]
print(*(path.relative_to(assets_root()) for path in files))
"""
    installed = run(empty_environment / "python", "-c", listing, cwd=tmp_path).split()
    ours = [str(p.relative_to(ROOT / "assets")) for p in (ROOT / "assets").rglob("*") if p.is_file()]
    assert sorted(installed) == sorted(ours)


def test_the_command_line_of_an_installed_wheel_lists_the_environments(empty_environment, tmp_path):
    assert "ARL/Sokoban-v0" in run(empty_environment / "arl-gym", "list", cwd=tmp_path)


def test_an_installed_wheel_brings_no_torch(empty_environment, tmp_path):
    code = """
from importlib.util import find_spec
print([name for name in ("torch", "transformers", "deepspeed") if find_spec(name)])
"""
    assert run(empty_environment / "python", "-c", code, cwd=tmp_path).strip() == "[]"
