"""The scripts under examples/adapters, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def run_example(name: str, folder: Path, *arguments: str, timeout_s: float = 100, **variables: str) -> str:
    """Run a script in a folder and return what it prints, with variables added to its environment."""
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "adapters" / name, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
