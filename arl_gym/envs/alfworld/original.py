"""The real ALFWorld games on disk, as `alfworld-download` puts them there.

>>> games = OriginalGames("~/data/alfworld")  # doctest: +SKIP
>>> len(games.ids("valid_unseen"))  # doctest: +SKIP
134
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arl_gym.envs.alfworld.game import Game
from arl_gym.envs.alfworld.original_index import Entry, Index, SplitReport, load_index, read_text
from arl_gym.envs.alfworld.scene import TASK_TYPES
from arl_gym.errors import DataError, UnknownNameError

PUBLISHED = {
    split: dict(zip(TASK_TYPES, counts, strict=True))
    for split, counts in {
        "train": (790, 308, 650, 459, 533, 813),
        "valid_seen": (35, 13, 27, 16, 25, 24),
        "valid_unseen": (24, 18, 31, 23, 21, 17),
    }.items()
}
"""Games of each split and task type in the benchmark: 3,553, 140 and 134.

References:
    ALFWorld, arXiv:2010.03768.
"""

_ALIASES = {"val": "valid_seen", "test_ood": "valid_unseen"}
_INSTALL = (
    '`pip install alfworld; alfworld-download` fetches the real games; dataset="generated" needs no download'
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What there is of each split."""

    root: Path
    """Folder that holds the splits."""
    splits: Mapping[str, SplitReport]

    @property
    def n_generated(self) -> int:
        """Games that are no part of the benchmark."""
        return sum(split.generated for split in self.splits.values())

    def differences(self) -> list[str]:
        """Return the splits whose games are not as many as published, of each type, in words."""
        return [
            f"{split} has {self.splits[split].n_games} games, {sum(published.values())} are published"
            if self.splits[split].n_games != sum(published.values())
            else f"{split} has as many games as published, but not of each type"
            for split, published in PUBLISHED.items()
            if self.splits[split].types != published
        ]


class OriginalGames:
    """The games the benchmark would pick, without those that cannot be played.

    Args:
        data_dir: Folder that holds json_2.1.1, or json_2.1.1 itself. None takes the variable ALFWORLD_DATA,
            then ~/.cache/alfworld.
        need_native: Refuse splits with games whose rules only the real TextWorld knows.

    Raises:
        DataError: If there are no games at that place.
    """

    def __init__(self, data_dir: str | Path | None = None, *, need_native: bool = True):
        self.root = _find_root(data_dir)
        self._need_native = need_native
        self._indexes: dict[str, Index] = {}

    def split_name(self, split: str) -> str:
        """Return the benchmark's name of a split.

        Raises:
            UnknownNameError: If it has no such split.
        """
        name = _ALIASES.get(split, split)
        if name not in PUBLISHED:
            raise UnknownNameError(
                "split", split, [*PUBLISHED, *_ALIASES], "ALFWorld: the benchmark has no such split"
            )
        return name

    def ids(self, split: str, task_type: str | None = None) -> tuple[str, ...]:
        """Return the task ids of a split, `<split>/<task folder>/<trial folder>`, sorted.

        Raises:
            UnknownNameError: If the split or the task type is unknown.
            DataError: If there are none, or only the real TextWorld can play some of them.
        """
        if task_type not in (None, *TASK_TYPES):
            raise UnknownNameError("task type", task_type, TASK_TYPES, "ALFWorld")
        name = self.split_name(split)
        index = self._index(name)
        if self._need_native and index.first_unknown is not None:
            raise DataError(
                f"{index.report.unknown_rules} of the {index.report.n_games} games in {self.root / name} "
                f"have rules that only the real TextWorld knows, first {index.first_unknown}: "
                'use engine="textworld"'
            )
        ids = index.ids[task_type]
        if not ids:
            left_out = ", ".join(f"{n} {reason}" for reason, n in index.report.skipped.items())
            raise DataError(
                f"no game{'' if task_type is None else f' of type {task_type}'} in {self.root / name} "
                f"(left out: {left_out or 'none'}): {_INSTALL}"
            )
        return ids

    def game(self, task_id: str) -> Game:
        """Return the game of a task.

        Raises:
            UnknownNameError: If there is no such task.
            DataError: If its file has gone or changed.
            UnknownRules: If only the real TextWorld can play it.
        """
        index, entry = self._find(task_id)
        return index.game(entry)

    def game_id(self, task_id: str) -> str:
        """Return `<task folder>/<trial folder>`."""
        return task_id.partition("/")[2]

    def file_text(self, task_id: str) -> str:
        """Return the `.tw-pddl` file of the game.

        Raises:
            UnknownNameError: If there is no such task.
            DataError: If it has gone or changed.
        """
        return read_text(self.root, self._find(task_id)[1])

    def n_generated(self, split: str) -> int:
        """Return how many games of a split say that they were generated."""
        return self._index(self.split_name(split)).report.generated

    def report(self) -> Report:
        """Return what there is of every split; reads all games that no cache knows."""
        return Report(root=self.root, splits={split: self._index(split).report for split in PUBLISHED})

    def _index(self, split: str) -> Index:
        if split not in self._indexes:
            self._indexes[split] = load_index(self.root, split)
        return self._indexes[split]

    def _find(self, task_id: str) -> tuple[Index, Entry]:
        index = self._index(self.split_name(task_id.partition("/")[0]))
        if task_id not in index.entries:
            known = list(index.entries)
            raise UnknownNameError("task_id", task_id, [*known[:1], *known[-1:]], str(self.root))
        return index, index.entries[task_id]


def _find_root(data_dir: str | Path | None) -> Path:
    """Return the folder that holds the splits, as an absolute path without links."""
    place, source = _place(data_dir)
    place = place.expanduser()
    for root in (place / "json_2.1.1", place):
        if any((root / split).is_dir() for split in PUBLISHED):
            return root.resolve()
    raise DataError(
        f"no ALFWorld games in {place.absolute()} ({source}): expected a folder json_2.1.1 with "
        f"{', '.join(PUBLISHED)}. {_INSTALL}"
    )


def _place(data_dir: str | Path | None) -> tuple[Path, str]:
    if data_dir is not None:
        return Path(data_dir), "data_dir"
    if chosen := os.environ.get("ALFWORLD_DATA"):
        return Path(chosen), "the variable ALFWORLD_DATA"
    return Path("~/.cache/alfworld"), "the usual place, as neither data_dir nor ALFWORLD_DATA is set"
