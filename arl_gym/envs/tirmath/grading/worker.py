"""The process that does symbolic mathematics: a fresh interpreter that can be killed at any time.

`main` serves one end of a pipe, `Worker` is the parent's handle. Not for user code: nothing is executed here
but math-verify and sympy, on text that has passed `limits`. POSIX only.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe
from typing import Literal

from arl_gym.envs.tirmath.grading.judge import Verdict, judge
from arl_gym.errors import DependencyMissing, WorkerError

START_TIMEOUT_S = 120.0
_FIRST_PAIRS = (
    ("x^{2}-1", "(x-1)(x+1)"),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}"),
    ("2x+4y-3=0", r"y=-\frac{1}{2}x+\frac{3}{4}"),
    (r"\sin^{2}t", r"1-\cos^{2}t"),
)
"""Compared before the worker is ready: parser and sympy build their tables on first use."""

_BOOT = (
    "import sys; sys.path[:] = sys.argv[4:];"
    "from arl_gym.envs.tirmath.grading.worker import main; main(int(sys.argv[1]), *map(float, sys.argv[2:4]))"
)


def main(fd: int, memory_mb: float, limit_s: float) -> None:
    """Answer pairs over the socket `fd` until it is closed.

    A pair that takes longer than `limit_s` ends the process: its parent would have killed it, were it alive.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # the caller's own limit is lower
        resource.setrlimit(resource.RLIMIT_AS, (int(memory_mb) << 20, int(memory_mb) << 20))
    conn = Connection(fd)
    try:
        from arl_gym.envs.tirmath.grading import symbols
    except ImportError:
        conn.send("missing")
        return
    for gold, answer in _FIRST_PAIRS:
        symbols.equal(gold, answer)
    conn.send("ready")
    with contextlib.suppress(EOFError, OSError):
        while True:
            gold, answer = conn.recv()
            # The default action of the alarm kills the process even inside C code.
            signal.setitimer(signal.ITIMER_REAL, limit_s)
            verdict = _serve(gold, answer)
            signal.setitimer(signal.ITIMER_REAL, 0)
            conn.send((verdict.equal, verdict.how))


def _serve(gold: str, answer: str) -> Verdict:
    from arl_gym.envs.tirmath.grading import symbols

    try:
        return judge(gold, answer, symbols.equal)
    except MemoryError:
        os._exit(1)
    # Whatever a parser and a computer algebra system raise on garbage: the parent counts it as "unparsed".
    except Exception:
        return Verdict(equal=False, how="unparsed")


class Worker:
    """The parent's handle of one process. Not thread-safe."""

    def __init__(self, memory_mb: int, limit_s: float):
        self._conn, theirs = Pipe()
        self._is_ready = False
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(theirs.fileno()), str(memory_mb), str(limit_s), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # the terminal's Ctrl-C does not reach it
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # its threads reserve memory
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Wait for the imports.

        Raises:
            DependencyMissing: If math-verify is not installed.
            WorkerError: If the process ends or is too slow.
        """
        if self._is_ready:
            return
        try:
            said = self._conn.recv() if self._conn.poll(START_TIMEOUT_S) else "nothing"
        except (EOFError, OSError):
            said = f"its end with code {self._process.wait()}"
        if said == "missing":
            raise DependencyMissing("checking answers of TIR-Math", "math")
        if said != "ready":
            raise WorkerError(f"the grading worker was to say 'ready' in {START_TIMEOUT_S:g} s, got {said}")
        self._is_ready = True

    def post(self, gold: str, answer: str) -> None:
        """Send a pair; `reply` tells if the process is gone."""
        with contextlib.suppress(OSError):
            self._conn.send((gold, answer))

    def reply(self, timeout_s: float) -> Verdict | Literal["timeout", "crashed"]:
        """Return the verdict, or why there is none; after "crashed" the process is of no more use."""
        try:
            if not self._conn.poll(timeout_s):
                return "timeout"
            equal, how = self._conn.recv()
        except (EOFError, OSError):
            return "crashed"
        return Verdict(equal=equal, how=how)

    def end(self) -> None:
        """Kill the process and reap it."""
        self._conn.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """Let go of a process that belongs to the parent of this fork."""
        self._conn.close()
        self._process.returncode = 0
