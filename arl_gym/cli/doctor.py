"""`arl-gym doctor`: what is installed, what is missing, and whether playing will work here."""

import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from arl_gym import __version__
from arl_gym.assets import assets_root, cache_root
from arl_gym.cli.extras import EXTRAS
from arl_gym.cli.options import parser
from arl_gym.errors import DataError

CORE = ("gymnasium", "numpy", "pillow", "cloudpickle", "PyStemmer", "rapidfuzz", "rich")
PYTHONS = ((3, 11), (3, 13))


def run(args: list[str]) -> int:
    """Print one line per fact; 1 if something needed for playing is wrong."""
    parser("doctor", "Check the installation. Missing extras are no fault.").parse_args(args)
    healthy = [_python(), *map(_package, CORE), _assets(), _cache()]
    for extra, modules in EXTRAS.items():
        _extra(extra, modules)
    _machine()
    if not all(healthy):
        print("arl-gym: the installation has the faults marked above", file=sys.stderr)
    return 0 if all(healthy) else 1


def _say(healthy: bool, what: str, detail: str) -> bool:
    print(f"{'ok  ' if healthy else 'BAD '} {what:<14}{detail}")
    return healthy


def _note(what: str, detail: str) -> None:
    print(f"     {what:<14}{detail}")


def _python() -> bool:
    low, high = (".".join(map(str, v)) for v in PYTHONS)
    healthy = PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]
    _note("arl-gym", __version__)
    return _say(healthy, "python", f"{platform.python_version()} (needs {low} to {high})")


def _package(name: str) -> bool:
    try:
        return _say(True, name, version(name))
    except PackageNotFoundError:
        return _say(False, name, f"missing: pip install {name}")


def _assets() -> bool:
    try:
        return _say(True, "assets", str(assets_root()))
    except DataError as err:
        return _say(False, "assets", str(err))


def _cache() -> bool:
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return _say(True, "cache", str(root))
    except OSError as err:
        return _say(
            False, "cache", f"{root} is not writable ({err.strerror}): set ARL_GYM_CACHE to a folder that is"
        )


def _extra(extra: str, modules: tuple[str, ...]) -> None:
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        _note(f"[{extra}]", f"missing {', '.join(missing)}: pip install 'arl-gym[{extra}]'")
    else:
        _note(f"[{extra}]", ", ".join(f"{name} {_version(name)}" for name in modules))


def _version(module: str) -> str:
    try:
        return version(module)
    except PackageNotFoundError:  # the distribution has another name
        return "present"


def _machine() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    _note("cores", str(cores))
    _note("memory", f"{_memory_gb():.1f} GB")
    _note("gpu", ", ".join(_gpus()) or "none seen by nvidia-smi")


def _gpus() -> list[str]:
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        return subprocess.run(
            query, capture_output=True, text=True, timeout=20, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return []


def _memory_gb() -> float:
    """Return the memory of the machine, or of the container if its limit is lower."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):
        limit = total
    return min(total, limit) / 1e9
