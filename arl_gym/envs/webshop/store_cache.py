"""Stores that are made once and kept below `assets.cache_root()`."""

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from arl_gym.assets import cache_root
from arl_gym.caches import locked
from arl_gym.envs.webshop.store import Store, find_store, open_store
from arl_gym.errors import DataError

_LOCK_TIMEOUT_S = 24 * 3600.0
"""The whole of the original's products takes long, and longer if two processes read them."""


def stores_root() -> Path:
    """Return the folder of all stores."""
    return cache_root() / "webshop"


def cached_store(name: str, arguments: Mapping[str, Any], make: Callable[[Path], Store]) -> Store:
    """Return the store of a name; where there is none that was made of these arguments, make it.

    One process makes it, the others wait. Where the cache cannot be written to, it is made in a temporary
    folder, which goes with the process; a warning says so.

    Args:
        name: Of its folder, without a dot.
        arguments: What it is made of, as `make` writes them.
        make: Writes it to a folder.

    Raises:
        DataError: If a file of the store has gone or is of another size.
    """
    folder = stores_root() / name
    store = find_store(folder, arguments)
    if store is None and not _can_write(folder.parent):
        folder = _temporary_root() / name
        store = find_store(folder, arguments)
    if store is not None:
        return store
    with locked(folder, _LOCK_TIMEOUT_S) as alone:
        if alone:
            _remove_leftovers(folder)
        # Another process may have made it in the meantime.
        return find_store(folder, arguments) or make(folder)


def store_folders() -> list[Path]:
    """Return the folders of the stores that are kept."""
    return sorted(path.parent for path in stores_root().glob("[!.]*/info.json"))


def store_faults(folder: Path) -> list[str]:
    """Return what is wrong with the files of a store, all of which are read."""
    try:
        return open_store(folder).faults()
    except DataError as err:
        return [str(err)]


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@cache
def _temporary_root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="arl_gym-webshop-"))
    atexit.register(_remove, root, os.getpid())
    warnings.warn(
        f"shops cannot be kept in {stores_root()}, so this process makes its own in {root} and deletes it at "
        "its end: set ARL_GYM_CACHE to a folder that can be written to",
        stacklevel=3,
    )
    return root


def _remove(root: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(root, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove what was left by processes that were killed while they made this store."""
    for part in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(part, ignore_errors=True)
