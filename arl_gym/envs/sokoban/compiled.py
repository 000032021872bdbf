"""Whether and how hot loops are compiled: numba (extra `fast`) where it is installed, plain code otherwise.

Modules named `*_kernels` hold the compiled twins and import numba through `jit`; nothing imports them before
`use_numba` has said yes. A twin gives exactly what the plain version gives, in the same order.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TypeVar, cast

from arl_gym.errors import DependencyMissing, UnknownNameError

F = TypeVar("F", bound=Callable[..., object])

BACKENDS = ("auto", "numba", "numpy")


@cache
def numba_installed() -> bool:
    """Return whether numba can be imported, without importing it (that takes half a second)."""
    return find_spec("numba") is not None


def use_numba(backend: str = "auto") -> bool:
    """Return whether to run compiled kernels: "numba" and "numpy" say so, "auto" takes what is installed.

    Raises:
        UnknownNameError: If the backend is none of these.
        DependencyMissing: If "numba" is asked for and not installed.
    """
    if backend not in BACKENDS:
        raise UnknownNameError("backend", backend, BACKENDS, "Sokoban")
    if backend == "numba" and not numba_installed():
        raise DependencyMissing("backend='numba'", "fast")
    return backend != "numpy" and numba_installed()


def jit(function: F) -> F:
    """Compile a function at its first call and keep the machine code on disk for later processes."""
    import numba

    try:
        return cast(F, numba.njit(cache=True)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        return cast(F, numba.njit(function))
