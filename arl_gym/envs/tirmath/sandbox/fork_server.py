"""The fork server as the supervisor sees it: one template process, and children that wait for a program.

A child is forked and jailed ahead of its program and runs one only. Internal: users see `Sandbox`.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Any

from arl_gym.envs.tirmath.sandbox.execution import Execution, Limits, sandbox_error
from arl_gym.envs.tirmath.sandbox.python import (
    boot_command,
    environment,
    hidden_path,
    readable_paths,
    site_dirs,
)
from arl_gym.envs.tirmath.sandbox.watch import watch

TEMPLATE_START_S = 60.0
CHILD_START_S = 20.0
_ALL_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class Child:
    """A child of the template, from the request to its end; a `watch.Process` once it runs a program."""

    def __init__(self, control: socket.socket):
        self._job, job = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._report, report = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        self.outputs: tuple[int, ...] = (out_read, err_read)
        self._pidfd: int | None = None
        try:
            socket.send_fds(control, [b"child"], [job.fileno(), out_write, err_write, report.fileno()])
        except OSError:
            self.close()
            raise
        finally:
            job.close()
            report.close()
            os.close(out_write)
            os.close(err_write)

    def start(self, order: Mapping[str, Any], stdin: str) -> None:
        """Hand over a program and wait until it starts.

        Raises:
            OSError: If it does not: the template or the child failed.
        """
        files = [_sealed(json.dumps(order).encode()), _sealed(stdin.encode("utf-8", "surrogatepass"))]
        try:
            socket.send_fds(self._job, [b"program"], files)
        finally:
            for file in files:
                os.close(file)
        self._expect(self._report)
        _, fds, _, _ = socket.recv_fds(self._report, 64, 1)
        if not fds:
            raise OSError("the template did not fork")
        self._pidfd = fds[0]
        self._expect(self._job)
        answer = self._job.recv(4096)
        if answer != b"ready":
            raise OSError(f"the child could not start: {answer.decode(errors='replace') or 'it has ended'}")

    def _expect(self, sock: socket.socket) -> None:
        if not _readable(sock, CHILD_START_S):
            raise TimeoutError(f"the child was not ready within {CHILD_START_S:.0f} s")

    def done(self) -> int:
        """Return the descriptor on which the template reports the end."""
        return self._report.fileno()

    def ended(self) -> int | None:
        """Return the exit code if the template has reported it.

        Raises:
            OSError: If the template has ended.
        """
        try:
            answer = self._report.recv(64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        if not answer:
            raise OSError("the template ended while the program ran")
        return int(answer)

    def kill(self) -> None:
        """End it; where it has no pidfd yet, closing its socket does."""
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """End it if it runs, and give its descriptors back."""
        self.kill()
        self._job.close()
        self._report.close()
        for fd in (*self.outputs, self._pidfd):
            if fd is not None:
                os.close(fd)
        self.outputs, self._pidfd = (), None


class Template:
    """A template process, ready to fork."""

    def __init__(self, tier: str, limits: Limits):
        """Start it.

        Raises:
            OSError: If it cannot be prepared; says what failed.
        """
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own_pidfd = os.pidfd_open(os.getpid())
        settings = {
            "tier": tier,
            "control_fd": theirs.fileno(),
            "supervisor_pidfd": own_pidfd,
            "readable": readable_paths(),
            "hidden": hidden_path(),
            "site_dirs": site_dirs(),
            "timeout_s": limits.timeout_s,
            "memory_mb": limits.memory_mb,
        }
        try:
            self._process = subprocess.Popen(
                boot_command("template", json.dumps(settings)),
                env=environment(),
                pass_fds=(theirs.fileno(), own_pidfd),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt from the terminal is not for it
            )
        except OSError:
            self.control.close()
            raise
        finally:
            theirs.close()
            os.close(own_pidfd)
        try:
            self._expect_ready()
        except OSError:
            self.close()
            raise

    def _expect_ready(self) -> None:
        if not _readable(self.control, TEMPLATE_START_S):
            raise TimeoutError(f"the template was not ready within {TEMPLATE_START_S:.0f} s")
        answer = self.control.recv(4096)
        if not answer:
            raise OSError(f"the template ended with exit code {self._process.wait()} before it was ready")
        if answer != b"ready":
            raise OSError(answer.decode(errors="replace"))

    def has_ended(self) -> bool:
        """Return whether it is gone: it never writes after "ready", so that only its end can be read."""
        return _readable(self.control, 0)

    def close(self) -> None:
        """End it, and with it all its children."""
        self.control.close()
        self._process.kill()
        self._process.wait()


class ForkServer:
    """Runs programs in children of one template, which is started again when it has died. Thread-safe."""

    def __init__(self, tier: str, limits: Limits):
        """Start the template.

        Raises:
            OSError: If it cannot be prepared.
        """
        self._tier, self._limits = tier, limits
        self._n_spare = min(limits.max_concurrency, os.cpu_count() or 1)
        self._lock = threading.Lock()
        self._template: Template | None = Template(tier, limits)
        self._spare: list[Child] = []

    def run(self, order: Mapping[str, Any], stdin: str, called: float) -> Execution:
        """Run a program, as `Sandbox.run`; its queue time counts from the monotonic time `called`."""
        try:
            child = self._start(order, stdin)
        except OSError as error:
            return sandbox_error(f"sandbox: {error}", (time.monotonic() - called) * 1000)
        started = time.monotonic()
        try:
            return watch(child, self._limits, (started - called) * 1000)
        except OSError as error:
            run_ms = (time.monotonic() - started) * 1000
            return sandbox_error(f"sandbox: {error}", (started - called) * 1000, run_ms)
        finally:
            child.close()

    def _start(self, order: Mapping[str, Any], stdin: str) -> Child:
        try:
            return self._take(order, stdin)
        except OSError:
            # A child that waited may have been ended from outside, or the template: nothing has run yet.
            return self._take(order, stdin)

    def _take(self, order: Mapping[str, Any], stdin: str) -> Child:
        with self._lock:
            template = self._living_template()
            child = self._spare.pop() if self._spare else Child(template.control)
            while len(self._spare) < self._n_spare:
                self._spare.append(Child(template.control))
        try:
            child.start(order, stdin)
        except OSError:
            child.close()
            raise
        return child

    def _living_template(self) -> Template:
        if self._template is not None and self._template.has_ended():
            self._drop()
        if self._template is None:
            self._template = Template(self._tier, self._limits)
        return self._template

    def _drop(self) -> None:
        for child in self._spare:
            child.close()
        self._spare.clear()
        if self._template is not None:
            self._template.close()
            self._template = None

    def close(self) -> None:
        """End everything; programs that still run end with `sandbox_error`."""
        with self._lock:
            self._drop()


def _readable(sock: socket.socket, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _sealed(content: bytes) -> int:
    """Return a memory file that can be read from its beginning, and never changed."""
    fd = os.memfd_create("arl_gym", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _ALL_SEALS)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
