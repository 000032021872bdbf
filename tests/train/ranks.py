"""Runs jobs of the tests on two ranks.

A job is a function of a folder that returns arrays, in a module of its own: a rank imports that module only.
"""

import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}/{key}": value for key, value in arrays.items()}


def run_ranks(module: str, jobs: Sequence[str], folder: Path, timeout_s: float = 280.0) -> list[Arrays]:
    """Run jobs on two ranks and return the results of each rank, under `JOB/NAME`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-m", "tests.train.ranks", str(folder), module, *jobs]
    ranks = [subprocess.Popen(command, env=environ | {"RANK": r, "LOCAL_RANK": r}) for r in "01"]
    try:
        codes = [p.wait(timeout=timeout_s) for p in ranks]
    finally:
        for p in ranks:
            p.kill()
            p.wait()
    assert codes == [0, 0]
    return [dict(np.load(folder / f"{r}.npz")) for r in range(2)]


def main(folder: Path, module: str, jobs: Sequence[str]) -> None:
    """Be one of the ranks."""
    results: Arrays = {}
    for job in jobs:
        results |= prefixed(job, getattr(importlib.import_module(module), job)(folder))
    np.savez(folder / f"{os.environ['RANK']}.npz", **results)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
