r"""Boards as pictures: one tile a cell, drawn for its size, so that nothing is ever resampled.

>>> draw_image(codes("#P\n_O"), 16).shape
(32, 32, 3)
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from arl_gym.assets import asset
from arl_gym.envs.sokoban.rules import SYMBOLS
from arl_gym.errors import UnknownNameError

TILE_SIZES = (16, 28, 32)
"""Pixels of a tile's side. 32 and 28 are one vision token a cell for Qwen3-VL and Qwen2.5-VL."""


@cache
def tiles(size: int) -> npt.NDArray[np.uint8]:
    """Return the tiles in code order, read-only, shape (7, size, size, 3).

    Raises:
        UnknownNameError: If there are none of this size.
        DataError: If the file is missing.
    """
    if size not in TILE_SIZES:
        raise UnknownNameError("tile size", size, TILE_SIZES, "Sokoban")
    from PIL import Image  # here, so that text boards never load it

    with Image.open(asset(f"sokoban/tiles-{size}.png")) as image:
        strip = np.asarray(image).reshape(size, len(SYMBOLS), size, 3)
    out = np.ascontiguousarray(strip.swapaxes(0, 1))
    out.setflags(write=False)
    return out


def draw_image(codes: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint8]:
    """Draw a board of codes, shape (H, W), as a fresh picture of shape (H * size, W * size, 3).

    Raises:
        UnknownNameError: If there are no tiles of this size.
    """
    height, width = codes.shape
    lines = tiles(size).reshape(-1, size * 3)  # line y of tile k is number k * size + y
    numbers = codes[:, None, :] * np.intp(size) + np.arange(size)[None, :, None]
    return lines.take(numbers, axis=0).reshape(height * size, width * size, 3)
