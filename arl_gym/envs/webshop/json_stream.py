"""Reads one huge JSON list item by item, from any item on.

>>> for stop, item in list_items(Path("items_shuffle.json")):  # doctest: +SKIP
...     print(item["name"], "ends at byte", stop)
"""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arl_gym.errors import DataError

_CHUNK = 1 << 20
_MAX_ITEM = 64 << 20
_SPACES = (" ", "\t", "\r", "\n")
_decode = json.JSONDecoder().raw_decode


def list_items(path: Path, start: int = 0) -> Iterator[tuple[int, Any]]:
    """Give each item of a list with the byte where it ends.

    Args:
        path: A file of one JSON list of objects, in UTF-8.
        start: Where an item ends: those after it are given. 0 gives all.

    Raises:
        DataError: If the file is no list of objects or ends too early; says at which byte.
    """
    with _Text(path, start) as text:
        if start == 0:
            text.take("[", "a list")
        # After an item there is a comma before the next; the first of all has none.
        after_item = start > 0
        while text.peek() != "]":
            if after_item:
                text.take(",", "',' or ']'")
            item = text.take_object()
            yield text.at, item
            after_item = True
        text.take("]", "']'")
        text.take("", "nothing after the list")


class _Text:
    """The text of a file from a byte on, of which only a piece is in memory."""

    def __init__(self, path: Path, start: int):
        self._path = path
        self._file = path.open("rb")
        self._file.seek(start)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._piece, self._place = "", 0
        self.at = start
        """The byte the next character is at."""

    def __enter__(self) -> "_Text":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def peek(self) -> str:
        """Return the next character that is no space, "" at the end of the file."""
        while True:
            stop = self._place
            while self._piece[stop : stop + 1] in _SPACES:
                stop += 1
            self._advance(stop)
            if stop < len(self._piece) or not self._read():
                return self._piece[stop : stop + 1]

    def take(self, mark: str, what: str) -> None:
        """Go beyond a character that must come next."""
        if self.peek() != mark:
            raise self.fault(f"expected {what}")
        self._advance(self._place + len(mark))

    def take_object(self) -> Any:
        """Return the object that must come next, and go beyond it."""
        if self.peek() != "{":
            raise self.fault("expected an object")
        while True:
            try:
                item, stop = _decode(self._piece, self._place)
            except json.JSONDecodeError as err:
                if len(self._piece) - self._place > _MAX_ITEM or not self._read():
                    raise self.fault(f"no whole object ({err.msg})") from err
            else:
                self._advance(stop)
                return item

    def fault(self, what: str) -> DataError:
        return DataError(f"{self._path}: {what} at byte {self.at}; is the file whole, and the right one?")

    def _advance(self, place: int) -> None:
        self.at += len(self._piece[self._place : place].encode())
        self._place = place

    def _read(self) -> bool:
        """Add the next bytes to the piece; False at the end of the file."""
        chunk = self._file.read(_CHUNK)
        try:
            more = self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as err:
            raise self.fault(f"no UTF-8 after the text ({err.reason})") from err
        self._piece, self._place = self._piece[self._place :] + more, 0
        return bool(chunk)
