"""Where the environments of a `TextVectorEnv` live: in this process, or in workers.

A `Shard` holds some environments and answers commands without ever raising; `serve` is the loop of a worker
around one shard. `Worker` is the parent's handle of a worker, whatever it runs on: a `Host` starts it and
gives the `Channel` to it. `Processes` is the host of worker processes of this machine, `ray_worker.RayActors`
that of a Ray cluster. Internal: users see `arl_gym.vector` only.

A worker process is a fresh interpreter, not a fork and not `multiprocessing`: the user's script is not
imported again, so environments defined in a notebook or an unguarded script work, and a script that imports
torch does not load it once more per worker. POSIX only.
"""

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Literal, Protocol

import cloudpickle
import gymnasium as gym

from arl_gym.errors import ActionError, ArlGymError, WorkerError

EnvFn = Callable[[], gym.Env[Any, Any]]
Verb = Literal["step", "reset", "call"]
Traits = dict[int, tuple[Any, Any, dict[str, Any], str | None]]
"""Observation space, action space, metadata and render mode by environment."""
Reply = tuple[Literal["result", "value", "error", "raise", "ready"], Any]
"""What came of a command: ("result", (observation, reward, terminated, truncated, info)), ("value", that of a
call), ("error", text) where the environment failed, ("raise", exception) where the caller did. "ready" is a
worker's first reply and carries the traits of its environments."""

CLOSE_S = 5.0
"""How long a worker may take to close its environments."""

_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from arl_gym.worker import main; main(int(sys.argv[1]))"


class Shard:
    """Some environments of a vector environment, by index."""

    def __init__(self, env_fns: Mapping[int, EnvFn]):
        self._env_fns = env_fns
        self._envs: dict[int, gym.Env[Any, Any]] = {}
        try:
            for i in env_fns:
                self._env(i)
        except BaseException:
            self.close()
            raise

    def _env(self, i: int) -> gym.Env[Any, Any]:
        if i not in self._envs:
            self._envs[i] = self._env_fns[i]()
        return self._envs[i]

    def traits(self) -> Traits:
        """Return what the vector environment must know of each environment."""
        return {
            i: (env.observation_space, env.action_space, env.metadata, env.render_mode)
            for i, env in self._envs.items()
        }

    def run(self, verb: Verb, i: int, payload: Any) -> Reply:
        """Carry out one command on environment `i`.

        An environment that fails is closed, and built again for the next command. What a call raises, an
        action of the wrong type and a reset to an unknown task are the caller's mistakes: they are handed
        back as exceptions and the environment stays.
        """
        try:
            env = self._env(i)
            if verb == "step":
                obs, reward, terminated, truncated, info = env.step(payload)
                return "result", (obs, float(reward), bool(terminated), bool(truncated), info)
            if verb == "reset":
                seed, options = payload
                obs, info = env.reset(seed=seed, options=options)
                return "result", (obs, 0.0, False, False, info)
            name, args, kwargs = payload
            value = env.get_wrapper_attr(name)
            return "value", value(*args, **kwargs) if callable(value) else value
        except Exception as err:
            if verb == "call" or isinstance(err, ActionError if verb == "step" else ArlGymError):
                return "raise", err
            self._drop(i)
            return "error", one_line(err)

    def _drop(self, i: int) -> str:
        """Close environment `i` if it exists; return what went wrong in that, or an empty string."""
        env = self._envs.pop(i, None)
        try:
            if env is not None:
                env.close()
        except Exception as err:
            return f"env {i}: {one_line(err)}"
        return ""

    def close(self) -> list[str]:
        """Close all environments; return the failures in words."""
        return [text for i in list(self._envs) if (text := self._drop(i))]


def one_line(err: BaseException) -> str:
    """Return type and text of an exception on one line."""
    return " ".join(f"{type(err).__name__}: {err}".split())


# ---- the worker's side


def serve(inbox: Callable[[], bytes], outbox: Callable[[bytes], None]) -> None:
    """Build a shard from the first message and carry out the others, a reply for each, until one is empty."""
    try:
        shard = Shard(cloudpickle.loads(inbox()))
    except Exception as err:
        outbox(_encode(("raise", err)))
        return
    try:
        outbox(_encode(("ready", shard.traits())))
        while message := inbox():
            outbox(_encode(_run(shard, message)))
    finally:
        shard.close()


def _run(shard: Shard, message: bytes) -> Reply:
    try:
        verb, i, payload = pickle.loads(message)
    except Exception as err:
        return "raise", WorkerError(f"a worker cannot unpickle its command: {one_line(err)}")
    return shard.run(verb, i, payload)


def _encode(reply: Reply) -> bytes:
    """Pickle a reply; what cannot travel is replaced by words."""
    try:
        data = _dumps(reply)
        if reply[0] == "raise":
            pickle.loads(data)  # many exception classes can be pickled but not restored
        return data
    except Exception as err:
        if reply[0] == "raise":
            return pickle.dumps(("raise", WorkerError(one_line(reply[1]))))
        return pickle.dumps(("error", f"the result cannot be pickled: {one_line(err)}"))


def _dumps(reply: Reply) -> bytes:
    try:
        return pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)
    except Exception:  # a class of the parent's script, say; twice as slow
        data: bytes = cloudpickle.dumps(reply)
        return data


def main(fd: int) -> None:
    """Serve one shard over the socket `fd` until the parent closes it or is gone."""
    # A handler and not SIG_IGN, which programs started by an env would inherit. Ctrl-C is for the parent.
    signal.signal(signal.SIGINT, lambda *_: None)
    os.set_inheritable(fd, False)
    sys.argv[1:] = []
    conn = Connection(fd)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_drain, args=(conn, inbox), daemon=True).start()
    with contextlib.suppress(OSError):  # writing to a parent that is gone
        serve(inbox.get, conn.send_bytes)


def _drain(conn: Connection, inbox: "queue.SimpleQueue[bytes]") -> None:
    """Pump, and end the process when the parent has closed the pipe or died, even out of a hanging step."""
    pump(conn, inbox)
    time.sleep(CLOSE_S)
    os._exit(1)


def pump(conn: Connection, inbox: "queue.SimpleQueue[bytes]") -> None:
    """Move commands to the loop, so that the parent's writes never wait for a busy env; b"" at the end."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            inbox.put(conn.recv_bytes())
    inbox.put(b"")


# ---- the parent's side


class Channel(Protocol):
    """The way to one worker and back: a message for a message, in order."""

    def send(self, message: bytes) -> None:
        """Send a message.

        Raises:
            OSError: If the worker is gone.
        """
        ...

    def ready(self) -> bool:
        """Return whether `receive` need not wait."""
        ...

    def receive(self) -> bytes:
        """Return the next reply, waiting for it.

        Raises:
            EOFError, OSError: If the worker is gone, and so are its replies.
        """
        ...

    def excuse(self) -> str:
        """Say what is known of why no reply comes, as the end of a sentence; often nothing."""
        ...

    def obituary(self) -> str:
        """Say how a worker that is gone has ended, as the end of a sentence."""
        ...

    def close(self) -> None:
        """Ask the worker to close its environments and end."""
        ...

    def end(self, grace_s: float) -> None:
        """Close, wait so long for the worker to end by itself, and kill it if it has not."""
        ...


class Host(Protocol):
    """What workers run on."""

    def start(self) -> Channel:
        """Start a worker around `serve`."""
        ...

    def wait(self, channels: Sequence[Any], timeout_s: float) -> Sequence[Any]:
        """Wait until a channel of this host is ready; return those that are, none if the time is up."""
        ...


class Worker:
    """The parent's handle of one worker: a FIFO of commands that wait for their reply.

    Attributes:
        channel: The way to it.
        pending: (environment, verb) of each unanswered command, oldest first.
        deadline: Monotonic time by which the next reply must come, if one is due.
        traits: What the shard said of its environments; None until it is ready.
    """

    def __init__(
        self,
        number: int,
        env_fns: Mapping[int, EnvFn],
        host: Host,
        *,
        start_timeout_s: float,
        step_timeout_s: float,
    ):
        self.number = number
        self.indices = tuple(env_fns)
        self.pending: deque[tuple[int, Verb]] = deque()
        self._blob: bytes = cloudpickle.dumps(dict(env_fns))
        self._host = host
        self._start_timeout_s, self._step_timeout_s = start_timeout_s, step_timeout_s
        self.start()

    def start(self) -> None:
        """Start it; its "ready" is the first reply."""
        self.channel = self._host.start()
        self.traits: Traits | None = None
        self.deadline = time.monotonic() + self._start_timeout_s
        with contextlib.suppress(OSError):  # it died at once: the next read says so
            self.channel.send(self._blob)

    def post(self, verb: Verb, i: int, payload: Any) -> None:
        """Send a command.

        Raises:
            OSError: If the worker is gone.
        """
        dumps = pickle.dumps if type(payload) is str else cloudpickle.dumps  # ten times quicker
        self.channel.send(dumps((verb, i, payload)))
        if not self.pending and self.traits is not None:
            self.deadline = time.monotonic() + self._step_timeout_s
        self.pending.append((i, verb))

    def receive(self) -> Reply:
        """Return the next reply, waiting for it; it belongs to the head of `pending`, except "ready".

        Raises:
            EOFError, OSError: If the worker is gone.
        """
        reply: Reply = pickle.loads(self.channel.receive())
        self.deadline = time.monotonic() + self._step_timeout_s
        if reply[0] == "ready":
            self.traits = reply[1]
        return reply

    def wait_until_ready(self) -> Traits:
        """Wait for the first start.

        Raises:
            WorkerError: If the worker dies or is too slow.
            Exception: What building an environment raised.
        """
        if not self._host.wait([self.channel], max(0.0, self.deadline - time.monotonic())):
            raise WorkerError(self.overdue())
        try:
            kind, payload = self.receive()
        except (EOFError, OSError) as err:
            raise WorkerError(f"{self.obituary()} before it was ready") from err
        if kind == "raise":
            raise payload
        traits: Traits = payload
        return traits

    def overdue(self) -> str:
        """Say that no reply came in time."""
        limit = self._start_timeout_s if self.traits is None else self._step_timeout_s
        what = f"env {self.pending[0][0]}" if self.traits is not None and self.pending else "the start"
        silence = f"no answer from {what} within {limit:g} s{self.channel.excuse()}"
        return f"worker {self.number} was killed: {silence}"

    def obituary(self) -> str:
        """Say how it ended."""
        return f"worker {self.number} {self.channel.obituary()}"

    def end(self, grace_s: float = 0.0) -> None:
        """End it, by force if it takes longer than `grace_s`."""
        self.channel.end(grace_s)
        self.pending.clear()


class Processes:
    """Host of workers that are processes of this machine."""

    def start(self) -> "Process":
        """Start a process."""
        return Process()

    def wait(self, channels: "Sequence[Process]", timeout_s: float) -> "list[Process]":
        """Wait until a process has answered or is gone; return those, none if the time is up."""
        by_conn = {channel.conn: channel for channel in channels}
        return [by_conn[conn] for conn in wait(list(by_conn), timeout_s)]  # type: ignore[index]  # a Connection


class Process:
    """The channel to a worker process of its own: a pipe."""

    def __init__(self) -> None:
        self.conn, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(theirs.fileno()), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what an env prints must not mix with the program's output
                start_new_session=True,  # the terminal's Ctrl-C does not reach it
            )

    def send(self, message: bytes) -> None:
        """Write a message."""
        self.conn.send_bytes(message)

    def ready(self) -> bool:
        """Return whether there is something to read, be it the end."""
        return self.conn.poll()

    def receive(self) -> bytes:
        """Read a message."""
        return self.conn.recv_bytes()

    def excuse(self) -> str:
        """Say nothing: a process that does not answer is busy."""
        return ""

    def obituary(self) -> str:
        """Say how the process ended."""
        try:
            code = self.process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    def close(self) -> None:
        """Close the pipe, at which the worker closes its environments and exits."""
        self.conn.close()

    def end(self, grace_s: float) -> None:
        """Close the pipe, wait for the process to end by itself, then kill what is left.

        That takes in the programs its environments have started: they are of its process group.
        """
        self.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(grace_s)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
