"""Linux system calls that Python does not offer, by ctypes.

Every function raises OSError with the name of the call, so that a failing tier says what failed.
"""

import ctypes
import os
import platform
from functools import cache
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000

CAP_DAC_READ_SEARCH: Final = 2
CAP_SETUID: Final = 7
CAP_SYS_ADMIN: Final = 21

PR_SET_PDEATHSIG: Final = 1
PR_SET_KEEPCAPS: Final = 8
PR_SET_NO_NEW_PRIVS: Final = 38

# The same numbers on every architecture.
MOUNT_SETATTR: Final = 442
LANDLOCK_CREATE_RULESET: Final = 444
LANDLOCK_ADD_RULE: Final = 445
LANDLOCK_RESTRICT_SELF: Final = 446

_OWN_NUMBERS = {"x86_64": {"pivot_root": 155, "capset": 126}, "aarch64": {"pivot_root": 41, "capset": 91}}
_MNT_DETACH = 2
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
_CAPABILITY_VERSION_3 = 0x20080522


def machine() -> str:
    """Return the architecture.

    Raises:
        OSError: If there is no table of system calls for it.
    """
    name = platform.machine()
    if platform.system() != "Linux" or name not in _OWN_NUMBERS:
        known = " or ".join(_OWN_NUMBERS)
        raise OSError(
            f"expected Linux on {known}, this is {platform.system()} on {name or 'an unknown machine'}"
        )
    return name


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def syscall(number: int, *args: "int | bytes | ctypes.Array[ctypes.c_char] | None", name: str) -> int:
    """Make a system call; integers are passed as 64 bits, buffers by address.

    Raises:
        OSError: If it fails.
    """
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result: int = _libc().syscall(ctypes.c_long(number), *words)
    return _checked(result, name)


def _checked(result: int, name: str) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{name}: {os.strerror(errno)}")
    return result


def unshare(flags: int) -> None:
    """Move this process (for process ids: its children) to new namespaces."""
    _checked(_libc().unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system, or bind a path."""
    text = [None if s is None else s.encode() for s in (source, target, kind, data)]
    result = _libc().mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3])
    _checked(result, f"mount {source} on {target}")


def unmount(path: str) -> None:
    """Detach a mount."""
    _checked(_libc().umount2(path.encode(), _MNT_DETACH), f"umount2 {path}")


def make_tree_read_only(path: str) -> None:
    """Make a mount and all below it read-only (Linux 5.12 or newer)."""
    attributes = b"".join(n.to_bytes(8, "little") for n in (_MOUNT_ATTR_RDONLY, 0, 0, 0))
    args = (_AT_FDCWD, path.encode(), _AT_RECURSIVE, attributes, len(attributes))
    syscall(MOUNT_SETATTR, *args, name="mount_setattr")


def pivot(path: str) -> None:
    """Make a mount the root of this process, and let go of the old one."""
    os.chdir(path)
    # Both arguments the same: the old root is stacked below the new one and can be detached at once.
    syscall(_OWN_NUMBERS[machine()]["pivot_root"], b".", b".", name="pivot_root")
    unmount(".")
    os.chdir("/")


def prctl(option: int, value: int, address: int = 0) -> None:
    """Set a process attribute."""
    args = [ctypes.c_ulong(n) for n in (value, address, 0, 0)]
    _checked(_libc().prctl(option, *args), f"prctl {option}")


def effective_capabilities() -> int:
    """Return the mask of capabilities in force."""
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("CapEff")).split()[1], 16)


def keep_capabilities(mask: int) -> None:
    """Give up every capability that is not in the mask, for good where no program is executed later."""
    header = b"".join(n.to_bytes(4, "little") for n in (_CAPABILITY_VERSION_3, 0))
    low = (mask & 0xFFFFFFFF).to_bytes(4, "little")
    data = low + low + bytes(4) + bytes(12)  # effective, permitted, inheritable; then their upper halves
    syscall(_OWN_NUMBERS[machine()]["capset"], header, data, name="capset")
