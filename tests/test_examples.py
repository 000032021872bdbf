"""Every example runs as a user would run it."""

import subprocess
import sys

import pytest

from arl_gym.envs.webshop.browser import find_programs
from arl_gym.errors import BrowserError
from tests.conftest import ROOT, require

ARGUMENTS = {"train_ppo.py": ("--steps", "16384", "--plot", "curve.png")}
"""What makes an example short."""


def _has_browser() -> bool:
    try:
        return bool(find_programs())
    except BrowserError:
        return False


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_the_example_runs(script, tmp_path):
    if "browser" in script.name:
        require(_has_browser(), "needs Chromium and its driver: apt-get install chromium chromium-driver")
    result = subprocess.run(
        [sys.executable, script, *ARGUMENTS.get(script.name, ())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
