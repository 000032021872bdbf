"""What the trainer knew about every recorded token: advantage, log-probabilities, entropy.

Numpy only. The numbers of a batch go back to the turns whose tokens they are about.

    write_trajectories(path, trajectories, token_records(trajectories, batch, new_logprobs))
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from arl_gym.agents.types import Trajectory
from arl_gym.errors import DataError
from arl_gym.train.batch import Batch, FloatArray

_DECIMALS = 5


def token_records(
    trajectories: Sequence[Trajectory],
    batch: Batch,
    new_logprobs: FloatArray | None = None,
    *,
    decode: Callable[[int], str] | None = None,
) -> list[list[dict[str, Any]]]:
    """Return per trajectory and turn what to record beside the turn, as JSON.

    Each turn has `advantage`, and one list over its kept completion tokens for each of `old_logprobs`,
    `ref_logprobs`, `entropies` and `new_logprobs`: those that the batch has. A number that is not finite is
    None. A turn without a row in the batch has empty lists.

    Args:
        trajectories: Those the batch was packed from, in that order.
        batch: After scoring and advantages.
        new_logprobs: (N, T), the log-probabilities after the update.
        decode: From a token id to its text; then `tokens` holds the texts.

    Raises:
        DataError: If the trajectories are not those of the batch, or `new_logprobs` has another shape.
    """
    counts = [len(t.turns) for t in trajectories]
    if not np.array_equal(np.repeat(np.arange(len(counts)), counts), batch.turn_trajectory):
        raise DataError(f"trajectories of {counts} turns are not those of the batch of {batch.n_turns} turns")
    if new_logprobs is not None and new_logprobs.shape != batch.ids.shape:
        raise DataError(f"new_logprobs: expected shape {batch.ids.shape}, got {new_logprobs.shape}")
    grids = {
        "old_logprobs": batch.old_logprobs,
        "ref_logprobs": batch.ref_logprobs,
        "entropies": batch.entropies,
        "new_logprobs": new_logprobs,
    }
    records: list[dict[str, Any]] = [{} for _ in range(batch.n_turns)]
    if batch.advantages is not None:
        for record, advantage in zip(records, _rounded(batch.advantages), strict=True):
            record["advantage"] = advantage
    rows, columns = np.nonzero(batch.action_mask)
    turns = batch.segment[rows, columns]
    # A turn lies in one row, so a stable sort keeps its tokens in their order.
    order = np.argsort(turns, kind="stable")
    rows, columns = rows[order], columns[order]
    ends = np.cumsum(np.bincount(turns, minlength=batch.n_turns))[:-1]
    for name, grid in grids.items():
        if grid is not None:
            for record, values in zip(records, np.split(grid[rows, columns], ends), strict=True):
                record[name] = _rounded(values)
    if decode is not None:
        for record, ids in zip(records, np.split(batch.ids[rows, columns], ends), strict=True):
            record["tokens"] = [decode(int(i)) for i in ids]
    starts = np.cumsum([0, *counts])
    return [records[start : start + n] for start, n in zip(starts, counts, strict=False)]


def _rounded(values: FloatArray) -> list[float | None]:
    return [
        round(value, _DECIMALS) if np.isfinite(value) else None
        for value in values.astype(np.float64).tolist()
    ]
