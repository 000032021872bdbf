"""Runs the hostile programs and looks at the host afterwards; as another user where asked.

    python -m tests.envs.tirmath.sandbox.containment --tier namespace --uid 65534

Prints one JSON object: the tier and the user, and for each program what was not contained ("" for nothing).
"""

import argparse
import json
import os
import socket
import string
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import arl_gym
from arl_gym.envs.tirmath.sandbox import Sandbox
from arl_gym.envs.tirmath.sandbox.jail import kernel
from tests.envs.tirmath.sandbox.hostile import PRELUDE, PROGRAMS, Hostile

SECRET = "the host's own"
AFTER = "import math, sympy, numpy\nprint(1 + 1, math.pi < 3.2, sympy.pi > 3, numpy.sum([1, 2]))"


class Host:
    """What programs could harm: a folder, a file, listeners."""

    def __init__(self, folder: Path, stack: ExitStack):
        self.folder, self.secret = folder, folder / "secret"
        self.secret.write_text(SECRET)
        folder.chmod(0o777)
        self.secret.chmod(0o666)
        self._stat = self._facts()
        self.tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.udp.bind(("127.0.0.1", 0))
        self.abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.abstract.bind(f"\0arl_gym_hostile_{os.getpid()}")
        for sock in (self.tcp, self.udp, self.abstract):
            sock.setblocking(False)

    def _facts(self) -> tuple[int, ...]:
        stat = self.secret.stat()
        return stat.st_mode, stat.st_uid, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_nlink

    def fill_in(self, program: str) -> str:
        """Return a program with the names of what it may try to reach."""
        return string.Template(program).safe_substitute(
            secret=self.secret,
            folder=self.folder,
            home=Path.home(),
            package=Path(arl_gym.__file__).parent,
            pid=os.getpid(),
            tcp=self.tcp.getsockname()[1],
            udp=self.udp.getsockname()[1],
            abstract=f"arl_gym_hostile_{os.getpid()}",
        )

    def harm(self) -> str:
        """Return what has been done to it."""
        found = [name for name in os.listdir(self.folder) if name != "secret"]
        found += [str(path) for path in _traces() if path.exists()]
        if self._facts() != self._stat or self.secret.read_text() != SECRET:
            found.append("the host's file was touched")
        arrivals = {
            "TCP": self.tcp.accept,
            "UDP": lambda: self.udp.recv(9),
            "the abstract socket": lambda: self.abstract.recv(9),
        }
        for name, receive in arrivals.items():
            with suppress(BlockingIOError):
                receive()
                found.append(f"something arrived by {name}")
        return ", ".join(found)


def _traces() -> Iterator[Path]:
    for folder in (Path.home(), Path("/tmp"), Path("/dev/shm"), Path("/var/tmp")):
        for name in ("arl_gym_breach", "arl_gym_fill", "arl_gym_0"):
            yield folder / name


@contextmanager
def a_host() -> Iterator[Host]:
    """Give a host, and take it away again."""
    with ExitStack() as stack:
        yield Host(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="arl_gym_hostile_"))), stack)


def try_out(sandbox: Sandbox, host: Host, hostile: Hostile) -> str:
    """Run a program and then a harmless one; return what was not contained, "" if all was."""
    execution = sandbox.run(host.fill_in(hostile.program), stdin=hostile.stdin, prelude=PRELUDE)
    if not hostile.contained(execution):
        last = execution.stderr.strip().rpartition("\n")[2]
        return f"{execution.status}, {execution.returncode}: {execution.stdout[:120]!r} {last[:120]!r}"
    after = sandbox.run(AFTER)
    if after.stdout != "2 True True 3\n":
        return f"the next program: {after.status} {after.stdout[:80]!r} {after.stderr[-120:]!r}"
    return host.harm()


def try_all(tier: str, programs: Sequence[Hostile] = PROGRAMS) -> dict[str, str]:
    """Run programs; return by name what was not contained."""
    limits = {"timeout_s": 4.0, "memory_mb": 128, "max_concurrency": 4}
    with Sandbox(tier, **limits) as sandbox, a_host() as host, ThreadPoolExecutor(4) as pool:  # type: ignore[arg-type]
        results = pool.map(lambda each: try_out(sandbox, host, each), programs)
        return {each.name: result for each, result in zip(programs, results, strict=True)}


def descendants(pid: int) -> set[int]:
    """Return the processes below a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = {int(child) for task in tasks for child in (task / "children").read_text().split()}
    return children.union(*map(descendants, children))


def become(uid: int) -> None:
    """Take a user id, in a view of the file system where this interpreter is within its reach."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    needed = [sys.base_prefix, sys.prefix, os.getcwd()]
    blocked = {path: closed for path in needed if (closed := _closed_folder(path))}
    with tempfile.TemporaryDirectory(prefix="arl_gym_hostile_") as stash:
        kernel.mount("tmpfs", stash, "tmpfs", 0)
        for i, path in enumerate(blocked):
            os.mkdir(f"{stash}/{i}")
            kernel.mount(path, f"{stash}/{i}", None, kernel.MS_BIND | kernel.MS_REC)
        for closed in set(blocked.values()):
            kernel.mount("tmpfs", closed, "tmpfs", 0, "mode=755")
        for i, path in enumerate(blocked):
            os.makedirs(path, exist_ok=True)
            kernel.mount(f"{stash}/{i}", path, None, kernel.MS_BIND | kernel.MS_REC)
        kernel.unmount(stash)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _closed_folder(path: str) -> str | None:
    """Return the outermost folder on the way to a path that others may not pass."""
    folders = [*reversed(Path(path).parents), Path(path)]
    return next((str(each) for each in folders if not each.stat().st_mode & 1), None)


def main() -> None:
    """Print the results as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tier", required=True)
    parser.add_argument("--uid", type=int)
    args = parser.parse_args()
    if args.uid is not None:
        become(args.uid)
        command = [sys.executable, "-m", "tests.envs.tirmath.sandbox.containment", "--tier", args.tier]
        os.environ["HOME"] = "/"
        os.execv(sys.executable, command)
    results = try_all(args.tier)
    json.dump({"tier": args.tier, "uid": os.getuid(), "results": results}, sys.stdout)


if __name__ == "__main__":
    main()
