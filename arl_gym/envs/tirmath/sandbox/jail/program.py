"""One program: its code, and what the interpreter does around it at the start and at the end.

`boot.py` executes the code itself, in a frame that is the first of the process.
"""

import atexit
import contextlib
import gc
import linecache
import os
import random
import signal
import site
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

FILE_NAME = "main.py"
PRELUDE_NAME = "<prelude>"

_OWN_FILES = (__file__, os.path.join(os.path.dirname(__file__), "boot.py"))

OUT_OF_MEMORY = signal.SIGUSR2
"""What a program dies of whose MemoryError nobody caught: seen by waitpid, unlike anything it could write."""


def furnish(site_dirs: list[str]) -> None:
    """Give the interpreter what `site` gives one started in the usual way, and streams that take any text."""
    sys.path += site_dirs
    site.setquit()
    site.sethelper()
    os.environ.pop("PYTHONHASHSEED", None)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]


class Program:
    """A program and its namespace, which is the module `__main__`."""

    def __init__(self, *, code: str, prelude: str, seed: int):
        self._sources = {PRELUDE_NAME: prelude, FILE_NAME: code}
        self._module = types.ModuleType("__main__")
        self._out_of_memory = False
        self.namespace: dict[str, Any] = self._module.__dict__
        self.namespace.update(__file__=FILE_NAME, __builtins__=sys.modules["builtins"])
        _seed(seed)
        # From here on the process looks like `python main.py`.
        sys.modules["__main__"] = self._module
        for name in [name for name in sys.modules if name.partition(".")[0] == "jail"]:
            del sys.modules[name]
        sys.argv = [FILE_NAME]

    def compiled(self) -> Iterator[types.CodeType]:
        """Give the prelude and the program, each compiled when the one before has run."""
        for name, source in self._sources.items():
            if name == FILE_NAME or source:
                lines = [line + "\n" for line in source.split("\n")]
                linecache.cache[name] = len(source), None, lines, name  # no time: it is never checked
                yield compile(source, name, "exec", dont_inherit=True)

    def report(self, error: BaseException) -> int:
        """Do what the interpreter does about an uncaught exception; return the exit code."""
        if isinstance(error, SystemExit):
            return _exit_code(error.code)
        self._out_of_memory = isinstance(error, MemoryError)
        frames = error.__traceback__
        while frames and frames.tb_frame.f_code.co_filename in _OWN_FILES:
            frames = frames.tb_next
        _step(lambda: _show(error.with_traceback(frames)))
        return 1

    def end(self, code: int) -> None:
        """Wait for threads, run exit hooks, let objects die, flush, and end the process."""
        _step(threading._shutdown)  # type: ignore[attr-defined]
        _step(atexit._run_exitfuncs)
        _step(self.namespace.clear)
        _step(gc.collect)
        _step(lambda: sys.stdout.flush())
        _step(lambda: sys.stderr.flush())
        if self._out_of_memory:
            signal.signal(OUT_OF_MEMORY, signal.SIG_DFL)
            os.kill(os.getpid(), OUT_OF_MEMORY)
        os._exit(code)


def _step(action: Callable[[], object]) -> None:
    # What goes wrong here is the program's own doing (closed descriptors, replaced objects) and ends with it.
    with contextlib.suppress(BaseException):
        action()


def _exit_code(code: object) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    _step(lambda: sys.stderr.write(f"{code}\n"))
    return 1


def _show(error: BaseException) -> None:
    if sys.excepthook is sys.__excepthook__:
        traceback.print_exception(error)  # finds the source in linecache, which the built-in hook does not
    else:
        sys.excepthook(type(error), error, error.__traceback__)


def _seed(seed: int) -> None:
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))
