"""Finds the files of `assets/` in a wheel, an editable install and a checkout.

>>> asset("presets/sokoban-tiny.toml").name
'sokoban-tiny.toml'
"""

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
