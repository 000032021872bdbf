"""`arl-gym data … webshop`: the files of the original WebShop."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from arl_gym.cli.options import parser, positive_int, progress_bar
from arl_gym.envs.webshop.generated import CATALOGUES, generated_store
from arl_gym.envs.webshop.original import SPLIT_MODES, GoalKind, goal_range, original_store
from arl_gym.envs.webshop.original_check import PUBLISHED, FileCounts, count_folder, missing_files
from arl_gym.envs.webshop.original_export import export_shop
from arl_gym.envs.webshop.store import Store
from arl_gym.envs.webshop.store_cache import store_faults, store_folders
from arl_gym.envs.webshop.tagger import TaggerKind
from arl_gym.errors import DataError

_FOLDER = "folder of items_shuffle.json, items_ins_v2.json and items_human_ins.json, or of the _1000 files"


def import_webshop(args: list[str]) -> int:
    """Read the original's files into a store, which later starts open at once."""
    p = parser("data import webshop", "Read WebShop's own files once; environments then start at once.")
    p.add_argument("folder", type=Path, metavar="DIR", help=_FOLDER)
    _add_number(p, "the first N products; None is all of items_shuffle.json")
    p.add_argument("--goals", choices=get_args(GoalKind), default="human", help="whose instructions")
    p.add_argument(
        "--nouns",
        choices=get_args(TaggerKind),
        default="spacy",
        help="what finds the nouns of titles: spacy as the original does (extra nouns), heuristic roughly",
    )
    options = p.parse_args(args)
    store = original_store(options.folder, options.num_products, options.goals, options.nouns)
    for line in _import_lines(store):
        print(line)
    return 0


def _add_number(p: ArgumentParser, what: str, default: int | None = None) -> None:
    p.add_argument("--num-products", type=positive_int, metavar="N", default=default, help=what)


def _import_lines(store: Store) -> Iterator[str]:
    for what, n in store.info.counts.items():
        examples = store.info.examples.get(what)
        yield f"{n:>9}  {what}" + (f", e.g. {', '.join(examples)}" if examples else "")
    for mode, splits in SPLIT_MODES.items():
        yield f"splits {mode}: " + ", ".join(f"{s} {_numbers(mode, s, len(store.goals))}" for s in splits)
    yield f"nouns by {store.tagger}"
    yield f"content {store.content_hash}"
    yield f"store {store.folder}"


def _numbers(mode: str, split: str, n_goals: int) -> str:
    try:
        numbers = goal_range(mode, split, n_goals)
    except DataError:
        return "none"
    return f"{numbers.start}-{numbers[-1]}"


def check_webshop(args: list[str]) -> int:
    """Count what is in the original's files, and verify the stores; 0 if all is as published and whole."""
    p = parser(
        "data check webshop",
        "Count the products and goals of WebShop's own files, compare with the published numbers, and verify "
        "the checksums of all stores in the cache.",
    )
    p.add_argument("folder", type=Path, metavar="DIR", help=_FOLDER)
    folder = p.parse_args(args).folder
    for name in missing_files(folder):
        print(f"no {name}")
    faults = list[str]()
    for found in count_folder(folder):
        for line in _count_lines(found):
            print(line)
        faults += _differences(found)
    for store in store_folders():
        wrong = store_faults(store)
        print("\n".join(wrong) or f"store {store} is whole")
        faults += wrong
    if faults:
        print(f"arl-gym: {'; '.join(faults)}", file=sys.stderr)
    return 1 if faults else 0


def _count_lines(found: FileCounts) -> Iterator[str]:
    yield f"\n{found.name:<26}{'found':>10}{'published':>12}"
    for what, n in found.counts.items():
        published = PUBLISHED[found.name].get(what)
        mark = "" if published in (n, None) else f"  {n - (published or 0):+d}"
        yield f"  {what:<24}{n:>10}{'' if published is None else published:>12}{mark}".rstrip()


def _differences(found: FileCounts) -> Iterator[str]:
    for what, published in PUBLISHED[found.name].items():
        n = found.counts.get(what)
        if n is None:
            yield f"{found.name}: {what} cannot be counted, a file is missing"
        elif n != published:
            yield f"{found.name} has {n} {what}, {published} are published"


def export_webshop(args: list[str]) -> int:
    """Write a generated shop as the original's files."""
    p = parser(
        "data export webshop",
        "Write a generated shop as the original WebShop reads it: items_shuffle.json, items_ins_v2.json and "
        "items_human_ins.json.",
    )
    p.add_argument("folder", type=Path, metavar="DIR", help="where the files go; none of them may be there")
    p.add_argument("--catalogue", choices=list(CATALOGUES), default="full", help="which products")
    _add_number(p, "how many products", default=5000)
    options = p.parse_args(args)
    store = generated_store(options.catalogue, options.num_products)
    with progress_bar("writing products") as progress:
        paths = export_shop(store, options.folder, progress)
    for path in paths:
        print(path)
    print(f"{len(store)} products and {len(store.goals)} goals: generated, never the benchmark's")
    return 0
