"""The run folder: who works in it, its resolved configuration, and whether a run may go on in it.

with open_run_dir(cfg, resume="auto") as run:
run.folder, run.resumed
"""

import fcntl
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from arl_gym.errors import ArlGymError, ConfigError
from arl_gym.train.config import RunConfig, load_toml, to_mapping, to_toml
from arl_gym.train.files import write_atomically

# What may differ when a run goes on: how long, how fast, on what, and what is kept and reported.
_FREE = (
    *("steps", "max_train_s", "run_dir", "trajectories_every"),
    *("checkpoint.", "monitor.", "log.", "eval."),
    *(
        "optim.micro_tokens",
        "optim.share_prompts",
        "optim.zero_stage",
        "optim.zero.",
        "optim.offload_reference",
    ),
    *("model.gradient_checkpointing", "rollout.batch_size"),
)
_FREE_OF_ENV = ("workers", "step_timeout_s")


@dataclass(slots=True)
class RunDir:
    """A run folder that this process has locked; the lock ends with the process, however it ends."""

    folder: Path
    resumed: bool
    """Whether a run is going on that began earlier."""
    _lock: IO[str] | None = field(default=None, repr=False)

    def discard(self) -> None:
        """Take back what opening a new folder made, unless something was run in it."""
        if self.resumed or any(p.name not in ("config.toml", "lock") for p in self.folder.iterdir()):
            return
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """Unlock the folder; twice is fine."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_run_dir(cfg: RunConfig, *, resume: bool = False) -> None:
    """Check that the run folder is new or empty, or holds a run that this configuration may go on with.

    Raises:
        ConfigError: If it holds something else.
        ArlGymError: If it cannot be looked into.
    """
    folder = Path(cfg.run_dir)
    try:
        used = folder.exists() and any(p.name != "lock" for p in folder.iterdir())
    except OSError as err:
        raise ArlGymError(f"cannot use the run folder {folder}: {err}") from err
    if not used:
        return
    if not resume:
        raise ConfigError(
            f"the run folder {folder} is not empty: choose another run_dir, or go on with --resume auto"
        )
    if not (folder / "config.toml").is_file():
        raise ConfigError(f"the run folder {folder} has no config.toml: there is no run to resume in it")
    changed = list(_changes(load_toml(folder / "config.toml"), to_mapping(cfg)))
    if changed:
        raise ConfigError(
            f"cannot resume {folder} with other settings: {'; '.join(changed)}. Resume with --config "
            f"{folder / 'config.toml'}, or choose another run_dir"
        )


def open_run_dir(cfg: RunConfig, *, resume: bool = False) -> RunDir:
    """Make the run folder, lock it and write `config.toml` into it.

    Raises:
        ConfigError: If the folder holds something that this run may not go on with, or is in use.
        ArlGymError: If it cannot be written.
    """
    check_run_dir(cfg, resume=resume)
    folder = Path(cfg.run_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
    except OSError as err:
        raise ArlGymError(f"cannot write the run folder {folder}: {err}") from err
    run = RunDir(folder, (folder / "config.toml").is_file(), lock)
    write_atomically(folder / "config.toml", to_toml(cfg).encode())
    return run


def _lock(folder: Path) -> IO[str]:
    """Take the folder's lock: a record lock, which no child inherits and no death of ours outlives."""
    file = open(folder / "lock", "a+", encoding="utf-8")  # noqa: SIM115 - closed by RunDir.close
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read().strip() or "another process"
        file.close()
        raise ConfigError(f"the run folder {folder} is in use by {owner}") from None
    except OSError:
        file.close()
        raise
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    return file


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = _flat(old), _flat(new)
    for key in sorted(before.keys() | after.keys()):
        free = key.startswith(_FREE) or (key.startswith("env") and key.endswith(_FREE_OF_ENV))
        if not free and before.get(key) != after.get(key):
            yield f"{key} was {json.dumps(before.get(key))}, is {json.dumps(after.get(key))}"


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping):
        items: Any = value.items()
    elif isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
        items = enumerate(value)
    else:
        return {prefix.removesuffix("."): value}
    return {k: v for key, inner in items for k, v in _flat(inner, f"{prefix}{key}.").items()}
