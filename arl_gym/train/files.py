"""Writing a file so that a reader never sees half of it."""

import os
from pathlib import Path

from arl_gym.errors import ArlGymError


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` beside `path`, then rename it into place; folders above are made.

    Raises:
        ArlGymError: If the folder cannot be written or the disk is full; the old file is then untouched.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
        os.replace(draft, path)
    except OSError as err:
        if draft.is_file():
            draft.unlink()
        raise ArlGymError(f"cannot write {path}: {err.strerror or err}") from err
