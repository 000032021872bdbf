"""The compiled twin of `solver.search`: the same states in the same order, so the same result.

Floor cells are numbered in the order of the board text, and the boxes of a state are a sorted list of such
numbers: any number of cells and boxes goes, and an order by number is an order by cell. Imported only where
numba is wanted.

Written to compile fast: few functions, loops instead of assignments to slices (each takes a second), arrays
made outside, columns of one array rather than many arrays.
"""

import numpy as np
import numpy.typing as npt

from arl_gym.envs.sokoban.compiled import jit
from arl_gym.envs.sokoban.deadlock import to_bits, to_cells
from arl_gym.envs.sokoban.solver import NEVER, NO_BOX, Board, Status

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

# Columns of `cells`, (F, 7): neighbours up, down, left, right (-1 for a wall), then:
_POTENTIAL, _ALIVE, _TARGET = 4, 5, 6

# Columns of `nodes`, (N, 3 + k + 1): the state comes last, k boxes in order and the player.
_COST, _BEFORE, _NEXT, _STATE = 0, 1, 2, 3
_GONE = -1
"""In place of a node's cost: a newer node has reached the state at a lower one."""
_FIRST_NODES = 1024

# Rows of an assignment `a`, (7, T), see `solver.Assignment`: box and price of each row, price of each column
# and the row assigned to it, then the tree of the last search.
_BOX, _ROW_PRICE, _PRICE, _ROW_OF, _DISTANCE, _CAME_FROM, _DONE = 0, 1, 2, 3, 4, 5, 6

_STATUS: tuple[Status, ...] = ("solved", "unsolvable", "too_long", "unknown")
_SOLVED, _UNSOLVABLE, _TOO_LONG, _UNKNOWN = 0, 1, 2, 3


def run(
    board: Board, boxes: int, player: int, estimate: int, walks: bool, bound: int, max_nodes: int
) -> tuple[Status, list[int]]:
    """Return what `solver.search` returns."""
    level = board.masks
    places = list(to_cells(level.floor))
    number = {cell: i for i, cell in enumerate(places)}
    cells = [
        [number.get(cell + delta, -1) for delta in board.deltas]
        + [board.potential[cell], level.alive >> cell & 1, level.targets >> cell & 1]
        for cell in places
    ]
    start = [number[cell] for cell in [*to_cells(boxes), player]]
    costs = np.array([board.costs[cell] for cell in [*places, NO_BOX]], dtype=np.int64)
    nodes = np.full((_FIRST_NODES, _STATE + len(start)), -1, dtype=np.int32)
    nodes[0, _COST], nodes[0, _STATE:] = 0, start
    stacks = np.full((2 * estimate + 64, 1), -1, dtype=np.int32)
    stacks[estimate] = 0
    assignment = np.zeros((7, costs.shape[1]), dtype=np.int64)
    assignment[_BOX], assignment[_ROW_OF] = len(places), -1
    status, node, nodes = search(
        np.array(cells, dtype=np.int64),
        costs,
        assignment,
        nodes,
        1,
        _index(nodes, 1),
        stacks,
        np.zeros(len(places), dtype=np.bool_),
        np.empty((3, len(places)), dtype=np.int64),
        np.empty((2, len(start)), dtype=np.int64),
        walks,
        bound,
        max_nodes,
    )
    chain = []
    while node >= 0:
        chain.append(to_bits(places[i] for i in nodes[node, _STATE:-1]))
        node = nodes[node, _BEFORE]
    return _STATUS[status], chain[::-1]


# ---- assignment of boxes to targets


@jit
def _nearest_free(a: Ints, costs: Ints, box: int) -> int:
    """Find the cheapest chain from a row of price 0 to a free column, which is returned."""
    n = a.shape[1]
    for j in range(n):
        a[_DISTANCE, j] = costs[box, j] - a[_PRICE, j]
        a[_CAME_FROM, j] = -1
        a[_DONE, j] = 0
    while True:
        column = -1
        for j in range(n):
            if a[_DONE, j] == 0 and (column < 0 or a[_DISTANCE, j] < a[_DISTANCE, column]):
                column = j
        row = a[_ROW_OF, column]
        if row < 0:
            return column
        a[_DONE, column] = 1
        base = a[_DISTANCE, column] - a[_ROW_PRICE, row]
        box = a[_BOX, row]
        for j in range(n):
            through = base + costs[box, j] - a[_PRICE, j]
            if a[_DONE, j] == 0 and through < a[_DISTANCE, j]:
                a[_DISTANCE, j] = through
                a[_CAME_FROM, j] = column


@jit
def _assign(a: Ints, costs: Ints, state: Ints) -> int:
    """Assign the boxes of a state, starting from whatever is assigned; return the cost."""
    n, n_boxes = a.shape[1], state.shape[0] - 1
    for j in range(n):
        row = a[_ROW_OF, j]
        if 0 <= row < n_boxes and a[_BOX, row] != state[row]:
            a[_ROW_OF, j] = -1
    for row in range(n):
        if row < n_boxes:
            a[_BOX, row] = state[row]
        assigned = False
        for j in range(n):
            assigned = assigned or a[_ROW_OF, j] == row
        if assigned:
            continue
        column = _nearest_free(a, costs, a[_BOX, row])
        price = a[_DISTANCE, column]
        for j in range(n):
            if a[_DONE, j] == 1:
                a[_ROW_PRICE, a[_ROW_OF, j]] += price - a[_DISTANCE, j]
                a[_PRICE, j] -= price - a[_DISTANCE, j]
        a[_ROW_PRICE, row] = price
        while column >= 0:
            before = a[_CAME_FROM, column]
            a[_ROW_OF, column] = a[_ROW_OF, before] if before >= 0 else row
            column = before
    total = 0
    for j in range(n):
        total += costs[a[_BOX, a[_ROW_OF, j]], j]
    return total


@jit
def _change(a: Ints, costs: Ints, row: int, to: int) -> int:
    """Return what the cost changes by when a row's box goes to another cell."""
    column = 0
    while a[_ROW_OF, column] != row:
        column += 1
    a[_ROW_OF, column] = -1
    _nearest_free(a, costs, to)
    a[_ROW_OF, column] = row
    return int(a[_DISTANCE, column] + a[_PRICE, column] - costs[a[_BOX, row], column])


# ---- walks and frozen boxes


@jit
def _walk(cells: Ints, blocked: Flags, player: int, steps: Ints, queue: Ints) -> int:
    """Write the steps to all cells that the player can walk to, -1 for others; return the least cell."""
    for cell in range(steps.shape[0]):
        steps[cell] = -1
    steps[player] = 0
    queue[0] = player
    n = 1
    i = 0
    least = player
    while i < n:
        cell = queue[i]
        i += 1
        least = min(least, cell)
        for d in range(4):
            to = cells[cell, d]
            if to >= 0 and steps[to] < 0 and not blocked[to]:
                steps[to] = steps[cell] + 1
                queue[n] = to
                n += 1
    return least


@jit
def _is_blocked(cells: Ints, solid: Flags, box: int) -> bool:
    """Return whether walls, solid cells, or dead cells on both sides block a box along both axes."""
    for d in range(0, 4, 2):
        a, b = cells[box, d], cells[box, d + 1]
        if a >= 0 and b >= 0 and not solid[a] and not solid[b] and cells[a, _ALIVE] + cells[b, _ALIVE] > 0:
            return False
    return True


@jit
def _is_frozen(cells: Ints, solid: Flags, state: Ints) -> bool:
    """Return whether a frozen box (see `deadlock.frozen`) is off target; `solid` is True where boxes are."""
    boxes = state[:-1]
    changed = True
    while changed:
        changed = False
        for box in boxes:
            if solid[box] and not _is_blocked(cells, solid, box):
                solid[box] = False
                changed = True
    found = False
    for box in boxes:
        found = found or (solid[box] and cells[box, _TARGET] == 0)
        solid[box] = True
    return found


# ---- states


@jit
def _slot(nodes: Words, slots: Words, state: Ints) -> int:
    """Return where the table holds the state's node, or where it would go."""
    key = 0
    for part in state:
        key = (key ^ part) * -7046029254386353131
        key ^= key >> 29
    slot: int = key & slots.shape[0] - 1
    while slots[slot] >= 0:
        same = True
        for i in range(state.shape[0]):
            same = same and nodes[slots[slot], _STATE + i] == state[i]
        if same:
            break
        slot = slot + 1 & slots.shape[0] - 1
    return slot


@jit
def _doubled(array: Words) -> Words:
    """Return the array with as many rows again, filled with -1."""
    n = array.shape[0]
    larger = np.empty((2 * n, array.shape[1]), dtype=np.int32)
    for i in range(2 * n):
        for j in range(array.shape[1]):
            larger[i, j] = array[i, j] if i < n else -1
    return larger


@jit
def _index(nodes: Words, n: int) -> Words:
    """Return a table of the first n nodes with room for as many as there are rows."""
    slots = np.empty(2 * nodes.shape[0], dtype=np.int32)
    for i in range(slots.shape[0]):
        slots[i] = -1
    state = np.empty(nodes.shape[1] - _STATE, dtype=np.int64)
    for node in range(n):
        if nodes[node, _COST] != _GONE:
            for i in range(state.shape[0]):
                state[i] = nodes[node, _STATE + i]
            slots[_slot(nodes, slots, state)] = node
    return slots


@jit
def _push(state: Ints, i: int, to: int, pushed: Ints) -> None:
    """Write the state after a push of the i-th box: the player stands where it was."""
    n_boxes = state.shape[0] - 1
    for j in range(n_boxes):
        pushed[j] = state[j]
    pushed[n_boxes] = state[i]
    while i + 1 < n_boxes and pushed[i + 1] < to:
        pushed[i] = pushed[i + 1]
        i += 1
    while i > 0 and pushed[i - 1] > to:
        pushed[i] = pushed[i - 1]
        i -= 1
    pushed[i] = to


# ---- the search


@jit
def search(
    cells: Ints,
    costs: Ints,
    a: Ints,
    nodes: Words,
    n: int,
    slots: Words,
    stacks: Words,
    blocked: Flags,
    cells_room: Ints,
    state_room: Ints,
    walks: bool,
    bound: int,
    max_nodes: int,
) -> tuple[int, int, Words]:
    """Return the number of the status, the node of a solved state or -1, and the nodes.

    Args:
        cells: The floor.
        costs: (F + 1, T): see `solver.Board`; the last row is that of no box.
        a: An assignment of no boxes.
        nodes: The nodes.
        n: How many there are: one.
        slots: The nodes by state.
        stacks: (S, 1): by estimate, the newest open node.
        blocked: (F,): False.
        cells_room: (3, F): room to work in.
        state_room: (2, k + 1): likewise.
        walks: See `solver.search`, also for the rest.
        bound: As there.
        max_nodes: As there.
    """
    steps, reach, queue = cells_room[0], cells_room[1], cells_room[2]
    state, pushed = state_room[0], state_room[1]
    n_boxes = state.shape[0] - 1
    status, found, estimate, expanded = _UNSOLVABLE, -1, 0, 0
    while estimate < stacks.shape[0]:
        node = stacks[estimate, 0]
        if node < 0:
            estimate += 1
            continue
        stacks[estimate, 0] = nodes[node, _NEXT]
        if nodes[node, _COST] == _GONE:
            continue
        for i in range(n_boxes + 1):
            state[i] = nodes[node, _STATE + i]
        solved = True
        for box in state[:-1]:
            blocked[box] = True
            solved = solved and cells[box, _TARGET] == 1
        if solved or expanded == max_nodes:
            status, found = (_SOLVED, node) if solved else (_UNKNOWN, -1)
            break
        expanded += 1
        assigned = _assign(a, costs, state)
        _walk(cells, blocked, state[n_boxes], steps, queue)
        for d in range(4):
            for i in range(n_boxes):
                box = state[i]
                behind, to = cells[box, d ^ 1], cells[box, d]
                if behind < 0 or to < 0 or steps[behind] < 0 or blocked[to] or cells[to, _ALIVE] == 0:
                    continue
                _push(state, i, to, pushed)
                blocked[box], blocked[to] = False, True
                cost = nodes[node, _COST] + 1
                if walks:
                    cost += steps[behind]
                else:
                    pushed[n_boxes] = _walk(cells, blocked, box, reach, queue)
                slot = _slot(nodes, slots, pushed)
                known = slots[slot]
                if known < 0:
                    worse = _is_blocked(cells, blocked, to) and _is_frozen(cells, blocked, pushed)
                else:
                    worse = nodes[known, _COST] <= cost
                blocked[box], blocked[to] = True, False
                if worse:
                    continue
                left = assigned + _change(a, costs, i, to)
                if left >= NEVER:
                    continue
                total = cost + max(left - cells[box, _POTENTIAL], 0)
                if total > bound:
                    status = _TOO_LONG
                    continue
                if n == nodes.shape[0]:
                    nodes = _doubled(nodes)
                    slots = _index(nodes, n)
                    slot = _slot(nodes, slots, pushed)
                while total >= stacks.shape[0]:
                    stacks = _doubled(stacks)
                if known >= 0:
                    nodes[known, _COST] = _GONE
                nodes[n, _COST], nodes[n, _BEFORE], nodes[n, _NEXT] = cost, node, stacks[total, 0]
                for j in range(n_boxes + 1):
                    nodes[n, _STATE + j] = pushed[j]
                slots[slot] = stacks[total, 0] = n
                n += 1
        for box in state[:-1]:
            blocked[box] = False
    return status, found, nodes
