"""Resource limits and privileges of a program's process."""

import math
import os
import resource
import sys

from . import kernel

FIRST_UID = 1_900_000_000
"""User ids from here on belong to nobody: one for each program that runs at the same time."""
MAX_TASKS = 128
"""Threads of a program, where its user id is its own; else of all programs together."""
_MAX_FILES = 64


def open_size() -> int:
    """Return a descriptor that tells `mapped_bytes` this process's size, also where /proc is out of sight."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def mapped_bytes(size_fd: int) -> int:
    """Return the size of the process that opened the descriptor."""
    return int(os.pread(size_fd, 64, 0).split()[0]) * resource.getpagesize()


def set_limits(*, address_bytes: int, timeout_s: float, file_bytes: int) -> None:
    """Limit address space, CPU time, descriptors, the size of files, and core dumps."""
    if sys.platform == "linux":  # elsewhere it is refused or ignored
        _lower(resource.RLIMIT_AS, address_bytes)
    # The supervisor's clock ends a program; the CPU limit is for the case that the supervisor is stopped.
    _lower(resource.RLIMIT_CPU, math.ceil(timeout_s) + 1)
    _lower(resource.RLIMIT_NOFILE, _MAX_FILES)
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def limit_tasks(extra: int) -> None:
    """Limit the tasks of this process's user to `extra` beyond MAX_TASKS."""
    _lower(resource.RLIMIT_NPROC, MAX_TASKS + extra)


def may_change_user() -> bool:
    """Return whether this process may take any user id: root outside a user namespace."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        maps_all = file.read().split() == ["0", "0", "4294967295"]
    return maps_all and bool(kernel.effective_capabilities() >> kernel.CAP_SETUID & 1)


def tasks_of_this_user() -> int:
    """Count the threads that run under this process's user id."""
    uid, count = os.geteuid(), 0
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                count += len(os.listdir(f"/proc/{entry.name}/task"))
        except FileNotFoundError:
            continue  # it has ended
    return count


def become(uid: int | None, capabilities: int) -> None:
    """Take a user id, or stay, and give up all capabilities but those of the mask."""
    if uid is not None:
        kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    kernel.keep_capabilities(capabilities)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
