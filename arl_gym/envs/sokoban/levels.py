r"""Reads levels: XSB, SOK and Boxoban text, from files, folders or strings.

    # wall   $ b box   * B box on target   @ p player   + P player on target   . o target   blank - _ floor

Rows may be ragged and begin with blanks; run lengths are understood, with groups and with `|` as row end
(`5#|#@$.#|5#`, `3(#-)#`). Every other line (comments, titles, authors, solutions) ends a board. Does not look
for solutions (see `solver`), but refuses what is impossible at a glance.

>>> [level_id for level_id, level in load_levels(["#####\n#@$.#\n#####"]).items()]
['level:0']

References:
    "Level format" and "Sok format", the Sokoban wiki (sokobano.de).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path

from arl_gym.envs.sokoban.rules import FLOOR, TARGET, WALL, Level
from arl_gym.errors import DataError

Source = str | PathLike[str]
Rows = list[tuple[int, str]]
"""Board rows with their line numbers."""

_SUFFIXES = (".txt", ".xsb", ".sok")
_BOARD = re.compile(r"[ \-_#@+$*.]*[#@+$*.][ \-_#@+$*.]*")
_BLANK_ROW = re.compile(r"[ \-_]*[\-_][ \-_]*")
_RUNS = re.compile(r"[\d|()\-_ #@+$*.]*#[\d|()\-_ #@+$*.]*")
_RUN = re.compile(r"(\d+)(\(([^()]*)\)|[^\d()])")
# The letters of the SOK format; only a line of a board's symbols that has a wall is read so.
_LETTERS = str.maketrans("bBpPo", "$*@+.")
_LETTER_ROW = re.compile(r"[\d|()\-_ #@+$*.bBpPo]*#[\d|()\-_ #@+$*.bBpPo]*")
_COMMENT, _COMMENT_END = re.compile(r"comment\s*:\s*", re.I), re.compile(r"comment[- ]end\s*:?", re.I)
_WIDEST = 999
_NUMBERED = re.compile(r";\s*\d+\s*")


def load_levels(levels: Source | Sequence[Source]) -> dict[str, Level]:
    """Return levels by id: `<file stem>:<index>` from files, `level:<index>` from strings; 0-based.

    Args:
        levels: A path (a file, or a folder with .txt, .xsb and .sok files at any depth), a level as text, or
            a list of these.

    Raises:
        DataError: If a file is missing, empty or malformed, or a level is impossible at a glance.
    """
    sources = [levels] if isinstance(levels, (str, PathLike)) else list(levels)
    found: dict[str, Level] = {}
    n_inline = 0
    for source in sources:
        if isinstance(source, str) and _is_text(source):
            parsed = parse(source, f"level text {n_inline}")
            named = {f"level:{n_inline + i}": level for i, level in enumerate(parsed)}
            n_inline += len(parsed)
        elif isinstance(source, (str, PathLike)):
            named = _load_path(Path(fspath(source)))
        else:
            raise DataError(f"levels: expected paths or level texts, got {type(source).__name__}: {source!r}")
        if twice := sorted(found.keys() & named.keys()):
            raise DataError(f"levels: two files give the id {twice[0]!r}: rename one of them ({source})")
        found |= named
    if not found:
        raise DataError("levels: expected at least one path or level text, got an empty list")
    return found


def _is_text(source: str) -> bool:
    return "\n" in source or (WALL in source and ("@" in source or "+" in source))


def _load_path(path: Path) -> dict[str, Level]:
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES)
        if not files:
            raise DataError(f"{path}: expected .txt, .xsb or .sok files at any depth, got none")
    else:
        files = [path]
    found: dict[str, Level] = {}
    for file in files:
        try:
            # Boards are ASCII; a name in an old encoding must not keep a collection from being read.
            text = file.read_text(encoding="utf-8-sig", errors="replace")
        except OSError as err:
            raise DataError(f"cannot read the levels {file}: {err}") from err
        for i, level in enumerate(parse(text, str(file))):
            if f"{file.stem}:{i}" in found:
                raise DataError(f"{path}: two files give the id '{file.stem}:{i}': rename one of them")
            found[f"{file.stem}:{i}"] = level
    return found


def parse(text: str, where: str) -> list[Level]:
    """Return the levels of a text in their order; `where` names it in messages.

    Raises:
        DataError: If there is no level, or one is malformed or impossible at a glance.
    """
    levels = [
        _level(rows, f"{where}, level {i} (line {rows[0][0]})") for i, rows in enumerate(_boards(text, where))
    ]
    if not levels:
        raise DataError(f"{where}: expected at least one level, found no row of a board (a '#' and so on)")
    return levels


def _boards(text: str, where: str) -> Iterator[Rows]:
    """Split a text into boards, run lengths expanded."""
    rows: Rows = []
    header: tuple[int, str] | None = None
    in_comment = False
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.rstrip()
        stripped = line.strip()
        # A comment over several lines may show boards; "Comment: ..." with a text is one line.
        if in_comment or _COMMENT.fullmatch(stripped):
            in_comment = not _COMMENT_END.fullmatch(stripped)
            stripped = line = ""
        if _LETTER_ROW.fullmatch(line):
            line = line.translate(_LETTERS)
        if _BOARD.fullmatch(line) or (rows and _BLANK_ROW.fullmatch(line)):
            rows.append((number, line))
        elif _RUNS.fullmatch(line):
            rows += [(number, row) for row in _expand(line, f"{where}, line {number}")]
        elif stripped.startswith(WALL) and stripped.endswith(WALL):
            bad = next(c for c in stripped if c not in "#@+$*.-_ |" and not c.isdigit())
            raise DataError(
                f"{where}, line {number}: expected a board row of '#@+$*.-_', got {bad!r} in {line!r}"
            )
        else:
            if rows:
                yield _without_blank_end(rows)
                rows, header = [], None
            if _NUMBERED.fullmatch(line):
                _refuse_empty(header, where)
                header = (number, line)
    if rows:
        yield _without_blank_end(rows)
    else:
        _refuse_empty(header, where)


def _without_blank_end(rows: Rows) -> Rows:
    """Drop rows like `-----` below a board: a line between two levels, not an empty row inside one."""
    while _BLANK_ROW.fullmatch(rows[-1][1]):
        rows = rows[:-1]
    return rows


def _refuse_empty(header: tuple[int, str] | None, where: str) -> None:
    if header:
        raise DataError(f"{where}, line {header[0]}: level {header[1]!r} is empty: no row of a board follows")


def _expand(line: str, where: str) -> list[str]:
    """Write out the rows of a line with run lengths, innermost groups first."""
    rows = []
    for part in line.strip().strip("|").split("|"):
        row = part
        while (wider := _RUN.sub(_repeat, row)) != row:
            row = wider
            if len(row) > _WIDEST:  # before a slip of the pen fills the memory
                raise DataError(f"{where}: expected rows of at most {_WIDEST} cells, got more by {part!r}")
        if not _BOARD.fullmatch(row) and not _BLANK_ROW.fullmatch(row):
            raise DataError(f"{where}: expected a symbol or a (group) after every run length, got {part!r}")
        rows.append(row)
    return rows


def _repeat(run: re.Match[str]) -> str:
    return (run[2] if run[3] is None else run[3]) * int(run[1][:4])


def _level(rows: Rows, where: str) -> Level:
    """Check one board and find its inside."""
    width = max(len(row) for _, row in rows)
    raw = "\n".join(row.ljust(width) for _, row in rows)
    stride = width + 1

    def line(cell: int) -> str:
        return f"line {rows[cell // stride][0]}, column {cell % stride + 1}"

    players = [i for i, c in enumerate(raw) if c in "@+"]
    boxes = [i for i, c in enumerate(raw) if c in "$*"]
    targets = [i for i, c in enumerate(raw) if c in ".*+"]
    if len(players) != 1:
        places = "; ".join(map(line, players))
        raise DataError(
            f"{where}: expected one player, got {len(players)}" + (f": {places}" if places else "")
        )
    if not boxes or len(boxes) != len(targets):
        raise DataError(
            f"{where}: expected as many boxes as targets and at least one, got {len(boxes)} boxes and "
            f"{len(targets)} targets"
        )
    if boxes == targets:
        raise DataError(f"{where}: expected a box off its target, but the level is solved already")
    floor = _inside(raw, players[0], stride, where, line)
    for target in targets:
        if target not in floor and target not in boxes:
            raise DataError(f"{where}: the target at {line(target)} is walled off from the player")
    shown = (
        c if c == "\n" else TARGET if i in targets else FLOOR if i in floor else WALL
        for i, c in enumerate(raw)
    )
    level = Level(text="".join(shown), floor=floor, boxes=frozenset(boxes), player=players[0], where=where)
    for box in boxes:
        if box not in level.pushes_to_target:
            raise DataError(f"{where}: the box at {line(box)} can be pushed to no target")
    return level


def _inside(raw: str, player: int, stride: int, where: str, line: Callable[[int], str]) -> frozenset[int]:
    """Flood from the player through everything but walls: blanks outside the room are no floor."""
    height = (len(raw) + 1) // stride
    inside = {player}
    stack = [player]
    while stack:
        cell = stack.pop()
        row, column = divmod(cell, stride)
        if row in (0, height - 1) or column in (0, stride - 2):
            raise DataError(f"{where}: the level is open: the player can walk out at {line(cell)}")
        for delta in (-stride, stride, -1, 1):
            if raw[cell + delta] != "#" and cell + delta not in inside:
                inside.add(cell + delta)
                stack.append(cell + delta)
    return frozenset(inside)
