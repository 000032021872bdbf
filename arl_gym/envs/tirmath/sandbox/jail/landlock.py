"""Landlock: the file system shrinks to what may be read; no TCP, no signals and no abstract sockets outside.

What an older kernel cannot restrict by landlock, seccomp forbids anyway.
"""

import os
import stat
import struct
from collections.abc import Iterator, Sequence

from . import kernel

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
# Rights by the version of the interface that brought them: files (13, refer, truncate, -, ioctl).
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_NET_RIGHTS = {4: 0b11}  # bind, connect
_SCOPES = {6: 0b11}  # abstract unix sockets, signals
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1


def open_ruleset(readable: Sequence[str], hidden: str) -> int:
    """Return a ruleset as a descriptor: everything handled, only `readable` trees and /dev/null granted.

    Raises:
        OSError: If the kernel has no landlock, or it is off.
    """
    version = kernel.syscall(
        kernel.LANDLOCK_CREATE_RULESET, None, 0, _VERSION_FLAG, name="landlock_create_ruleset"
    )
    handled = [_rights(table, version) for table in (_FILE_RIGHTS, _NET_RIGHTS, _SCOPES)]
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    attributes = struct.pack("QQQ", *handled)[:size]
    ruleset = kernel.syscall(
        kernel.LANDLOCK_CREATE_RULESET, attributes, size, 0, name="landlock_create_ruleset"
    )
    for path in readable:
        for place, rights in _grants(path, hidden):
            _add_rule(ruleset, place, rights)
    _add_rule(ruleset, "/dev/null", _READ_FILE | _WRITE_FILE)
    return ruleset


def restrict(ruleset: int) -> None:
    """Put this process under a ruleset, for good; needs no_new_privs."""
    kernel.syscall(kernel.LANDLOCK_RESTRICT_SELF, ruleset, 0, name="landlock_restrict_self")


def _rights(table: dict[int, int], version: int) -> int:
    return sum(bits for since, bits in table.items() if since <= version)


def _grants(path: str, hidden: str) -> Iterator[tuple[str, int]]:
    """Give what to grant so that all of `path` can be read, except what lies in `hidden`."""
    if not stat.S_ISDIR(os.stat(path).st_mode):
        yield path, _READ_FILE
    elif not hidden.startswith(path.rstrip("/") + "/"):
        yield path, _READ_FILE | _READ_DIR
    else:
        yield path, _READ_DIR
        for entry in sorted(os.listdir(path)):
            place = os.path.join(path, entry)
            if place != hidden and os.path.exists(place):
                yield from _grants(place, hidden)


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, fd)
        kernel.syscall(
            kernel.LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0, name=f"landlock_add_rule {path}"
        )
    finally:
        os.close(fd)
