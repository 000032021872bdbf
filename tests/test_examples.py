"""Every example runs as a user would run it."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

ARGUMENTS = {"train_ppo.py": ("--steps", "16384", "--plot", "curve.png")}
"""What makes an example short."""


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_the_example_runs(script, tmp_path):
    result = subprocess.run(
        [sys.executable, script, *ARGUMENTS.get(script.name, ())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
