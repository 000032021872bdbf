"""Counts what is in a folder of the original's files, to compare with what was published.

>>> for found in count_folder(Path("webshop/data")):  # doctest: +SKIP
...     print(found.name, found.counts)
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from arl_gym.caches import with_bar
from arl_gym.envs.webshop.json_stream import list_items
from arl_gym.envs.webshop.original import (
    ALL_ATTRIBUTES,
    ALL_PRODUCTS,
    FIRST_ATTRIBUTES,
    FIRST_PRODUCTS,
    HUMAN,
)
from arl_gym.envs.webshop.original_goals import (
    GoalSource,
    Listed,
    human_goals,
    read_listed,
    read_written,
    synthetic_goals,
)
from arl_gym.envs.webshop.original_products import GENERATED, LeaveOut, judge_record
from arl_gym.errors import DataError

PUBLISHED = {
    ALL_PRODUCTS: {"products": 1_181_436, "human goals": 12_087, "generated": 0},
    FIRST_PRODUCTS: {"products": 1_000, "human goals": 13, "synthetic goals": 6_910, "generated": 0},
}
"""What the original's two product files hold; goals together with the other files."""

_ATTRIBUTES = {ALL_PRODUCTS: ALL_ATTRIBUTES, FIRST_PRODUCTS: FIRST_ATTRIBUTES}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """What is in one product file."""

    name: str
    counts: dict[str, int]
    """Products and goals; no entry for goals whose file is missing."""


def missing_files(folder: Path) -> list[str]:
    """Return the names of the original's files that are not in a folder."""
    names = (ALL_PRODUCTS, ALL_ATTRIBUTES, HUMAN, FIRST_PRODUCTS, FIRST_ATTRIBUTES)
    return [name for name in names if not (folder / name).is_file()]


def count_folder(folder: Path) -> Iterator[FileCounts]:
    """Count the product files of a folder and the goals for their products, reading all of them.

    Raises:
        DataError: If there is none, or a file is not what it should be.
    """
    missing = missing_files(folder)
    names = [name for name in PUBLISHED if name not in missing]
    if not names:
        raise DataError(f"no {' or '.join(PUBLISHED)} in {folder}")
    human = {} if HUMAN in missing else {"human goals": human_goals(read_written(folder / HUMAN))}
    for name in names:
        listed = {} if _ATTRIBUTES[name] in missing else read_listed(folder / _ATTRIBUTES[name])
        sources = {**human, "synthetic goals": synthetic_goals(listed)} if listed else human
        yield FileCounts(name=name, counts=_count(folder / name, listed, sources))


def _count(path: Path, listed: dict[str, Listed], sources: dict[str, GoalSource]) -> dict[str, int]:
    counts, seen = dict.fromkeys(("products", *sources, "generated"), 0), set[str]()
    size, records = path.stat().st_size, list_items(path)
    for _, record in with_bar(records, f"counting {path.name}", total=size, done=itemgetter(0)):
        counts["products"] += 1
        counts["generated"] += GENERATED.items() <= record.items()
        with suppress(LeaveOut):
            product = judge_record(record, seen, listed)
            for kind, source in sources.items():
                counts[kind] += source.count(product)
    return counts
