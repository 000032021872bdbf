"""`arl-gym plot`: the curves of runs."""

from pathlib import Path

from arl_gym.cli.options import parser
from arl_gym.cli.settings import say
from arl_gym.errors import ConfigError
from arl_gym.train.report import compare_report, write_report


def run(args: list[str]) -> int:
    """Run `arl-gym plot`."""
    options = parser("plot", "Draw the curves of one run, or of several over each other, as one HTML page.")
    options.add_argument("runs", nargs="+", type=Path, help="run folders")
    options.add_argument("--out", type=Path, help="the page; for one run default is its report.html")
    known = options.parse_args(args)
    for run in known.runs:
        if not (run / "config.toml").is_file():
            raise ConfigError(f"{run} is no run folder: it has no config.toml")
    if len(known.runs) == 1:
        say(f"report: {write_report(known.runs[0], known.out)}")
        return 0
    if known.out is None:
        options.error("several runs need --out")
    say(f"report: {compare_report(known.runs, known.out)}")
    return 0
