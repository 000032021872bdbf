"""`arl-gym eval`: measure a policy on a fixed list of tasks."""

import argparse
from pathlib import Path

from arl_gym.agents.evaluate import EvalResult, evaluate, wilson_interval
from arl_gym.agents.rollout import RolloutStats
from arl_gym.cli.options import (
    add_chat_options,
    add_env_options,
    add_workers_option,
    env_kwargs,
    parser,
    positive_int,
    progress_bar,
)
from arl_gym.cli.players import add_player_options, check_player, player


def run(args: list[str]) -> int:
    """Evaluate and print a table."""
    options = _options(args)
    kwargs = env_kwargs(options)
    kwargs.pop("split", None)  # has its own parameter
    chat = {key: getattr(options, key) for key in ("window", "format", "prompt", "step_timeout_s")}
    stats = RolloutStats()
    with (
        player(options, options.id, seed=options.seed, format=options.format) as policy,
        progress_bar(f"evaluating on {options.id}") as progress,
    ):
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
            resume=options.resume,
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
    p.add_argument("--model", metavar="ID_OR_DIR", help="model to evaluate, or the server's name of it")
    add_player_options(p)
    p.add_argument("--episodes", type=positive_int, default=256, help="tasks, the first ones of the split")
    p.add_argument("--samples", type=positive_int, default=1, help="episodes of each task, for pass@k")
    p.add_argument("--seed", type=int, default=0, help="seed of the sampling; tasks do not depend on it")
    p.add_argument("--num-envs", type=positive_int, default=64, help="episodes played at once")
    add_workers_option(p)
    p.add_argument(
        "--step-timeout-s", type=float, default=60.0, help="a worker slower than this is restarted"
    )
    add_chat_options(p, window="default")
    p.add_argument("--json", type=Path, metavar="FILE", help="write the result with its per-episode values")
    p.add_argument("--record", type=Path, metavar="DIR", help="write the episodes, for arl-gym replay")
    p.add_argument(
        "--resume",
        type=Path,
        metavar="FILE.jsonl",
        help="keep episodes here as they end, and go on from there",
    )
    options = p.parse_args(args)
    check_player(p, options)
    return options


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
    table.add_row("score", f"{result.score_mean:.3f}", "")
    table.add_row("return, by step", f"{result.return_step_weighted:.3f}", "")
    table.add_row("turns", f"{result.length_mean:.2f}", "")
    table.add_row("valid format", share(result.format_valid_share), "")
    table.add_row("episodes", str(result.n), "")
    for kind, (k, n) in result.success_by_type.items():
        low, high = wilson_interval(k, n) if n else (0.0, 1.0)
        table.add_row(f"success, {kind}", f"{k} of {n}", f"{share(low)} … {share(high)}")
    table.add_row("environment errors", str(result.n_env_errors), result.first_error[:60])
    table.add_row("environment time", f"{stats.env_us_per_turn:.0f} µs a turn", "")
    for what, n in result.usage.items():
        table.add_row(what.replace("_", " "), f"{n:,}", "")
    table.caption = f"{result.dataset} data, split {result.split}, panel {result.panel_hash}"
    Console().print(table, highlight=False, markup=False)
