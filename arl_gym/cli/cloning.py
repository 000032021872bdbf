"""`arl-gym collect` and `bc`: from episodes to a cloned model."""

import argparse
from pathlib import Path

from arl_gym.agents.records import write_trajectories
from arl_gym.cli.dryrun import dry_run
from arl_gym.cli.options import parser
from arl_gym.cli.settings import following, quiet, read_config, say


def bc(args: list[str]) -> int:
    """Run `arl-gym bc`."""
    quiet()
    cfg, known = read_config("bc", "Clone the environment's expert.", args)
    if known.dry_run:
        return dry_run(cfg, gpus=known.gpus, gpu_gb=known.gpu_gb)
    from arl_gym.train.bc import clone_run

    with following("cloning") as progress:
        result = clone_run(cfg, progress=progress)
    say(f"{result.steps} steps, best validation loss {result.best_val_loss:.4f} at step {result.best_step}")
    say(f"model: {Path(cfg.run_dir) / 'model'}")
    return 0


def collect(args: list[str]) -> int:
    """Run `arl-gym collect`."""

    def more(p: argparse.ArgumentParser) -> None:
        p.add_argument("--split", default="train")
        p.add_argument("--out")

    cfg, known = read_config("collect", "Record the expert's episodes.", args, extra=more)
    if known.out is None:  # not `required`: --help must work without it
        parser("collect", "").error("--out FILE.jsonl.gz is needed")
    from arl_gym.train.bc import collect as run

    trajectories = run(cfg, split=known.split, episodes=cfg.clone.episodes)
    write_trajectories(known.out, trajectories)
    say(f"{len(trajectories)} episodes: {known.out}")
    return 0
