"""`arl-gym demo`, `train` and `tiny-model`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from arl_gym.cli.dryrun import dry_run
from arl_gym.cli.options import parser
from arl_gym.cli.settings import following, launched, quiet, read_config, say
from arl_gym.errors import Interrupted
from arl_gym.train.report import write_report

if TYPE_CHECKING:
    from arl_gym.agents.evaluate import EvalResult
    from arl_gym.train.demo import Arm


def demo(args: list[str]) -> int:
    """Run `arl-gym demo`."""

    def more(p: argparse.ArgumentParser) -> None:
        p.add_argument("--episodes", type=int, default=256)
        p.add_argument("--compare", nargs="*", default=[])

    quiet()
    about = "Clone, train with SAMPO, and compare on unseen tasks, with a report."
    cfg, known = read_config("demo", about, args, default="sokoban-tiny", extra=more)
    if known.dry_run:
        return dry_run(cfg, gpus=known.gpus, gpu_gb=known.gpu_gb)
    from arl_gym.train.demo import run_demo

    with following("demo", every=10) as progress:
        arms = run_demo(cfg, episodes=known.episodes, compare=known.compare, say=say, progress=progress)
    _print_result(arms)
    say(f"report: {Path(cfg.run_dir) / 'report.html'}")
    return 0


def _print_result(arms: "Sequence[Arm]") -> None:
    """Print the success table and the paired differences."""
    from arl_gym.train.demo import differences

    def rate(r: "EvalResult | None") -> str:
        if r is None:
            return "-"
        low, high = r.success_interval
        return f"{r.success_rate:.3f} [{low:.3f}, {high:.3f}]"

    first = arms[0].main
    table = Table(
        "agent",
        "greedy success",
        "sampled success",
        "training s",
        title=f"{first.env_id}, {first.dataset} data, {first.n} unseen tasks (95% intervals)",
    )
    for arm in arms:
        table.add_row(arm.name, rate(arm.greedy), rate(arm.sampled), f"{arm.seconds:.0f}")
    Console().print(table)
    for d in differences(arms):
        say(f"{d['a']} minus {d['b']}, greedy, paired: {d['mean']:+.3f} [{d['low']:+.3f}, {d['high']:+.3f}]")


def train(args: list[str]) -> int:
    """Run `arl-gym train`."""

    def more(p: argparse.ArgumentParser) -> None:
        p.add_argument("--resume", default="never", metavar="never|auto|best|STEP")

    quiet()
    about = (
        "Train a policy. --resume auto goes on in the run folder if it holds a checkpoint; --gpus N starts N "
        "ranks on this machine (processes, where there are no GPUs)."
    )
    cfg, known = read_config("train", about, args, extra=more)
    if known.dry_run:
        return dry_run(cfg, gpus=known.gpus, gpu_gb=known.gpu_gb)
    if (code := launched("train", args, known.gpus)) is not None:
        return code
    from arl_gym.train import distributed
    from arl_gym.train.trainer import train as run

    try:
        with following("training") as progress:
            folder = run(cfg, resume=known.resume, progress=progress, say=say)
    except Interrupted as stopped:
        if distributed.is_main():
            say(f"{stopped}; --resume auto goes on from there")
        return 0
    if distributed.is_main():
        say(f"model: {folder}\nreport: {write_report(Path(cfg.run_dir))}")
    return 0


def export(args: list[str]) -> int:
    """Run `arl-gym export`."""
    options = parser("export", "Make a Hugging Face folder of a checkpoint.")
    options.add_argument("run", type=Path, help="run folder")
    options.add_argument("out", type=Path, help="where to write it; must not exist")
    options.add_argument("--checkpoint", default="auto", help="'auto' (the newest), 'best', or a step")
    known = options.parse_args(args)
    quiet()
    from arl_gym.train.trainer import export as run

    say(f"step {run(known.run, known.checkpoint, known.out)}: {known.out}")
    return 0


def tiny_model(args: list[str]) -> int:
    """Run `arl-gym tiny-model`."""
    about = "Make a small random Qwen3 or Qwen3-VL with its own tokenizer and chat template."
    options = parser("tiny-model", about)
    options.add_argument("folder", type=Path, help="where to write it; must not exist")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--hidden", type=int, default=96, help="width; a multiple of 8")
    options.add_argument("--layers", type=int, default=3)
    options.add_argument("--vision", action="store_true", help="one that reads pictures: a Qwen3-VL")
    known = options.parse_args(args)
    from arl_gym.train import model as models

    tokenizer = models.tiny_tokenizer(vision=known.vision)
    make = models.tiny_vision_model if known.vision else models.tiny_model
    model = make(tokenizer, seed=known.seed, hidden=known.hidden, layers=known.layers)
    vision = models.tiny_vision(model) if known.vision else None
    models.save_model(known.folder, model, tokenizer, vision=vision)
    say(f"{sum(p.numel() for p in model.parameters()):,} parameters: {known.folder}")
    return 0
