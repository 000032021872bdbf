"""Pools: rooms drawn in advance, for settings where drawing one takes long. They lie in `assets/sokoban`.

A file is a digest of all that follows, a line of JSON, and a record of fixed size for each room, split after
split. `build_pools.py` beside the files makes them. Rooms are decoded one by one, as they are asked for.

    >>> pool = find_pool(10, 10, 4)
    >>> pool.rooms("test", 60, 70)[0].optimal >= 60
    True
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from arl_gym.assets import assets_root
from arl_gym.envs.sokoban.rules import FLOOR, TARGET, WALL, Level
from arl_gym.errors import DataError
from arl_gym.rng import digest

Records = npt.NDArray[np.void]

_FORMAT = "arl_gym Sokoban pool, version 1"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Pool:
    """Rooms of one size and number of boxes, all different; train, val and test are apart by content."""

    height: int
    width: int
    boxes: int
    lo: int
    """Least optimum."""
    hi: int
    """Greatest optimum; those between are about equally frequent."""
    records: Mapping[str, Records]
    """Encoded rooms of each split; the first n are a fair sample."""

    def rooms(self, split: str, lo: int, hi: int) -> "PoolRooms":
        """Return the rooms of train, val or test with lo <= optimum <= hi, always in the same order."""
        records = self.records[split]
        chosen = (lo <= records["optimal"]) & (records["optimal"] <= hi)
        return PoolRooms(pool=self, records=records[chosen], lo=lo, hi=hi)

    def decode(self, record: np.void) -> Level:
        """Return the room of a record."""
        cells = _inner_cells(self.height, self.width)
        bits = np.unpackbits(record["floor"], count=len(cells))
        floor = [cell for cell, bit in zip(cells, bits.tolist(), strict=True) if bit]
        text = bytearray(_blank(self.height, self.width))
        for cell in floor:
            text[cell] = ord(FLOOR)
        for target in record["targets"]:
            text[cells[target]] = ord(TARGET)
        return Level(
            text=text.decode("ascii"),
            floor=frozenset(floor),
            boxes=frozenset(cells[box] for box in record["boxes"]),
            player=cells[record["player"]],
            optimal=int(record["optimal"]),
        )


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class PoolRooms:
    """Rooms of one split of a pool within a range of optima, decoded when asked for."""

    pool: Pool
    records: Records
    lo: int
    hi: int

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Level:
        return self.pool.decode(self.records[index])


@lru_cache(maxsize=16)
def find_pool(height: int, width: int, boxes: int) -> Pool | None:
    """Return the pool of a size and number of boxes, None if there is none.

    Raises:
        DataError: If its file is damaged.
    """
    path = assets_root() / "sokoban" / f"{height}x{width}-{boxes}.pool"
    return read_pool(path) if path.exists() else None


def read_pool(path: Path) -> Pool:
    """Read and check the file of a pool.

    Raises:
        DataError: If it cannot be read, is damaged, or has another format.
    """
    try:
        check, _, content = path.read_bytes().partition(b"\n")
    except OSError as err:
        raise DataError(f"cannot read the pool {path}: {err}") from err
    if check != digest(content).encode():
        raise DataError(f"{path}: damaged: expected the digest {check[:16]!r}, got {digest(content)!r}")
    head, _, body = content.partition(b"\n")
    header = json.loads(head)
    if header["format"] != _FORMAT:
        raise DataError(f"{path}: expected the format {_FORMAT!r}, got {header['format']!r}")
    n_rooms = header["rooms"]
    dtype = _record(header["height"], header["width"], header["boxes"])
    if len(body) != sum(n_rooms.values()) * dtype.itemsize:
        raise DataError(f"{path}: expected {n_rooms} rooms of {dtype.itemsize} bytes, got {len(body)} bytes")
    ends = np.cumsum(list(n_rooms.values()))[:-1]
    records = dict(zip(n_rooms, np.split(np.frombuffer(body, dtype), ends), strict=True))
    return Pool(records=records, **{key: header[key] for key in ("height", "width", "boxes", "lo", "hi")})


def encode(rooms: Mapping[str, Sequence[Level]]) -> bytes:
    """Return the file of a pool that holds these rooms: equal in size and number of boxes, optima known."""
    levels = [level for split in rooms.values() for level in split]
    height, width, boxes = levels[0].height, levels[0].width, len(levels[0].boxes)
    header = {
        "format": _FORMAT,
        "height": height,
        "width": width,
        "boxes": boxes,
        "lo": min(level.optimal for level in levels),
        "hi": max(level.optimal for level in levels),
        "rooms": {split: len(rooms[split]) for split in rooms},
    }
    number = {cell: i for i, cell in enumerate(_inner_cells(height, width))}
    records = np.zeros(len(levels), _record(height, width, boxes))
    # By content hash, which knows nothing of a room's difficulty: so the first n are a fair sample.
    ordered = (level for split in rooms.values() for level in sorted(split, key=lambda r: r.content_hash))
    for record, level in zip(records, ordered, strict=True):
        record["optimal"], record["player"] = level.optimal, number[level.player]
        record["boxes"] = [number[box] for box in sorted(level.boxes)]
        record["targets"] = [number[target] for target in sorted(level.targets)]
        record["floor"] = np.packbits([cell in level.floor for cell in number])
    content = json.dumps(header).encode() + b"\n" + records.tobytes()
    return digest(content).encode() + b"\n" + content


def _record(height: int, width: int, boxes: int) -> np.dtype[np.void]:
    """Return the fields of a room. Cells are numbered row by row inside the border; floor is a bit each."""
    inner = (height - 2) * (width - 2)
    return np.dtype(
        [
            ("optimal", np.uint8),
            ("player", np.uint8),
            ("boxes", np.uint8, (boxes,)),
            ("targets", np.uint8, (boxes,)),
            ("floor", np.uint8, ((inner + 7) // 8,)),
        ]
    )


@cache
def _inner_cells(height: int, width: int) -> tuple[int, ...]:
    """Return the index into the board text of each cell inside the border."""
    return tuple(r * (width + 1) + c for r in range(1, height - 1) for c in range(1, width - 1))


@cache
def _blank(height: int, width: int) -> bytes:
    """Return the text of a board that is all wall."""
    return ((WALL * width + "\n") * height)[:-1].encode()
