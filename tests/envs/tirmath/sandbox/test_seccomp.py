"""The filter, by an interpreter of its instructions: also for the machine that the tests do not run on."""

import pytest

from arl_gym.envs.tirmath.sandbox.jail.seccomp import assemble

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x50001, 0x50026, 0x80000000
PID = 4242
THREAD = 0x3D0F00  # what the C library passes to clone for a thread


def decide(machine, number, *args, arch=None):
    words = {0: number, 4: ARCH[machine] if arch is None else arch}
    for i, arg in enumerate((*args, *[0] * 6)[:6]):
        words[16 + 8 * i], words[20 + 8 * i] = arg & 0xFFFFFFFF, arg >> 32 & 0xFFFFFFFF
    program, at, value = assemble(machine, PID), 0, 0
    while True:
        code, true, false, k = program[at]
        at += 1
        if code == 0x20:
            value = words[k]
        elif code == 0x54:
            value &= k
        elif code == 0x15:
            at += true if value == k else false
        elif code == 0x35:
            at += true if value >= k else false
        else:
            return k


# Numbers from the kernel's tables: (x86_64, aarch64).
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    ("numbers", "args", "decision"),
    [
        ((0, 63), (0, 0, 0), ALLOW),  # read
        ((1, 64), (1, 0, 5), ALLOW),  # write
        ((9, 222), (), ALLOW),  # mmap
        ((202, 98), (), ALLOW),  # futex
        ((231, 94), (0,), ALLOW),  # exit_group
        ((56, 220), (THREAD,), ALLOW),  # clone of a thread
        ((56, 220), (17,), EPERM),  # fork
        ((56, 220), (THREAD | 0x10000000,), EPERM),  # a thread in a new user namespace
        ((435, 435), (), ENOSYS),  # clone3
        ((221, 221), (), EPERM),  # execve on aarch64; fadvise64 on x86_64
        ((62, 129), (PID, 9), ALLOW),  # kill itself
        ((62, 129), (PID + 1, 9), EPERM),
        ((62, 129), (0xFFFFFFFFFFFFFFFF, 9), EPERM),  # all
        ((62, 129), (0, 9), EPERM),  # the group
        ((234, 131), (PID, 7, 6), ALLOW),  # tgkill in its own group
        ((234, 131), (1, 1, 6), EPERM),
        ((302, 261), (0, 7), ALLOW),  # prlimit64 of itself
        ((302, 261), (PID, 7), ALLOW),
        ((302, 261), (1, 7), EPERM),
        ((72, 25), (0, 3), ALLOW),  # fcntl F_GETFL
        ((72, 25), (0, 8), EPERM),  # F_SETOWN
        ((16, 29), (0, 0x5401), ALLOW),  # ioctl TCGETS
        ((16, 29), (0, 0x5412), EPERM),  # TIOCSTI
        ((53, 199), (1, 0x80801), ALLOW),  # socketpair of unix streams, non-blocking, close on exec
        ((53, 199), (1, 2), EPERM),  # of datagrams
        ((41, 198), (2, 1), EPERM),  # socket
        ((317, 277), (), EPERM),  # seccomp
        ((425, 425), (), EPERM),  # io_uring_setup
        ((99999, 99999), (), EPERM),
    ],
)
def test_the_filter_allows_and_refuses(which, numbers, args, decision):
    assert decide(("x86_64", "aarch64")[which], numbers[which], *args) == decision


def test_execve_and_fork_are_refused_on_x86_64():
    assert [decide("x86_64", number) for number in (57, 58, 59, 322)] == [EPERM] * 4


def test_calls_of_another_machine_kill():
    assert decide("x86_64", 0, arch=0x40000003) == KILL
    assert decide("aarch64", 63, arch=0x40000028) == KILL
    assert decide("x86_64", 0x40000000) == KILL
