"""Workers of a `TextVectorEnv` that are actors of a Ray cluster: `TextVectorEnv(env_fns, workers="ray:16")`.

Everything sent to an actor since the last `recv` travels as one remote call, and its answers come back as one
list: a round over thousands of environments costs a few Ray messages an actor.
"""

import itertools
import os
import queue
import re
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from arl_gym.errors import DependencyMissing
from arl_gym.worker import one_line, serve

try:
    import ray
    from ray.exceptions import RayActorError, RayError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as err:
    raise DependencyMissing("workers='ray'", "ray") from err

LINGER_S = 0.02
"""How long an answer waits in its actor for those of its neighbours, to travel with them."""

HEAD_START = 16
"""So many commands go to an idle actor at once, without waiting for `recv`."""


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
            left = until - time.monotonic()
            ray.wait([channel.awaited() for channel in channels], timeout=max(0.0, left))
            ready = [channel for channel in channels if channel.ready()]
            if ready or left <= 0:
                return ready


def cpu_slots() -> list[str]:
    """Return the id of its node for each CPU of the cluster, the nodes in turn."""
    cpus = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}
    return [node for k in range(max(cpus.values(), default=0)) for node, n in cpus.items() if k < n]


class Actor:
    """The channel to an actor.

    The actor needs a free CPU to be placed and keeps none, which is Ray's default: environments of training
    and evaluation, which take turns, share the CPUs, and what replaces a hanging actor waits for nothing.

    Args:
        next_node: Names a node to prefer, None if there is none yet; another one each time.
    """

    def __init__(self, next_node: Callable[[], str | None]):
        self._next_node = next_node
        self._calls: deque[Any] = deque()  # each brings a reply or more
        self._outbox: list[bytes] = []
        self._inbox: deque[bytes] = deque()
        self._unanswered = 0
        self._end = "it has ended"
        self._place()

    def _place(self) -> None:
        node = self._next_node()
        strategy = "SPREAD" if node is None else NodeAffinitySchedulingStrategy(node, soft=True)
        server = _REMOTE_SERVER.options(scheduling_strategy=strategy)
        self._actor = server.remote([path or os.getcwd() for path in sys.path])
        self._exchange = self._actor.exchange.options(concurrency_group="mail")
        self._placed = self._actor.place.options(concurrency_group="mail").remote()
        self._where: tuple[str, int] | None = None
        self._life = self._actor.serve.remote()

    def send(self, message: bytes) -> None:
        """Keep a message for the next flush."""
        if self._where is not None and _is_done(self._life):
            raise OSError("the actor is gone")
        self._outbox.append(message)
        self._unanswered += 1
        if len(self._outbox) >= HEAD_START and not self._calls:
            self.flush()

    def flush(self) -> None:
        """Send what was kept in one call; if that is nothing, ask for the answers that are still to come."""
        if self._where is not None and (self._outbox or (self._unanswered and not self._calls)):
            self._calls.append(self._exchange.remote(self._outbox))
            self._outbox = []

    def awaited(self) -> Any:
        """Return what must be done before a reply is there, or the end."""
        if self._where is None:
            return self._placed
        return self._calls[0] if self._calls else self._life

    def ready(self) -> bool:
        """Return whether there is a reply, or the end."""
        if self._where is None and _is_done(self._placed) and not self._settle():
            return True
        return bool(self._inbox) or _is_done(self.awaited())

    def _settle(self) -> bool:
        """Send what has waited for the place, or look for another one; return False where that is no use."""
        try:
            self._where = ray.get(self._placed)
            self.flush()
        except RayError as err:
            if not isinstance(err, RayActorError) or err.actor_init_failed:
                return False
            self._place()  # the node was lost before the actor was on it
        return True

    def receive(self) -> bytes:
        """Return the next reply."""
        if not self._inbox:
            try:
                self._inbox.extend(ray.get(self.awaited()) or ())
            except RayError as err:
                self._end = _cause(err)
                raise EOFError(self._end) from err
            if not self._inbox:
                raise EOFError(self._end)
            self._calls.popleft()
            self._unanswered -= len(self._inbox)
            self.flush()  # the rest is on its way while these are looked at
        return self._inbox.popleft()

    def excuse(self) -> str:
        """Say that it was not placed, if that is it."""
        if self._where is not None:
            return ""
        total, free = (of().get("CPU", 0) for of in (ray.cluster_resources, ray.available_resources))
        return f": Ray found no free CPU to place its actor ({total:g} in the cluster, {free:g} free)"

    def obituary(self) -> str:
        """Say how the actor ended, and where it was."""
        where = "" if self._where is None else f"(process {self._where[1]} on {self._where[0]}) "
        return f"{where}is gone: {self._end}"

    def close(self) -> None:
        """Send the empty message, at which the actor closes its environments."""
        if ray.is_initialized() and self._where is not None:
            self._exchange.remote([b""])

    def end(self, grace_s: float) -> None:
        """Wait for the actor to close its environments, and kill it."""
        if ray.is_initialized():  # else the user has shut Ray down, actors and all
            if self._where is not None:
                ray.wait([self._life], timeout=grace_s)
            ray.kill(self._actor)


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
    """The actor. `serve` runs as long as it lives; `exchange`, in another thread, carries its mail."""

    def __init__(self, path: list[str]):
        os.dup2(2, 1)  # what an env prints must not mix with the program's output
        # The driver's modules first, where this machine has them too.
        theirs = [p for p in path if os.path.exists(p)]
        sys.path[:] = [*theirs, *(p for p in sys.path if p not in theirs)]
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._outbox: list[bytes] = []
        self._owed = 0
        self._over = False

    def place(self) -> tuple[str, int]:
        """Return the address of the node, and the process."""
        return ray.util.get_node_ip_address(), os.getpid()

    def serve(self) -> None:
        """Serve a shard until the empty message."""
        try:
            serve(self._inbox.get, self._reply)
        finally:
            with self._changed:
                self._over = True
                self._changed.notify()

    def _reply(self, reply: bytes) -> None:
        with self._changed:
            self._outbox.append(reply)
            self._owed -= 1
            if len(self._outbox) == 1 or not self._owed:
                self._changed.notify()

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """Take in messages; wait for a reply and return it with those that follow soon, [] after the end."""
        with self._changed:
            self._owed += len(messages)
            for message in messages:
                self._inbox.put(message)
            self._changed.wait_for(lambda: self._outbox or self._over)
            self._changed.wait_for(lambda: not self._owed or self._over, LINGER_S)
            replies, self._outbox = self._outbox, []
            return replies


_REMOTE_SERVER = ray.remote(concurrency_groups={"mail": 1})(Server)
