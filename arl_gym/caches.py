"""What makes a cache: a lock, so that one process at a time does the work, and a bar while it takes long.

>>> with locked(cache_root() / "rooms"):  # doctest: +SKIP
...     rows = [read(path) for path in with_bar(paths, "reading rooms", total=len(paths))]
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

T = TypeVar("T")

_LOCK_TIMEOUT_S = 600.0
_BAR_AFTER_S = 2.0


@contextmanager
def locked(cache: Path, timeout_s: float | None = None) -> Iterator[bool]:
    """Let one process at a time make a cache; gives whether this one holds the lock.

    Only saves work: where a file system has no locks, or one is never given back, everybody makes it, and the
    last one stays.

    Args:
        cache: A file or folder; the lock is a file beside it.
        timeout_s: How long to wait for another process.
    """
    with ExitStack() as stack:
        holds = False
        with suppress(ImportError, OSError):
            cache.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(cache.with_suffix(".lock").open("wb"))
            holds = _acquire(file, _LOCK_TIMEOUT_S if timeout_s is None else timeout_s)
        yield holds


def _acquire(file: BinaryIO, timeout_s: float) -> bool:
    import fcntl

    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.1)
    return False


def with_bar(
    items: Iterable[T], what: str, *, total: int, done: Callable[[T], int] | None = None
) -> Iterator[T]:
    """Give the items; once it takes long, draw a bar on stderr if somebody may see it.

    Args:
        items: What is worked through.
        what: Stands beside the bar.
        total: Where the bar ends.
        done: Says how far the work is, of the item that comes next; None counts the items.
    """
    began, bar = time.monotonic(), None
    try:
        for k, item in enumerate(items):
            if bar is None and sys.stderr.isatty() and time.monotonic() - began > _BAR_AFTER_S:
                from rich.console import Console
                from rich.progress import Progress

                bar = Progress(console=Console(stderr=True), transient=True)
                bar.start()
                row = bar.add_task(what, total=total)
            if bar is not None:
                bar.update(row, completed=k if done is None else done(item))
            yield item
    finally:
        if bar is not None:
            bar.stop()
