"""The seccomp filter of a program: what is not allowed fails with EPERM.

Classic BPF, assembled here; no library is needed. Installed last, after everything that it forbids is done.
"""

import ctypes
import errno
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import kernel
from .syscalls import ALLOWED

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32_BIT = 0x40000000

_CLONE_THREAD = 0x00010000
# Every CLONE_NEW* flag; with CLONE_THREAD the kernel refuses most of them itself.
_CLONE_CHECKED = _CLONE_THREAD | 0x7E020000
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPE_MASK = 1, 1, 0xF
_PR_NAMES = (15, 16)  # PR_SET_NAME, PR_GET_NAME
# Duplicate, read and set flags, and ask for the size of a pipe. Not the owner or the signal of asynchronous
# input: those reach other processes. Not locks: those reach files of the host.
_FCNTL = (0, 1, 2, 3, 4, 1030, 1032)
# TCGETS (isatty), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

Instruction = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Check:
    """Argument `index`, under `mask`, must be one of `values`; of those checked the kernel reads 32 bits."""

    index: int
    values: Sequence[int]
    mask: int = 0xFFFFFFFF


def _checks(pid: int) -> dict[str, tuple[Check, ...]]:
    own = (Check(0, (pid,)),)
    return {
        "clone": (Check(0, (_CLONE_THREAD,), _CLONE_CHECKED),),
        "kill": own,
        "tkill": own,
        "tgkill": own,
        "prlimit64": (Check(0, (0, pid)),),
        "prctl": (Check(0, _PR_NAMES),),
        "fcntl": (Check(1, _FCNTL),),
        "ioctl": (Check(1, _IOCTL),),
        # A datagram socket could be aimed at other addresses later, a connected stream cannot.
        "socketpair": (Check(0, (_AF_UNIX,)), Check(1, (_SOCK_STREAM,), _SOCK_TYPE_MASK)),
    }


def assemble(machine: str, pid: int) -> list[Instruction]:
    """Return the filter for a process with this id, as BPF instructions (code, jump if true, if false, k)."""
    checks = _checks(pid)
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _KILL_PROCESS)]
    for name, number in ALLOWED[machine].items():
        body = list(_body(name, checks.get(name, ())))
        program += [(_EQUAL, 0, len(body), number), *body]
    return [*program, (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def _body(name: str, checks: Sequence[Check]) -> Iterator[Instruction]:
    if name == "clone3":
        # Its flags lie in memory, out of the filter's sight: the C library falls back to clone.
        yield _RETURN, 0, 0, _ERRNO | errno.ENOSYS
        return
    for check in checks:
        yield _LOAD, 0, 0, _ARGUMENTS + 8 * check.index
        yield _AND, 0, 0, check.mask
        for left, value in zip(range(len(check.values), 0, -1), check.values, strict=True):
            yield _EQUAL, left, 0, value
        yield _RETURN, 0, 0, _ERRNO | errno.EPERM
    yield _RETURN, 0, 0, _ALLOW


def install(pid: int) -> None:
    """Put this process and its threads under the filter, for good; needs no_new_privs.

    Raises:
        OSError: If the kernel refuses it.
    """
    program = assemble(kernel.machine(), pid)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    header = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(code)))
    kernel.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(header))
