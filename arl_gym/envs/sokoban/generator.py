"""Draws rooms: a carved topology, an exact table of optimal move counts, a start inside the wanted range.

A room is a pure function of (spec, split, index). Splits are kept apart by content: the digest of the board,
blind to its symmetries, says whether a room belongs to train, val or test; others are not drawn.

    >>> room(RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10), "train", 123).optimal
    3
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import overload

from arl_gym.core import SPLITS
from arl_gym.envs.sokoban.rules import FLOOR, TARGET, WALL, Level, make_level
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.rng import Rng

N_TRAIN = 1_000_000
N_HELD_OUT = 512

# Last decimal digit of the content digest -> split. Rooms out of distribution share the test digit: no room
# that any configuration trains on can turn up there.
_DIGITS = {"train": range(8), "val": range(8, 9), "test": range(9, 10), "test_ood": range(9, 10)}

_TRIES = 2_000
"""Topologies per room at most."""
_MAX_ENTRIES = 200_000
"""A table ends with the move count that crosses this; it is still exact for what it holds."""
_MAX_WORK = 4_000_000
"""Table entries per room at most, over all topologies: bounds the time of a hopeless search."""
_STARTS = 64
"""Start states per table whose split is looked up."""
_TINY = 12
"""Inner cells up to which a held-out split may run out of different rooms: drawn whole at construction."""

_TURN_PROBABILITY = 0.35
# Stamps of the carving walk, as (row, column) offsets: bars, corners and a block.
_STAMPS = (
    ((0, -1), (0, 0), (0, 1)),
    ((-1, 0), (0, 0), (1, 0)),
    ((0, 0), (0, 1), (1, 0)),
    ((0, 0), (0, -1), (1, 0)),
    ((0, 0), (0, 1), (1, 0), (1, 1)),
)
_DIRECTIONS = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""Up, down, left, right: the opposite of direction d is d ^ 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomSpec:
    """What rooms are drawn: size with the border, number of boxes, range of the optimal move count."""

    height: int
    width: int
    boxes: int
    lo: int
    hi: int

    def __post_init__(self) -> None:
        inner = (self.height - 2) * (self.width - 2)
        if min(self.height, self.width) < 3 or self.boxes < 1 or inner < 2 * self.boxes + 1:
            raise ConfigError(
                "Sokoban: dim_room must leave 2 * num_boxes + 1 cells inside its walls, with num_boxes >= 1; "
                f"got dim_room=({self.height}, {self.width}), num_boxes={self.boxes}"
            )
        if not 1 <= self.lo <= self.hi:
            raise ConfigError(
                f"Sokoban: optimal must be (lo, hi) with 1 <= lo <= hi, got ({self.lo}, {self.hi})"
            )

    @property
    def out_of_distribution(self) -> "RoomSpec":
        """The rooms of split test_ood: two cells larger each way, one box more, same range of moves."""
        return replace(self, height=self.height + 2, width=self.width + 2, boxes=self.boxes + 1)


class TaskIds(Sequence[str]):
    """The ids `<split>-000000` … of a split, without storing them."""

    def __init__(self, split: str):
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS, "Sokoban")
        self._split = split
        self._n = N_TRAIN if split == "train" else N_HELD_OUT

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(self._n)[index]]
        return f"{self._split}-{range(self._n)[index]:06d}"

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(self._n))

    def __contains__(self, task_id: object) -> bool:
        return isinstance(task_id, str) and self._number(task_id) >= 0

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """Return the number of a task id.

        Raises:
            ValueError: If it is not an id of the split.
        """
        number = self._number(value)
        if number < 0 or number not in range(self._n)[start:stop]:
            raise ValueError(f"{value!r} is no task id of split {self._split!r}")
        return number

    def _number(self, task_id: str) -> int:
        digits = task_id.removeprefix(self._split + "-")
        number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) == 6 else -1
        return number if 0 <= number < self._n and self[number] == task_id else -1


@lru_cache(maxsize=4096)
def room(spec: RoomSpec, split: str, index: int) -> Level:
    """Return the room of a task: the same in every process. Rooms of val, test and test_ood all differ.

    Raises:
        ConfigError: If no such room turns up within the limits.
    """
    if split == "train":
        return _draw(spec, split, index, known=())
    return _held_out(spec, split)[index]


class _HeldOut:
    """Rooms of one held-out split in the order they are drawn, no two alike; drawn as far as asked."""

    def __init__(self, spec: RoomSpec, split: str):
        self._spec = spec.out_of_distribution if split == "test_ood" else spec
        self._split = split
        self._rooms: list[Level] = []
        self._known: set[str] = set()
        self._lock = Lock()

    def __getitem__(self, index: int) -> Level:
        with self._lock:
            while len(self._rooms) <= index:
                level = _draw(self._spec, self._split, len(self._rooms), known=self._known)
                self._known.add(level.content_hash)
                self._rooms.append(level)
            return self._rooms[index]


@lru_cache(maxsize=16)
def _held_out(spec: RoomSpec, split: str) -> _HeldOut:
    return _HeldOut(spec, split)


@lru_cache(maxsize=256)
def check_possible(spec: RoomSpec, split: str) -> None:
    """Draw the first room of a split with less than the usual patience, so that later ones turn up too.

    Raises:
        ConfigError: If none turns up, or a held-out split of tiny rooms is too small.
    """
    larger = spec.out_of_distribution if split == "test_ood" else spec
    _draw(larger, split, 0, known=(), share=1 / 8)
    if split != "train" and (larger.height - 2) * (larger.width - 2) <= _TINY:
        room(spec, split, N_HELD_OUT - 1)


def _draw(spec: RoomSpec, split: str, index: int, *, known: Container[str], share: float = 1.0) -> Level:
    """Draw topologies until one has a start state of the split that is not `known`."""
    rng = Rng("sokoban", spec.height, spec.width, spec.boxes, spec.lo, spec.hi, split, index)
    work = 0
    for _ in range(int(_TRIES * share)):
        cells = _carve(spec.height, spec.width, rng)
        if len(cells) < 2 * spec.boxes + 1:
            continue
        rng.shuffle(cells)
        goals = cells[: spec.boxes]
        cells.sort()
        states, n_entries = _states_in_range(cells, goals, spec)
        level = _start_of_split(spec, cells, goals, states, rng, _DIGITS[split], known)
        if level:
            return level
        work += n_entries
        if work > _MAX_WORK * share:
            break
    raise ConfigError(
        f"Sokoban: found no room for task {index} of split {split!r} with "
        f"dim_room=({spec.height}, {spec.width}), num_boxes={spec.boxes}, optimal=({spec.lo}, {spec.hi}): "
        "widen optimal, or change dim_room or num_boxes"
    )


Cell = tuple[int, int]
"""Row and column."""
State = tuple[int, int, int]
"""Boxes as a bit set of cell numbers, cell number of the player, optimal moves."""


def _carve(height: int, width: int, rng: Rng) -> list[Cell]:
    """Return the floor cells, sorted, that a random walk with stamps leaves."""
    row, column = 1 + rng.below(height - 2), 1 + rng.below(width - 2)
    floor = {(row, column)}
    direction = rng.choice(_DIRECTIONS)
    for _ in range(17 * (height + width) // 10):
        if rng.uniform() < _TURN_PROBABILITY:
            direction = rng.choice(_DIRECTIONS)
        row = min(max(row + direction[0], 1), height - 2)
        column = min(max(column + direction[1], 1), width - 2)
        for dr, dc in rng.choice(_STAMPS):
            if 0 < row + dr < height - 1 and 0 < column + dc < width - 1:
                floor.add((row + dr, column + dc))
    return sorted(floor)


def _states_in_range(cells: Sequence[Cell], goals: Sequence[Cell], spec: RoomSpec) -> tuple[list[State], int]:
    """Search backwards from all solved states, one move count after the other, up to `spec.hi`.

    Every forward move undone is one reverse move, so the count at which a state is first reached is its exact
    optimum.

    Returns:
        The states with lo <= optimum <= hi and no box on a target, and how many entries the table has.
    """
    number = {cell: i for i, cell in enumerate(cells)}
    neighbours = [[number.get((r + dr, c + dc), -1) for dr, dc in _DIRECTIONS] for r, c in cells]
    solved = sum(1 << number[goal] for goal in goals)
    frontier = [(solved, p) for p in range(len(cells)) if not solved >> p & 1]
    seen = set(frontier)
    found: list[State] = []
    for moves in range(1, spec.hi + 1):
        reached: list[tuple[int, int]] = []
        for boxes, player in frontier:
            around = neighbours[player]
            for d in range(4):
                to = around[d]
                if to < 0 or boxes >> to & 1:
                    continue
                before = [(boxes, to)]
                behind = around[d ^ 1]
                if behind >= 0 and boxes >> behind & 1:  # the player may have pushed it there: pull it back
                    before.append((boxes ^ (1 << behind) ^ (1 << player), to))
                for state in before:
                    if state not in seen:
                        seen.add(state)
                        reached.append(state)
        if moves >= spec.lo:
            found += [(boxes, player, moves) for boxes, player in reached if not boxes & solved]
        if len(seen) > _MAX_ENTRIES:
            break
        frontier = reached
    return found, len(seen)


def _start_of_split(
    spec: RoomSpec,
    cells: Sequence[Cell],
    goals: Sequence[Cell],
    states: list[State],
    rng: Rng,
    digits: Container[int],
    known: Container[str],
) -> Level | None:
    """Return a uniformly drawn state whose digest ends in one of the digits and is not known, if any is."""
    symbols = dict.fromkeys(cells, FLOOR) | dict.fromkeys(goals, TARGET)
    rows = ("".join(symbols.get((r, c), WALL) for c in range(spec.width)) for r in range(spec.height))
    text = "\n".join(rows)
    place = [r * (spec.width + 1) + c for r, c in cells]
    for _ in range(min(_STARTS, len(states))):
        i = rng.below(len(states))
        states[i], states[-1] = states[-1], states[i]
        bits, player, moves = states.pop()
        boxes = [place[n] for n in range(len(cells)) if bits >> n & 1]
        level = make_level(text, boxes=boxes, player=place[player], optimal=moves)
        if int(level.content_hash, 16) % 10 in digits and level.content_hash not in known:
            return level
    return None
