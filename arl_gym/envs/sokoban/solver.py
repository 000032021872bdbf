r"""An exact solver: A* over (boxes, player after a push), one edge a push with the walk before it.

Least moves or least pushes. Two codings of one search: plain Python here, with sets of cells as bit sets, and
a compiled twin in `solver_kernels`. They expand the same states in the same order, so a plan, a status, and
where a node cap cuts do not depend on which one runs.

    >>> from arl_gym.envs.sokoban.rules import make_level
    >>> level = make_level("#####\n#___#\n#__O#\n#####", boxes={14}, player=9)
    >>> solve(level)
    Solution(status='solved', moves=('left', 'left', 'down', 'right'), pushes=1)
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from arl_gym.envs.sokoban.compiled import use_numba
from arl_gym.envs.sokoban.deadlock import Masks, frozen, masks, n_states, to_bits, to_cells
from arl_gym.envs.sokoban.rules import MOVES, Boxes, Level, Plan
from arl_gym.errors import ConfigError, UnknownNameError

Status = Literal["solved", "unsolvable", "too_long", "unknown"]
"""Solved; proven to have no solution; proven to need more than `max_moves`; node cap reached."""

Objective = Literal["moves", "pushes"]

NEVER = 1 << 20
"""Cost of what is impossible: more than any sum of costs that are possible."""

NO_BOX = -1
"""Stands for a box where there are more targets than boxes; it costs nothing anywhere."""

_PLAIN_STATES = 40_000
"""Up to here a search takes milliseconds in plain Python; loading numba takes half a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What the search found; `moves` is empty unless solved."""

    status: Status
    moves: Plan = ()
    pushes: int = 0
    """How many of the moves push a box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What both codings of the search know of a level."""

    masks: Masks
    deltas: tuple[int, ...]
    potential: dict[int, int]
    """By floor cell: steps to where a last push can leave the player; 0 everywhere for least pushes."""
    costs: dict[int, tuple[int, ...]]
    """By floor cell: the least cost of pushing a box from there to each target, NEVER if impossible."""


def solve(
    level: Level,
    boxes: Boxes | None = None,
    player: int | None = None,
    *,
    objective: Objective = "moves",
    max_moves: int | None = None,
    max_nodes: int = 100_000,
    backend: str = "auto",
) -> Solution:
    """Find a solution with the fewest moves (walks and pushes count alike), or with the fewest pushes.

    Args:
        level: The board.
        boxes: State to start from; default the level's own.
        player: Likewise.
        objective: What is least. With "pushes" every walk is a shortest one, but the pushes are not chosen by
            the walks between them.
        max_moves: Longer solutions are not looked for; with objective "moves" only.
        max_nodes: States expanded at most.
        backend: "numba" (extra `fast`), "numpy" for plain Python, or "auto": plain in rooms of up to 40,000
            states (see `n_states`) and where numba is not installed. The result is the same.

    Raises:
        ConfigError: If `max_moves` is given with another objective.
        UnknownNameError: If the objective or backend is unknown.
        DependencyMissing: If backend "numba" is not installed.

    References:
        A*: "A formal basis for the heuristic determination of minimum cost paths", IEEE TSSC 4(2), 1968.
    """
    if objective not in ("moves", "pushes"):
        raise UnknownNameError("objective", objective, ("moves", "pushes"), "Sokoban")
    if max_moves is not None and objective != "moves":
        raise ConfigError(f"Sokoban: max_moves={max_moves} needs objective='moves', got {objective!r}")
    compiled = use_numba(backend) and (backend == "numba" or n_states(level) > _PLAIN_STATES)
    boxes = level.boxes if boxes is None else boxes
    player = level.player if player is None else player
    if not boxes <= level.pushes_to_target.keys():
        return Solution(status="unsolvable")
    board = _board(level, objective)
    movable = to_bits(boxes & level.floor)
    estimate = _estimate(board, movable, player)
    if estimate == NEVER:
        return Solution(status="unsolvable")
    if max_moves is not None and estimate > max_moves:
        return Solution(status="too_long")
    walks = objective == "moves"
    status, chain = (_run_compiled if compiled else search)(
        board,
        movable,
        player if walks else _least_cell(board.masks, movable, player),
        estimate,
        walks,
        NEVER if max_moves is None else max_moves,
        max_nodes,
    )
    return Solution(status=status, moves=_plan(board, chain, player), pushes=max(len(chain) - 1, 0))


def _estimate(board: Board, boxes: int, player: int) -> int:
    """Return a lower bound of a plan's cost, NEVER if the state is seen to be dead."""
    targets = board.masks.targets
    if boxes.bit_count() > targets.bit_count() or frozen(board.masks, boxes) & ~targets:
        return NEVER
    left = Assignment(board.costs).assign(to_cells(boxes))
    return max(left - board.potential[player], 0) if left < NEVER else NEVER


# ---- what a search needs to know of a level


@lru_cache(maxsize=64)
def _board(level: Level, objective: Objective) -> Board:
    """Return a level's tables.

    The bound for moves: give every cell a potential that changes by at most 1 from cell to cell. A plan's
    length is the sum of 1 - rise over its moves, plus the rise from its start to its end. No summand is
    negative, so those of the walks can be left out; those of the pushes, 0 uphill and 2 downhill, are a cost
    of each box alone. With the distance to where a last push ends as potential this says that who brings a
    box to a target must come back for the next. All potentials 0 gives the plain count of pushes.
    """
    known = masks(level)
    deltas = tuple(level.deltas.values())
    targets = [*to_cells(known.targets)]
    potential = dict.fromkeys(level.floor, 0)
    if objective == "moves":
        ends = to_bits(cell for target in targets for cell in _origins(level.floor, deltas, target))
        for steps, layer in enumerate(_layers(known.floor, known.stride, ends)):
            potential |= dict.fromkeys(to_cells(layer), steps)
    before = {
        cell: [
            (origin, 1 - potential[origin] + potential[2 * origin - cell])
            for origin in _origins(level.floor, deltas, cell)
        ]
        for cell in level.floor
    }
    to_target = [_least_costs(before, target) for target in targets]
    return Board(
        masks=known,
        deltas=deltas,
        potential=potential,
        costs={cell: tuple(costs.get(cell, NEVER) for costs in to_target) for cell in level.floor}
        | {NO_BOX: (0,) * len(targets)},
    )


def _origins(floor: Boxes, deltas: Sequence[int], cell: int) -> list[int]:
    """Return the cells from which one push brings a box to the cell."""
    return [cell - d for d in deltas if cell - d in floor and cell - 2 * d in floor]


def _least_costs(before: dict[int, list[tuple[int, int]]], target: int) -> dict[int, int]:
    """Return the least cost from every cell from which a box alone can be pushed to the target.

    Args:
        before: By cell: where one push can have brought a box from, and what that push costs.
        target: The target.
    """
    found: dict[int, int] = {}
    queue = [(0, target)]
    while queue:
        cost, cell = heapq.heappop(queue)
        if cell not in found:
            found[cell] = cost
            for origin, step in before[cell]:
                if origin not in found:
                    heapq.heappush(queue, (cost + step, origin))
    return found


def _layers(free: int, stride: int, start: int) -> list[int]:
    """Return the cells 0, 1, 2 ... steps away from the start cells, through free cells."""
    layers = []
    free &= ~start
    while start:
        layers.append(start)
        start = (start << 1 | start >> 1 | start << stride | start >> stride) & free
        free ^= start
    return layers


# ---- assignment of boxes to targets


class Assignment:
    """Boxes on targets at the least cost, kept up to date from state to state.

    Prices of rows (boxes) and columns (targets) prove that it is least: no cost is below the sum of its two
    prices, and those of the assigned pairs are equal to it.

    References:
        Jonker and Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment
        problems", Computing 38, 1987.
    """

    def __init__(self, costs: dict[int, tuple[int, ...]]):
        n = len(costs[NO_BOX])
        self._costs = costs
        self._boxes = [NO_BOX] * n
        self._rows = [0] * n
        self._columns = [0] * n
        self._row_of = [-1] * n

    def assign(self, boxes: Iterable[int]) -> int:
        """Assign the boxes of a state, starting from whatever is assigned; return the cost."""
        for row, box in enumerate(boxes):
            if self._boxes[row] != box:
                self._boxes[row] = box
                if row in self._row_of:
                    self._row_of[self._row_of.index(row)] = -1
        for row in range(len(self._boxes)):
            if row not in self._row_of:
                self._insert(row)
        return sum(self._costs[self._boxes[row]][column] for column, row in enumerate(self._row_of))

    def change(self, box: int, to: int) -> int:
        """Return what the cost changes by when a box goes to another cell."""
        row = self._boxes.index(box)
        column = self._row_of.index(row)
        self._row_of[column] = -1
        _, distance, _ = self._nearest_free(to)
        self._row_of[column] = row
        return distance[column] + self._columns[column] - self._costs[box][column]

    def _insert(self, row: int) -> None:
        """Give a row a column; the rows of a cheapest chain move on to another column each."""
        column, distance, came_from = self._nearest_free(self._boxes[row])
        price = distance[column]
        for j, d in enumerate(distance):
            if d < price:
                self._rows[self._row_of[j]] += price - d
                self._columns[j] -= price - d
        self._rows[row] = price
        while column >= 0:
            before = came_from[column]
            self._row_of[column] = self._row_of[before] if before >= 0 else row
            column = before

    def _nearest_free(self, box: int) -> tuple[int, list[int], list[int]]:
        """Return the free column that ends the cheapest chain from a row of price 0, and the chains' tree."""
        columns = self._columns
        distance = [cost - price for cost, price in zip(self._costs[box], columns, strict=True)]
        came_from = [-1] * len(columns)
        left = [*range(len(columns))]
        while True:
            column = min(left, key=distance.__getitem__)
            row = self._row_of[column]
            if row < 0:
                return column, distance, came_from
            left.remove(column)
            base = distance[column] - self._rows[row]
            line = self._costs[self._boxes[row]]
            for j in left:
                through = base + line[j] - columns[j]
                if through < distance[j]:
                    distance[j] = through
                    came_from[j] = column


# ---- the search


def search(
    board: Board, boxes: int, player: int, estimate: int, walks: bool, bound: int, max_nodes: int
) -> tuple[Status, list[int]]:
    """Return the status and the box sets of a best plan, the first one included.

    Open states wait in one stack per estimate; the newest of the least estimate is expanded next. A state
    that is reached at a lower cost gets a new node.

    Args:
        board: The level.
        boxes: The boxes to start from, not known to be dead.
        player: Where the player starts; the least cell that it can reach if walks do not count.
        estimate: Lower bound of a plan's cost.
        walks: Whether walking steps count.
        bound: Plans of a higher cost are not looked for.
        max_nodes: States expanded at most.
    """
    level = board.masks
    assignment = Assignment(board.costs)
    left: dict[int, int] = {}  # by box set: cost of the assignment, NEVER if dead
    nodes = [(boxes, player, 0, -1)]  # (boxes, player, cost so far, node before)
    newest = {(boxes, player): 0}
    stacks: list[list[int]] = [[] for _ in range(estimate + 1)]
    stacks[estimate].append(0)
    cut = False
    expanded = 0
    while estimate < len(stacks):
        if not stacks[estimate]:
            estimate += 1
            continue
        node = stacks[estimate].pop()
        boxes, player, cost, _ = nodes[node]
        if newest[boxes, player] != node:
            continue
        if not boxes & ~level.targets:
            return "solved", _chain(nodes, node)
        if expanded == max_nodes:
            return "unknown", []
        expanded += 1
        assigned = assignment.assign(to_cells(boxes))
        for box, to, walk in _pushes(board, boxes, player):
            pushed = boxes ^ (1 << box | 1 << to)
            stand = box if walks else _least_cell(level, pushed, box)
            state = (pushed, stand)
            reached = cost + (walk + 1 if walks else 1)
            if state in newest and nodes[newest[state]][2] <= reached:
                continue
            if pushed not in left:
                is_frozen = frozen(level, pushed) & ~level.targets
                left[pushed] = NEVER if is_frozen else assigned + assignment.change(box, to)
            if left[pushed] >= NEVER:
                continue
            total = reached + max(left[pushed] - board.potential[box], 0)
            if total > bound:
                cut = True
                continue
            stacks.extend([] for _ in range(total + 1 - len(stacks)))
            stacks[total].append(len(nodes))
            newest[state] = len(nodes)
            nodes.append((pushed, stand, reached, node))
    return "too_long" if cut else "unsolvable", []


def _pushes(board: Board, boxes: int, player: int) -> Iterator[tuple[int, int, int]]:
    """Yield (box, where to, steps of the walk before) of every push that does not end on a dead square.

    Ordered by direction, then by box.
    """
    level = board.masks
    free = level.floor & ~boxes
    layers = _layers(free, level.stride, 1 << player)
    near = 0
    for layer in layers:
        near |= layer
    onto = level.alive & ~boxes
    for delta in board.deltas:
        for box in to_cells(boxes & _shift(near, delta) & _shift(onto, -delta)):
            behind = 1 << box - delta
            steps = 0
            while not layers[steps] & behind:
                steps += 1
            yield box, box + delta, steps


def _shift(bits: int, delta: int) -> int:
    return bits << delta if delta > 0 else bits >> -delta


def _least_cell(level: Masks, boxes: int, player: int) -> int:
    """Return the least cell that the player can walk to: it stands for all of them."""
    reach = 0
    for layer in _layers(level.floor & ~boxes, level.stride, 1 << player):
        reach |= layer
    return (reach & -reach).bit_length() - 1


def _chain(nodes: list[tuple[int, int, int, int]], node: int) -> list[int]:
    chain = []
    while node >= 0:
        chain.append(nodes[node][0])
        node = nodes[node][3]
    return chain[::-1]


def _run_compiled(
    board: Board, boxes: int, player: int, estimate: int, walks: bool, bound: int, max_nodes: int
) -> tuple[Status, list[int]]:
    from arl_gym.envs.sokoban import solver_kernels

    return solver_kernels.run(board, boxes, player, estimate, walks, bound, max_nodes)


# ---- the plan


def _plan(board: Board, chain: Sequence[int], player: int) -> Plan:
    """Return the moves of a chain of box sets, walks filled in."""
    names = dict(zip(board.deltas, MOVES, strict=True))
    moves: list[str] = []
    for boxes, pushed in pairwise(chain):
        box = (boxes & ~pushed).bit_length() - 1
        delta = (pushed & ~boxes).bit_length() - 1 - box
        moves += (names[step] for step in _walk(board, boxes, player, box - delta))
        moves.append(names[delta])
        player = box
    return tuple(moves)


def _walk(board: Board, boxes: int, player: int, goal: int) -> list[int]:
    """Return the steps of a shortest walk that pushes nothing."""
    layers = _layers(board.masks.floor & ~boxes, board.masks.stride, 1 << player)
    n = next(i for i, layer in enumerate(layers) if layer >> goal & 1)
    steps = []
    for layer in reversed(layers[:n]):
        steps.append(next(delta for delta in board.deltas if layer >> goal - delta & 1))
        goal -= steps[-1]
    return steps[::-1]
