"""Namespaces: a root directory with nothing but Python and its libraries, read-only, and nobody in sight.

Entered once, by the template; the children that it forks share them and are kept from one another by their
user ids and by seccomp, which is all they could reach each other by.
"""

import os
from collections.abc import Sequence

from . import kernel

_FLAGS = (
    kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
)
# Covered by the new root while it is built: there on every Linux, and Python does not live in it.
_NEW_ROOT = "/sys"


def enter() -> None:
    """Move this process to new namespaces, but for process ids: its next child is process 1 of those.

    Raises:
        OSError: If the kernel or its settings do not allow it.
    """
    uid, gid = os.geteuid(), os.getegid()
    if kernel.effective_capabilities() >> kernel.CAP_SYS_ADMIN & 1:
        kernel.unshare(_FLAGS)
        return
    kernel.unshare(_FLAGS | kernel.CLONE_NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def change_root(readable: Sequence[str], hidden: str) -> None:
    """Make a root directory with the `readable` paths, except `hidden`, the root of this process.

    Raises:
        OSError: If a mount fails.
    """
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", _NEW_ROOT, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")
    # Sorted: a directory is bound before what lies in it, which then is there already.
    for path in sorted({os.path.realpath(path) for path in (*readable, "/dev/null")}):
        _bind(path)
    for path in readable:
        _link(path)
    if os.path.isdir(_NEW_ROOT + hidden):
        kernel.mount(
            "tmpfs", _NEW_ROOT + hidden, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=4k,mode=755"
        )
    kernel.make_tree_read_only(_NEW_ROOT)
    kernel.pivot(_NEW_ROOT)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _bind(path: str) -> None:
    target = _NEW_ROOT + path
    if os.path.exists(target):
        return
    if os.path.isdir(path):
        os.makedirs(target)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write(target, "")
    kernel.mount(path, target, None, kernel.MS_BIND | kernel.MS_REC)


def _link(path: str) -> None:
    """Let a path through symbolic links lead where it leads outside."""
    link = _NEW_ROOT + path
    if not os.path.lexists(link):
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.realpath(path), link)
