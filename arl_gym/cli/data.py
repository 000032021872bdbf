"""`arl-gym data`: the data sets of environments on disk.

`check` says whether a folder holds what was published; `import` reads it once for all later starts; `export`
writes generated tasks in the form of the published ones, for other programs to play.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from arl_gym.cli.data_webshop import check_webshop, export_webshop, import_webshop
from arl_gym.cli.options import parser, positive_int, progress_bar
from arl_gym.core import SPLITS
from arl_gym.envs.alfworld.export import export_games
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import Settings
from arl_gym.envs.alfworld.original import PUBLISHED, OriginalGames, Report
from arl_gym.envs.alfworld.original_index import SplitReport
from arl_gym.errors import UnknownNameError


def run(args: list[str]) -> int:
    """Do one action with one data set."""
    rows = "\n".join(f"  arl-gym data {action} {dataset} …" for action, dataset in ACTIONS)
    p = argparse.ArgumentParser(
        prog="arl-gym data",
        description="Check and import data on disk, and write generated data to it.",
        epilog=f"actions:\n{rows}\n\narl-gym data ACTION DATASET --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("action")
    p.add_argument("dataset")
    chosen = p.parse_args(args[:2])
    actions = list(dict.fromkeys(action for action, _ in ACTIONS))
    if chosen.action not in actions:
        p.error(str(UnknownNameError("action", chosen.action, actions)))
    datasets = [dataset for action, dataset in ACTIONS if action == chosen.action]
    if chosen.dataset not in datasets:
        p.error(str(UnknownNameError("data set", chosen.dataset, datasets, chosen.action)))
    return ACTIONS[chosen.action, chosen.dataset](args[2:])


def check_alfworld(args: list[str]) -> int:
    """Count the games in a folder; 0 if they are as many as published, of each split and type."""
    p = parser("data check alfworld", "Count ALFWorld's games and compare with the published numbers.")
    p.add_argument("folder", type=Path, metavar="DIR", help="folder that holds json_2.1.1, or that itself")
    report = OriginalGames(p.parse_args(args).folder, need_native=False).report()
    print(report.root)
    for split in PUBLISHED:
        for line in _lines(split, report.splits[split]):
            print(line)
    faults = list(_faults(report))
    if faults:
        print(f"arl-gym: {'; '.join(faults)}", file=sys.stderr)
    return 1 if faults else 0


def _lines(split: str, found: SplitReport) -> Iterator[str]:
    published = PUBLISHED[split]
    yield f"\n{split:<32}{'games':>6}{'published':>11}"
    for task_type, n in published.items():
        yield _row(task_type, found.types.get(task_type, 0), n)
    yield _row("all", found.n_games, sum(published.values()))
    for reason, n in found.skipped.items():
        yield f"  left out {n}: {reason}, e.g. {', '.join(found.examples[reason])}"
    if found.duplicates:
        yield f"  {found.duplicates} games show and do the same as an earlier one"
    if found.unknown_rules:
        yield f'  {found.unknown_rules} games have unknown rules: they need engine="textworld"'


def _row(name: str, found: int, published: int) -> str:
    mark = "" if found == published else f"  {found - published:+d}"
    return f"  {name:<30}{found:>6}{published:>11}{mark}"


def _faults(report: Report) -> Iterator[str]:
    if report.n_generated:
        yield f"{report.n_generated} of the games are generated: never comparable with the benchmark"
    yield from report.differences()


def export_alfworld(args: list[str]) -> int:
    """Write generated games as ALFWorld's own files."""
    p = parser("data export alfworld", "Write generated games as the real ALFWorld reads them.")
    p.add_argument("folder", type=Path, metavar="DIR", help="what ALFWORLD_DATA is to name")
    p.add_argument("--split", default="train", help=f"one of {', '.join(SPLITS)}")
    p.add_argument("--games", type=positive_int, metavar="N", help="the first N of the split; None is all")
    options = p.parse_args(args)
    if options.split not in SPLITS:
        p.error(str(UnknownNameError("split", options.split, SPLITS)))
    with progress_bar("writing games") as progress:
        n = export_games(GeneratedGames(Settings()), options.split, options.folder, options.games, progress)
    print(f"{n} games of {options.split} below {options.folder}: generated, never the benchmark's")
    return 0


ACTIONS: dict[tuple[str, str], Callable[[list[str]], int]] = {
    ("check", "alfworld"): check_alfworld,
    ("export", "alfworld"): export_alfworld,
    ("import", "webshop"): import_webshop,
    ("check", "webshop"): check_webshop,
    ("export", "webshop"): export_webshop,
}
