"""`arl-gym eval`: measure a policy on a fixed list of tasks."""

import argparse
import importlib
from pathlib import Path
from typing import Any

from arl_gym.agents.evaluate import EvalResult, evaluate, named_policy, wilson_interval
from arl_gym.agents.rollout import RolloutStats
from arl_gym.agents.types import Policy
from arl_gym.cli.options import add_env_options, env_kwargs, parser, positive_int, progress_bar
from arl_gym.wrappers.format_penalty import FORMATS


def run(args: list[str]) -> int:
    """Evaluate and print a table."""
    options = _options(args)
    kwargs = env_kwargs(options)
    kwargs.pop("split", None)  # has its own parameter
    chat = {key: getattr(options, key) for key in ("window", "format", "prompt", "step_timeout_s")}
    stats = RolloutStats()
    policy = _policy(options)
    with progress_bar(f"evaluating on {options.id}") as progress:
        result = evaluate(
            policy,
            options.id,
            split=options.split,
            episodes=options.episodes,
            samples=options.samples,
            seed=options.seed,
            num_envs=options.num_envs,
            workers=options.workers,
            record=options.record,
            progress=progress,
            stats=stats,
            **chat,
            **kwargs,
        )
    if options.json is not None:
        options.json.write_text(result.to_json() + "\n", encoding="utf-8")
    _print(result, options.policy, stats)
    return 0


def _options(args: list[str]) -> argparse.Namespace:
    p = parser(
        "eval", "Play one episode on each of a split's first tasks and print what came out, with 95% CIs."
    )
    add_env_options(p, split="test")
    p.add_argument(
        "--policy", "--backend", choices=["random", "expert", "hf"], help="who plays; hf needs --model"
    )
    p.add_argument("--model", metavar="ID_OR_DIR", help="transformers model to evaluate")
    p.add_argument("--temperature", type=float, default=0.0, help="sampling temperature; 0 is greedy")
    p.add_argument("--max-tokens", type=positive_int, default=512, help="most tokens of one response")
    p.add_argument("--max-context", "--max-model-len", type=positive_int, default=2048, help="both together")
    p.add_argument("--batch-size", type=positive_int, default=64, help="most responses generated together")
    p.add_argument("--episodes", type=positive_int, default=256, help="tasks, the first ones of the split")
    p.add_argument("--samples", type=positive_int, default=1, help="episodes of each task, for pass@k")
    p.add_argument("--seed", type=int, default=0, help="seed of the sampling; tasks do not depend on it")
    p.add_argument("--num-envs", type=positive_int, default=64, help="episodes played at once")
    p.add_argument("--workers", type=int, default=0, help="worker processes; 0 plays in this one")
    p.add_argument(
        "--step-timeout-s", type=float, default=60.0, help="a worker slower than this is restarted"
    )
    p.add_argument("--window", type=_window, default="default", help="past turns shown, or 'dialogue'")
    p.add_argument("--format", choices=["default", *FORMATS], default="default", help="form of a response")
    p.add_argument("--prompt", default="default", help="prompt layout of the environment")
    p.add_argument("--json", type=Path, metavar="FILE", help="write the result with its per-episode values")
    p.add_argument("--record", type=Path, metavar="DIR", help="write the episodes, for arl-gym replay")
    options = p.parse_args(args)
    if options.policy is None and options.model in ("random", "expert"):
        p.error(f"--model takes a model: say --policy {options.model}")
    options.policy = options.policy or ("hf" if options.model else None)
    if options.policy is None:
        p.error("say who plays: --policy random, --policy expert or --model DIR")
    if (options.policy == "hf") != (options.model is not None):
        p.error(f"--model goes with --policy hf, got --policy {options.policy} --model {options.model}")
    return options


def _window(text: str) -> int | str | None:
    if text == "dialogue":
        return None
    if text != "default" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of turns, 'dialogue' or 'default', got {text!r}")
    return text if text == "default" else int(text)


def _policy(options: argparse.Namespace) -> Policy:
    if options.policy != "hf":
        return named_policy(options.policy, options.id, seed=options.seed, format=options.format)
    # Loaded by name: the playing half installs and starts without the trainer's dependencies.
    load_policy: Any = importlib.import_module("arl_gym.train.policies.hf").load_policy
    policy: Policy = load_policy(
        options.model,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        batch_size=options.batch_size,
        max_context=options.max_context,
    )
    return policy


def _print(result: EvalResult, who: str, stats: RolloutStats) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    def share(value: float) -> str:
        return f"{100 * value:.1f}%"

    table = Table("what", "value", "95% interval", title=f"{who} on {result.env_id}", box=box.SIMPLE)
    low, high = result.success_interval
    table.add_row("success rate", share(result.success_rate), f"{share(low)} … {share(high)}")
    for k, chance in result.pass_at.items():
        if result.samples > 1:
            table.add_row(f"pass@{k}", share(chance), "")
    around = result.return_interval
    table.add_row(
        "return", f"{result.return_mean:.3f}", f"{around[0]:.3f} … {around[1]:.3f}" if around else ""
    )
    table.add_row("turns", f"{result.length_mean:.2f}", "")
    table.add_row("valid format", share(result.format_valid_share), "")
    table.add_row("episodes", str(result.n), "")
    for kind, (k, n) in result.success_by_type.items():
        low, high = wilson_interval(k, n) if n else (0.0, 1.0)
        table.add_row(f"success, {kind}", f"{k} of {n}", f"{share(low)} … {share(high)}")
    table.add_row("environment errors", str(result.n_env_errors), result.first_error[:60])
    table.add_row("environment time", f"{stats.env_us_per_turn:.0f} µs a turn", "")
    table.caption = f"{result.dataset} data, split {result.split}, content {result.content_hash}"
    Console().print(table, highlight=False, markup=False)
