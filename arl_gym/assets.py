"""Finds the files of `assets/` in a wheel, an editable install and a checkout, and the cache folder.

>>> asset("presets/sokoban-tiny.toml").name
'sokoban-tiny.toml'
"""

import os
from functools import cache
from pathlib import Path

from arl_gym.errors import DataError


@cache
def assets_root() -> Path:
    """Return the folder that holds the assets.

    Raises:
        DataError: If neither the wheel's copy nor the checkout's folder exists.
    """
    package = Path(__file__).resolve().parent
    for root in (package / "_assets", package.parent / "assets"):
        if (root / "README.md").is_file():
            return root
    raise DataError(
        f"assets are missing: expected {package / '_assets'} (wheel) or {package.parent / 'assets'}"
    )


def asset(name: str) -> Path:
    """Return the path of one asset.

    Raises:
        DataError: If it does not exist.
    """
    path = assets_root() / name
    if not path.is_file():
        raise DataError(f"no asset {name!r} under {assets_root()}")
    return path


def cache_root() -> Path:
    """Return the folder of every cache: `ARL_GYM_CACHE`, or `arl_gym` in the user's cache folder."""
    if chosen := os.environ.get("ARL_GYM_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arl_gym"
