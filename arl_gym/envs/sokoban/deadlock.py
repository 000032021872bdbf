r"""Dead ends: dead squares and frozen boxes at a glance, and an exact table of moves left for small rooms.

Sets of cells are bit sets: bit i is cell i of the board text. Does not search forwards (see `solver`).

    >>> from arl_gym.envs.sokoban.rules import make_level
    >>> level = make_level("#####\n#__O#\n#___#\n#####", boxes={14}, player=7)
    >>> find_deadlock(level, frozenset({14})), find_deadlock(level, frozenset({13}))
    ('dead_square', 'dead_square')
    >>> table = MoveTable(level)
    >>> table.remaining(frozenset({8}), 7), table.remaining(frozenset({14}), 7)
    (1, None)
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Literal

from arl_gym.envs.sokoban.rules import Boxes, Level

Deadlock = Literal["none", "dead_square", "freeze"]

_UNREACHED = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Masks:
    """A level's cells as bit sets. Boxes that are walled in count as wall: they never move."""

    stride: int
    """Cell index from one row to the next."""
    floor: int
    walls: int
    targets: int
    """Targets on floor."""
    alive: int
    """Floor from which a box alone can be pushed to a target."""
    dead_beside: int
    """Cells without a live cell to their left and right."""
    dead_above: int
    """Cells without a live cell above and below."""


@lru_cache(maxsize=256)
def masks(level: Level) -> Masks:
    """Return the bit sets of a level."""
    stride = level.width + 1
    floor = to_bits(level.floor)
    alive = to_bits(level.pushes_to_target) & floor
    whole = (1 << len(level.text)) - 1
    lost = whole & ~alive
    return Masks(
        stride=stride,
        floor=floor,
        walls=whole & ~floor,
        targets=to_bits(level.targets) & floor,
        alive=alive,
        dead_beside=lost << 1 & lost >> 1,
        dead_above=lost << stride & lost >> stride,
    )


def to_bits(cells: Iterable[int]) -> int:
    """Return cells as a bit set."""
    bits = 0
    for cell in cells:
        bits |= 1 << cell
    return bits


def to_cells(bits: int) -> Iterator[int]:
    """Yield the cells of a bit set, lowest first."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def frozen(level: Masks, boxes: int) -> int:
    """Return the boxes that no push can ever move, unless onto a dead square.

    The largest set of boxes each of which is blocked along both axes by walls, by others of the set, or by
    dead squares on both sides. No box of it can be the first to move.

    References:
        Freeze deadlocks: Junghanns and Schaeffer, "Sokoban: Enhancing general single-agent search methods
        using domain knowledge", Artificial Intelligence 129, 2001.
    """
    stride = level.stride
    while True:
        solid = level.walls | boxes
        beside = solid << 1 | solid >> 1 | level.dead_beside
        above = solid << stride | solid >> stride | level.dead_above
        stuck = boxes & beside & above
        if stuck == boxes:
            return boxes
        boxes = stuck


def find_deadlock(level: Level, boxes: Boxes) -> Deadlock:
    """Return why a state has no solution, as far as that shows at a glance.

    "dead_square": a box stands where walls alone keep it from every target. "freeze": a box that can never
    move again stands off target. "none": neither, which does not say that there is a solution.
    """
    if not boxes <= level.pushes_to_target.keys():
        return "dead_square"
    known = masks(level)
    return "freeze" if frozen(known, to_bits(boxes) & known.floor) & ~known.targets else "none"


def n_states(level: Level) -> int:
    """Return C(F, k) * F for F floor cells and k boxes that are not walled in: the size of a room's table."""
    return comb(len(level.floor), len(level.boxes & level.floor)) * len(level.floor)


class MoveTable:
    """The fewest moves left from every state of a room, by search backwards from all solved states.

    Two bytes for each state whose boxes stand on live cells; `n_states` is a bound of their number, and says
    what a table costs before it is made.
    """

    def __init__(self, level: Level):
        known = masks(level)
        self._walled_in = level.boxes - level.floor
        self._player = {cell: i for i, cell in enumerate(sorted(level.floor))}
        n_boxes = len(level.boxes & level.floor)
        live = list(to_cells(known.alive))
        # Box sets are numbered by the sum of C(i-th box, i + 1), boxes sorted.
        self._ranks = [{cell: comb(n, i + 1) for n, cell in enumerate(live)} for i in range(n_boxes)]
        self._moves = array("H", [_UNREACHED]) * (comb(len(live), n_boxes) * len(self._player))
        solved = {to_bits(cells): 0 for cells in combinations(to_cells(known.targets), n_boxes)}
        self._fill(known, {boxes: known.floor & ~boxes for boxes in solved})

    def remaining(self, boxes: Boxes, player: int) -> int | None:
        """Return the fewest moves that solve a state, None if it has no solution."""
        if not self._walled_in <= boxes:
            return None
        try:
            row = self._row(sorted(boxes - self._walled_in))
        except KeyError:  # a box on a dead cell
            return None
        moves = self._moves[row + self._player[player]]
        return None if moves == _UNREACHED else moves

    def _row(self, boxes: Iterable[int]) -> int:
        return sum(rank[box] for rank, box in zip(self._ranks, boxes, strict=True)) * len(self._player)

    def _fill(self, level: Masks, frontier: dict[int, int]) -> None:
        """Fill the table, one move count after the other; the frontier maps a box set to player cells."""
        seen: dict[int, int] = {}
        rows: dict[int, int] = {}
        moves = 0
        while frontier:
            reached: dict[int, int] = {}
            for boxes, players in frontier.items():
                before = seen.get(boxes, 0)
                players &= ~before
                if not players:
                    continue
                if not before:
                    rows[boxes] = self._row(to_cells(boxes))
                seen[boxes] = before | players
                row = rows[boxes]
                for player in to_cells(players):
                    self._moves[row + self._player[player]] = moves
                _unmove(level, boxes, players, reached)
            frontier = reached
            moves += 1


def _unmove(level: Masks, boxes: int, players: int, reached: dict[int, int]) -> None:
    """Add to `reached` the states one move before (boxes, each of the players)."""
    stride = level.stride
    free = level.floor & ~boxes
    walked = (players << 1 | players >> 1 | players << stride | players >> stride) & free
    reached[boxes] = reached.get(boxes, 0) | walked
    if not players & (boxes << 1 | boxes >> 1 | boxes << stride | boxes >> stride):
        return
    for delta in (stride, 1):
        # The last push may have gone to a box behind the player: pull it back, the player steps away.
        for player in to_cells(players & boxes << delta & free >> delta):
            pulled = boxes ^ (1 << player - delta | 1 << player)
            reached[pulled] = reached.get(pulled, 0) | 1 << player + delta
        for player in to_cells(players & boxes >> delta & free << delta):
            pulled = boxes ^ (1 << player + delta | 1 << player)
            reached[pulled] = reached.get(pulled, 0) | 1 << player - delta
