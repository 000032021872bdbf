"""The grader: cache, shortcut, worker process, deadline.

>>> with Grader() as grader:
...     grader.check("27", "27.0").equal
True
"""

import os
import threading
import weakref
from collections import OrderedDict
from types import TracebackType
from typing import Self

from arl_gym.envs.tirmath.grading.judge import Verdict, judge
from arl_gym.envs.tirmath.grading.worker import Worker
from arl_gym.errors import ConfigError

CACHED = 65_536
"""How many verdicts of its worker a grader remembers, timeouts too."""

PATIENCE = 0.2
"""Share of the deadline after which a second worker is started, in case the first must be killed."""


class _NeedsSymbols(Exception):
    """Strings and fractions cannot decide."""


def _ask_worker(gold: str, answer: str) -> bool:
    raise _NeedsSymbols


class Grader:
    """Compares answers with gold answers; safe in threads and after a fork.

    A worker process is started for the first pair that needs it; such pairs are checked one at a time. A pair
    that is not decided in `deadline_s` is not equal, and its worker is killed. The successor starts loading
    as soon as a check takes long, so that hardly anyone waits for it.

    Args:
        deadline_s: Longest time the worker may take for one pair, from when it is ready.
        memory_mb: Address space of the worker.
    """

    def __init__(self, *, deadline_s: float = 2.0, memory_mb: int = 2048):
        if deadline_s <= 0 or memory_mb < 512:
            raise ConfigError(
                f"Grader needs deadline_s > 0 and memory_mb >= 512, got {deadline_s} and {memory_mb}"
            )
        self.deadline_s = deadline_s
        self.memory_mb = memory_mb
        self._cache: OrderedDict[tuple[str, str], Verdict] = OrderedDict()
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._finalizer = weakref.finalize(self, _end_all, self._workers)
        _alive.add(self)

    def check(self, gold: str, answer: str) -> Verdict:
        """Compare `answer` with `gold`, both LaTeX, text or printed Python without a box.

        Raises:
            DependencyMissing: If the pair needs math-verify and it is not installed.
            WorkerError: If no worker process can be started.
        """
        try:
            return judge(gold, answer, _ask_worker)
        except _NeedsSymbols:
            known = self._cache.get((gold, answer))
        if known is not None:
            return known
        with self._lock:
            verdict = self._check_in_worker(gold, answer)
            self._cache[gold, answer] = verdict
            if len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return verdict

    def _check_in_worker(self, gold: str, answer: str) -> Verdict:
        if not self._workers:
            self._start()
        worker = self._workers[0]
        try:
            worker.wait_until_ready()
            worker.post(gold, answer)
            result = worker.reply(self.deadline_s * PATIENCE)
            if result == "timeout":
                if len(self._workers) == 1:
                    self._start()
                result = worker.reply(self.deadline_s * (1 - PATIENCE))
        except BaseException:  # a Ctrl-C in the middle, too: the next reply would be that of this pair
            self._workers.pop(0).end()
            raise
        if isinstance(result, Verdict):
            return result
        self._workers.pop(0).end()
        return Verdict(equal=False, how=result)

    def _start(self) -> None:
        self._workers.append(Worker(self.memory_mb, limit_s=2 * self.deadline_s + 1))

    def close(self) -> None:
        """End the worker process. A later check starts a new one."""
        with self._lock:
            _end_all(self._workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        while self._workers:
            self._workers.pop().forget()


def _end_all(workers: list[Worker]) -> None:
    while workers:
        workers.pop().end()


_alive: "weakref.WeakSet[Grader]" = weakref.WeakSet()
_shared: list[Grader] = []
_shared_lock = threading.Lock()


def shared_grader() -> Grader:
    """Return the grader of this process, with the default limits; a forked child gets a worker of its own."""
    with _shared_lock:
        if not _shared:
            _shared.append(Grader())
        return _shared[0]


def _renew_after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    for grader in list(_alive):
        grader._after_fork()


os.register_at_fork(after_in_child=_renew_after_fork)
