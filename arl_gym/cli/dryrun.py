"""`--dry-run`: the resolved configuration, and what it would do."""

import tomli_w

from arl_gym.cli.settings import say
from arl_gym.errors import ConfigError
from arl_gym.train.config import RunConfig, to_mapping


def dry_run(cfg: RunConfig, *, gpus: int | None, gpu_gb: float) -> int:
    """Print what would run; all but the configuration is a comment of TOML, so that the whole is a file.

    Args:
        cfg: The run.
        gpus: How many it would run on; None takes those of this machine.
        gpu_gb: Memory of each, in GiB.

    Raises:
        ConfigError: If the configuration cannot be run, after it and what is wrong have been printed.
    """
    say(tomli_w.dumps(to_mapping(cfg)).rstrip())
    from arl_gym.train.checks import conflicts  # these import torch
    from arl_gym.train.plan import plan

    if found := conflicts(cfg):
        for line in ("", "== conflicts", *(f"- {conflict}" for conflict in found)):
            say(f"# {line}".rstrip())
        raise ConfigError(f"the configuration cannot be run: its conflicts are listed above ({len(found)})")
    for line in plan(cfg, gpus=gpus, gpu_gb=gpu_gb):
        say(f"# {line}".rstrip())
    return 0
