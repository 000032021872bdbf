"""The training half of the command line: demo, tiny-model, collect, bc, train, methods, plot, show.

Settings: dataclass default < method < `--config` < `--method` given here < dotted options.
"""

import argparse
import dataclasses
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.console import Console
from rich.table import Table

from arl_gym.agents.records import write_trajectories
from arl_gym.assets import assets_root
from arl_gym.cli.options import key_value, parser, progress_bar
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.config import RunConfig, from_mapping, load_toml, to_mapping
from arl_gym.train.methods import method_settings, method_table, resolve
from arl_gym.train.metrics import Progress, read_metrics
from arl_gym.train.report import compare_report, write_report

if TYPE_CHECKING:
    from arl_gym.agents.evaluate import EvalResult
    from arl_gym.train.demo import Arm


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
    plain.add_argument("--model")
    plain.add_argument("--env", action="append", type=key_value, default=[])
    plain.add_argument("--dry-run", action="store_true")
    extra(plain)
    known, rest = plain.parse_known_args(args)
    cfg = resolve(*preset(known.config)) if known.config else RunConfig()
    if known.method:
        chosen = {"method": known.method.upper(), **method_settings(known.method)}
        cfg = from_mapping(RunConfig, chosen, f"method {known.method}", base=cfg)
    if known.model:
        cfg = dataclasses.replace(cfg, model=dataclasses.replace(cfg.model, path=known.model))
    kwargs = {**cfg.env.kwargs, **dict(known.env)}
    cfg = dataclasses.replace(cfg, env=dataclasses.replace(cfg.env, kwargs=kwargs))
    flags = " ".join(a.option_strings[0] for a in plain._actions)
    about = f"{description}\n\nBeside the settings below: {flags}. --config takes a preset or a TOML "
    about += "file; --env KEY=VALUE sets a keyword argument of the environment and may be repeated."
    return tyro.cli(RunConfig, prog=f"arl-gym {command}", description=about, args=rest, default=cfg), known


def _quiet() -> None:
    """Keep third-party chatter off the terminal; our own errors and progress stay."""
    os.environ.setdefault("DS_LOG_LEVEL", "error")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\..*|deepspeed\..*")


def _say(text: str) -> None:
    print(text, flush=True)


@contextmanager
def _following(what: str, *, every: int = 1) -> Iterator[Progress]:
    """Give a function that moves a bar on a terminal, and prints a line every so many training steps."""
    with progress_bar(what) as bar:

        def follow(step: int, total: int, row: Mapping[str, float]) -> None:
            if bar is not None:
                bar(step, total)
            if "clone/train_loss" in row:
                if every == 1 and "clone/val_loss" in row:
                    _say(f"step {step}/{total}  validation loss {row['clone/val_loss']:.4f}")
            elif step % every == 0 or step == total:
                step_line(step, total, row)

        yield follow


def step_line(step: int, total: int, row: Mapping[str, float]) -> None:
    """Print the line of one training step."""
    if row.get("optim/skipped_batches"):
        _say(f"step {step}/{total}  skipped: no group carries a signal")
        return
    _say(
        f"step {step}/{total}  return {row['rollout/played_return_mean']:.2f}  "
        f"success {row['rollout/played_success_rate']:.2f}  valid {row['rollout/format_valid_frac']:.2f}  "
        f"tries {row['rollout/tries']:.0f}  clipped {row.get('loss/clip_frac', 0):.2f}  "
        f"grad {row.get('optim/grad_norm', 0):.2f}"
    )


def _print_config(cfg: RunConfig) -> int:
    import tomli_w

    _say(tomli_w.dumps(to_mapping(cfg)).rstrip())
    from arl_gym.train.envs import groups_per_try

    groups, size = groups_per_try(cfg, step=cfg.steps), cfg.rollout.group_size
    wanted = cfg.rollout.groups
    _say(
        f"# a try plays {groups} groups x {size} = {groups * size} episodes; a step trains on {wanted} groups"
    )
    return 0


def demo(args: list[str]) -> int:
    """Run `arl-gym demo`."""

    def more(p: argparse.ArgumentParser) -> None:
        p.add_argument("--episodes", type=int, default=256)
        p.add_argument("--compare", nargs="*", default=[])

    _quiet()
    about = "Clone, train with SAMPO, and compare on unseen tasks, with a report."
    cfg, known = read_config("demo", about, args, default="sokoban-tiny", extra=more)
    if known.dry_run:
        return _print_config(cfg)
    from arl_gym.train.demo import run_demo

    with _following("demo", every=10) as progress:
        arms = run_demo(cfg, episodes=known.episodes, compare=known.compare, say=_say, progress=progress)
    _print_result(arms)
    _say(f"report: {Path(cfg.run_dir) / 'report.html'}")
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
        _say(f"{d['a']} minus {d['b']}, greedy, paired: {d['mean']:+.3f} [{d['low']:+.3f}, {d['high']:+.3f}]")


def train(args: list[str]) -> int:
    """Run `arl-gym train`."""
    _quiet()
    cfg, known = read_config("train", "Train a policy.", args)
    if known.dry_run:
        return _print_config(cfg)
    from arl_gym.train.trainer import train as run

    with _following("training") as progress:
        folder = run(cfg, progress=progress)
    _say(f"model: {folder}\nreport: {write_report(Path(cfg.run_dir))}")
    return 0


def bc(args: list[str]) -> int:
    """Run `arl-gym bc`."""
    _quiet()
    cfg, known = read_config("bc", "Clone the environment's expert.", args)
    if known.dry_run:
        return _print_config(cfg)
    from arl_gym.train.bc import clone_run

    with _following("cloning") as progress:
        result = clone_run(cfg, progress=progress)
    _say(f"{result.steps} steps, best validation loss {result.best_val_loss:.4f} at step {result.best_step}")
    _say(f"model: {Path(cfg.run_dir) / 'model'}")
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
    _say(f"{len(trajectories)} episodes: {known.out}")
    return 0


def tiny_model(args: list[str]) -> int:
    """Run `arl-gym tiny-model`."""
    options = parser("tiny-model", "Make a small random Qwen3 with its own tokenizer and chat template.")
    options.add_argument("folder", type=Path, help="where to write it; must not exist")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--hidden", type=int, default=96, help="width; a multiple of 8")
    options.add_argument("--layers", type=int, default=3)
    known = options.parse_args(args)
    from arl_gym.train.model import save_model, tiny_tokenizer
    from arl_gym.train.model import tiny_model as make

    tokenizer = tiny_tokenizer()
    model = make(tokenizer, seed=known.seed, hidden=known.hidden, layers=known.layers)
    save_model(known.folder, model, tokenizer)
    _say(f"{sum(p.numel() for p in model.parameters()):,} parameters: {known.folder}")
    return 0


def methods(args: list[str]) -> int:
    """Run `arl-gym methods`."""
    parser("methods", "Show the methods: rows of settings over the same dials.").parse_args(args)
    rows = method_table()
    table = Table("dial", *(r["method"] for r in rows))
    for dial in rows[0]:
        if dial not in ("method", "source"):
            table.add_row(dial, *(r[dial] for r in rows))
    Console().print(table)
    for r in rows:
        _say(f"{r['method']}: {r['source']}")
    return 0


def plot(args: list[str]) -> int:
    """Run `arl-gym plot`."""
    options = parser("plot", "Draw the curves of one run, or of several over each other, as one HTML page.")
    options.add_argument("runs", nargs="+", type=Path, help="run folders")
    options.add_argument("--out", type=Path, help="the page; for one run default is its report.html")
    known = options.parse_args(args)
    for run in known.runs:
        if not (run / "config.toml").is_file():
            raise ConfigError(f"{run} is no run folder: it has no config.toml")
    if len(known.runs) == 1:
        _say(f"report: {write_report(known.runs[0], known.out)}")
        return 0
    if known.out is None:
        options.error("several runs need --out")
    _say(f"report: {compare_report(known.runs, known.out)}")
    return 0


def show(args: list[str]) -> int:
    """Run `arl-gym show`."""
    options = parser("show", "Show the configuration and the last metrics of a run.")
    options.add_argument("run", type=Path, help="run folder")
    known = options.parse_args(args)
    if not (known.run / "config.toml").is_file():
        raise ConfigError(f"{known.run} is no run folder: it has no config.toml")
    sys.stdout.write((known.run / "config.toml").read_text(encoding="utf-8"))
    for name in ("clone.jsonl", "metrics.jsonl"):
        if (known.run / name).is_file() and (rows := read_metrics(known.run / name)):
            _say(f"\n# {name}, last row")
            for key, value in rows[-1].items():
                _say(f"{key} = {value}")
    return 0
