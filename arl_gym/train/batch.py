"""From trajectories to right-padded arrays, and from those to minibatches and micro-batches.

Numpy and pillow only. A row is one forward pass: one turn with its windowed prompt, or the turns of an
append-only dialogue, each extending the one before. Which tokens carry loss is known by position, not by id.
Pictures stay pictures here, each kept once however many rows show it; what a model makes of them is its own.

    batch = pack(trajectories, pad_id=tokenizer.pad_token_id).with_advantages(advantages)
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL.Image import Image

from arl_gym.agents.types import Trajectory, Turn
from arl_gym.core import pictures_of
from arl_gym.errors import ConfigError, DataError
from arl_gym.rng import digest

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.int32]

# What padding holds in every array of shape (N, T); `ids` is filled with the pad id.
_GRIDS: dict[str, Any] = {
    "ids": 0,
    "action_mask": False,
    "segment": -1,
    "rollout_logprobs": 0.0,
    "old_logprobs": 0.0,
    "ref_logprobs": 0.0,
    "entropies": 0.0,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """N rows of at most T tokens, made of the M turns of some trajectories.

    Anything per token sits at the position of the token it is about: `rollout_logprobs[n, t]` is the
    log-probability of `ids[n, t]` given the tokens before it.
    """

    ids: IntArray
    """(N, T), right-padded with `pad_id`."""
    lengths: IntArray
    """(N,): tokens of each row without padding."""
    action_mask: BoolArray
    """(N, T): True on tokens that the policy sampled and the env consumed."""
    segment: IndexArray
    """(N, T): the turn, in [0, M), that a sampled token belongs to; -1 elsewhere."""
    rollout_logprobs: FloatArray
    """(N, T): log-probabilities of the sampling policy; 0 outside the mask."""
    row_trajectory: IndexArray
    """(N,): index of the trajectory; -1 on dummy rows."""
    row_group: IndexArray
    """(N,): group number; -1 on dummy rows."""
    turn_trajectory: IndexArray
    """(M,): index of the trajectory of every turn, also of turns without a row."""
    pad_id: int
    pictures: tuple[Image, ...] = ()
    """The distinct pictures, also of rows that `select` left out."""
    row_pictures: tuple[tuple[int, ...], ...] = ()
    """(N,): which pictures a row shows, in the order of their placeholders in `ids`; none, if left out."""
    advantages: FloatArray | None = None
    """(M,): one per turn."""
    old_logprobs: FloatArray | None = None
    """(N, T): the trained model's log-probabilities before the update."""
    ref_logprobs: FloatArray | None = None
    """(N, T): the reference model's log-probabilities."""
    entropies: FloatArray | None = None
    """(N, T): entropy of the model's distribution at each token, before the update."""

    def __post_init__(self) -> None:
        if not self.row_pictures:
            object.__setattr__(self, "row_pictures", ((),) * len(self.lengths))

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.lengths)

    @property
    def n_turns(self) -> int:
        """M."""
        return len(self.turn_trajectory)

    def with_advantages(self, advantages: Sequence[FloatArray]) -> "Batch":
        """Return the batch with one advantage per turn, given per trajectory in the order packed.

        Raises:
            DataError: If the turns do not match those that were packed.
        """
        counts = [len(a) for a in advantages]
        if not np.array_equal(np.repeat(np.arange(len(counts)), counts), self.turn_trajectory):
            packed = np.bincount(self.turn_trajectory, minlength=len(counts)).tolist()
            raise DataError(f"advantages: expected {packed} values per trajectory, got {counts}")
        flat = np.concatenate([np.zeros(0, np.float32), *advantages]).astype(np.float32)
        return dataclasses.replace(self, advantages=flat)

    def with_old(self, logprobs: FloatArray, entropies: FloatArray | None = None) -> "Batch":
        """Return the batch with the trained model's scores before the update, each (N, T)."""
        self._check_shape("old_logprobs", logprobs)
        if entropies is not None:
            self._check_shape("entropies", entropies)
        return dataclasses.replace(self, old_logprobs=logprobs, entropies=entropies)

    def with_ref(self, logprobs: FloatArray) -> "Batch":
        """Return the batch with the reference model's log-probabilities (N, T)."""
        self._check_shape("ref_logprobs", logprobs)
        return dataclasses.replace(self, ref_logprobs=logprobs)

    def _check_shape(self, name: str, array: FloatArray) -> None:
        if array.shape != self.ids.shape:
            raise DataError(f"{name}: expected shape {self.ids.shape}, got {array.shape}")

    def select(self, rows: npt.ArrayLike) -> "Batch":
        """Return the given rows, in that order, trimmed to the longest; turns keep their numbers."""
        index = np.asarray(rows, dtype=np.int64)
        width = int(self.lengths[index].max(initial=0))
        changes: dict[str, Any] = {name: a[index, :width] for name, a in self._grids().items()}
        for name in ("lengths", "row_trajectory", "row_group"):
            changes[name] = getattr(self, name)[index]
        changes["row_pictures"] = tuple(self.row_pictures[i] for i in index.tolist())
        return dataclasses.replace(self, **changes)

    def _grids(self) -> dict[str, npt.NDArray[Any]]:
        return {name: a for name in _GRIDS if (a := getattr(self, name)) is not None}


def pack(trajectories: Sequence[Trajectory], *, pad_id: int) -> Batch:
    """Lay the turns of trajectories out in rows.

    A turn whose prompt extends the row before it, in tokens and in pictures, joins that row, any other begins
    a new one: all pictures of one size have the same tokens. A row holds the tokens that the env consumed
    (`n_kept` of each completion): what was sampled beyond them influenced nothing. A turn of which no token
    was kept makes no row.

    Raises:
        DataError: If a turn has tokens without log-probabilities, without a prompt, or fewer than it kept.
    """
    rows: list[_Row] = []
    turn_trajectory: list[int] = []
    gallery = _Gallery()
    for j, trajectory in enumerate(trajectories):
        row: _Row | None = None
        shown: list[int] = []
        for k, turn in enumerate(trajectory.turns):
            segment = len(turn_trajectory)
            turn_trajectory.append(j)
            prompt, completion, logprobs = _tokens(trajectory, k, turn)
            shown = (shown if turn.append else []) + gallery.hang(pictures_of(turn.messages))
            if not completion:
                continue
            if row is None or not row.begins(prompt, shown):
                row = _Row(trajectory=j, group=trajectory.group)
                rows.append(row)
            row.extend(prompt[len(row.ids) :], completion, logprobs, segment)
            row.pictures = shown
    shape = (len(rows), max((len(r.ids) for r in rows), default=0))
    ids = np.full(shape, pad_id, dtype=np.int64)
    segment_ids = np.full(shape, -1, dtype=np.int32)
    rollout_logprobs = np.zeros(shape, dtype=np.float32)
    for n, r in enumerate(rows):
        ids[n, : len(r.ids)] = r.ids
        segment_ids[n, : len(r.ids)] = r.segment
        rollout_logprobs[n, : len(r.ids)] = r.logprobs
    return Batch(
        ids=ids,
        lengths=np.array([len(r.ids) for r in rows], dtype=np.int64),
        action_mask=segment_ids >= 0,
        segment=segment_ids,
        rollout_logprobs=rollout_logprobs,
        row_trajectory=np.array([r.trajectory for r in rows], dtype=np.int32),
        row_group=np.array([r.group for r in rows], dtype=np.int32),
        turn_trajectory=np.array(turn_trajectory, dtype=np.int32),
        pad_id=pad_id,
        pictures=tuple(gallery.pictures),
        row_pictures=tuple(tuple(r.pictures) for r in rows),
    )


class _Gallery:
    """Distinct pictures: copies of a task, and turns of an episode, show the same ones many times."""

    def __init__(self) -> None:
        self.pictures: list[Image] = []
        self._places: dict[tuple[tuple[int, int], str], int] = {}

    def hang(self, pictures: Sequence[Image]) -> list[int]:
        """Return the place of every picture; those of equal pixels have the same."""
        places = []
        for picture in pictures:
            key = (picture.size, digest(picture.convert("RGB").tobytes()))
            places.append(self._places.setdefault(key, len(self.pictures)))
            if places[-1] == len(self.pictures):
                self.pictures.append(picture)
        return places


@dataclass(slots=True, kw_only=True)
class _Row:
    trajectory: int
    group: int
    ids: list[int] = dataclasses.field(default_factory=list)
    segment: list[int] = dataclasses.field(default_factory=list)
    logprobs: list[float] = dataclasses.field(default_factory=list)
    pictures: list[int] = dataclasses.field(default_factory=list)

    def begins(self, prompt: list[int], pictures: list[int]) -> bool:
        """Return whether a prompt begins with all of this row, its pictures included."""
        same_ids = prompt[: len(self.ids)] == self.ids
        return same_ids and pictures[: len(self.pictures)] == self.pictures

    def extend(self, context: list[int], sampled: list[int], logprobs: list[float], segment: int) -> None:
        self.ids += context + sampled
        self.segment += [-1] * len(context) + [segment] * len(sampled)
        self.logprobs += [0.0] * len(context) + logprobs


def _tokens(trajectory: Trajectory, k: int, turn: Turn) -> tuple[list[int], list[int], list[float]]:
    """Return prompt ids, kept completion ids and their log-probs."""
    prompt, completion, logprobs = turn.prompt_ids or [], turn.completion_ids or [], turn.logprobs or []
    place = f"task {trajectory.task_id!r} group {trajectory.group} copy {trajectory.copy} turn {k}"
    if len(completion) != len(logprobs):
        raise DataError(f"{place}: {len(completion)} completion ids but {len(logprobs)} logprobs")
    if completion and not prompt:
        raise DataError(f"{place}: {len(completion)} completion ids but no prompt ids")
    if not 0 <= turn.n_kept <= len(completion):
        raise DataError(f"{place}: n_kept={turn.n_kept} of {len(completion)} completion ids")
    return prompt, completion[: turn.n_kept], logprobs[: turn.n_kept]


def turn_means(batch: Batch, grid: FloatArray) -> list[FloatArray]:
    """Average something per token over the tokens of each turn that carry loss.

    Args:
        batch: Whole: a turn of which `select` left out the row counts as one without tokens.
        grid: (N, T), e.g. `batch.entropies`.

    Returns:
        One float32 array (K_i,) per trajectory, up to the last one that has a turn; NaN for a turn without
        tokens.

    Raises:
        DataError: If the grid is not of the batch's shape.
    """
    batch._check_shape("turn_means", grid)
    turn = batch.segment[batch.action_mask]
    sums = np.bincount(turn, weights=grid[batch.action_mask], minlength=batch.n_turns)
    counts = np.bincount(turn, minlength=batch.n_turns)
    means = np.divide(sums, counts, out=np.full(batch.n_turns, np.nan), where=counts > 0)
    ends = np.cumsum(np.bincount(batch.turn_trajectory))
    return [a.astype(np.float32) for a in np.split(means, ends[:-1])] if batch.n_turns else []


def pad_rows(batch: Batch, n: int) -> Batch:
    """Append `n` rows of one pad token that carry no loss: ranks need equal numbers of rows."""
    n_rows, width = batch.ids.shape
    wider = max(width, 1) if n else width
    changes: dict[str, Any] = {}
    for name, array in batch._grids().items():
        grid = np.full(
            (n_rows + n, wider), batch.pad_id if name == "ids" else _GRIDS[name], dtype=array.dtype
        )
        grid[:n_rows, :width] = array
        changes[name] = grid
    for name, value in {"lengths": 1, "row_trajectory": -1, "row_group": -1}.items():
        changes[name] = np.pad(getattr(batch, name), (0, n), constant_values=value)
    changes["row_pictures"] = batch.row_pictures + ((),) * n
    return dataclasses.replace(batch, **changes)


def minibatches(batch: Batch, n: int) -> list[IntArray]:
    """Split the rows into at most `n` runs of whole groups, as even in rows as the groups allow.

    Groups keep their order; fewer groups than `n` give fewer minibatches. Dummy rows are left out: they
    belong to no group and carry no loss.

    Raises:
        ConfigError: If `n` is below 1.
    """
    if n < 1:
        raise ConfigError(f"optim.minibatches must be at least 1, got {n}")
    groups: dict[int, list[int]] = {}
    for row, (group, owner) in enumerate(zip(batch.row_group, batch.row_trajectory, strict=True)):
        if owner >= 0:
            groups.setdefault(int(group), []).append(row)
    parts = min(n, len(groups))
    ends = np.cumsum([len(rows) for rows in groups.values()])
    rows = np.array([row for members in groups.values() for row in members], dtype=np.int64)
    out: list[IntArray] = []
    taken = 0  # groups
    for k in range(1, parts + 1):
        # Each of the parts still to come needs a group of its own.
        reachable = ends[taken : len(groups) - (parts - k)]
        start = ends[taken - 1] if taken else 0
        taken += 1 + int(np.abs(reachable - k * len(rows) / parts).argmin())
        out.append(rows[start : ends[taken - 1]])
    return out


def micro_batches(
    batch: Batch, rows: npt.ArrayLike, *, max_tokens: int, keep_trajectories: bool
) -> list[IntArray]:
    """Split rows into forward passes of at most `max_tokens` padded tokens.

    Longest first, so that rows of similar length meet. What is larger than `max_tokens` on its own (one row;
    with `keep_trajectories` all rows of one trajectory) still makes a micro-batch.

    Args:
        batch: Where the rows are.
        rows: (R,) row numbers.
        max_tokens: Rows times the longest of them, at most.
        keep_trajectories: Never part the rows of a trajectory: ratios over whole trajectories need them
            together.
    """
    index = np.asarray(rows, dtype=np.int64)
    owner = batch.row_trajectory[index] if keep_trajectories else index
    items: dict[int, list[int]] = {}
    for row, key in zip(index.tolist(), owner.tolist(), strict=True):
        items.setdefault(key, []).append(row)
    longest = {key: int(batch.lengths[item].max()) for key, item in items.items()}
    out: list[list[int]] = []
    width = 0
    for key in sorted(items, key=lambda key: -longest[key]):
        if not out or (len(out[-1]) + len(items[key])) * width > max_tokens:
            out.append([])
            width = longest[key]
        out[-1] += items[key]
    return [np.array(rows_of, dtype=np.int64) for rows_of in out]
