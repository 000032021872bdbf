"""Runs the Python programs that a model writes, isolated, at the speed of a fork.

    with Sandbox() as sandbox:                      # or shared_sandbox(): one per process and settings
        execution = sandbox.run("print(6 * 7)")     # .status, .stdout, .stderr, .returncode

Linux 5.13 or newer on x86_64 or aarch64, as root or not, without any other program. A template process has
imported numpy and sympy and forks a child for each program; the child is jailed before it gets the program,
runs it alone, and is gone. The supervisor, this process, keeps the clock, the pipes and all it knows.

Covered: no program can
- read a file but Python's and the system's libraries, or write one (`/dev/null` is there);
- reach a network, this machine's included, or open a socket but a pair of its own;
- start a process, execute another program, outlive its run, or signal, trace or see into another process;
- see the environment, the memory or the descriptors of the supervisor or of another program, or leave
  anything behind for the next one;
- use more than its time, memory, output, threads and descriptors; only the supervisor says how it ended.

Not covered:
- the kernel is shared, and a hole in what is left of it open (seccomp's list) is a way out; so are side
  channels and the processor's own faults. Models that attack need a virtual machine around all of this:
  `open_sandbox("http://…")` reaches into one;
- the share of CPU and memory bandwidth: `max_concurrency` programs use what they get;
- installed packages can be read: keep no secrets in site-packages (this package itself is hidden);
- with "landlock", that a file exists, its size and times can be asked for (`stat`), not its content;
- "unsafe" covers nothing but time, memory and output.

Differences to `python main.py`: no file can be written, threads that die print no source lines, and `numpy`
and `sympy` are loaded from the start.
"""

from arl_gym.envs.tirmath.sandbox.execution import Execution, Limits, Status
from arl_gym.envs.tirmath.sandbox.remote import RemoteSandbox
from arl_gym.envs.tirmath.sandbox.sandbox import Sandbox
from arl_gym.envs.tirmath.sandbox.server import serve
from arl_gym.envs.tirmath.sandbox.shared import open_sandbox, shared_sandbox
from arl_gym.errors import SandboxUnavailable

__all__ = [
    "Execution",
    "Limits",
    "RemoteSandbox",
    "Sandbox",
    "SandboxUnavailable",
    "Status",
    "open_sandbox",
    "serve",
    "shared_sandbox",
]
