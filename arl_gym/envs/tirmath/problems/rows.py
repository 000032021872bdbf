"""Rows of the files in which problems come: JSON lines, JSON, Parquet.

>>> for place, row in read_rows(Path("test.jsonl"), columns=("problem", "answer")):  # doctest: +SKIP
...     print(place, row["problem"])
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from arl_gym.errors import DataError, DependencyMissing

Row = Mapping[str, Any]
Rows = Iterator[tuple[str, Row]]
"""Where a row is ("line 3"), and the row."""


def read_rows(path: Path, columns: Sequence[str]) -> Rows:
    """Give the rows of a file with their places; its ending says which format it has.

    Text may be UTF-8, UTF-16 or UTF-32, with or without byte order mark. A `.json` file is a list, an object,
    or an object a line.

    Args:
        path: The file.
        columns: The columns of a Parquet file to read; those it lacks are left out.

    Raises:
        DataError: If there is no such file, or it is not of its format.
        DependencyMissing: If it is Parquet, and pyarrow is not installed.
    """
    if not path.is_file():
        raise DataError(f"expected a file of problems, got {path}, which is " + _kind(path))
    ending = path.suffix.lower()
    if ending == ".parquet":
        return _parquet_rows(path, columns)
    if ending not in _TEXT_READERS:
        known = ", ".join([*_TEXT_READERS, ".parquet"])
        raise DataError(f"expected a file that ends with one of {known}, got {path}")
    return _objects(path, _TEXT_READERS[ending](path, _text(path)))


def _kind(path: Path) -> str:
    return "a folder: name one of its files" if path.is_dir() else "not there"


def _text(path: Path) -> str:
    raw = path.read_bytes()
    encoding = json.detect_encoding(raw)
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as err:
        raise DataError(f"{path}: expected {encoding} text, got other bytes at byte {err.start}") from err


def _json_lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    # Not splitlines, which would also cut at the separators that JSON allows inside strings.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"line {number}", _parsed(path, line, f"line {number}")


def _json(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        content = json.loads(text)
    except ValueError as err:
        if isinstance(err, json.JSONDecodeError) and err.msg == "Extra data":
            yield from _json_lines(path, text)
            return
        raise DataError(f"{path}: expected JSON, got {err}") from err
    rows = content if isinstance(content, list) else [content]
    yield from ((f"row {number}", row) for number, row in enumerate(rows, start=1))


_TEXT_READERS: dict[str, Callable[[Path, str], Iterator[tuple[str, Any]]]] = {
    ".jsonl": _json_lines,
    ".json": _json,
}


def _parsed(path: Path, text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as err:  # also an integer of thousands of digits
        raise DataError(f"{path}, {place}: expected a JSON object, got {err}") from err


def _objects(path: Path, rows: Iterator[tuple[str, Any]]) -> Rows:
    for place, row in rows:
        if not isinstance(row, dict):
            raise DataError(f"{path}, {place}: expected an object with fields, got {row!r:.100}")
        yield place, row


def _parquet_rows(path: Path, columns: Sequence[str]) -> Rows:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as err:
        raise DependencyMissing(f"reading {path.name}", "math") from err
    number = 0
    try:
        file = parquet.ParquetFile(path)
        present = [name for name in columns if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=present):
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row
    except (ArrowInvalid, OSError) as err:
        raise DataError(f"{path}: expected a Parquet file, got {err}") from err
