"""How the rows of a micro-batch go through the model: one by one, or with prompts that rows share read once.

The copies of a task begin with one prompt, and in a small environment many turns face the same one. Such
rows make a tree: the prompt, and every row's own tokens as a branch that sees the prompt and itself. Trees
lie side by side in rows of one length; an attention mask keeps them apart, and positions count from the
prompt on. The log-probs are those of the rows alone, up to rounding.

Numpy only.

    plan = layout(part, share=True)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from arl_gym.train.batch import Batch, IndexArray, IntArray

# Below this share of the tokens the mask is worth its cost.
_WORTH = 0.8
_LONGEST = 4096
"""Tokens of a tree of several rows at most: the attention mask grows with the square, to 16 MB a row here."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forest:
    """Where the tokens of M rows of L stand in their trees."""

    row: IndexArray
    """(M, L): the row of the batch that a token was taken from, one of those that share it."""
    positions: IntArray
    """(M, L): where it stands in that row."""
    tree: IndexArray
    """(M, L): which tree of its row a token belongs to, -1 on padding."""
    branch: IndexArray
    """(M, L): which branch of its tree, 0 in the shared prompt."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """What the model reads: M rows of L tokens, in which the S scored tokens of the batch are predicted."""

    ids: IntArray
    """(M, L)."""
    before: IntArray
    """(S,): index into the flattened (M, L) of the position that predicts each scored token, in the order of
    the batch's action mask."""
    forest: Forest | None = None
    """None: the rows are as they were, one sequence each."""


def layout(part: Batch, *, share: bool, seen: IntArray | None = None) -> Layout:
    """Lay the rows of a micro-batch out for the model.

    Args:
        part: The rows.
        share: Whether prompts may be shared; they are where that saves enough tokens.
        seen: (N, T): what tokens stand for besides their id, the features of pictures; prompts are one only
            if that is equal too.
    """
    n_rows, width = part.ids.shape
    rows, columns = np.nonzero(part.action_mask)
    plain = Layout(ids=part.ids, before=rows * width + columns - 1)
    trees = _grow(part, seen) if share and len(rows) else []
    if not trees or len(trees) >= n_rows:
        return plain
    bins = _fill(trees)
    length = max(tree.size for tree in trees)
    return _laid_out(part, bins, length) if len(bins) * length <= _WORTH * n_rows * width else plain


@dataclass(slots=True)
class _Tree:
    prompt: int
    """Length of the shared prompt."""
    rows: list[int] = field(default_factory=list)
    size: int = 0
    """Tokens of the prompt and of all branches."""
    squares: int = 0
    """Sum of the squared lengths of the rows: what attention costs without sharing."""


def _grow(part: Batch, seen: IntArray | None) -> list[_Tree]:
    """Make trees of rows with one prompt, none of which costs more attention than its rows would alone."""
    starts = part.action_mask.argmax(axis=1)
    limit = min(2 * int(part.lengths.max()), _LONGEST)
    open_trees: dict[bytes, _Tree] = {}
    trees: list[_Tree] = []
    for row in np.flatnonzero(part.action_mask.any(axis=1)).tolist():
        start, inputs = int(starts[row]), int(part.lengths[row]) - 1  # the last token predicts nothing
        key = part.ids[row, :start].tobytes() + (b"" if seen is None else seen[row, :start].tobytes())
        tree = open_trees.get(key)
        grown = 0 if tree is None else tree.size + inputs - start
        if tree is None or grown > limit or grown**2 > tree.squares + inputs**2:
            tree = open_trees[key] = _Tree(prompt=start)
            trees.append(tree)
            grown = inputs
        tree.rows.append(row)
        tree.size, tree.squares = grown, tree.squares + inputs**2
    return trees


def _fill(trees: Sequence[_Tree]) -> list[list[_Tree]]:
    """Put trees side by side into rows as long as the longest: the first row with room, largest first."""
    length = max(tree.size for tree in trees)
    bins: list[list[_Tree]] = []
    room: list[int] = []
    for tree in sorted(trees, key=lambda tree: -tree.size):
        place = next((i for i, free in enumerate(room) if free >= tree.size), None)
        if place is None:
            bins.append([])
            room.append(length)
            place = len(bins) - 1
        bins[place].append(tree)
        room[place] -= tree.size
    return bins


def _laid_out(part: Batch, bins: Sequence[Sequence[_Tree]], length: int) -> Layout:
    shape = (len(bins), length)
    ids = np.full(shape, part.pad_id, dtype=np.int64)
    row_of = np.zeros(shape, dtype=np.int32)
    positions = np.zeros(shape, dtype=np.int64)
    tree_of = np.full(shape, -1, dtype=np.int32)
    branch_of = np.zeros(shape, dtype=np.int32)
    n_rows, width = part.ids.shape
    place = np.zeros((n_rows, width), dtype=np.int64)  # of every token that the model reads
    for m, trees in enumerate(bins):
        at = 0
        for number, tree in enumerate(trees):
            tree_of[m, at : at + tree.size] = number
            root = slice(at, at + tree.prompt)
            ids[m, root] = part.ids[tree.rows[0], : tree.prompt]
            row_of[m, root] = tree.rows[0]
            positions[m, root] = np.arange(tree.prompt)
            place[tree.rows, : tree.prompt] = m * length + np.arange(at, at + tree.prompt)
            at += tree.prompt
            for branch, row in enumerate(tree.rows, start=1):
                own = np.arange(tree.prompt, part.lengths[row] - 1)
                end = at + len(own)
                ids[m, at:end] = part.ids[row, own]
                row_of[m, at:end] = row
                positions[m, at:end] = own
                branch_of[m, at:end] = branch
                place[row, own] = m * length + np.arange(at, end)
                at = end
    rows, columns = np.nonzero(part.action_mask)
    forest = Forest(row=row_of, positions=positions, tree=tree_of, branch=branch_of)
    return Layout(ids=ids, before=place[rows, columns - 1], forest=forest)
