"""The run folder: new or empty at the start, with the resolved configuration in it."""

from pathlib import Path

import tomli_w

from arl_gym.errors import ArlGymError, ConfigError
from arl_gym.train.config import RunConfig, to_mapping


def check_run_dir(cfg: RunConfig) -> None:
    """Check that the run folder is new or empty.

    Raises:
        ConfigError: If it holds something already.
        ArlGymError: If it cannot be looked into.
    """
    folder = Path(cfg.run_dir)
    try:
        used = folder.exists() and any(folder.iterdir())
    except OSError as err:
        raise ArlGymError(f"cannot use the run folder {folder}: {err}") from err
    if used:
        raise ConfigError(f"the run folder {folder} is not empty: choose another run_dir")


def open_run_dir(cfg: RunConfig) -> Path:
    """Make the run folder and write `config.toml` into it.

    Raises:
        ConfigError: If the folder holds something already.
        ArlGymError: If it cannot be written.
    """
    check_run_dir(cfg)
    folder = Path(cfg.run_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(tomli_w.dumps(to_mapping(cfg)), encoding="utf-8")
    except OSError as err:
        raise ArlGymError(f"cannot write the run folder {folder}: {err}") from err
    return folder
