"""Draws rooms: a carved topology, an exact table of optimal move counts, a start inside the wanted range.

A room is a pure function of (spec, split, index). Splits are kept apart by content: the digest of the board,
blind to its symmetries, says whether a room belongs to train, val or test; others are not drawn.

Topologies are searched in plain Python until a process has searched so many that loading numba, where it is
installed, pays; from then on the compiled twin in `generator_kernels` does it. The rooms are the same.

    >>> room(RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10), "train", 123).optimal
    3
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import comb
from threading import Lock

import numpy as np
import numpy.typing as npt

from arl_gym.envs.sokoban.compiled import use_numba
from arl_gym.envs.sokoban.rules import FLOOR, TARGET, WALL, Boxes, Level
from arl_gym.errors import ConfigError
from arl_gym.rng import Rng

N_HELD_OUT = 512
"""Rooms of a held-out split."""

# Last decimal digit of the content digest -> split. Rooms out of distribution share the test digit: no room
# that any configuration trains on can turn up there.
_DIGITS = {"train": range(8), "val": range(8, 9), "test": range(9, 10), "test_ood": range(9, 10)}

_TRIES = 2_000
"""Topologies per room at most."""
_MAX_ENTRIES = 500_000
"""A table ends with the move count that crosses this; it is still exact for what it holds."""
_MAX_WORK = 16_000_000
"""Table entries per room at most, over all topologies: bounds the time of a hopeless search."""
_STARTS = 64
"""Start states per table whose split is looked up."""

_PLAIN_WORK = 1_000_000
"""Table entries, a second's, that a process searches in plain Python before it loads numba: half a second,
ten the first time on a machine, when the kernels are compiled."""
_TOPOLOGY_WORK = 300
"""Entries that take as long as the carving of a topology."""
_COMPILED_BOXES, _COMPILED_CELLS = 8, 256
"""Boxes and inner cells that the compiled twin can number; larger rooms are left to plain Python."""

# A held-out split of small rooms may run out of different ones. So it is drawn whole at construction if the
# rooms are tiny or the first of them keep turning up again.
_SMALL = 10_000
"""Entries of the table of an open room: no split of larger ones runs out."""
_TINY = 12
"""Cells inside the border up to which it is drawn whole."""
_SAMPLE = 64
_FEW_REPEATS = 20
"""Repeats among the first `_SAMPLE` rooms beyond which it is drawn whole."""
_MAX_REPEATS = 10_000
"""Repeats of a split at most."""

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
        if min(self.height, self.width) < 3 or self.boxes < 1 or self.n_cells < 2 * self.boxes + 1:
            raise ConfigError(
                "Sokoban: dim_room must leave 2 * num_boxes + 1 cells inside its walls, with num_boxes >= 1; "
                f"got dim_room=({self.height}, {self.width}), num_boxes={self.boxes}"
            )
        if not 1 <= self.lo <= self.hi:
            raise ConfigError(
                f"Sokoban: optimal must be (lo, hi) with 1 <= lo <= hi, got ({self.lo}, {self.hi})"
            )

    @property
    def n_cells(self) -> int:
        """Cells inside the border."""
        return (self.height - 2) * (self.width - 2)

    @property
    def out_of_distribution(self) -> "RoomSpec":
        """The rooms of split test_ood: two cells larger each way, one box more, same range of moves."""
        return replace(self, height=self.height + 2, width=self.width + 2, boxes=self.boxes + 1)

    def __str__(self) -> str:
        size, moves = (self.height, self.width), (self.lo, self.hi)
        return f"dim_room={size}, num_boxes={self.boxes}, optimal={moves}"


def room(spec: RoomSpec, split: str, index: int, backend: str = "auto") -> Level:
    """Return the room of a task: the same in every process. Rooms of val, test and test_ood all differ.

    Args:
        spec: What is drawn, for test_ood too.
        split: Whose rooms.
        index: Number of the task.
        backend: "numba", "numpy" (plain Python), or "auto", which loads numba when that pays.

    Raises:
        ConfigError: If no such room turns up within the limits.
    """
    if split == "train":
        return draw_room(spec, split, index, backend=backend)
    return _held_out(spec, split).get(index, backend)


class _HeldOut:
    """Rooms of one held-out split in the order they are drawn, no two alike; drawn as far as asked."""

    def __init__(self, spec: RoomSpec, split: str):
        self._spec, self._split = spec, split
        self._known = _Known()
        self._rooms: list[Level] = []
        self.n_repeats: list[int] = []
        """How often a known room had turned up again when each room was drawn."""
        self._lock = Lock()

    def get(self, index: int, backend: str) -> Level:
        with self._lock:
            while len(self._rooms) <= index:
                if self._known.n_repeats > _MAX_REPEATS:
                    raise ConfigError(
                        f"Sokoban: too few different rooms, {len(self._rooms)} and hardly more, for split "
                        f"{self._split!r} with {self._spec}: widen optimal, or change dim_room or num_boxes"
                    )
                number = len(self._rooms)
                level = draw_room(self._spec, self._split, number, known=self._known, backend=backend)
                self._known.add(level.content_hash)
                self._rooms.append(level)
                self.n_repeats.append(self._known.n_repeats)
            return self._rooms[index]


class _Known(set[str]):
    """Content hashes that counts how often one of them was looked up."""

    n_repeats = 0

    def __contains__(self, content_hash: object) -> bool:
        known = super().__contains__(content_hash)
        self.n_repeats += known
        return known


@lru_cache(maxsize=16)
def _held_out(spec: RoomSpec, split: str) -> _HeldOut:
    return _HeldOut(spec, split)


@lru_cache(maxsize=256)
def check_possible(spec: RoomSpec, split: str, backend: str = "auto") -> None:
    """Draw the first room of a split with less than the usual patience, so that later ones turn up too.

    Raises:
        ConfigError: If none turns up, or a held-out split of small rooms has too few different ones.
    """
    draw_room(spec, split, 0, share=1 / 8, backend=backend)
    if split == "train" or comb(spec.n_cells, spec.boxes) * spec.n_cells > _SMALL:
        return
    rooms = _held_out(spec, split)
    rooms.get(_SAMPLE - 1, backend)
    if spec.n_cells <= _TINY or rooms.n_repeats[_SAMPLE - 1] > _FEW_REPEATS:
        rooms.get(N_HELD_OUT - 1, backend)


def draw_room(
    spec: RoomSpec,
    split: str,
    index: int,
    *,
    known: Set[str] = frozenset(),
    share: float = 1.0,
    backend: str = "auto",
) -> Level:
    """Draw topologies until one has a start state of the split whose content hash is not `known`.

    Args:
        spec: What is drawn.
        split: Whose rooms.
        index: Number of the random stream.
        known: Content hashes of rooms not to draw again.
        share: Part of the usual patience.
        backend: As for `room`.

    Raises:
        ConfigError: If no such room turns up within the limits.
    """
    rng = Rng("sokoban", spec.height, spec.width, spec.boxes, spec.lo, spec.hi, split, index)
    digits = _DIGITS[split]
    work = 0
    for _ in range(int(_TRIES * share)):
        topology = _topology(spec, rng, backend)
        for boxes, player, moves in topology.starts:
            level = Level(
                text=topology.text,
                floor=topology.floor,
                boxes=frozenset(boxes),
                player=player,
                optimal=moves,
            )
            if int(level.content_hash, 16) % 10 in digits and level.content_hash not in known:
                return level
        work += topology.n_entries
        if work > _MAX_WORK * share:
            break
    raise ConfigError(
        f"Sokoban: found no {'other ' if known else ''}room for task {index} of split {split!r} with {spec}: "
        "widen optimal, or change dim_room or num_boxes"
    )


Start = tuple[Sequence[int], int, int]
"""Boxes, player, optimal moves."""


@dataclass(frozen=True, slots=True)
class _Topology:
    text: str
    floor: Boxes
    starts: Iterable[Start]
    """States in range with no box on a target, in random order, drawn as they are read."""
    n_entries: int
    """Size of the table."""


_plain_work = 0


def _topology(spec: RoomSpec, rng: Rng, backend: str) -> _Topology:
    """Draw walls, targets and their table: compiled if asked for, or if the process has many to draw."""
    global _plain_work
    fits = spec.boxes <= _COMPILED_BOXES and spec.n_cells <= _COMPILED_CELLS
    if use_numba(backend) and fits and (backend == "numba" or _plain_work > _PLAIN_WORK):
        return _compiled_topology(spec, rng)
    topology = _plain_topology(spec, rng)
    _plain_work += topology.n_entries + _TOPOLOGY_WORK
    return topology


def _compiled_topology(spec: RoomSpec, rng: Rng) -> _Topology:
    """Do the same as `_plain_topology`, faster."""
    from arl_gym.envs.sokoban import generator_kernels as kernels

    state = np.array([rng.state], dtype=np.uint64)
    text, cells, starts, n_entries = kernels.draw_topology(
        (spec.height, spec.width),
        spec.boxes,
        (min(spec.lo, _MAX_ENTRIES), min(spec.hi, _MAX_ENTRIES)),  # no table is deeper
        (_MAX_ENTRIES, _STARTS),
        *_kernel_tables(),
        _TURN_PROBABILITY,
        state,
    )
    rng.state = int(state[0])
    rows = ((boxes, player, moves) for *boxes, player, moves in map(np.ndarray.tolist, starts))
    return _Topology(text.tobytes().decode("ascii"), frozenset(cells.tolist()), rows, n_entries)


@cache
def _kernel_tables() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return directions and stamps as arrays; a stamp's last cell fills its row."""
    longest = max(map(len, _STAMPS))
    stamps = [stamp + stamp[-1:] * (longest - len(stamp)) for stamp in _STAMPS]
    return np.array(_DIRECTIONS, dtype=np.int64), np.array(stamps, dtype=np.int64)


def _plain_topology(spec: RoomSpec, rng: Rng) -> _Topology:
    cells = _carve(spec.height, spec.width, rng)
    if len(cells) < 2 * spec.boxes + 1:
        return _Topology(_text(spec, cells, ()), frozenset(cells), (), 0)
    shuffled = cells.copy()
    rng.shuffle(shuffled)
    goals = shuffled[: spec.boxes]
    found, n_entries = _search(cells, goals, spec)
    return _Topology(_text(spec, cells, goals), frozenset(cells), _picked(found, cells, rng), n_entries)


def _text(spec: RoomSpec, cells: Iterable[int], goals: Iterable[int]) -> str:
    symbols = list(((WALL * spec.width + "\n") * spec.height)[:-1])
    for cell in cells:
        symbols[cell] = FLOOR
    for goal in goals:
        symbols[goal] = TARGET
    return "".join(symbols)


def _carve(height: int, width: int, rng: Rng) -> list[int]:
    """Return the floor cells that a random walk with stamps leaves, as indices into the text, ascending."""
    ahead, stamped = _walk_tables(height, width)
    row = 1 + rng.below(height - 2)
    cell = row * (width + 1) + 1 + rng.below(width - 2)
    floor = {cell}
    direction = rng.below(len(_DIRECTIONS))
    for _ in range(17 * (height + width) // 10):
        if rng.uniform() < _TURN_PROBABILITY:
            direction = rng.below(len(_DIRECTIONS))
        cell = ahead[cell][direction]
        floor.update(stamped[cell][rng.below(len(_STAMPS))])
    return sorted(floor)


@lru_cache(maxsize=16)
def _walk_tables(height: int, width: int) -> tuple[dict[int, list[int]], dict[int, list[list[int]]]]:
    """Return, for each cell inside the border, the next one in each direction and those under each stamp."""
    stride = width + 1
    ahead, stamped = {}, {}
    for r in range(1, height - 1):
        for c in range(1, width - 1):
            near = [
                (min(max(r + dr, 1), height - 2), min(max(c + dc, 1), width - 2)) for dr, dc in _DIRECTIONS
            ]
            ahead[r * stride + c] = [row * stride + column for row, column in near]
            stamped[r * stride + c] = [
                [
                    (r + dr) * stride + c + dc
                    for dr, dc in stamp
                    if 0 < r + dr < height - 1 and 0 < c + dc < width - 1
                ]
                for stamp in _STAMPS
            ]
    return ahead, stamped


State = int
"""Number of the player's cell in the low bits (as many as `_player_bits`), above them a bit for each box."""


def _player_bits(cells: Sequence[int]) -> int:
    return len(cells).bit_length()


def _search(
    cells: Sequence[int], goals: Sequence[int], spec: RoomSpec
) -> tuple[list[tuple[State, int]], int]:
    """Search backwards from all solved states, one move count after the other, up to `spec.hi`.

    Every forward move undone is one reverse move, so the count at which a state is first reached is its exact
    optimum.

    Returns:
        The states with lo <= optimum <= hi and no box on a target, and how many entries the table has.
    """
    around = _reverse_moves(cells, spec.width + 1)
    first = _player_bits(cells)
    player = (1 << first) - 1
    solved = sum(1 << first + cells.index(goal) for goal in goals)
    frontier = [solved | p for p in range(len(cells)) if not solved >> first + p & 1]
    seen = set(frontier)
    found: list[tuple[State, int]] = []
    for moves in range(1, spec.hi + 1):
        reached: list[State] = []
        for state in frontier:
            for to, walk, behind, pull in around[state & player]:
                if state & to:
                    continue
                before = state ^ walk
                if before not in seen:
                    seen.add(before)
                    reached.append(before)
                if state & behind:  # the player may have pushed it there: pull it back
                    before = state ^ pull
                    if before not in seen:
                        seen.add(before)
                        reached.append(before)
        if moves >= spec.lo:
            found += [(state, moves) for state in reached if not state & solved]
        if len(seen) > _MAX_ENTRIES or not reached:
            break
        frontier = reached
    return found, len(seen)


def _reverse_moves(cells: Sequence[int], stride: int) -> list[list[tuple[State, State, State, State]]]:
    """Return the reverse moves from each cell of the player, as bits of the state.

    Each is (box in the way, change by the walk, box behind the player, change if that is pulled along).
    """
    number = {cell: i for i, cell in enumerate(cells)}
    box = [1 << _player_bits(cells) + i for i in range(len(cells))]
    around: list[list[tuple[State, State, State, State]]] = []
    for i, cell in enumerate(cells):
        around.append([])
        for dr, dc in _DIRECTIONS:
            delta = dr * stride + dc
            to, behind = number.get(cell + delta), number.get(cell - delta)
            if to is not None:
                pulled = 0 if behind is None else box[behind]
                around[i].append((box[to], i ^ to, pulled, i ^ to ^ pulled ^ box[i]))
    return around


def _picked(found: list[tuple[State, int]], cells: Sequence[int], rng: Rng) -> Iterator[Start]:
    """Yield uniformly drawn states, none twice."""
    first = _player_bits(cells)
    for _ in range(min(_STARTS, len(found))):
        i = rng.below(len(found))
        found[i], found[-1] = found[-1], found[i]
        state, moves = found.pop()
        boxes = [cell for i, cell in enumerate(cells) if state >> first + i & 1]
        yield boxes, cells[state & (1 << first) - 1], moves
