"""Runs `arl-gym` on several ranks of this machine.

Starts one process for each GPU and ends when all have ended. For several machines there are torchrun and
SLURM, which set the same variables.

    code = launch(["train", "--config", "sampo-sokoban"], gpus=4)
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from arl_gym.errors import ConfigError

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
_GRACE_S = 30.0
"""A rank that fails tells the others, which then have this long to end by themselves."""


def launch(args: Sequence[str], gpus: int) -> int:
    """Run a command of `arl-gym` on several ranks.

    A signal to stop (SIGTERM, SIGINT, SIGUSR1, SIGHUP) is passed on to every rank, which decides what to do.
    Without a GPU the ranks share the CPU, and a line on stderr says so.

    Args:
        args: The command and its options.
        gpus: Number of ranks.

    Returns:
        0, or the exit code of a rank that failed; if a signal ended one, 128 plus the signal: that the others
        lost it is why they failed.

    Raises:
        ConfigError: If there are fewer GPUs than that.
    """
    import torch

    if gpus < 1:
        raise ConfigError(f"--gpus: expected at least 1, got {gpus}")
    found = torch.cuda.device_count()
    if 0 < found < gpus:
        raise ConfigError(f"--gpus: expected at most {found}, the GPUs of this machine, got {gpus}")
    if not found:
        sys.stderr.write(f"no GPU found: {gpus} processes on the CPU\n")
    command = [sys.executable, "-m", "arl_gym.cli", *args]
    ranks: list[subprocess.Popen[bytes]] = []
    with _forwarding(ranks):
        try:
            for environ in environments(gpus):
                # Of its own session: a signal from the terminal comes once, through us.
                ranks.append(subprocess.Popen(command, env=environ, start_new_session=True))
            return _wait(ranks)
        finally:
            for process in ranks:
                _kill(process)


def environments(n: int) -> list[dict[str, str]]:
    """Return the environment of each of `n` ranks on this machine, as torchrun sets it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    threads = max(1, len(os.sched_getaffinity(0)) // n)
    shared = {"WORLD_SIZE": str(n), "LOCAL_WORLD_SIZE": str(n)}
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        {"OMP_NUM_THREADS": str(threads), **os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        for rank in range(n)
    ]


@contextmanager
def _forwarding(ranks: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Pass signals on to the ranks inside the block."""

    def forward(number: int, frame: FrameType | None) -> None:
        for process in ranks:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(ranks: Sequence[subprocess.Popen[bytes]]) -> int:
    """Return the exit code once all have ended, or once one has failed and the others had time to end."""
    deadline = float("inf")
    while (running := [p for p in ranks if p.poll() is None]) and time.monotonic() < deadline:
        if deadline == float("inf") and any(p.returncode for p in ranks):
            deadline = time.monotonic() + _GRACE_S
        with suppress(subprocess.TimeoutExpired):
            running[0].wait(timeout=0.2)
    for rank, process in enumerate(ranks):
        if (code := process.poll() or 0) < 0:
            sys.stderr.write(f"arl-gym: rank {rank} was ended by {signal.Signals(-code).name}\n")
            return 128 - code
    return max(process.poll() or 0 for process in ranks)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a rank and whatever it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
