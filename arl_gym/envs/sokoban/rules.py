r"""The board and the rules: walk, push one box, blocked move. Pure functions; no reward, no step count.

A cell is an index into the board text, rows joined by a newline: the index of row r, column c is
`r * (width + 1) + c`. The edge of a board is wall, so a neighbour of a floor cell never leaves the text.

    >>> level = make_level("#####\n#___#\n#__O#\n#####", boxes={14}, player=13)
    >>> draw(level, *move(level, level.boxes, level.player, "right")).split()
    ['#####', '#___#', '#_P√#', '#####']
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from arl_gym.rng import digest

SYMBOLS = ("#", "_", "O", "√", "X", "P", "S")
"""In code order, 0 to 6: wall, floor, target, box on target, box, player, player on target."""
WALL, FLOOR, TARGET, BOX_ON_TARGET, BOX, PLAYER, PLAYER_ON_TARGET = SYMBOLS

_TO_CODES = {ord(symbol): code for code, symbol in enumerate(SYMBOLS)}

MOVES = ("up", "down", "left", "right")
"""Action names in the order of `action_mode="discrete"`."""

Boxes = frozenset[int]
Plan = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Level:
    """A board in its first state. Equal boards are equal, wherever they come from."""

    text: str
    """Walls, floor and targets only; what the player cannot reach even without boxes is wall, targets of
    walled-in boxes excepted."""
    floor: Boxes
    """Cells that the player can reach when no box is in the way."""
    boxes: Boxes
    player: int
    where: str = field(default="", compare=False)
    """Where the level was read, for messages."""
    optimal: int = field(default=0, compare=False)
    """Fewest moves that solve it; 0 if not computed."""

    @cached_property
    def width(self) -> int:
        """Cells of a row."""
        return self.text.index("\n") if "\n" in self.text else len(self.text)

    @cached_property
    def height(self) -> int:
        """Rows."""
        return self.text.count("\n") + 1

    @cached_property
    def open_codes(self) -> npt.NDArray[np.uint8]:
        """Codes of the empty room, row after row, shape (H * W,)."""
        return codes(self.text).reshape(-1)

    @cached_property
    def targets(self) -> Boxes:
        """Cells to cover."""
        return frozenset(i for i, symbol in enumerate(self.text) if symbol == TARGET)

    @cached_property
    def deltas(self) -> dict[str, int]:
        """Change of the cell index per move."""
        stride = self.width + 1
        return dict(zip(MOVES, (-stride, stride, -1, 1), strict=True))

    @cached_property
    def pushes_to_target(self) -> dict[int, int]:
        """Fewest pushes from a cell to any target when only walls are in the way; dead cells are absent."""
        distance = dict.fromkeys(self.targets, 0)
        queue = deque(sorted(distance))
        while queue:
            cell = queue.popleft()
            for delta in self.deltas.values():
                origin = cell - delta
                # The box comes from `origin`, so the player stood one cell further back.
                if origin in self.floor and origin - delta in self.floor and origin not in distance:
                    distance[origin] = distance[cell] + 1
                    queue.append(origin)
        return distance

    @cached_property
    def content_hash(self) -> str:
        """Digest of the board, equal for boards that are turned, mirrored, or walled in more thickly."""
        return canonical_digest(draw(self, self.boxes, self.player))


def make_level(text: str, *, boxes: Iterable[int], player: int, where: str = "", optimal: int = 0) -> Level:
    """Return the level of a board text without boxes and player, in which every open cell is floor."""
    floor = frozenset(i for i, symbol in enumerate(text) if symbol in (FLOOR, TARGET))
    return Level(text=text, floor=floor, boxes=frozenset(boxes), player=player, where=where, optimal=optimal)


def move(level: Level, boxes: Boxes, player: int, name: str) -> tuple[Boxes, int]:
    """Return boxes and player after a move; a blocked move changes nothing. One box is pushed at most."""
    delta = level.deltas[name]
    ahead = player + delta
    if ahead in boxes:
        behind = ahead + delta
        if behind not in level.floor or behind in boxes or ahead not in level.floor:
            return boxes, player
        return (boxes - {ahead}) | {behind}, ahead
    return (boxes, ahead) if ahead in level.floor else (boxes, player)


def draw(level: Level, boxes: Boxes, player: int) -> str:
    """Return the board text: one symbol a cell, rows joined by a newline."""
    cells = list(level.text)
    for box in boxes:
        cells[box] = BOX_ON_TARGET if cells[box] == TARGET else BOX
    cells[player] = PLAYER_ON_TARGET if cells[player] == TARGET else PLAYER
    return "".join(cells)


def place_codes(level: Level, boxes: Boxes, player: int) -> npt.NDArray[np.uint8]:
    """Return a fresh array of codes, shape (H, W): `codes` of what `draw` gives, without drawing."""
    cells, targets, stride = level.open_codes.copy(), level.targets, level.width + 1
    for box in boxes:
        cells[box - box // stride] = 3 if box in targets else 4
    cells[player - player // stride] = 6 if player in targets else 5
    return cells.reshape(level.height, level.width)


def codes(board: str) -> npt.NDArray[np.uint8]:
    """Return a board text as a fresh array of codes, shape (H, W): the index of each symbol in `SYMBOLS`."""
    raw = np.frombuffer((board + "\n").translate(_TO_CODES).encode("latin-1"), dtype=np.uint8)
    return raw.reshape(-1, board.find("\n") + 1 or len(board) + 1)[:, :-1].copy()


def canonical_digest(board: str) -> str:
    """Return a digest that the 8 symmetries of a board share; walls that enclose nothing do not count."""
    rows = _without_outer_walls(board.split("\n"))
    columns = _without_outer_walls([*map("".join, zip(*rows, strict=True))])
    rows = [*map("".join, zip(*columns, strict=True))]
    forms = []
    for lines in (rows, columns):
        text, upside_down = "".join(lines), "".join(lines[::-1])
        # Backwards, a text is turned by half and an upside-down one is mirrored.
        least = min(text, text[::-1], upside_down, upside_down[::-1])
        # The length of a line tells apart boards of equal cells and different shape.
        forms.append(f"{len(lines[0])}:{least}")
    return digest(min(forms))


def _without_outer_walls(lines: list[str]) -> list[str]:
    wall = WALL * len(lines[0])
    first, last = 0, len(lines) - 1
    while lines[first] == wall:
        first += 1
    while lines[last] == wall:
        last -= 1
    return lines[first : last + 1]
