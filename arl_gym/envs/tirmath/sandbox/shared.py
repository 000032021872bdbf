"""Ways to get a sandbox: one for the whole process, or by name or address."""

import os
import threading
from typing import Any

from arl_gym.envs.tirmath.sandbox.remote import RemoteSandbox
from arl_gym.envs.tirmath.sandbox.sandbox import Sandbox
from arl_gym.errors import ConfigError

_lock = threading.Lock()
_sandboxes: dict[tuple[Any, ...], Sandbox] = {}


def shared_sandbox(tier: str = "auto", **limits: Any) -> Sandbox:
    """Return this process's sandbox of a tier and limits, started at the first call and closed at exit.

    Args:
        tier: As for `Sandbox`.
        limits: Its `timeout_s`, `memory_mb`, `output_bytes`, `max_concurrency`.

    Raises:
        SandboxUnavailable: If the tier does not hold on this machine.
    """
    key = tier, *sorted(limits.items())
    with _lock:
        if key not in _sandboxes:
            _sandboxes[key] = Sandbox(tier, **limits)
        return _sandboxes[key]


def _forget() -> None:
    """Start anew in a fork: the sandboxes are those of the original, and its lock may have been held."""
    global _lock
    _lock = threading.Lock()
    _sandboxes.clear()


os.register_at_fork(after_in_child=_forget)


def open_sandbox(where: str = "auto", **limits: Any) -> Sandbox | RemoteSandbox:
    """Return a sandbox by the name of a tier, or by the address of a server ("http://host:port").

    Raises:
        ConfigError: If limits are given with an address: the server has its own.
        SandboxUnavailable: If there is no such sandbox.
    """
    if "://" not in where:
        return Sandbox(where, **limits)
    if limits:
        raise ConfigError(f"the limits of {where} are its server's, got {', '.join(limits)} (open_sandbox)")
    return RemoteSandbox(where)
