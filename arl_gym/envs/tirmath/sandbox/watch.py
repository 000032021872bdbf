"""Watches one running program: collects its output and ends it at a limit.

Reads only what the supervisor holds itself, and believes nothing that the program writes.
"""

import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from arl_gym.envs.tirmath.sandbox.execution import Execution, Limits, Status
from arl_gym.envs.tirmath.sandbox.jail.program import OUT_OF_MEMORY

_CHUNK = 1 << 16
_END_S = 10.0
"""How long a killed process may take to be gone."""


class Process(Protocol):
    """A program that runs."""

    @property
    def outputs(self) -> Sequence[int]:
        """The reading ends of stdout and stderr."""

    def done(self) -> int | None:
        """Return the descriptor that becomes readable when it has ended, or None: then ask `ended`."""

    def ended(self) -> int | None:
        """Return its exit code (a negative signal number) if it has ended.

        Raises:
            OSError: If that will never be known.
        """

    def kill(self) -> None:
        """End it, with all that it started."""


@dataclass(slots=True)
class _Stream:
    fd: int
    limit: int
    data: bytearray
    open: bool = True

    def read(self) -> bool:
        """Take what is there, one byte more than the limit at most; return whether there was anything."""
        try:
            chunk = os.read(self.fd, min(_CHUNK, self.limit + 1 - len(self.data)))
        except BlockingIOError:
            return False
        self.data += chunk
        self.open = bool(chunk)
        return bool(chunk)

    @property
    def over(self) -> bool:
        return len(self.data) > self.limit

    def text(self) -> str:
        return self.data[: self.limit].decode("utf-8", "replace")


def watch(process: Process, limits: Limits, queue_ms: float) -> Execution:
    """Wait until a program ends or must be ended, and return what came of it.

    Raises:
        OSError: If how it ended will never be known.
    """
    start = time.monotonic()
    streams = [_Stream(fd, limits.output_bytes, bytearray()) for fd in process.outputs]
    for stream in streams:
        os.set_blocking(stream.fd, False)
    cause, code = _follow(process, streams, start + limits.timeout_s)
    run_ms = (time.monotonic() - start) * 1000
    for stream in streams:
        while stream.open and not stream.over and stream.read():
            pass
    over = any(stream.over for stream in streams)
    return Execution(
        status=_status("output_limit" if over and not cause else cause, code),
        stdout=streams[0].text(),
        stderr=streams[1].text(),
        returncode=1 if code == -OUT_OF_MEMORY else code,
        truncated=over,
        queue_ms=queue_ms,
        run_ms=run_ms,
    )


_Cause = Literal["timeout", "output_limit"] | None


def _follow(process: Process, streams: Sequence[_Stream], deadline: float) -> tuple[_Cause, int]:
    """Collect output until the program has ended; return why we ended it, if we did, and its exit code."""
    cause: _Cause = None
    while (code := process.ended()) is None:
        left = deadline - time.monotonic()
        if cause is None and (left <= 0 or any(stream.over for stream in streams)):
            cause = "timeout" if left <= 0 else "output_limit"
            process.kill()
            deadline = time.monotonic() + _END_S
        elif left <= 0:
            raise TimeoutError(f"the program was killed and is still there after {_END_S:.0f} s")
        _wait(process, [stream for stream in streams if stream.open and not stream.over], deadline)
    return cause, code


def _wait(process: Process, streams: Sequence[_Stream], deadline: float) -> None:
    poll = select.poll()
    for stream in streams:
        poll.register(stream.fd, select.POLLIN)
    done = process.done()
    if done is not None:
        poll.register(done, select.POLLIN)
    left_ms = max(0.0, deadline - time.monotonic()) * 1000
    ready = {fd for fd, _ in poll.poll(left_ms + 1 if done is not None else min(left_ms, 10.0))}
    for stream in streams:
        if stream.fd in ready:
            stream.read()


def _status(cause: _Cause, code: int) -> Status:
    if cause:
        return cause
    if code == -OUT_OF_MEMORY:
        return "memory"
    if code == -signal.SIGXCPU:
        return "timeout"
    if code < 0:
        return "killed"
    return "error" if code else "ok"
