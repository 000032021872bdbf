"""`arl-gym show`: what a run did."""

import sys
from pathlib import Path

from arl_gym.cli.options import parser
from arl_gym.cli.settings import say
from arl_gym.errors import ConfigError
from arl_gym.train.metrics import read_metrics


def run(args: list[str]) -> int:
    """Run `arl-gym show`."""
    options = parser("show", "Show the configuration and the last metrics of a run.")
    options.add_argument("run", type=Path, help="run folder")
    known = options.parse_args(args)
    if not (known.run / "config.toml").is_file():
        raise ConfigError(f"{known.run} is no run folder: it has no config.toml")
    sys.stdout.write((known.run / "config.toml").read_text(encoding="utf-8"))
    for name in ("clone.jsonl", "metrics.jsonl"):
        if (known.run / name).is_file() and (rows := read_metrics(known.run / name)):
            say(f"\n# {name}, last row")
            for key, value in rows[-1].items():
                say(f"{key} = {value}")
    return 0
