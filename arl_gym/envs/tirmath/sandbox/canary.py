"""Canary programs: what a tier must refuse is tried before it is trusted."""

import os
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from arl_gym.envs.tirmath.sandbox.execution import Execution
from arl_gym.envs.tirmath.sandbox.python import environment

Run = Callable[[Mapping[str, Any], str, float], Execution]

_SECRET = "ARL_GYM_CANARY"
_PROGRAM = """
import os, secrets, socket, decimal, fractions, numpy.random, sympy

def attempt(name, action):
    try:
        action()
    except (OSError, KeyError):
        return
    print(name)

def read(path):
    with open(path, "rb") as file:
        if not file.read(1):
            raise OSError

def write(path):
    with open(path, "w") as file:
        file.write("x")

def connect(port):
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        pass

def fork():
    if os.fork() == 0:
        os._exit(0)

attempt("reads a file of the host", lambda: read({secret!r}))
attempt("reads /etc/passwd", lambda: read("/etc/passwd"))
attempt("writes a file of the host", lambda: write({target!r}))
attempt("connects to the host", lambda: connect({port}))
attempt("starts a process", fork)
attempt("sees the environment of the host", lambda: os.environ[{variable!r}])
attempt("reads the environment of the supervisor", lambda: read("/proc/{pid}/environ"))
attempt("reads the environment of the template", lambda: read(f"/proc/{{os.getppid()}}/environ"))
attempt("sends signals to the supervisor", lambda: os.kill({pid}, 0))
attempt("sends signals to the template", lambda: os.kill(os.getppid(), 0))
assert sympy.expand((sympy.Symbol("x") + 1) ** 2).as_poly().degree() == 2
print("end")
"""


def breaches(run: Run) -> list[str]:
    """Run the canary programs and return what they could do, or what they could not although they should.

    Every attempt is made on something that this process has put there and looks at afterwards.
    """
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        os.chmod(folder, 0o777)
        secret, target = Path(folder, "secret"), Path(folder, "target")
        secret.write_text(_SECRET)
        program = _PROGRAM.format(
            secret=str(secret),
            target=str(target),
            port=listener.getsockname()[1],
            pid=os.getpid(),
            variable=_some_variable(),
        )
        execution = run({"code": program, "prelude": "", "seed": 0}, "", time.monotonic())
        found = execution.stdout.split("\n")
        if execution.status != "ok" or found[-2:] != ["end", ""]:
            detail = execution.stderr.strip().rpartition("\n")[2]
            return [f"the canary program did not work ({execution.status}: {detail})"]
        listener.setblocking(False)
        return [*found[:-2], *_outside(target, listener)]


def _outside(target: Path, listener: socket.socket) -> list[str]:
    found = ["a file appeared"] if target.exists() else []
    try:
        listener.accept()[0].close()
        found.append("a connection arrived")
    except BlockingIOError:
        pass
    return found


def _some_variable() -> str:
    """Return a variable of this process's environment that programs are not given."""
    return next((name for name in os.environ if name not in environment()), "ARL_GYM_NONE")
