"""`Sandbox`: runs programs on this machine, isolated, many at a time.

>>> with Sandbox() as sandbox:
...     sandbox.run("print(2**10, end='')").stdout
'1024'
"""

import os
import threading
import time
import warnings
import weakref
from collections.abc import Mapping
from typing import Any, Protocol, Self

from arl_gym.envs.tirmath.sandbox.canary import breaches
from arl_gym.envs.tirmath.sandbox.execution import Execution, Limits
from arl_gym.envs.tirmath.sandbox.fork_server import ForkServer
from arl_gym.envs.tirmath.sandbox.fresh import FreshInterpreters
from arl_gym.errors import SandboxUnavailable, UnknownNameError

ISOLATED = ("namespace", "landlock")
TIERS = ("auto", *ISOLATED, "unsafe")


class Runner(Protocol):
    """What a tier is made of."""

    def run(self, order: Mapping[str, Any], stdin: str, called: float) -> Execution:
        """Run a program; `called` is the monotonic time from which its queue time counts."""

    def close(self) -> None:
        """End everything."""


class Sandbox:
    """Runs Python programs, each in a process of its own that sees no other; thread-safe.

    Args:
        tier: "namespace" (a private root, no network, no other process in sight, seccomp, limits), "landlock"
            (landlock, seccomp, limits), "auto": the first of these that holds here, "unsafe": limits only.
        timeout_s, memory_mb, output_bytes, max_concurrency: See `Limits`.

    Raises:
        SandboxUnavailable: If the tier does not hold on this machine; canary programs tell.
        DependencyMissing: If sympy is not installed.
    """

    def __init__(
        self,
        tier: str = "auto",
        *,
        timeout_s: float = 3.0,
        memory_mb: int = 512,
        output_bytes: int = 65536,
        max_concurrency: int = 16,
    ):
        self.limits = Limits(
            timeout_s=timeout_s,
            memory_mb=memory_mb,
            output_bytes=output_bytes,
            max_concurrency=max_concurrency,
        )
        self.tier, self._runner = _choose(tier, self.limits)
        self._places = threading.BoundedSemaphore(max_concurrency)
        self._pid = os.getpid()
        self._finalizer = weakref.finalize(self, _close, self._runner, self._pid)

    def run(self, code: str, *, stdin: str = "", seed: int = 0, prelude: str = "") -> Execution:
        """Run a program to its end, or to a limit; wait for a free place first.

        Args:
            code: The program; it runs as `__main__` in `main.py`.
            stdin: Its standard input; at its end, `input()` raises EOFError.
            seed: Seeds `random` and `numpy.random`.
            prelude: Trusted source that is executed before it in the same namespace; line numbers in
                tracebacks stay those of `code`.

        Raises:
            SandboxUnavailable: If the sandbox is closed, or was made in another process.
        """
        if os.getpid() != self._pid:
            raise SandboxUnavailable(
                f"a sandbox works in the process that made it ({self._pid}), this is a fork of it "
                f"({os.getpid()}): make one here, or use shared_sandbox()"
            )
        called = time.monotonic()
        with self._places:
            if not self._finalizer.alive:
                raise SandboxUnavailable("the sandbox is closed: run() was called after close()")
            order = {"code": code, "prelude": prelude, "seed": seed}
            return self._runner.run(order, stdin, called)

    def close(self) -> None:
        """End the template and everything that runs; twice is fine."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sandbox({self.tier!r}, {self.limits})"


def _close(runner: Runner, pid: int) -> None:
    # A fork of the process has a copy of the sandbox; what it controls belongs to the original.
    if os.getpid() == pid:
        runner.close()


def _choose(tier: str, limits: Limits) -> tuple[str, Runner]:
    if tier not in TIERS:
        raise UnknownNameError("sandbox tier", tier, TIERS)
    if tier == "unsafe":
        warnings.warn(
            "the sandbox runs unisolated (tier 'unsafe'): programs have all rights of this user",
            stacklevel=4,
        )
        return tier, FreshInterpreters(limits)
    failures = []
    for name in ISOLATED if tier == "auto" else (tier,):
        try:
            return name, _proven(name, limits)
        except OSError as error:
            failures.append(f"{name}: {error}")
    raise SandboxUnavailable(
        f"expected an isolated sandbox (tier {tier!r}), but here: {'; '.join(failures)}. "
        'Two ways on: sandbox="unsafe" runs programs with all rights of this user, '
        'sandbox="http://…" runs them on a machine where `arl-gym serve-sandbox` works'
    )


def _proven(tier: str, limits: Limits) -> ForkServer:
    server = ForkServer(tier, limits)
    try:
        found = breaches(server.run)
        if found:
            raise OSError(f"not contained: {', '.join(found)}")
    except BaseException:
        server.close()
        raise
    return server
