"""Checkpoints of a run: written beside their place and renamed into it, checked before they are used.

`checkpoints/step-000020/` holds what the engine wrote, and `state.json`: the step, what the run was made of,
the random streams of every rank, and the size and digest of every file. What the engine writes does not
depend on the number of ranks, so neither does a checkpoint.

    store = Checkpoints(run_dir / "checkpoints", keep=2)
    engine.save(store.draft(step))
    store.commit(step, state)
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arl_gym.errors import ArlGymError, ConfigError, DataError
from arl_gym.train.files import write_atomically

FORMAT = 1

State = dict[str, Any]
"""What a run is besides weights and optimiser, as JSON."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One that was read and found whole."""

    step: int
    folder: Path
    state: State


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: Where they are; made when the first one is saved.
        keep: How many of the newest are kept, beside the best.
    """

    def __init__(self, folder: Path, *, keep: int):
        self.folder, self.keep = folder, keep

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, in order."""
        names = [p.name for p in self.folder.iterdir()] if self.folder.is_dir() else []
        return sorted(int(m[1]) for name in names if (m := re.fullmatch(r"step-(\d+)", name)))

    def best(self) -> int | None:
        """Return the step of the best checkpoint, if one was marked."""
        try:
            return int(json.loads((self.folder / "best.json").read_text(encoding="utf-8"))["step"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as err:
            raise DataError(f'{self.folder / "best.json"}: expected {{"step": N}}: {err}') from err

    def path(self, step: int) -> Path:
        """Return the folder of a step's checkpoint."""
        return self.folder / f"step-{step:06d}"

    def draft(self, step: int) -> Path:
        """Return a new empty folder to write the checkpoint of a step into."""
        draft = self.folder / f".step-{step:06d}.partial"
        try:
            for left in self.folder.glob(".step-*.partial"):  # of a run that was killed while it saved
                shutil.rmtree(left)
            draft.mkdir(parents=True)
        except OSError as err:
            raise ArlGymError(f"cannot write the checkpoint {draft}: {err}") from err
        return draft

    def commit(self, step: int, state: Mapping[str, Any], *, best: bool = False) -> Path:
        """Turn the draft of a step into its checkpoint, and drop those that are not to be kept.

        Args:
            step: The step.
            state: Goes into `state.json`.
            best: Mark it as the best so far, which is kept too.

        Raises:
            ArlGymError: If it cannot be written.
        """
        draft, place = self.folder / f".step-{step:06d}.partial", self.path(step)
        try:
            files = {p.name: _fingerprint(p) for p in sorted(draft.iterdir())}
            head = {"format": FORMAT, "step": step, "state": dict(state), "files": files}
            (draft / "state.json").write_text(json.dumps(head, indent=1), encoding="utf-8")
            for path in [*draft.iterdir(), draft]:
                _sync(path)
            if place.exists():
                shutil.rmtree(place)
            os.replace(draft, place)
            _sync(self.folder)
            if best:
                write_atomically(self.folder / "best.json", json.dumps({"step": step}).encode())
            for old in self._dropped():
                shutil.rmtree(self.path(old))
        except OSError as err:
            raise ArlGymError(f"cannot write the checkpoint {place}: {err}") from err
        return place

    def forget_after(self, step: int) -> None:
        """Remove the checkpoints of later steps: they belong to a course of the run that was given up.

        Raises:
            ArlGymError: If they cannot be removed.
        """
        try:
            if (self.best() or 0) > step:
                (self.folder / "best.json").unlink()
            for later in self.steps():
                if later > step:
                    shutil.rmtree(self.path(later))
        except OSError as err:
            raise ArlGymError(f"cannot remove later checkpoints from {self.folder}: {err}") from err

    def _dropped(self) -> list[int]:
        steps = self.steps()
        return [s for s in steps[: max(0, len(steps) - self.keep)] if s != self.best()]

    def read(self, which: str = "auto") -> Checkpoint | None:
        """Return a checkpoint that is whole; "auto" is the newest, and None if there is none.

        Args:
            which: "auto", "best", or a step.

        Raises:
            DataError: If it is damaged; names the others that could be used instead.
            ConfigError: If there is no checkpoint of that name.
        """
        steps = self.steps()
        if which == "auto":
            if not steps:
                return None
            step = steps[-1]
        else:
            wanted = self.best() if which == "best" else _step(which)
            if wanted is None or wanted not in steps:
                raise ConfigError(f"{self.folder} has no checkpoint {which!r}, only those of steps {steps}")
            step = wanted
        folder = self.path(step)
        try:
            return Checkpoint(step, folder, _checked(folder)["state"])
        except DataError as err:
            others = [s for s in steps if s != step]
            advice = f"go on from an older one with --resume {others[-1]}" if others else "there is no other"
            raise DataError(f"the checkpoint {folder} is damaged: {err}; {advice}") from err


def _step(which: str) -> int | None:
    found = re.fullmatch(r"(?:step-)?(\d+)", which)
    return int(found[1]) if found else None


def _checked(folder: Path) -> dict[str, Any]:
    """Return `state.json` of a checkpoint whose files are all there and as they were written."""
    try:
        head = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        if head["format"] != FORMAT:
            raise DataError(f"expected format {FORMAT}, got {head['format']!r}")
        for name, written in head["files"].items():
            found = _fingerprint(folder / name)
            if found != written:
                raise DataError(f"{name}: expected {written}, got {found}")
    except (OSError, ValueError, KeyError, TypeError) as err:
        if isinstance(err, DataError):
            raise
        raise DataError(f"{type(err).__name__}: {err}") from err
    return dict(head)


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _sync(path: Path) -> None:
    """Wait until a file or folder is on the disk: a rename must not outrun what it names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
