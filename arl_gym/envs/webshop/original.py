"""The original's shop from its own files, made once into a store.

>>> shop = original_store(Path("webshop/data"), num_products=1000)  # doctest: +SKIP
>>> shop.goals[goal_range("paper", "test", len(shop.goals))[0]]  # doctest: +SKIP
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from arl_gym.envs.webshop.original_goals import (
    GoalSource,
    human_goals,
    read_listed,
    read_written,
    shuffled_goals,
    synthetic_goals,
)
from arl_gym.envs.webshop.original_products import ProductReader
from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.store import Store, Task, write_store
from arl_gym.envs.webshop.store_cache import cached_store
from arl_gym.envs.webshop.tagger import TaggerKind, load_tagger
from arl_gym.errors import ConfigError, DataError, UnknownNameError
from arl_gym.rng import digest

GoalKind = Literal["human", "synthetic"]

ALL_PRODUCTS, FIRST_PRODUCTS = "items_shuffle.json", "items_shuffle_1000.json"
ALL_ATTRIBUTES, FIRST_ATTRIBUTES = "items_ins_v2.json", "items_ins_v2_1000.json"
HUMAN = "items_human_ins.json"
FIRST = 1000
"""Products of the small file."""

SPLIT_MODES: dict[str, dict[str, tuple[int, int | None]]] = {
    "paper": {"train": (1500, None), "val": (500, 1500), "test": (0, 500)},
    "verl_agent": {"train": (500, None), "val": (0, 500)},
}
"""Which goals, by number, are of which split: of the paper, whose "eval" is our val, and of verl-agent."""

_READ_AT_MOST = 1 << 20


def goal_range(mode: str, split: str, n_goals: int) -> range:
    """Return the numbers of the goals of a split.

    Args:
        mode: Whose splits; see `SPLIT_MODES`.
        split: Which.
        n_goals: How many goals there are.

    Raises:
        UnknownNameError: If there is no such mode, or it has no such split.
        DataError: If there are too few goals for any to be in the split.
    """
    if mode not in SPLIT_MODES:
        raise UnknownNameError("split mode", mode, SPLIT_MODES)
    if split not in SPLIT_MODES[mode]:
        raise UnknownNameError("split", split, SPLIT_MODES[mode], f"split mode {mode!r}")
    numbers = _clipped(mode, split, n_goals)
    if not numbers:
        raise DataError(
            f"the split {split!r} of {mode!r} begins at goal {numbers.start}, of only {n_goals} goals: "
            f'people wrote 13 for the first {FIRST} products; use all, or goals="synthetic"'
        )
    return numbers


def _clipped(mode: str, split: str, n_goals: int) -> range:
    start, stop = SPLIT_MODES[mode][split]
    return range(start, max(start, n_goals if stop is None else min(stop, n_goals)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The original's files for one choice of products and goals."""

    products: Path
    attributes: Path
    human: Path | None
    """None for synthetic goals, which need none."""

    def identity(self) -> list[Any]:
        """Return what tells these files from others: sizes, times and first bytes."""
        paths = (self.products, self.attributes, self.human)
        return [_identity(path) for path in paths if path is not None]


def find_files(folder: Path, num_products: int | None, goals: GoalKind) -> Files:
    """Return the files that a shop is made from.

    Raises:
        DataError: If one that is needed is missing.
    """
    small = num_products is not None and num_products <= FIRST
    products = _first_of(folder, [ALL_PRODUCTS, FIRST_PRODUCTS] if small else [ALL_PRODUCTS])
    names = [ALL_ATTRIBUTES, FIRST_ATTRIBUTES]
    if products.name == FIRST_PRODUCTS:
        names.reverse()
    attributes = _first_of(folder, names if small else names[:1])
    human = _first_of(folder, [HUMAN]) if goals == "human" else None
    return Files(products=products, attributes=attributes, human=human)


def _first_of(folder: Path, names: list[str]) -> Path:
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is not None:
        return found
    hint = ""
    if names == [ALL_PRODUCTS] and (folder / FIRST_PRODUCTS).is_file():
        hint = f"; {FIRST_PRODUCTS} holds the first {FIRST}: pass num_products={FIRST} for them"
    raise DataError(f"no {' or '.join(names)} in {folder}{hint}")


def _identity(path: Path) -> list[Any]:
    status = path.stat()
    with path.open("rb") as file:
        return [path.name, status.st_size, status.st_mtime_ns, digest(file.read(_READ_AT_MOST))]


def original_store(
    data_dir: Path | str,
    num_products: int | None = None,
    goals: GoalKind = "human",
    nouns: TaggerKind = "spacy",
) -> Store:
    """Return the original's shop, from the cache if it has been made of the same files before.

    The first time takes about 4 ms a product with spaCy, 1 ms without; an interrupted one goes on where it
    was. The splits of the store are the paper's.

    Args:
        data_dir: Folder of the original's files.
        num_products: The first so many records of the products; None is all.
        goals: "human" are the instructions that people wrote, "synthetic" those made of attributes.
        nouns: What finds the nouns of the titles; see `tagger.load_tagger`.

    Raises:
        ConfigError: If an argument is not one of those above.
        DataError: If a file is missing or is not what it should be, or there is no goal.
        DependencyMissing: If the nouns are yet to be found, and spaCy is not installed.
    """
    if num_products is not None and num_products < 1:
        raise ConfigError(f"num_products must be at least 1, or None for all, got {num_products}")
    if goals not in get_args(GoalKind):
        raise UnknownNameError("kind of goals", goals, get_args(GoalKind))
    if nouns not in get_args(TaggerKind):
        raise UnknownNameError("tagger", nouns, get_args(TaggerKind))
    folder = Path(data_dir).resolve()
    files = find_files(folder, num_products, goals)
    chosen = [str(folder), num_products, goals, nouns]
    arguments = {"chosen": chosen, "files": files.identity()}
    make = partial(_make, files=files, arguments=arguments)
    return cached_store(f"original-{digest(json.dumps(chosen))}", arguments, make)


def _make(folder: Path, files: Files, arguments: dict[str, Any]) -> Store:
    _, num_products, _, nouns = arguments["chosen"]
    tagger = load_tagger(nouns)
    listed = read_listed(files.attributes)
    source = synthetic_goals(listed) if files.human is None else human_goals(read_written(files.human))
    reading = folder.with_name(f"{folder.name}-reading")
    reader = ProductReader(
        reading,
        files.products,
        num_products,
        listed=listed,
        tagger=tagger,
        source=[arguments, tagger.name],
    )
    progress = reader.read()
    if files.human is not None:
        listed.clear()  # of all products a gigabyte, which human goals need no more
    counts = progress.counts()
    store = write_store(
        folder,
        _content(reader, source, counts),
        dataset="generated" if progress.n_generated else "original",
        arguments=arguments,
        tagger=tagger.name,
        expected=progress.n_rows,
        counts=counts,
        examples=progress.examples,
    )
    shutil.rmtree(reading)
    return store


def _content(reader: ProductReader, source: GoalSource, counts: dict[str, int]) -> Iterator[Product | Task]:
    """Give all products, then the goals in order; add to the counts."""
    with_goals = list[int]()
    for number, product in enumerate(reader.products()):
        if source.count(product):
            with_goals.append(number)
        yield product
    n_goals = 0
    for goal in shuffled_goals(source, with_goals, reader.product):
        yield Task(_paper_split(n_goals), goal)
        n_goals += 1
    if not n_goals:
        raise DataError("there is no goal for any of these products: use more, or the other kind of goals")
    counts |= {
        "instructions that ask for an attribute": source.n_instructions,
        "instructions left out: no attribute": source.n_bare,
        "products with goals": len(with_goals),
        "goals": n_goals,
    }


def _paper_split(number: int) -> str:
    return next(
        split
        for split, (start, stop) in SPLIT_MODES["paper"].items()
        if start <= number and (stop is None or number < stop)
    )
