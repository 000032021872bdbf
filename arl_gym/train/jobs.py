"""Runs of a sweep as processes of their own, a few at once; finished ones are skipped, begun ones continued.

outcomes = run_all(plan(base, axes, seeds=[1, 2], out=out), jobs=2, say=print)
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

import tomli_w

from arl_gym.train.config import to_mapping
from arl_gym.train.files import write_atomically
from arl_gym.train.sweep import Run

POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a run."""

    run: Run
    status: Literal["finished", "skipped", "failed", "stopped"]
    """"skipped" was finished before; "stopped" was told to stop, or not begun because the sweep was."""
    reason: str
    """Why a run is not finished; otherwise empty."""
    seconds: float
    """Wall time, this time."""


Process = subprocess.Popen[bytes]


def run_all(
    runs: Sequence[Run], *, jobs: int = 1, say: Callable[[str], None] = lambda text: None
) -> list[Outcome]:
    """Run what is not finished, at most `jobs` at once, and return the outcomes in the order of the runs.

    A run that fails does not hinder the others. SIGTERM and SIGINT are passed on as SIGTERM, on which a run
    writes a checkpoint; no further run begins. Call from the main thread.

    Args:
        runs: As `plan` made and checked them.
        jobs: Processes at once; they share the cores where OMP_NUM_THREADS is not set.
        say: Gets a line whenever a run begins or ends.
    """
    done = [r for r in runs if r.is_finished]
    outcomes = {r.name: Outcome(run=r, status="skipped", reason="", seconds=0.0) for r in done}
    waiting = [r for r in runs if r.name not in outcomes]
    if done:
        say(f"{len(done)} of {len(runs)} runs are finished already")
    children: dict[Process, tuple[Run, float]] = {}
    told = False
    with _stopping() as stopping, _none_left(children):
        while children or (waiting and not stopping.is_set()):
            while waiting and len(children) < jobs and not stopping.is_set():
                run = waiting.pop(0)
                say(f"{run.name}: {'going on' if run.folder.exists() else 'begins'}")
                children[_start(run, jobs)] = run, time.monotonic()
            if stopping.is_set() and not told:
                told = True
                for child in children:
                    child.terminate()
            ended = [child for child in children if child.poll() is not None]
            for child in ended:
                run, began = children.pop(child)
                outcome = _outcome(run, child.returncode, time.monotonic() - began, stopping.is_set())
                outcomes[run.name] = outcome
                line = f"{outcome.status} after {outcome.seconds:.0f} s {outcome.reason}".rstrip()
                say(f"[{len(outcomes)}/{len(runs)}] {run.name}: {line}")
            if not ended:
                time.sleep(POLL_S)
    left = {r.name: Outcome(run=r, status="stopped", reason="not begun", seconds=0.0) for r in waiting}
    return [(outcomes | left)[run.name] for run in runs]


def train_command(run: Run) -> list[str]:
    """Return the command line of a run."""
    resume = ["--resume", "auto"] if run.folder.exists() else []
    return [sys.executable, "-m", "arl_gym.cli", "train", "--config", str(run.file), *resume]


def _start(run: Run, jobs: int) -> Process:
    write_atomically(run.file, tomli_w.dumps(to_mapping(run.cfg)).encode())
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    with open(run.log, "ab") as log:
        # A session of its own: Ctrl-C in the terminal reaches it once, from us, and as SIGTERM.
        return subprocess.Popen(
            train_command(run),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={"OMP_NUM_THREADS": threads, **os.environ},
            start_new_session=True,
        )


def _outcome(run: Run, code: int, seconds: float, stopping: bool) -> Outcome:
    if run.is_finished:
        return Outcome(run=run, status="finished", reason="", seconds=seconds)
    lines = run.log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    status: Literal["stopped", "failed"] = "stopped" if stopping or code == 0 else "failed"
    return Outcome(run=run, status=status, reason=f"({ended}): {last}", seconds=seconds)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Give an event that the first SIGTERM or SIGINT sets; a second one interrupts."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _none_left(children: Collection[Process]) -> Iterator[None]:
    """Kill the children that are still there at the end of the block, with their own children."""
    try:
        yield
    finally:
        for child in children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
