"""Workers of a `TextVectorEnv` that are actors of a Ray cluster: `TextVectorEnv(env_fns, workers="ray:16")`.

Ray places the actors and says when one is gone. What is said between them and this process goes through a
socket to each, as through the pipe to a worker process: a remote call takes a millisecond, which is more than
most environments take for a step.
"""

import contextlib
import hmac
import itertools
import os
import queue
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from arl_gym.errors import DependencyMissing
from arl_gym.worker import CLOSE_S, one_line, pump, serve

try:
    import ray
    from ray.exceptions import RayActorError, RayError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as err:
    raise DependencyMissing("workers='ray'", "ray") from err

LOOK_S = 1.0
"""How often Ray is asked of actors that say nothing: the socket to a machine without power stays open."""

TICK_S = 0.02
"""How often the sockets are looked at while an actor is being placed, which Ray alone can wait for."""

CONNECT_S = 10.0
"""How long connecting to an actor, and its greeting, may take."""

_KEY_BYTES = 32


class RayActors:
    """Host of workers that are actors.

    Without `ray.init` before, it joins the cluster of RAY_ADDRESS or one that runs on this machine, or starts
    one. That stays for the next vector environment, until the program ends.
    """

    def __init__(self) -> None:
        if not ray.is_initialized():
            ray.init()
        # A random start: several vector environments should not all begin with the same node.
        self._turn = itertools.count(secrets.randbelow(1 << 16))

    def start(self) -> "Actor":
        """Have an actor placed on a node."""
        return Actor(self._next_node)

    def _next_node(self) -> str | None:
        slots = cpu_slots()
        return slots[next(self._turn) % len(slots)] if slots else None

    def wait(self, channels: "Sequence[Actor]", timeout_s: float) -> "Sequence[Actor]":
        """Wait until an actor has answered or is gone; return those, none if the time is up."""
        until = time.monotonic() + timeout_s
        while True:
            ready = [channel for channel in channels if channel.ready()]
            left = until - time.monotonic()
            if ready or left <= 0:
                return ready
            pause = min(left, LOOK_S)
            if placing := [channel.placed for channel in channels if channel.conn is None]:
                ray.wait(placing, timeout=min(pause, TICK_S))
            elif not wait([c.conn for c in channels if c.conn is not None], pause):
                for channel in channels:
                    channel.look()


def cpu_slots() -> list[str]:
    """Return the id of its node for each CPU of the cluster, the nodes in turn."""
    cpus = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}
    return [node for k in range(max(cpus.values(), default=0)) for node, n in cpus.items() if k < n]


class Actor:
    """The channel to an actor.

    It reserves no CPU, which is Ray's default, as a worker process does not: environments of training and
    evaluation, which take turns, share the CPUs, and what replaces a hanging actor waits for nothing.

    Args:
        next_node: Names a node to prefer, None if there is none yet; another one each time.

    Attributes:
        placed: Ray's reference to where it listens.
        conn: The socket to it, once there is one.
    """

    def __init__(self, next_node: Callable[[], str | None]):
        self._next_node = next_node
        self._outbox: list[bytes] = []  # until there is a socket
        self._lost = False
        self._end = ""
        self._place()

    def _place(self) -> None:
        node = self._next_node()
        strategy = "SPREAD" if node is None else NodeAffinitySchedulingStrategy(node, soft=True)
        self._key = secrets.token_bytes(_KEY_BYTES)
        server = _REMOTE_SERVER.options(scheduling_strategy=strategy)
        self._actor = server.remote([path or os.getcwd() for path in sys.path], self._key)
        self.placed = self._actor.listen.remote()
        self._life = self._actor.serve.remote()
        self._where: tuple[str, int, int] | None = None
        self.conn: Connection | None = None

    def send(self, message: bytes) -> None:
        """Write a message, or keep it until there is a socket."""
        if self.conn is None:
            self._outbox.append(message)
            return
        # The first write after the other side is gone would go through.
        with contextlib.suppress(BlockingIOError):
            if not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                raise BrokenPipeError("the actor is gone")
        self.conn.send_bytes(message)

    def look(self) -> None:
        """Ask Ray whether the actor lives."""
        self._lost = self._lost or _is_done(self._life)

    def ready(self) -> bool:
        """Return whether there is something to read, be it the end."""
        if self.conn is None and not self._lost and _is_done(self.placed):
            self._settle()
        return self._lost or (self.conn is not None and self.conn.poll())

    def _settle(self) -> None:
        """Connect to the actor where it was placed, or have another one placed."""
        try:
            self._where = host, port, _ = ray.get(self.placed)
            self._socket = socket.create_connection((host, port), timeout=CONNECT_S)
            self._socket.sendall(self._key)
            self.conn = _connection(self._socket)
            for message in self._outbox:
                self.conn.send_bytes(message)
            self._outbox = []
        except RayError as err:
            if isinstance(err, RayActorError) and not err.actor_init_failed:
                self._place()  # the node was lost before the actor was on it
            else:
                self._lost, self._end = True, _cause(err)
        except OSError as err:
            self._lost, self._end = True, f"it cannot be reached: {one_line(err)}"

    def receive(self) -> bytes:
        """Read a message."""
        if self.conn is None or (self._lost and not self.conn.poll()):
            raise EOFError("the actor is gone")
        return self.conn.recv_bytes()

    def excuse(self) -> str:
        """Say that Ray has not started it yet, if that is it."""
        return "" if self._where is not None else ": Ray has not started its actor"

    def obituary(self) -> str:
        """Say how the actor ended, and where it was."""
        if not self._end and ray.wait([self._life], timeout=CLOSE_S)[0]:
            try:
                ray.get(self._life)
            except RayError as err:
                self._end = _cause(err)
        where = "" if self._where is None else f"(process {self._where[2]} on {self._where[0]}) "
        return f"{where}is gone: {self._end or 'it closed its socket'}"

    def close(self) -> None:
        """Close the socket, at which the actor closes its environments."""
        if self.conn is not None:
            self.conn.close()
            self._socket.close()

    def end(self, grace_s: float) -> None:
        """Wait for the actor to close its environments, and kill it."""
        self.close()
        if ray.is_initialized():  # else the user has shut Ray down, actors and all
            if self.conn is not None:
                ray.wait([self._life], timeout=grace_s)
            ray.kill(self._actor)


def _connection(sock: socket.socket) -> Connection:
    """Return a connection over a connected socket, which stays usable itself."""
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # one message need not wait for another
    return Connection(os.dup(sock.fileno()))


def _is_done(ref: Any) -> bool:
    return bool(ray.wait([ref], timeout=0)[0])


def _cause(err: RayError) -> str:
    """Return what Ray knows of an actor's end, without its advice; of a traceback the last line."""
    if isinstance(err, RayTaskError) or getattr(err, "actor_init_failed", False):
        return str(err).strip().splitlines()[-1]
    text = one_line(err)
    cause = re.split("The actor (?:is dead|died) because ", text)[-1]
    return cause.partition(" Some common causes")[0][:300]


class Server:
    """The actor: listens for the vector environment, and serves it as long as it lives.

    Args:
        path: The driver's `sys.path`.
        key: What the vector environment greets with; a stranger does not know it.
    """

    def __init__(self, path: list[str], key: bytes):
        os.dup2(2, 1)  # what an env prints must not mix with the program's output
        # The driver's modules first, where this machine has them too.
        theirs = [p for p in path if os.path.exists(p)]
        sys.path[:] = [*theirs, *(p for p in sys.path if p not in theirs)]
        self._key = key

    def listen(self) -> tuple[str, int, int]:
        """Return address and port to connect to, and the process."""
        host = ray.util.get_node_ip_address()
        self._listener = socket.create_server((host, 0))
        return host, self._listener.getsockname()[1], os.getpid()

    def serve(self) -> None:
        """Serve a shard until the socket is closed."""
        conn = self._accept()
        inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=pump, args=(conn, inbox), daemon=True).start()
        try:
            with contextlib.suppress(OSError):  # writing to a driver that is gone
                serve(inbox.get, conn.send_bytes)
        finally:
            conn.close()

    def _accept(self) -> Connection:
        with self._listener:
            while True:
                sock, _ = self._listener.accept()
                with sock, contextlib.suppress(OSError):
                    sock.settimeout(CONNECT_S)
                    if hmac.compare_digest(sock.recv(_KEY_BYTES, socket.MSG_WAITALL), self._key):
                        return _connection(sock)


_REMOTE_SERVER = ray.remote(Server)
