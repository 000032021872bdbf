"""Runs jobs of the tests on two ranks.

A job is a function of a folder that returns arrays, in a module of its own: a rank imports that module only.
"""

import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from arl_gym.train.distributed import rank

Arrays = dict[str, np.ndarray]


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}/{key}": value for key, value in arrays.items()}


def torchrun(rank: int, port: int) -> dict[str, str]:
    """What torchrun tells a rank."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    return {name: str(n) for name, n in numbers.items()} | {"MASTER_ADDR": "127.0.0.1"}


def srun(rank: int, port: int) -> dict[str, str]:
    """What SLURM tells a task."""
    numbers = {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_STEP_NUM_TASKS": 2, "MASTER_PORT": port}
    return {name: str(n) for name, n in numbers.items()} | {"SLURM_STEP_NODELIST": "localhost"}


def run_ranks(
    module: str,
    jobs: Sequence[str],
    folder: Path,
    *,
    launcher: Callable[[int, int], dict[str, str]] = torchrun,
    timeout_s: float = 280.0,
) -> list[Arrays]:
    """Run jobs on two ranks and return the results of each rank, under `JOB/NAME`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.train.ranks", str(folder), module, *jobs]
    ranks = [subprocess.Popen(command, env=os.environ | launcher(r, port)) for r in range(2)]
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
    np.savez(folder / f"{rank()}.npz", **results)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
