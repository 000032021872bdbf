"""`arl-gym list`: the environments, from the registration table and the cards."""

import inspect

from arl_gym.cli.options import entry_point, parser
from arl_gym.envs import ENVS

_HEADER = ("id", "max_steps", "window", "format", "what")


def run(args: list[str]) -> int:
    """Print one line per environment."""
    parser(
        "list", "Show the environments with their defaults; the class docstring of each is its card."
    ).parse_args(args)
    rows = [_HEADER, *(_row(env_id) for env_id in ENVS)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _row(env_id: str) -> tuple[str, ...]:
    entry, make = ENVS[env_id], entry_point(env_id)
    max_steps = inspect.signature(make).parameters.get("max_steps")
    window = "dialogue" if entry.window is None else str(entry.window)
    card = (inspect.getdoc(make) or "").partition("\n")[0]
    return (env_id, str(max_steps.default) if max_steps else "", window, entry.format, card)
