"""Reads the original's product file into rows, a batch at a time, and goes on where it was interrupted."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from arl_gym.caches import with_bar
from arl_gym.envs.webshop.json_stream import list_items
from arl_gym.envs.webshop.original_goals import Listed
from arl_gym.envs.webshop.product import NO_ATTRIBUTES, Product, read_prices, read_product
from arl_gym.envs.webshop.rows import Rows, RowWriter
from arl_gym.envs.webshop.tagger import Tagger
from arl_gym.errors import DataError

GENERATED = {"generated_by": "arl_gym"}
"""What an exported product has beside the original's fields."""

_BATCH = 1024
_MAX_EXAMPLES = 3
_MAX_ASIN = 10


class LeaveOut(Exception):
    """A record is no product; the message is the reason."""


def judge_record(record: Mapping[str, Any], seen: set[str], listed: Mapping[str, Listed]) -> Product:
    """Return the product of a record, without nouns, and add its ASIN to those seen.

    Raises:
        LeaveOut: If there is none, or it has been there before.
    """
    asin = record.get("asin")
    if not isinstance(asin, str) or asin == "nan" or not 0 < len(asin) <= _MAX_ASIN or "\n" in asin:
        raise LeaveOut("bad ASIN")
    if asin in seen:
        raise LeaveOut("duplicate ASIN")
    try:
        read_prices(record.get("pricing"))
    except DataError as err:
        raise LeaveOut("bad price") from err
    entry = listed.get(asin)
    try:
        product = read_product(record, attributes=entry.attributes if entry else NO_ATTRIBUTES)
    except DataError as err:
        raise LeaveOut("a field is missing or of another form") from err
    seen.add(asin)
    return product


@dataclass(kw_only=True)
class Progress:
    """How far the reading is, and what was left out so far."""

    source: list[Any]
    """What is read, and with what; progress with another is worth nothing."""
    offset: int = 0
    """Byte of the file up to which it has been read."""
    n_records: int = 0
    n_rows: int = 0
    n_unlisted: int = 0
    """Products that are not in the attribute file."""
    n_generated: int = 0
    """Products that say so."""
    done: bool = False
    left_out: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Return what was read and left out, in words."""
        return {
            "records read": self.n_records,
            **{f"records left out: {reason}": n for reason, n in self.left_out.items()},
            "products kept": self.n_rows,
            "products that the attribute file lacks": self.n_unlisted,
            "products that are generated": self.n_generated,
        }

    def leave_out(self, reason: str, record: Mapping[str, Any]) -> None:
        """Count a record that is no product."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1
        shown = self.examples.setdefault(f"records left out: {reason}", [])
        if len(shown) < _MAX_EXAMPLES:
            shown.append(f"{record.get('asin')!r:.40}")


class ProductReader:
    """The products of a file, as rows in a folder.

    Args:
        folder: For the rows, which stay there until somebody deletes them.
        path: The product file.
        limit: How many records are read; None reads all.
        listed: The attributes by ASIN.
        tagger: Finds the nouns.
        source: Identifies the arguments above, JSON-able.
    """

    def __init__(
        self,
        folder: Path,
        path: Path,
        limit: int | None,
        *,
        listed: Mapping[str, Listed],
        tagger: Tagger,
        source: list[Any],
    ):
        self._rows, self._state = folder / "products", folder / "progress.json"
        self._path, self._limit = path, limit
        self._listed, self._tagger = listed, tagger
        folder.mkdir(parents=True, exist_ok=True)
        self.progress = self._resumed(source) or Progress(source=source)

    def read(self) -> Progress:
        """Read the rest of the file.

        Raises:
            DataError: If it is no list of objects, or ends too early, or before `limit`, or has no product.
        """
        if not self.progress.done:
            seen = {product.asin for product in self.products()} if self.progress.n_rows else set[str]()
            with RowWriter(self._rows, keep=self.progress.n_rows) as writer:
                for batch in _batches(self._records(), _BATCH):
                    self._add(writer, batch, seen)
            self._check()
            self.progress.done = True
            self._save()
        return self.progress

    def products(self) -> Iterator[Product]:
        """Give the products that have been read."""
        rows = Rows(self._rows)
        for number in range(self.progress.n_rows):
            yield Product.of_row(json.loads(rows[number]))

    def product(self, number: int) -> Product:
        """Return one of them."""
        return Product.of_row(json.loads(self._finished[number]))

    @cached_property
    def _finished(self) -> Rows:
        return Rows(self._rows)

    def _records(self) -> Iterator[tuple[int, Any]]:
        rest = None if self._limit is None else self._limit - self.progress.n_records
        records = islice(list_items(self._path, self.progress.offset), rest)
        size = self._path.stat().st_size
        return with_bar(records, f"reading {self._path.name}", total=size, done=itemgetter(0))

    def _add(self, writer: RowWriter, batch: Sequence[tuple[int, Any]], seen: set[str]) -> None:
        found = [product for _, record in batch if (product := self._judge(record, seen))]
        nouns = self._tagger.nouns([product.title for product in found])
        for product, its_nouns in zip(found, nouns, strict=True):
            row = replace(product, nouns=its_nouns).to_row()
            writer.add(json.dumps(row, separators=(",", ":")).encode())
        writer.flush()
        self.progress.offset = batch[-1][0]
        self.progress.n_records += len(batch)
        self.progress.n_rows += len(found)
        self._save()

    def _judge(self, record: Mapping[str, Any], seen: set[str]) -> Product | None:
        """Return the product of a record; None if it is left out."""
        try:
            product = judge_record(record, seen, self._listed)
        except LeaveOut as reason:
            self.progress.leave_out(str(reason), record)
            return None
        self.progress.n_unlisted += product.asin not in self._listed
        self.progress.n_generated += GENERATED.items() <= record.items()
        return product

    def _check(self) -> None:
        found = self.progress
        if self._limit is not None and found.n_records < self._limit:
            raise DataError(f"{self._path} has {found.n_records} products, {self._limit} were asked for")
        if not found.n_rows:
            raise DataError(f"{self._path}: none of {found.n_records} records is a product: {found.left_out}")

    def _save(self) -> None:
        part = self._state.with_suffix(".part")
        part.write_text(json.dumps(vars(self.progress)), encoding="utf-8")
        part.replace(self._state)

    def _resumed(self, source: list[Any]) -> Progress | None:
        try:
            progress = Progress(**json.loads(self._state.read_text(encoding="utf-8")))
            complete = len(Rows(self._rows)) >= progress.n_rows
        except (OSError, ValueError, TypeError):
            return None
        return progress if complete and progress.source == source else None


def _batches(items: Iterable[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
