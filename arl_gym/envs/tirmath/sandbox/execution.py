"""What came of a program, and the limits it ran under."""

from dataclasses import dataclass
from typing import Literal

from arl_gym.errors import ConfigError

Status = Literal["ok", "error", "timeout", "memory", "output_limit", "killed", "sandbox_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What came of one program.

    The status is what the supervisor saw: `ok` exit code 0; `error` any other; `timeout`, `output_limit` it
    was ended for that; `memory` a MemoryError ended it; `killed` it died of a signal (the return code is its
    negative number); `sandbox_error` no fault of its own kept it from running to its end: `stderr` says what.
    """

    status: Status
    stdout: str
    stderr: str
    returncode: int | None
    """None where no program ran, or how it ended is unknown."""
    truncated: bool
    """Output was cut at the limit."""
    queue_ms: float
    """From the call to the moment the program started."""
    run_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a program may use."""

    timeout_s: float
    """Wall-clock time from its start; waiting for a free place is not counted."""
    memory_mb: int
    """Address space beyond that of an interpreter with numpy and sympy."""
    output_bytes: int
    """Of stdout and of stderr, each."""
    max_concurrency: int
    """Programs at the same time; more of them wait."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            ConfigError: If one is out of range.
        """
        if not 0 < self.timeout_s <= 3600:
            raise ConfigError(f"timeout_s must be in (0, 3600], got {self.timeout_s!r} (sandbox)")
        for name in ("memory_mb", "output_bytes", "max_concurrency"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r} (sandbox)")


def sandbox_error(reason: str, queue_ms: float, run_ms: float = 0.0) -> Execution:
    """Return what stands for a program that the sandbox failed to run."""
    return Execution(
        status="sandbox_error",
        stdout="",
        stderr=reason,
        returncode=None,
        truncated=False,
        queue_ms=queue_ms,
        run_ms=run_ms,
    )
