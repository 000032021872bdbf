"""Files of rows: compressed or plain texts one after the other, and beside them where each of them ends.

>>> with RowWriter(Path("goals")) as goals:  # doctest: +SKIP
...     goals.add(b"a row")
>>> Rows(Path("goals"))[0]  # doctest: +SKIP
b'a row'
"""

import mmap
import os
import zlib
from array import array
from pathlib import Path
from types import TracebackType
from typing import Any

_FLUSH_AT = 1 << 14
_ITEM = array("q").itemsize


def row_files(path: Path) -> tuple[Path, Path]:
    """Return the file of the rows and that of their ends."""
    return path.with_suffix(".rows"), path.with_suffix(".ends")


class RowWriter:
    """Appends rows to the two files.

    Args:
        path: Of both, without suffix.
        keep: How many rows that are there already stay; those after them, perhaps half written, are cut off.
        compressed: Whether every row is compressed.
    """

    def __init__(self, path: Path, *, keep: int = 0, compressed: bool = True):
        self._compressed = compressed
        rows, ends = row_files(path)
        self._rows, self._ends = (file.open("r+b" if keep else "w+b") for file in (rows, ends))
        self._ends.truncate(keep * _ITEM)
        self._pending = array("q")
        self.size = 0
        """Bytes of the rows."""
        if keep:
            self._ends.seek((keep - 1) * _ITEM)
            self.size = array("q", self._ends.read(_ITEM))[0]
        self._rows.truncate(self.size)
        self._rows.seek(0, os.SEEK_END)
        self._ends.seek(0, os.SEEK_END)

    def add(self, row: bytes) -> None:
        """Append a row."""
        stored = zlib.compress(row, 1) if self._compressed else row
        self._rows.write(stored)
        self.size += len(stored)
        self._pending.append(self.size)
        if len(self._pending) >= _FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Hand everything added so far to the system."""
        self._ends.write(self._pending.tobytes())
        self._pending = array("q")
        self._rows.flush()
        self._ends.flush()

    def __enter__(self) -> "RowWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        self._rows.close()
        self._ends.close()


class Rows:
    """Rows on disk, mapped into memory: all processes share the pages, and a fork may go on reading.

    Args:
        path: Of both files, without suffix.
        compressed: As they were written.
    """

    def __init__(self, path: Path, *, compressed: bool = True):
        rows, ends = row_files(path)
        self._rows = map_file(rows)
        self._ends = memoryview(map_file(ends)).cast("q")
        self._compressed = compressed

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> bytes:
        if not 0 <= number < len(self._ends):
            raise IndexError(f"row {number} of {len(self._ends)}")
        row: bytes = self._rows[self._ends[number - 1] if number else 0 : self._ends[number]]
        return zlib.decompress(row) if self._compressed else row


def map_file(path: Path) -> Any:
    """Return the content of a file as a read-only map, or empty bytes: no system maps an empty file."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
