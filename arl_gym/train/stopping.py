"""Being told to stop: SIGTERM and SIGUSR1 set a flag that the run looks at where it can stop cleanly.

Schedulers send them before they take a machine away. Nothing is interrupted in the middle of an update.

    with StopSignal() as stop:
        rollout(..., check=stop.check)
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from arl_gym.errors import Interrupted

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class StopSignal:
    """Remembers that one of `SIGNALS` came; as a context manager it listens, in the main thread only."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {s: signal.signal(s, self._remember) for s in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name

    def check(self) -> None:
        """Raise `Interrupted` if a signal came."""
        if self.name is not None:
            raise Interrupted(f"told to stop by {self.name}")
