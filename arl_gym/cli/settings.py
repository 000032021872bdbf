"""What the training commands share: a run's configuration from the command line, and lines of progress.

Settings: dataclass default < method < `--config` < `--method` given here < dotted options.
"""

import argparse
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tyro

from arl_gym.assets import assets_root
from arl_gym.cli.options import key_value, positive_int, progress_bar
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.config import RunConfig, load_toml
from arl_gym.train.methods import VARIANTS, resolve, with_method
from arl_gym.train.metrics import Progress

_ON_RANKS = ("train", "bc")
"""Commands that several ranks can run together."""


def preset(name: str) -> tuple[dict[str, Any], str]:
    """Return the settings of a preset or a TOML file, and what to call it in errors.

    Raises:
        UnknownNameError: If it is neither.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return load_toml(path), str(path)
    known = {p.stem: p for p in (assets_root() / "presets").glob("*.toml")}
    if name not in known:
        raise UnknownNameError("preset", name, known, "--config (or give a path that ends in .toml)")
    return load_toml(known[name]), f"preset {name}"


def read_config(
    command: str,
    description: str,
    args: Sequence[str],
    *,
    default: str | None = None,
    extra: Callable[[argparse.ArgumentParser], None] = lambda p: None,
) -> tuple[RunConfig, argparse.Namespace]:
    """Build a run's configuration from the command line, and the namespace of the options beside it."""
    plain = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    plain.add_argument("--config", default=default)
    plain.add_argument("--method")
    plain.add_argument("--variant", choices=VARIANTS)
    plain.add_argument("--model")
    plain.add_argument("--env", action="append", type=key_value, default=[])
    plain.add_argument("--dry-run", action="store_true")
    plain.add_argument("--gpus", type=positive_int)
    plain.add_argument("--gpu-gb", type=float, default=80.0)
    extra(plain)
    known, rest = plain.parse_known_args(args)
    if (known.gpus or 1) > 1 and not known.dry_run and command not in _ON_RANKS:
        others = " and ".join(_ON_RANKS)
        raise ConfigError(
            f"arl-gym {command} has one rank: --gpus {known.gpus} is for arl-gym {others}, or for --dry-run"
        )
    cfg = resolve(*preset(known.config)) if known.config else RunConfig()
    if known.method or known.variant:
        cfg = with_method(cfg, known.method or cfg.method, known.variant)
    if known.model:
        cfg = dataclasses.replace(cfg, model=dataclasses.replace(cfg.model, path=known.model))
    kwargs = {**cfg.env.kwargs, **dict(known.env)}
    cfg = dataclasses.replace(cfg, env=dataclasses.replace(cfg.env, kwargs=kwargs))
    flags = " ".join(a.option_strings[0] for a in plain._actions)
    about = f"{description}\n\nBeside the settings below: {flags}. --config takes a preset or a TOML "
    about += (
        "file; --env KEY=VALUE sets a keyword argument of the environment and may be repeated. --dry-run "
    )
    about += "shows what would run, on --gpus GPUs of --gpu-gb GiB each, and stops."
    return tyro.cli(RunConfig, prog=f"arl-gym {command}", description=about, args=rest, default=cfg), known


def launched(command: str, args: Sequence[str], gpus: int | None) -> int | None:
    """Start the ranks that `--gpus` asks for and return their exit code.

    None where this process does the work: if one rank is enough, or a launcher has started it as one of
    several.
    """
    if (gpus or 1) == 1 or "RANK" in os.environ:
        return None
    from arl_gym.train.launch import launch

    return launch([command, *args], gpus or 1)


def quiet() -> None:
    """Keep third-party chatter off the terminal; our own errors and progress stay."""
    os.environ.setdefault("DS_LOG_LEVEL", "error")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\..*|deepspeed\..*")


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


@contextmanager
def following(what: str, *, every: int = 1) -> Iterator[Progress]:
    """Give a function that moves a bar on a terminal, and prints a line every so many training steps."""
    with progress_bar(what) as bar:

        def follow(step: int, total: int, row: Mapping[str, float]) -> None:
            if bar is not None:
                bar(step, total)
            if "clone/train_loss" in row:
                if every == 1 and "clone/val_loss" in row:
                    say(f"step {step}/{total}  validation loss {row['clone/val_loss']:.4f}")
            elif step % every == 0 or step == total:
                step_line(step, total, row)

        yield follow


def step_line(step: int, total: int, row: Mapping[str, float]) -> None:
    """Print the line of one training step."""
    if row.get("optim/skipped_batches"):
        say(f"step {step}/{total}  skipped: no group carries a signal")
        return
    say(
        f"step {step}/{total}  return {row['rollout/played_return_mean']:.2f}  "
        f"success {row['rollout/played_success_rate']:.2f}  valid {row['rollout/format_valid_frac']:.2f}  "
        f"tries {row['rollout/tries']:.0f}  clipped {row.get('loss/clip_frac', 0):.2f}  "
        f"grad {row.get('optim/grad_norm', 0):.2f}"
    )
