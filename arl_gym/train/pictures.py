"""The pictures of a micro-batch, as the model takes them: every distinct one goes through it once.

A picture's placeholders in the rows say which of its features their embeddings are; so rows that show one
picture, as the copies of a task do, share its features, and its gradient is the sum of theirs.
"""

from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from arl_gym.train.batch import Batch, IntArray
from arl_gym.train.vision import Vision, check_pictures

_BLANK = Image.new("RGB", (32, 32))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """What N rows of T tokens show."""

    pixels: Tensor
    """(P, D) float32: the patches of K pictures."""
    grid: Tensor
    """(K, 3): how many patches each picture has in time, height and width."""
    features: IntArray
    """(N, T): which of the pictures' features the embedding of a placeholder is, -1 on other tokens."""
    positions: IntArray
    """(3, N, T): the rotary positions."""


def view(part: Batch, vision: Vision) -> View:
    """Return what the rows of a micro-batch show.

    Rows without any picture get a blank one that no token shows: every rank is to use all of the model in
    every pass.

    Raises:
        DataError: If a row has more or fewer placeholders than its pictures take.
    """
    places = sorted({place for shown in part.row_pictures for place in shown})
    number = {place: k for k, place in enumerate(places)}
    pictures = [part.pictures[place] for place in places] or [_BLANK]
    ends = np.cumsum([vision.n_tokens(picture) for picture in pictures])
    spans = np.split(np.arange(ends[-1]), ends[:-1])
    features = np.full(part.ids.shape, -1, dtype=np.int64)
    for n, shown in enumerate(part.row_pictures):
        ids = part.ids[n, : part.lengths[n]]
        where = f"trajectory {part.row_trajectory[n]} of group {part.row_group[n]}"
        check_pictures(vision, ids, [part.pictures[place] for place in shown], where)
        if shown:
            features[n, np.flatnonzero(ids == vision.image_id)] = np.concatenate(
                [spans[number[place]] for place in shown]
            )
    made = vision.pixels(pictures)
    grid = made["image_grid_thw"]
    order = [number[place] for shown in part.row_pictures for place in shown]
    mask = np.arange(part.ids.shape[1]) < part.lengths[:, None]
    positions = vision.positions(
        torch.from_numpy(part.ids), torch.from_numpy(mask.astype(np.int64)), grid[order]
    )
    return View(pixels=made["pixel_values"], grid=grid, features=features, positions=positions.numpy())
