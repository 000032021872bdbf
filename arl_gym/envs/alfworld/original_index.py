"""The index of one split of the real games: which there are, which are left out and why, and each as a row.

Made once, which reads every file, and kept below `assets.cache_root()`: later starts only list the folders.
The data itself is never written to.
"""

import json
import os
import uuid
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from weakref import WeakValueDictionary

from arl_gym.assets import cache_root
from arl_gym.caches import locked, with_bar
from arl_gym.envs.alfworld.game import Game, read_game
from arl_gym.envs.alfworld.grammars import UnknownRules
from arl_gym.envs.alfworld.house import House, tables
from arl_gym.envs.alfworld.scene import TASK_TYPES
from arl_gym.errors import DataError
from arl_gym.rng import digest

GAME_FILE, TASK_FILE = "game.tw-pddl", "traj_data.json"

_FORMAT = "arl_gym ALFWorld index, version 1"
"""To be raised with every change of what is read from a game, or of which are left out."""
_MAX_BYTES = 64 << 20
_MAX_EXAMPLES = 3


class Found(NamedTuple):
    """A folder of a trial: size in bytes and time in ns of its two files, (-1, 0) for one that is missing."""

    path: str
    """Below the split, with "/"."""
    game: tuple[int, int]
    task: tuple[int, int]


class Entry(NamedTuple):
    """A game of the index."""

    task_id: str
    task_type: str
    size: int
    mtime_ns: int
    file_digest: str
    offset: int
    """Of its row, from the first row; -1 if its rules are unknown, which leaves it without a row."""
    length: int
    row_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReport:
    """What there is of a split."""

    types: dict[str, int] = field(default_factory=dict)
    """Games of each task type."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Folders left out, by reason."""
    examples: dict[str, list[str]] = field(default_factory=dict)
    """The first few of them, by reason; paths below the split."""
    duplicates: int = 0
    """Games that show and do the same as an earlier one."""
    unknown_rules: int = 0
    """Games that only the real TextWorld can play."""
    generated: int = 0
    """Games that are no part of the benchmark: their task file says what generated them."""

    @property
    def n_games(self) -> int:
        """Games of all types."""
        return sum(self.types.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class Index:
    """The games of a split, sorted by task id."""

    root: Path
    """Folder that holds the splits."""
    cache: Path | None
    """File of the rows; None if it could not be written."""
    rows_at: int
    """Where the rows start in it."""
    entries: dict[str, Entry]
    report: SplitReport

    @cached_property
    def ids(self) -> dict[str | None, tuple[str, ...]]:
        """Task ids by task type, and of all types under None."""
        by_type: dict[str | None, list[str]] = {None: list(self.entries), **{t: [] for t in TASK_TYPES}}
        for entry in self.entries.values():
            by_type[entry.task_type].append(entry.task_id)
        return {task_type: tuple(ids) for task_type, ids in by_type.items()}

    @cached_property
    def first_unknown(self) -> str | None:
        """The first game that only the real TextWorld can play."""
        return next((e.task_id for e in self.entries.values() if e.offset < 0), None)

    def game(self, entry: Entry) -> Game:
        """Return the game of an entry.

        Raises:
            DataError: If its file has gone or changed.
            UnknownRules: If only the real TextWorld can play it.
        """
        return _game(self.root, self.cache, self.rows_at, entry)


@lru_cache(maxsize=256)
def _game(root: Path, cache: Path | None, rows_at: int, entry: Entry) -> Game:
    """Read a game once for all copies of a task."""
    path = root / entry.task_id / GAME_FILE
    if cache is not None and entry.offset >= 0 and _unchanged(path, entry):
        with suppress(OSError), cache.open("rb") as file:
            file.seek(rows_at + entry.offset)
            row = file.read(entry.length)
            if digest(row) == entry.row_digest:
                return Game.from_row(json.loads(zlib.decompress(row)))
    return read_game(read_text(root, entry))


def _unchanged(path: Path, entry: Entry) -> bool:
    try:
        now = path.stat()
    except OSError:
        return False
    return (now.st_size, now.st_mtime_ns) == (entry.size, entry.mtime_ns)


def read_text(root: Path, entry: Entry) -> str:
    """Return the file of a game.

    Raises:
        DataError: If it has gone or changed since it was indexed.
    """
    path = root / entry.task_id / GAME_FILE
    try:
        content = path.read_bytes()
    except OSError as err:
        raise DataError(f"cannot read the game {path}: {err.strerror}") from err
    if digest(content) != entry.file_digest:
        raise DataError(f"{path} has changed since it was indexed: make the environment anew")
    return content.decode()


_in_use: "WeakValueDictionary[tuple[Path, str], Index]" = WeakValueDictionary()


def load_index(root: Path, split: str) -> Index:
    """Return the index of a split, from the cache if the files are still the same.

    All environments of a process share one: the folders are listed again when nobody holds it any more.

    Args:
        root: Folder that holds the splits, as an absolute path.
        split: The benchmark's name of it.

    Raises:
        DataError: If a folder cannot be listed or a file cannot be read.
    """
    index = _in_use.get((root, split))
    if index is None:
        index = _in_use[root, split] = _load(root, split)
    return index


def _load(root: Path, split: str) -> Index:
    found = sorted(_walk(root / split, ""))
    signature = _signature(found)
    cache = cache_root() / "alfworld" / f"{digest(os.fsencode(root))}-{split}.index"
    index = _read_cache(root, cache, signature)
    if index is not None or not found:
        return index or Index(root=root, cache=None, rows_at=0, entries={}, report=SplitReport())
    with locked(cache):
        # Another process may have made it in the meantime.
        return _read_cache(root, cache, signature) or _build(root, split, found, cache, signature)


def _walk(folder: Path, path: str) -> Iterator[Found]:
    """Give the folders that hold a game or a task. Links to folders are not followed, as in the benchmark."""
    files, folders = dict[str, tuple[int, int]](), list[str]()
    try:
        with os.scandir(folder) as listing:
            for item in listing:
                if item.name in (GAME_FILE, TASK_FILE):
                    with suppress(FileNotFoundError):  # a link to nothing
                        files[item.name] = (item.stat().st_size, item.stat().st_mtime_ns)
                elif item.is_dir(follow_symlinks=False):
                    folders.append(item.name)
    except FileNotFoundError:
        return
    except OSError as err:
        raise DataError(f"cannot list the folder {folder}: {err.strerror}") from err
    if files:
        yield Found(path, files.get(GAME_FILE, (-1, 0)), files.get(TASK_FILE, (-1, 0)))
    for name in folders:
        yield from _walk(folder / name, f"{path}/{name}" if path else name)


def _signature(found: Sequence[Found]) -> str:
    """Identify the files, and the form they are kept in."""
    return digest(json.dumps([_FORMAT, [f.name for f in fields(Game)], found]))


# ---- judging the files


class _Skip(Exception):
    """A game is left out; the message is the reason."""


class _Judged(NamedTuple):
    task_type: str
    file_digest: str
    row: bytes
    """The game, compressed; b"" if its rules are unknown."""
    generated: bool


def _judge(folder: Path, found: Found) -> _Judged:
    """Read a game as the benchmark picks its own, and make sure that it can be played.

    Raises:
        _Skip: If it is left out.
        DataError: If the system refuses to read a file.
    """
    if "movable" in found.path or "Sliced" in found.path:
        raise _Skip("movable or sliced objects")
    for name, (size, _) in ((TASK_FILE, found.task), (GAME_FILE, found.game)):
        if size < 0:
            raise _Skip(f"no {name}")
    task = _read_json(folder / TASK_FILE, found.task[0])[0]
    task_type = task.get("task_type") if isinstance(task, dict) else None
    if task_type not in TASK_TYPES:
        raise _Skip("another task type")
    record, content = _read_json(folder / GAME_FILE, found.game[0])
    if not isinstance(record, dict) or "solvable" not in record:
        raise _Skip("no key solvable")
    if not record["solvable"]:
        raise _Skip("not solvable")
    row = _row(content.decode(), task_type)
    return _Judged(task_type, digest(content), row, generated="generated_by" in task)


def _read_json(path: Path, size: int) -> tuple[Any, bytes]:
    if size > _MAX_BYTES:
        raise _Skip(f"{path.name} is larger than {_MAX_BYTES >> 20} MB")
    try:
        content = path.read_bytes()
        return json.loads(content.decode()), content
    except OSError as err:
        # Not left out: the cache would remember a passing fault of the disk for ever.
        raise DataError(f"cannot read {path}: {err.strerror}") from err
    except (ValueError, RecursionError) as err:
        raise _Skip(f"{path.name} is no JSON") from err


def _row(text: str, task_type: str) -> bytes:
    try:
        game = read_game(text)
    except UnknownRules:
        return b""
    except ValueError as err:
        raise _Skip("problem or goal cannot be read") from err
    if game.task_type != task_type:
        raise _Skip("goal of another task type")
    won = House(game).won
    # Thousands of games pass by once, and their tables take more memory than all the rest.
    tables.cache_clear()
    if won:
        raise _Skip("goal true at the start")
    return zlib.compress(json.dumps(game.to_row(), separators=(",", ":")).encode())


# ---- making the index


def _build(root: Path, split: str, found: Sequence[Found], cache: Path, signature: str) -> Index:
    entries, rows, report = _collect(root / split, split, found)
    head = json.dumps({"signature": signature, "report": _fields(report), "entries": entries}).encode()
    try:
        rows_at, kept = _write(cache, head, rows), cache
    except OSError as err:
        rows_at, kept = 0, None
        warnings.warn(
            f"the index of {root / split} cannot be kept ({err}), so every start reads all games anew: "
            "set ARL_GYM_CACHE to a folder that can be written to",
            stacklevel=2,
        )
    by_id = {entry.task_id: entry for entry in entries}
    return Index(root=root, cache=kept, rows_at=rows_at, entries=by_id, report=report)


def _fields(report: SplitReport) -> dict[str, Any]:
    return {f.name: getattr(report, f.name) for f in fields(report)}


def _collect(
    folder: Path, split: str, found: Sequence[Found]
) -> tuple[list[Entry], list[bytes], SplitReport]:
    entries, rows, examples = list[Entry](), list[bytes](), dict[str, list[str]]()
    skipped, seen, offset, n_generated = Counter[str](), Counter[str](), 0, 0
    for trial in with_bar(found, f"indexing the games of {split}", total=len(found)):
        try:
            task_type, file_digest, row, generated = _judge(folder / trial.path, trial)
        except _Skip as reason:
            skipped[str(reason)] += 1
            if skipped[str(reason)] <= _MAX_EXAMPLES:
                examples.setdefault(str(reason), []).append(trial.path)
            continue
        check = digest(row)
        at = offset if row else -1
        entries.append(
            Entry(f"{split}/{trial.path}", task_type, *trial.game, file_digest, at, len(row), check)
        )
        rows.append(row)
        offset += len(row)
        n_generated += generated
        seen[check] += bool(row)
    types = Counter(entry.task_type for entry in entries)
    return (
        entries,
        rows,
        SplitReport(
            types={t: types[t] for t in TASK_TYPES},
            skipped=dict(skipped.most_common()),
            examples=examples,
            duplicates=sum(n - 1 for n in seen.values() if n),
            unknown_rules=rows.count(b""),
            generated=n_generated,
        ),
    )


# ---- the cache file: a digest of the head, the head as a line of JSON, and the rows


def _write(cache: Path, head: bytes, rows: Iterable[bytes]) -> int:
    cache.parent.mkdir(parents=True, exist_ok=True)
    start = digest(head).encode() + b"\n" + head + b"\n"
    part = cache.with_suffix(f".{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            file.write(start)
            file.writelines(rows)
        part.replace(cache)
    finally:
        part.unlink(missing_ok=True)
    return len(start)


def _read_cache(root: Path, cache: Path, signature: str) -> Index | None:
    """Return the index the cache holds; None if there is none, or it is damaged or of other files."""
    try:
        with cache.open("rb") as file:
            head, rows_at = _read_head(file), file.tell()
            n_bytes = os.fstat(file.fileno()).st_size - rows_at
    except OSError:
        return None
    if head is None or head["signature"] != signature:
        return None
    entries = {e[0]: Entry(*e) for e in head["entries"]}
    if n_bytes != sum(e.length for e in entries.values()):
        return None
    report = SplitReport(**head["report"])
    return Index(root=root, cache=cache, rows_at=rows_at, entries=entries, report=report)


def _read_head(file: BinaryIO) -> Any:
    check, head = file.readline().strip(), file.readline().removesuffix(b"\n")
    return json.loads(head) if head and digest(head).encode() == check else None
