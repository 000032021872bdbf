"""What may come before reinforcement learning in a run folder: collecting and cloning, in `bc/`.

A stage that was finished is not repeated when the run is resumed; one that was not is done again.

    cfg = cloned_start(cfg, folder)  # its model is now the cloned one
"""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from arl_gym.train import distributed
from arl_gym.train.bc import clone_run
from arl_gym.train.config import RunConfig
from arl_gym.train.files import write_atomically
from arl_gym.train.metrics import Progress


def cloned_start(
    cfg: RunConfig,
    folder: Path,
    *,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda text: None,
    check: Callable[[], None] | None = None,
) -> RunConfig:
    """Clone into `folder/bc`, unless that was done before, and return the run with the cloned model as start.

    Args:
        cfg: The run, with `clone.before`.
        folder: Its folder.
        progress: Of the cloning loop.
        say: Gets a line about what is done.
        check: Called between steps; what it raises ends cloning, which then begins anew next time.

    Raises:
        ConfigError: If the configuration cannot be run.
    """
    stage = folder / "bc"
    finished = stage / "finished.json"
    if distributed.on_main(finished.is_file):
        say(f"the cloned start in {stage} is there already")
    else:
        say(f"cloning into {stage}")
        distributed.on_main(lambda: shutil.rmtree(stage, ignore_errors=True))
        clone = dataclasses.replace(cfg.clone, before=False)
        result = clone_run(
            dataclasses.replace(cfg, run_dir=str(stage), clone=clone), progress=progress, check=check
        )
        ended = {"steps": result.steps, "seconds": result.seconds}
        # The report of the run shows how its start was made.
        distributed.on_main(lambda: shutil.copyfile(stage / "clone.jsonl", folder / "clone.jsonl"))
        distributed.on_main(lambda: write_atomically(finished, json.dumps(ended).encode()))
    return from_clone(cfg, folder)


def from_clone(cfg: RunConfig, folder: Path) -> RunConfig:
    """Return the run in `folder` with the model that it starts from: its own clone, if it begins with one."""
    if not cfg.clone.before:
        return cfg
    return dataclasses.replace(cfg, model=dataclasses.replace(cfg.model, path=str(folder / "bc" / "model")))
