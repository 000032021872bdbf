"""How the interpreter of programs is started, and which paths it needs."""

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from arl_gym.errors import DependencyMissing

_BOOT = Path(__file__).with_name("jail") / "boot.py"
# Where the dynamic loader looks, and the time zones.
_SYSTEM_PATHS = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/usr/share/zoneinfo",
)
_OPENBLAS_CHOICES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def boot_command(kind: str, settings: str) -> list[str]:
    """Return the command that boots a template ("template") or a single program ("fresh")."""
    # No site, no user site, no current directory, unbuffered, UTF-8.
    return [sys.executable, "-S", "-s", "-P", "-u", "-X", "utf8", str(_BOOT), kind, settings]


def environment() -> dict[str, str]:
    """Return the environment of programs: nothing of the caller's but how OpenBLAS chooses its kernels."""
    kept = {name: os.environ[name] for name in _OPENBLAS_CHOICES if name in os.environ}
    # One thread: a template with more could not fork safely. A fixed hash seed: sets keep their order.
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/",
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **kept,
    }


@cache
def site_dirs() -> list[str]:
    """Return the directories that hold numpy and sympy.

    Raises:
        DependencyMissing: If sympy is not installed.
    """
    found = []
    for name in ("numpy", "sympy", "mpmath"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise DependencyMissing("the sandbox of TIR-Math", "math")
        found.append(str(Path(spec.origin).parent.parent))
    return list(dict.fromkeys(found))


def readable_paths() -> list[str]:
    """Return what programs must be able to read: Python's library, site directories and system libraries."""
    standard = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    wanted: Sequence[str] = [*standard, *site_dirs(), *_SYSTEM_PATHS]
    return [path for path in dict.fromkeys(wanted) if os.path.exists(path)]


def hidden_path() -> str:
    """Return what a program must not read although it may lie in a site directory: this package, its data."""
    return str(Path(__file__).resolve().parents[3])
