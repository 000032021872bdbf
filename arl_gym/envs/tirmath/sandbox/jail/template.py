"""The template: imports once what programs use, then forks a child for every request.

It sees neither code nor output: a request is four descriptors that it hands to a child. What it says to the
supervisor is when it is ready, each child's pidfd, and how each child ended. It ends when that does.
"""

import contextlib
import dataclasses
import gc
import json
import os
import select
import signal
import socket
from typing import Any

from . import kernel, landlock, limits, namespaces, seccomp
from .program import Program, furnish

_JOB = 3  # the only descriptor of a child besides the standard ones

# sympy imports a good part of itself at first use, which every child would repeat.
_WARM_UP = """
import numpy, numpy.random, numpy.linalg, sympy
x, y = sympy.symbols("x y")
str(sympy.expand((x + 1) ** 2))
sympy.factor(x**2 - 1)
sympy.solve(x**2 - 2, x), sympy.solve([x + y - 3, x - y - 1], [x, y]), sympy.nsolve(x**2 - 2, x, 1)
sympy.simplify(sympy.sin(x) ** 2 + sympy.cos(x) ** 2), sympy.solveset(x**2 - 1, x)
sympy.integrate(sympy.diff(x**3, x), (x, 0, 1)), sympy.limit(sympy.sin(x) / x, x, 0), sympy.N(sympy.pi, 20)
sympy.Matrix([[1, 2], [3, 4]]).eigenvals(), sympy.factorint(360), sympy.latex(sympy.sqrt(2))
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the supervisor asks for."""

    tier: str
    control_fd: int
    supervisor_pidfd: int
    readable: list[str]
    """The paths that programs may read, with all below them."""
    hidden: str
    """The path that they may not, although it may lie below one of those."""
    site_dirs: list[str]
    timeout_s: float
    memory_mb: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Jail:
    """What the template found out once, for all children."""

    settings: Settings
    ruleset: int | None
    """Of landlock, as a descriptor."""
    change_user: bool
    capabilities: int
    """The mask of those that children keep."""
    other_tasks: int
    """Tasks of the user id that the children share with others; 0 where they do not."""
    size_fd: int
    pid: int


def main(args: list[str]) -> Program:
    """Serve requests until the supervisor ends; return only in children."""
    settings = Settings(**json.loads(args[0]))
    control = socket.socket(fileno=settings.control_fd)
    try:
        jail = _prepare(settings)
        _load(settings)
    except (OSError, ImportError) as error:
        control.send(f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    control.send(b"ready")
    return _serve(control, jail)


def _prepare(settings: Settings) -> Jail:
    kernel.machine()
    os.umask(0o022)
    ruleset, tasks, capabilities = None, 0, 0
    if settings.tier == "namespace":
        namespaces.enter()
        _become_process_one()
    change_user = limits.may_change_user()
    size_fd = limits.open_size()
    if settings.tier == "namespace":
        namespaces.change_root(settings.readable, settings.hidden)
    else:
        ruleset = landlock.open_ruleset(settings.readable, settings.hidden)
        tasks = 0 if change_user else limits.tasks_of_this_user()
        # The paths are those of the host, and a child's new user may not be let into all of them.
        capabilities = 1 << kernel.CAP_DAC_READ_SEARCH & kernel.effective_capabilities()
        os.chdir("/")
    return Jail(
        settings=settings,
        ruleset=ruleset,
        change_user=change_user,
        capabilities=capabilities,
        other_tasks=tasks,
        size_fd=size_fd,
        pid=os.getpid(),
    )


def _become_process_one() -> None:
    """Continue in a child, process 1 of the new pid namespace; the parent waits for its end."""
    alive, held = os.pipe()
    pid = os.fork()
    if pid:
        os.closerange(0, held)
        os.closerange(held + 1, 1 << 16)
        os.waitpid(pid, 0)
        os._exit(1)
    os.close(held)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:
        os._exit(1)  # the parent died before the line above
    os.close(alive)


def _load(settings: Settings) -> None:
    """Import what programs use."""
    furnish(settings.site_dirs)
    exec(_WARM_UP, {})
    # Nothing of this is collected, and looking at it again would copy its pages in every child.
    gc.collect()
    gc.freeze()


def _serve(control: socket.socket, jail: Jail) -> Program:
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(jail.settings.supervisor_pidfd, select.POLLIN)
    children: dict[int, tuple[int, int, socket.socket]] = {}  # pidfd: pid, slot, where to report
    while True:
        for fd, _ in poll.poll():
            if fd in children:
                poll.unregister(fd)
                _reap(fd, *children.pop(fd))
            elif fd == jail.settings.supervisor_pidfd:
                os._exit(0)
            else:
                message, fds, _, _ = socket.recv_fds(control, 1, 4)
                if not message:
                    os._exit(0)
                slot = _free_slot({slot for _, slot, _ in children.values()})
                try:
                    pid = os.fork()
                except OSError:
                    _close(fds)  # the supervisor sees its ends closed
                    continue
                if not pid:
                    return _become_child(jail, slot, fds)
                pidfd, report = _announce(pid, fds)
                children[pidfd] = pid, slot, report
                poll.register(pidfd, select.POLLIN)


def _free_slot(taken: set[int]) -> int:
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _announce(pid: int, fds: list[int]) -> tuple[int, socket.socket]:
    *others, report_fd = fds
    _close(others)
    pidfd = os.pidfd_open(pid)
    report = socket.socket(fileno=report_fd)
    _tell(report, b"started", [pidfd])
    return pidfd, report


def _reap(pidfd: int, pid: int, slot: int, report: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    os.close(pidfd)
    _tell(report, str(os.waitstatus_to_exitcode(status)).encode(), [])
    report.close()


def _tell(report: socket.socket, message: bytes, fds: list[int]) -> None:
    # The supervisor may have given this child up.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        socket.send_fds(report, [message], fds)


def _become_child(jail: Jail, slot: int, fds: list[int]) -> Program:
    """Jail this process, wait for a program, and return it; anything that fails is told to the supervisor."""
    job = socket.socket(fileno=fds[0])
    try:
        _restrict(jail, slot)
        job = _move_descriptors(job, fds)
        order = _receive(job)
        # Last, because receiving is among what it forbids.
        seccomp.install(os.getpid())
        program = Program(**order)
    except Exception as error:  # the supervisor reports whatever it was as a fault of the sandbox
        job.send(f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    job.send(b"ready")
    job.close()
    return program


def _move_descriptors(job: socket.socket, fds: list[int]) -> socket.socket:
    """Put the pipes in the place of the standard streams; close everything but them and the job's socket."""
    _, out, err, _ = fds
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.dup2(job.detach(), _JOB)
    os.closerange(_JOB + 1, 1 << 16)
    return socket.socket(fileno=_JOB)


def _restrict(jail: Jail, slot: int) -> None:
    settings = jail.settings
    limits.set_limits(
        address_bytes=limits.mapped_bytes(jail.size_fd) + (settings.memory_mb << 20),
        timeout_s=settings.timeout_s,
        file_bytes=0,
    )
    limits.limit_tasks(jail.other_tasks)
    limits.become(limits.FIRST_UID + slot if jail.change_user else None, jail.capabilities)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != jail.pid:
        os._exit(1)  # the template died before the line above
    if jail.ruleset is not None:
        landlock.restrict(jail.ruleset)


def _receive(job: socket.socket) -> dict[str, Any]:
    """Wait for a program; its standard input becomes ours."""
    message, fds, _, _ = socket.recv_fds(job, 1, 2)
    if not message:
        os._exit(0)  # not needed any more
    code, stdin = fds
    os.dup2(stdin, 0)
    os.close(stdin)
    with open(code, "rb") as file:
        order: dict[str, Any] = json.load(file)
    return order
