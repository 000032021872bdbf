"""Every example runs as a user would run it."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_the_example_runs(script, tmp_path):
    result = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
