"""Compiled twin of `generator`'s topologies: the same random stream, the same states in the same order.

The boxes of a state are one 64-bit word, a cell number a byte, in ascending order: up to 8 boxes, 256 cells.
States that share their boxes share a row of bits that says where the player has been. Most reverse moves are
walks, and a walk stays in its row.
"""

import numpy as np
import numpy.typing as npt

from arl_gym.envs.sokoban.compiled import jit
from arl_gym.envs.sokoban.rules import FLOOR, TARGET, WALL

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_WALL, _FLOOR, _TARGET, _NEWLINE = ord(WALL), ord(FLOOR), ord(TARGET), ord("\n")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONES = np.uint64(0x0101010101010101)
_BYTE = np.uint64(255)


@jit
def draw_topology(
    size: tuple[int, int],
    n_boxes: int,
    moves: tuple[int, int],
    limits: tuple[int, int],
    directions: Integers,
    stamps: Integers,
    turn: float,
    rng: Words,
) -> tuple[Bytes, Integers, Integers, int]:
    """Draw walls and targets, search backwards, and pick starts.

    Args:
        size: Height and width.
        n_boxes: Boxes, and targets.
        moves: Range of the optimum, both ends included.
        limits: Table entries that end the search, and starts to pick.
        directions: Row and column offsets, shape (4, 2), opposite ones side by side.
        stamps: Row and column offsets of the carved shapes, shape (n, cells, 2).
        turn: Probability of a new direction.
        rng: State of the random stream, shape (1,), moved on in place.

    Returns:
        The board text as bytes; its floor cells, as indices into it; starts, shape (n, n_boxes + 2): boxes,
        player (likewise) and optimum; entries of the table.
    """
    text, cells = _carved(size, directions, stamps, turn, rng)
    if cells.size < 2 * n_boxes + 1:
        return text, cells, np.empty((0, n_boxes + 2), dtype=np.int64), 0
    goals = _aim(text, cells, n_boxes, rng)
    queue, sets, offsets = _search(_neighbours(cells, size[1] + 1, directions), goals, moves[1], limits[0])
    found = _off_target(queue, sets, goals, offsets[min(moves[0], offsets.size - 1)])
    starts = np.empty((min(limits[1], found.size), n_boxes + 2), dtype=np.int64)
    for i in range(len(starts)):
        last = found.size - 1 - i
        j = _below(rng, last + 1)
        found[j], found[last] = found[last], found[j]
        state = queue[found[last]]
        boxes = sets[state >> np.uint64(8), 0]
        for b in range(n_boxes):
            starts[i, b] = cells[(boxes >> np.uint64(8 * b)) & _BYTE]
        starts[i, n_boxes] = cells[state & _BYTE]
        n_moves = moves[0]
        while offsets[n_moves + 1] <= found[last]:
            n_moves += 1
        starts[i, n_boxes + 1] = n_moves
    return text, cells, starts, queue.size


@jit
def _next64(rng: Words) -> np.uint64:
    rng[0] += _GOLDEN
    z: np.uint64 = rng[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def _below(rng: Words, n: int) -> int:
    count = np.uint64(n)
    floor = (np.uint64(0) - count) % count  # the remainder of 2**64
    word = _next64(rng)
    while word < floor:
        word = _next64(rng)
    return int(np.int64(word % count))


@jit
def _carved(
    size: tuple[int, int], directions: Integers, stamps: Integers, turn: float, rng: Words
) -> tuple[Bytes, Integers]:
    """Return the board text and its floor cells, as indices into it, ascending."""
    height, width = size
    text = np.full(height * (width + 1) - 1, _WALL, dtype=np.uint8)
    for r in range(1, height):
        text[r * (width + 1) - 1] = _NEWLINE
    row = 1 + _below(rng, height - 2)
    column = 1 + _below(rng, width - 2)
    text[row * (width + 1) + column] = _FLOOR
    direction = _below(rng, len(directions))
    for _ in range(17 * (height + width) // 10):
        if np.int64(_next64(rng) >> np.uint64(11)) * (1.0 / (1 << 53)) < turn:
            direction = _below(rng, len(directions))
        row = min(max(row + directions[direction, 0], 1), height - 2)
        column = min(max(column + directions[direction, 1], 1), width - 2)
        stamp = _below(rng, len(stamps))
        for i in range(stamps.shape[1]):
            r, c = row + stamps[stamp, i, 0], column + stamps[stamp, i, 1]
            if 0 < r < height - 1 and 0 < c < width - 1:
                text[r * (width + 1) + c] = _FLOOR
    cells = np.empty(text.size, dtype=np.int64)
    n = 0
    for i in range(text.size):
        if text[i] == _FLOOR:
            cells[n] = i
            n += 1
    return text, cells[:n]


@jit
def _aim(text: Bytes, cells: Integers, n_boxes: int, rng: Words) -> Integers:
    """Turn random floor cells into targets; return their numbers, ascending."""
    shuffled = cells.copy()
    for i in range(cells.size - 1, 0, -1):
        j = _below(rng, i + 1)
        shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
    for i in range(n_boxes):
        text[shuffled[i]] = _TARGET
    goals = np.empty(n_boxes, dtype=np.int64)
    n = 0
    for i in range(cells.size):
        if text[cells[i]] == _TARGET:
            goals[n] = i
            n += 1
    return goals


@jit
def _neighbours(cells: Integers, stride: int, directions: Integers) -> Integers:
    """Return the number of the cell that lies in each direction, -1 for a wall; shape (n, 4)."""
    number = np.full(cells[-1] + stride + 1, -1, dtype=np.int64)
    for i in range(cells.size):
        number[cells[i]] = i
    out = np.empty((cells.size, len(directions)), dtype=np.int64)
    for i in range(cells.size):
        for d in range(len(directions)):
            out[i, d] = number[cells[i] + directions[d, 0] * stride + directions[d, 1]]
    return out


@jit
def _search(
    neighbours: Integers, goals: Integers, hi: int, max_entries: int
) -> tuple[Words, Words, Integers]:
    """Search backwards, one move count after the other, up to `hi`.

    Returns:
        The states in the order they were reached: row of the box set times 256, plus the player's cell. The
        box sets, shape (n, 1 + words of bits). Where each move count begins among the states, and their end.
    """
    n_boxes = goals.size
    ones = _ONES >> np.uint64(64 - 8 * n_boxes)
    sets = np.zeros((64, 1 + (len(neighbours) + 63) // 64), dtype=np.uint64)
    table = np.full(128, -1, dtype=np.int64)
    queue = np.empty(1024, dtype=np.uint64)
    solved = np.uint64(0)
    for i in range(n_boxes):
        solved |= np.uint64(goals[i]) << np.uint64(8 * i)
    n_sets = _enter(table, sets, 0, solved, n_boxes)
    n = 0
    for cell in range(len(neighbours)):
        if _visit(sets, 0, cell):
            queue[n] = cell
            n += 1
    offsets = np.zeros(min(hi, max_entries) + 2, dtype=np.int64)
    offsets[1] = n
    moves = 0
    while moves < hi and n <= max_entries and offsets[moves] < n:
        moves += 1
        for i in range(offsets[moves - 1], offsets[moves]):
            if n + 8 > queue.size:
                queue = _longer(queue)
            if n_sets + 4 > len(sets):
                sets, table = _doubled(sets, n_sets)
            row, player = int(np.int64(queue[i] >> np.uint64(8))), int(np.int64(queue[i] & _BYTE))
            boxes = sets[row, 0]
            for d in range(4):
                to, behind = neighbours[player, d], neighbours[player, d ^ 1]
                if to < 0 or _holds(boxes, to, ones):
                    continue
                if _visit(sets, row, to):
                    queue[n] = row << 8 | to
                    n += 1
                if behind >= 0 and _holds(boxes, behind, ones):
                    before = _moved(boxes, n_boxes, np.uint64(behind), np.uint64(player))
                    slot = _slot(table, sets, before)
                    if table[slot] < 0:
                        n_sets = _enter(table, sets, n_sets, before, n_boxes)
                    if _visit(sets, table[slot], to):
                        queue[n] = table[slot] << 8 | to
                        n += 1
        offsets[moves + 1] = n
    return queue[:n], sets, offsets[: moves + 2]


@jit
def _visit(sets: Words, row: int, cell: int) -> bool:
    """Set the bit of a cell in a row; return whether it was clear."""
    word, bit = 1 + (cell >> 6), np.uint64(1) << np.uint64(cell & 63)
    new = (sets[row, word] & bit) == 0
    sets[row, word] |= bit
    return bool(new)


@jit
def _holds(boxes: np.uint64, cell: int, ones: np.uint64) -> bool:
    """Return whether a byte of `boxes`, one for each byte of `ones`, is the cell."""
    # A zero byte is found by the bit that it borrows.
    rest = boxes ^ (ones * np.uint64(cell))
    return bool((rest - ones) & ~rest & (ones << np.uint64(7)))


@jit
def _moved(boxes: np.uint64, n_boxes: int, origin: np.uint64, to: np.uint64) -> np.uint64:
    """Return the boxes, in ascending order, after the one at `origin` went `to`."""
    out, shift, above = np.uint64(0), np.uint64(0), True
    for i in range(n_boxes):
        box = (boxes >> np.uint64(8 * i)) & _BYTE
        if above and box > to:
            out |= to << shift
            shift += np.uint64(8)
            above = False
        if box != origin:
            out |= box << shift
            shift += np.uint64(8)
    if above:
        out |= to << shift
    return out


@jit
def _slot(table: Integers, sets: Words, boxes: np.uint64) -> int:
    """Return the place of a box set in the hash table: its own, or the free one where it belongs."""
    mask = table.size - 1
    slot = int(np.int64((boxes * _GOLDEN) >> np.uint64(24))) & mask
    while table[slot] >= 0 and sets[table[slot], 0] != boxes:
        slot = (slot + 1) & mask
    return slot


@jit
def _enter(table: Integers, sets: Words, row: int, boxes: np.uint64, n_boxes: int) -> int:
    """Add a box set, its own cells taken; return the number of rows."""
    table[_slot(table, sets, boxes)] = row
    sets[row, 0] = boxes
    for i in range(n_boxes):
        _visit(sets, row, int(np.int64((boxes >> np.uint64(8 * i)) & _BYTE)))
    return row + 1


@jit
def _longer(queue: Words) -> Words:
    out = np.empty(2 * queue.size, dtype=np.uint64)
    for i in range(queue.size):
        out[i] = queue[i]
    return out


@jit
def _doubled(sets: Words, n_sets: int) -> tuple[Words, Integers]:
    """Return room for twice the box sets, and a hash table of those there are."""
    bigger = np.zeros((2 * len(sets), sets.shape[1]), dtype=np.uint64)
    table = np.full(2 * len(bigger), -1, dtype=np.int64)
    for row in range(n_sets):
        for i in range(sets.shape[1]):
            bigger[row, i] = sets[row, i]
        table[_slot(table, sets, sets[row, 0])] = row
    return bigger, table


@jit
def _off_target(queue: Words, sets: Words, goals: Integers, first: int) -> Integers:
    """Return the places in the queue, from `first` on, of states with no box on a target."""
    ones = _ONES >> np.uint64(64 - 8 * goals.size)
    found = np.empty(queue.size - first, dtype=np.int64)
    n = 0
    for i in range(first, queue.size):
        boxes = sets[queue[i] >> np.uint64(8), 0]
        on_target = False
        for goal in goals:
            on_target |= _holds(boxes, goal, ones)
        if not on_target:
            found[n] = i
            n += 1
    return found[:n]
