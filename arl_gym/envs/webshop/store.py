"""A shop on disk: products, results cards, goals and the search index, read-only and mapped into memory.

All processes share one copy through the system's page cache; a `Store` itself holds little more than two
bounded caches. It pickles as its folder, and a fork may go on using it.

>>> store = open_store(Path("shop"))  # doctest: +SKIP
>>> [store.card(n).title for n in store.search("red mug")[:10]]  # doctest: +SKIP
"""

import hashlib
import json
import shutil
import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, overload
from weakref import WeakValueDictionary

import numpy as np

from arl_gym.caches import with_bar
from arl_gym.envs.webshop.bm25 import Index, IndexBuilder
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.product import Card, Product
from arl_gym.envs.webshop.rows import Rows, RowWriter, map_file
from arl_gym.errors import DataError

FORMAT = 1
"""To be raised with every change of the files, of the rows in them or of the index."""

_HITS = 50
_PRODUCTS, _CARDS, _QUERIES = 512, 4096, 4096
_INFO = "info.json"
_LONE = "surrogatepass"
"""Texts from the web may hold half characters, which JSON can write."""
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """What a store says of itself."""

    dataset: str
    arguments: dict[str, Any]
    """What it was made from, JSON-able: another value means that it has to be made anew."""
    tagger: str
    """What found the nouns of the titles."""
    n_products: int
    n_goals: int
    splits: list[str]
    content_hash: str
    """Over all products and goals."""
    counts: dict[str, int]
    """What was read and what was left out, in words."""
    examples: dict[str, list[str]]
    """A few of what was left out, under the same words."""
    files: dict[str, list[Any]]
    """Size in bytes and checksum, by path."""


class Task(NamedTuple):
    """A goal and the split it belongs to."""

    split: str
    goal: Goal


class Goals(Sequence[Goal]):
    """The goals of a store, each read when it is asked for."""

    def __init__(self, rows: Rows):
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, number: int) -> Goal: ...
    @overload
    def __getitem__(self, number: slice) -> list[Goal]: ...
    def __getitem__(self, number: int | slice) -> Goal | list[Goal]:
        if isinstance(number, slice):
            return [self[k] for k in range(len(self))[number]]
        return Goal.of_row(json.loads(self._rows[range(len(self))[number]]))


class Store:
    """A shop in a folder; see `open_store`.

    Raises:
        DataError: If the folder holds no store, or a file of it has gone or is of another size.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.info = _read_info(folder)
        self._check_sizes()
        self._product = lru_cache(_PRODUCTS)(_Products(folder / "products"))
        self._card = lru_cache(_CARDS)(_Cards(folder / "cards"))
        self._search = lru_cache(_QUERIES)(_Search(folder / "index"))

    def __reduce__(self) -> tuple[Callable[[Path], "Store"], tuple[Path]]:
        return open_store, (self.folder,)

    def __len__(self) -> int:
        return self.info.n_products

    @property
    def dataset(self) -> str:
        """What the data is: "generated" or "original"."""
        return self.info.dataset

    @property
    def tagger(self) -> str:
        """What found the nouns of the titles."""
        return self.info.tagger

    @property
    def content_hash(self) -> str:
        """16 hex digits that identify all products and goals."""
        return self.info.content_hash

    def search(self, query: str) -> tuple[int, ...]:
        """Return the numbers of the best products for a query, best first, at most 50."""
        return tuple(self._search(query))

    def number(self, asin: str) -> int | None:
        """Return the number of a product, None if the shop has none of this id."""
        key = _bytes(asin)
        row = int(np.searchsorted(self._asins, key)) if len(key) <= self._asins.itemsize else len(self)
        return self._numbers[row] if row < len(self) and self._asins[row] == key else None

    def product(self, number: int) -> Product:
        """Return a product."""
        return self._product(number)

    def card(self, number: int) -> Card:
        """Return what the results page shows of a product, without reading all of it."""
        return self._card(number)

    @cached_property
    def goals(self) -> Goals:
        """All goals, by number."""
        return Goals(Rows(self.folder / "goals", compressed=False))

    @cached_property
    def splits(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the goals of every split."""
        return {name: _integers(self.folder / f"split-{name}.i4") for name in self.info.splits}

    @cached_property
    def _asins(self) -> "np.ndarray[Any, np.dtype[np.bytes_]]":
        return np.load(self.folder / "asins.npy", mmap_mode="r").view(np.ndarray)  # type: ignore[no-any-return]

    @cached_property
    def _numbers(self) -> Sequence[int]:
        return _integers(self.folder / "numbers.i4")

    def _check_sizes(self) -> None:
        for name, (size, _) in self.info.files.items():
            path = self.folder / name
            found = path.stat().st_size if path.is_file() else -1
            if found != size:
                has = "is missing" if found < 0 else f"has {found} bytes, expected {size}"
                raise DataError(f"{path} {has}: {_remedy(self.folder)}")

    def faults(self) -> list[str]:
        """Return what is wrong with the files, read as a whole; empty if nothing is."""
        return [
            f"{self.folder / name} has changed since it was written: {_remedy(self.folder)}"
            for name, (_, checksum) in self.info.files.items()
            if _checksum(self.folder / name) != checksum
        ]


# Apart from the store, so that the caches around them do not keep it alive. Each opens its files when it is
# first asked.


class _Products:
    def __init__(self, path: Path):
        self._path = path

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self._path)

    def __call__(self, number: int) -> Product:
        return Product.of_row(json.loads(self._rows[number]))


class _Cards:
    def __init__(self, path: Path):
        self._path = path

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self._path, compressed=False)

    def __call__(self, number: int) -> Card:
        asin, price_tag, title = self._rows[number].decode(errors=_LONE).split("\n", 2)
        return Card(asin=asin, title=title, price_tag=price_tag)


class _Search:
    def __init__(self, folder: Path):
        self._folder = folder

    @cached_property
    def _index(self) -> Index:
        return Index(self._folder)

    def __call__(self, query: str) -> "array[int]":
        # Thousands of them are kept: as objects they would take ten times as much.
        return array("i", self._index.top(query, _HITS))


def _integers(path: Path) -> Sequence[int]:
    return memoryview(map_file(path)).cast("i")


_in_use: "WeakValueDictionary[Path, Store]" = WeakValueDictionary()


def open_store(folder: Path) -> Store:
    """Return the store in a folder, one for all who ask in this process.

    Raises:
        DataError: If the folder holds no store, or a file of it has gone or is of another size.
    """
    folder = folder.absolute()  # a worker process may have another working folder
    store = _in_use.get(folder)
    if store is None:
        store = _in_use[folder] = Store(folder)
    return store


def find_store(folder: Path, arguments: Mapping[str, Any]) -> Store | None:
    """Return the store in a folder, None if there is none or it is of another version or other arguments.

    Raises:
        DataError: If a file of it has gone or is of another size.
    """
    if not (folder / _INFO).exists():
        return None
    found = _read_json(folder / _INFO)
    if (found.get("format"), found.get("arguments")) != (FORMAT, arguments):
        return None
    store = open_store(folder)
    if store.info.arguments != arguments:  # another process has made it anew since this one opened it
        _in_use.pop(store.folder, None)
        store = open_store(folder)
    return store


def _read_info(folder: Path) -> Info:
    found = _read_json(folder / _INFO)
    if found.pop("format", None) != FORMAT:
        raise DataError(f"{folder} is a store of another version: {_remedy(folder)}")
    try:
        return Info(**found)
    except TypeError as err:
        raise DataError(
            f"{folder / _INFO} has other fields than expected ({err}): {_remedy(folder)}"
        ) from err


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError as err:
        raise DataError(f"no store in {path.parent}: cannot read {path.name} ({err.strerror})") from err
    except (TypeError, ValueError) as err:
        raise DataError(f"{path} is no JSON object ({err}): {_remedy(path.parent)}") from err


def _remedy(folder: Path) -> str:
    return f"delete the folder {folder}, and the store is made anew when it is next used"


# ---- writing


def write_store(
    folder: Path,
    content: Iterable[Product | Task],
    *,
    dataset: str,
    arguments: Mapping[str, Any],
    tagger: str,
    expected: int,
    counts: Mapping[str, int] | None = None,
    examples: Mapping[str, list[str]] | None = None,
) -> Store:
    """Write a store, which appears under its name when it is finished, in place of an older one.

    Args:
        folder: Where it is to be.
        content: Products and goals, in any order; numbered in the order they come in.
        dataset: Name of the data.
        arguments: What it is made from; see `Info`.
        tagger: What found the nouns.
        expected: How many products there are to be, for the bar.
        counts: What was read and left out; looked at when the content is at its end.
        examples: A few of what was left out.

    Raises:
        DataError: If two products have the same ASIN, or one has a line break in it.
    """
    part = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.part")
    part.mkdir(parents=True)
    try:
        n_products, n_goals, splits, content_hash = _write_content(part, content, expected)
        files = {path.relative_to(part).as_posix(): path for path in _files(part)}
        info = Info(
            dataset=dataset,
            arguments=dict(arguments),
            tagger=tagger,
            n_products=n_products,
            n_goals=n_goals,
            splits=splits,
            content_hash=content_hash,
            counts=dict(counts or {}),
            examples=dict(examples or {}),
            files={name: [path.stat().st_size, _checksum(path)] for name, path in files.items()},
        )
        text = json.dumps({"format": FORMAT, **asdict(info)}, indent=1)
        (part / _INFO).write_text(text, encoding="utf-8")
        _move(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    _in_use.pop(folder.absolute(), None)
    return open_store(folder)


def _write_content(
    folder: Path, content: Iterable[Product | Task], expected: int
) -> tuple[int, int, list[str], str]:
    """Write all files but the info; return the numbers of products and goals, the splits and the hash."""
    asins, splits, n_goals = list[str](), dict[str, list[int]](), 0
    check = hashlib.blake2b(digest_size=8)
    index = IndexBuilder(folder / "index")
    with ExitStack() as stack:
        products = stack.enter_context(RowWriter(folder / "products"))
        cards = stack.enter_context(RowWriter(folder / "cards", compressed=False))
        goals = stack.enter_context(RowWriter(folder / "goals", compressed=False))
        what = f"making a shop of {expected} products"
        for item in with_bar(content, what, total=expected, done=lambda _: len(asins)):
            row = _bytes(_encode((item if isinstance(item, Product) else item.goal).to_row()))
            check.update(row + b"\n")
            if isinstance(item, Product):
                products.add(row)
                cards.add(_bytes("\n".join((item.asin, item.price_tag, item.title))))
                index.add(item.search_text)
                asins.append(item.asin)
            else:
                check.update(item.split.encode())
                goals.add(row)
                splits.setdefault(item.split, []).append(n_goals)
                n_goals += 1
    _write_asins(folder, asins)
    index.finish(asins)
    for name, numbers in splits.items():
        np.array(numbers, np.int32).tofile(folder / f"split-{name}.i4")
    return len(asins), n_goals, list(splits), check.hexdigest()


def _write_asins(folder: Path, asins: Sequence[str]) -> None:
    """Write the ASINs in sorted order, and the numbers of their products."""
    if not asins:
        raise DataError("a store needs at least one product")
    keys = np.array([_bytes(asin) for asin in asins])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    for row in np.flatnonzero(keys[1:] == keys[:-1]):
        raise DataError(f"two products have the ASIN {keys[row].decode()}")
    for row in np.flatnonzero(np.char.find(keys, b"\n") >= 0):
        raise DataError(f"there is a line break in the ASIN {keys[row].decode()!r}")
    np.save(folder / "asins.npy", keys)
    order.astype(np.int32).tofile(folder / "numbers.i4")


def _bytes(text: str) -> bytes:
    return text.encode(errors=_LONE)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _move(part: Path, folder: Path) -> None:
    """Give a finished folder its name; an older one of that name goes."""
    old = part.with_suffix(".old")
    try:
        if folder.exists():
            folder.rename(old)
        part.rename(folder)
    except OSError:
        # Where there are no locks another process may have been faster.
        if not (folder / _INFO).is_file():
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
