"""`arl-gym collect` and `bc`: from episodes to a cloned model."""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from arl_gym.agents.collection import PROBLEMS, CollectFilter, filter_episodes, lint_episode
from arl_gym.agents.policies import ExpertPolicy, resolve_format
from arl_gym.agents.records import write_trajectories
from arl_gym.agents.types import Policy, Trajectory
from arl_gym.cli.dryrun import dry_run
from arl_gym.cli.options import parser, positive_int, progress_bar
from arl_gym.cli.players import add_player_options, check_player, player
from arl_gym.cli.settings import following, launched, quiet, read_config, say
from arl_gym.train.collecting import collect_episodes, expert_response, runs_by_env
from arl_gym.train.config import RunConfig


def bc(args: list[str]) -> int:
    """Run `arl-gym bc`."""
    quiet()
    about = (
        "Clone the environment's expert, or recorded episodes with --clone.data FILE. --gpus N starts N "
        "ranks on this machine."
    )
    cfg, known = read_config("bc", about, args)
    if known.dry_run:
        return dry_run(cfg, gpus=known.gpus, gpu_gb=known.gpu_gb)
    if (code := launched("bc", args, known.gpus)) is not None:
        return code
    from arl_gym.train import distributed
    from arl_gym.train.bc import clone_run

    with following("cloning") as progress:
        result = clone_run(cfg, progress=progress)
    if not distributed.is_main():
        return 0
    if result.n_too_long:
        say(f"{result.n_too_long} episodes left out: longer than model.max_context")
    say(f"{result.steps} steps, best validation loss {result.best_val_loss:.4f} at step {result.best_step}")
    say(f"model: {Path(cfg.run_dir) / 'model'}")
    return 0


_ABOUT = """Play, and record the episodes that are worth cloning.

--policy expert (default), random, hf or openai plays tasks of --split; --episodes different tasks (default:
clone.episodes), --samples times each, --num-envs at once. hf and openai need --model, openai also --base-url
(its key: OPENAI_API_KEY). Sampling as in arl-gym eval: --temperature --top-p --top-k --max-tokens
--max-model-len; what is not given there is taken from rollout and model.

Kept are successful episodes (or those of --min-score) with a valid format in every turn (unless
--any-format), no response above --max-response-tokens, no duplicates (unless --keep-duplicates), and none of
the problems named by --drop-problem. --resume FILE.jsonl keeps all episodes as they end, and goes on from
there."""

_SAYS = {
    "empty": "that are empty",
    "format": "outside the format",
    "tags": "without paired tags",
    "cjk": "with CJK ideographs",
    "repeated": "that repeat themselves",
    "empty_think": "without a thought",
}
_FROM_CONFIG = ("temperature", "max_tokens", "max_context", "batch_size", "chat_template_kwargs")


def collect(args: list[str]) -> int:
    """Run `arl-gym collect`."""
    quiet()
    cfg, known = read_config("collect", _ABOUT, args, extra=_collect_options)
    p = parser("collect", "")
    if known.out is None:  # not `required`: --help must work without it
        p.error("--out FILE.jsonl.gz is needed")
    if known.policy is None and known.model is None:
        known.policy = "expert"
    check_player(p, known)
    _fill_in(known, cfg)
    if known.dry_run:
        return dry_run(cfg, gpus=known.gpus, gpu_gb=known.gpu_gb)
    kept: list[Trajectory] = []
    counts: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    for number, (run, episodes) in enumerate(runs_by_env(cfg, known.episodes or cfg.clone.episodes)):
        played = _played(run, known, episodes, _numbered(known.resume, number, len(cfg.all_envs)))
        format = resolve_format(run.env.format, run.env.id)
        good, dropped = filter_episodes(played, _rules(known, format))
        kept += good
        counts.update({"played": len(played)} | dropped)
        for trajectory in played:
            problems += lint_episode(trajectory, format)
    write_trajectories(known.out, kept)
    _print_table(counts, problems, n_kept=len(kept))
    say(f"{len(kept)} episodes: {known.out}")
    return 0


def _collect_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--split", default="train")
    p.add_argument("--out", type=Path)
    p.add_argument("--episodes", type=positive_int)
    p.add_argument("--samples", type=positive_int, default=1)
    p.add_argument("--num-envs", type=positive_int, default=64)
    p.add_argument("--resume", type=Path)
    p.add_argument("--min-score", type=float)
    p.add_argument("--any-format", action="store_true")
    p.add_argument("--max-response-tokens", type=positive_int, default=0)
    p.add_argument("--keep-duplicates", action="store_true")
    p.add_argument("--drop-problem", action="append", choices=PROBLEMS, default=[])
    add_player_options(p)
    p.set_defaults(**dict.fromkeys(_FROM_CONFIG))


def _fill_in(known: argparse.Namespace, cfg: RunConfig) -> None:
    """Take what the command line left open from the configuration."""
    thinking = {} if cfg.model.enable_thinking else {"enable_thinking": False}
    values = {
        "temperature": cfg.rollout.temperature,
        "max_tokens": cfg.rollout.max_tokens,
        "max_context": cfg.model.max_context,
        "batch_size": cfg.rollout.batch_size,
        "chat_template_kwargs": {**thinking, **cfg.model.chat_template_kwargs},
    }
    for name in _FROM_CONFIG:
        if getattr(known, name) is None:
            setattr(known, name, values[name])


def _rules(known: argparse.Namespace, format: str) -> CollectFilter:
    return CollectFilter(
        success_only=known.min_score is None,
        min_score=known.min_score or 0.0,
        format_valid=not known.any_format,
        max_tokens=known.max_response_tokens,
        duplicates=known.keep_duplicates,
        problems=tuple(known.drop_problem),
        format=format,
    )


def _numbered(file: Path | None, number: int, n: int) -> Path | None:
    """Return a file of its own for each of several environments: two may share an id, not the settings."""
    return file if file is None or n == 1 else file.with_stem(f"{file.stem}-{number}")


def _played(run: RunConfig, known: argparse.Namespace, n: int, resume: Path | None) -> list[Trajectory]:
    with _player(run, known) as policy, progress_bar(f"playing {run.env.id}") as progress:
        return collect_episodes(
            run,
            policy,
            split=known.split,
            episodes=n,
            samples=known.samples,
            num_envs=known.num_envs,
            resume=resume,
            progress=progress,
        )


@contextmanager
def _player(run: RunConfig, known: argparse.Namespace) -> Iterator[Policy]:
    if known.policy == "expert":
        yield ExpertPolicy(expert_response(run))
    else:
        with player(known, run.env.id, seed=run.seed, format=run.env.format) as policy:
            yield policy


def _print_table(counts: Mapping[str, int], problems: Mapping[str, int], *, n_kept: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table("episodes", "number", box=box.SIMPLE)
    for name, n in counts.items():
        table.add_row(name if name == "played" else f"dropped: {name.replace('_', ' ')}", str(n))
    table.add_row("kept", str(n_kept))
    for name in PROBLEMS:
        if problems[name]:
            table.add_row(f"responses {_SAYS[name]}", str(problems[name]))
    Console().print(table, highlight=False, markup=False)
