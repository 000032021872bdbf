"""`arl-gym plot`: figures and tables of runs."""

from collections.abc import Sequence
from pathlib import Path

from arl_gym.cli.options import parser, positive_int
from arl_gym.cli.settings import say
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.train.export import export
from arl_gym.train.gallery import Shown
from arl_gym.train.report import compare_report, write_report
from arl_gym.train.runs import load_runs


def run(args: list[str]) -> int:
    """Run `arl-gym plot`."""
    options = parser("plot", "Draw one run, or several over each other, as an HTML page and as files.")
    options.add_argument("runs", nargs="+", type=Path, help="run folders")
    options.add_argument(
        "--out",
        type=Path,
        help="a folder for the page, every figure (SVG, PNG, PDF), its data (CSV) and tables (CSV, LaTeX), "
        "or only the page, if it ends in .html; for one run default is its report.html",
    )
    options.add_argument(
        "--group-by",
        metavar="KEY",
        help="runs of equal value are one line, their mean and its 95%% band: method, or a setting such as "
        "loss.clip_low",
    )
    options.add_argument(
        "--x", choices=("step", "tokens", "hours"), default="step", help="what the curves run along"
    )
    options.add_argument("--keys", nargs="+", metavar="METRIC", help="metrics to draw, instead of the usual")
    options.add_argument(
        "--smooth", type=positive_int, metavar="N", help="steps of the trailing mean; by default of long runs"
    )
    known = options.parse_args(args)
    for folder in known.runs:
        if not (folder / "config.toml").is_file():
            raise ConfigError(f"{folder} is no run folder: it has no config.toml")
    if known.keys:
        _check_keys(known.keys, known.runs)
    how = Shown(keys=tuple(known.keys or Shown().keys), smooth=known.smooth, x=known.x)
    alone = len(known.runs) == 1 and known.group_by is None
    if known.out is None and not alone:
        options.error("several runs, and groups, need --out")
    if known.out is not None and known.out.suffix != ".html":
        for sentence in export(known.runs, known.out, group_by=known.group_by, how=how):
            say(f"left out: {sentence}")
        say(f"report: {known.out / 'report.html'}")
    elif alone:
        say(f"report: {write_report(known.runs[0], known.out, how=how)}")
    else:
        say(f"report: {compare_report(known.runs, known.out, group_by=known.group_by, how=how)}")
    return 0


def _check_keys(keys: Sequence[str], folders: Sequence[Path]) -> None:
    recorded = {name for run in load_runs(folders) for row in run.rows for name in row} - {"step"}
    for key in keys:
        if key not in recorded:
            raise UnknownNameError("metric", key, recorded, "--keys")
