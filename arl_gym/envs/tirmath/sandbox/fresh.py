"""The tier "unsafe": every program in an interpreter started for it, with limits and nothing else.

Works wherever Python has POSIX processes. Slow: the program's imports are its own.
"""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import IO, Any

from arl_gym.envs.tirmath.sandbox.execution import Execution, Limits, sandbox_error
from arl_gym.envs.tirmath.sandbox.python import boot_command, environment, site_dirs
from arl_gym.envs.tirmath.sandbox.watch import watch


class FreshProcess:
    """A running interpreter; a `watch.Process`."""

    def __init__(self, process: "subprocess.Popen[bytes]"):
        self._process = process
        self.outputs = tuple(stream.fileno() for stream in (process.stdout, process.stderr) if stream)

    def done(self) -> None:
        """Return None: there is nothing to wait on everywhere."""

    def ended(self) -> int | None:
        """Return the exit code if it has ended."""
        return self._process.poll()

    def kill(self) -> None:
        """End it and its process group."""
        # All of it may have ended; macOS says so in the second way.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


class FreshInterpreters:
    """Runs programs, each in a fresh interpreter."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._site_dirs = site_dirs()

    def run(self, order: Mapping[str, Any], stdin: str, called: float) -> Execution:
        """Run a program, as `Sandbox.run`."""
        try:
            with _file(json.dumps(order)) as program, _file(stdin) as given:
                process = self._popen(program.fileno(), given.fileno())
        except OSError as error:
            return sandbox_error(f"sandbox: {error}", (time.monotonic() - called) * 1000)
        running = FreshProcess(process)
        try:
            return watch(running, self._limits, (time.monotonic() - called) * 1000)
        finally:
            running.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()

    def _popen(self, program_fd: int, stdin_fd: int) -> "subprocess.Popen[bytes]":
        settings = {
            "program_fd": program_fd,
            "site_dirs": self._site_dirs,
            "timeout_s": self._limits.timeout_s,
            "memory_mb": self._limits.memory_mb,
        }
        return subprocess.Popen(
            boot_command("fresh", json.dumps(settings)),
            env=environment(),
            cwd=tempfile.gettempdir(),
            pass_fds=(program_fd,),
            stdin=stdin_fd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def close(self) -> None:
        """Do nothing: a program ends with its run."""


def _file(text: str) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(text.encode("utf-8", "surrogatepass"))
    file.seek(0)
    return file
