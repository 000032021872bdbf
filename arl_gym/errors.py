"""The package's exceptions: one base and a few named children.

Every message says what was expected, what came, and where.
"""

import difflib
from collections.abc import Callable, Iterable


class ArlGymError(Exception):
    """Base of everything this package raises on purpose."""

    def __reduce__(self) -> tuple[Callable[..., "ArlGymError"], tuple[object, ...]]:
        """Pickle by message: the constructors of some children take other arguments."""
        return _restore, (type(self), *self.args)


def _restore(cls: type[ArlGymError], *args: object) -> ArlGymError:
    err = cls.__new__(cls, *args)
    err.args = args
    return err


class ConfigError(ArlGymError, ValueError):
    """A setting is missing, unknown or out of range."""


class UnknownNameError(ConfigError):
    """A name is not in the table it was looked up in."""

    def __init__(self, kind: str, name: object, known: Iterable[object], where: str = ""):
        names = sorted(str(k) for k in known)
        near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        place = f" in {where}" if where else ""
        super().__init__(f"unknown {kind} {name!r}{place}: {hint}known: {shown}")


class DataError(ArlGymError, ValueError):
    """A data file or record does not have the form it should have."""


class ActionError(ArlGymError, TypeError):
    """An action is not of the type the environment takes."""


class EpisodeOverError(ArlGymError, RuntimeError):
    """`step` was called before `reset` or after the end of the episode."""


class AlreadyPendingError(ArlGymError, RuntimeError):
    """An environment got a command before the result of its last one was received."""


class ConformanceError(ArlGymError, AssertionError):
    """An environment breaks the contract; the message lists the rules, what was expected and what came."""


class WorkerError(ArlGymError, RuntimeError):
    """A worker process could not be started, or failed outside an episode."""


class BrowserError(ArlGymError, RuntimeError):
    """A browser is missing, does not start, or has failed."""


class SandboxError(ArlGymError, RuntimeError):
    """A sandbox failed to run a program, through no fault of the program."""


class SandboxUnavailable(ArlGymError, RuntimeError):
    """Programs cannot be run in the isolation asked for; the message says what failed and two ways on."""


class PolicyError(ArlGymError, RuntimeError):
    """A policy does not keep to the protocol of requests and replies, or cannot answer."""


class Interrupted(ArlGymError, RuntimeError):
    """The run was told to stop; what it had finished is kept."""


class DependencyMissing(ArlGymError, ImportError):
    """An optional extra is not installed; the message is the install line."""

    def __init__(self, what: str, extra: str):
        super().__init__(f"{what} needs: pip install 'arl-gym[{extra}]'")
