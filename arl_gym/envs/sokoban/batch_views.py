"""What agents see of many boards, kept up to date cell by cell: one-hot planes and pictures."""

from types import ModuleType

import numpy as np

from arl_gym.envs.sokoban import batch_numpy
from arl_gym.envs.sokoban.batch_numpy import Bytes
from arl_gym.envs.sokoban.compiled import use_numba
from arl_gym.envs.sokoban.rules import SYMBOLS
from arl_gym.envs.sokoban.tiles import tiles


def kernels(backend: str) -> ModuleType:
    """Return the module of hot loops for a backend: `batch_kernels` or `batch_numpy`."""
    if not use_numba(backend):
        return batch_numpy
    from arl_gym.envs.sokoban import batch_kernels

    return batch_kernels


class Planes:
    """One-hot planes of boards in one buffer; only cells that changed are written.

    Attributes:
        array: (B, 7, H, W); boards of walls at first.
    """

    def __init__(self, n_boards: int, canvas: tuple[int, int], backend: str = "auto"):
        height, width = canvas
        self.array = np.zeros((n_boards, len(SYMBOLS), height, width), dtype=np.uint8)
        self.array[:, batch_numpy.WALL] = 1
        self._drawn = np.zeros((n_boards, height * width), dtype=np.uint8)
        self._kernel = kernels(backend).draw_planes
        self._planes = self.array.reshape(n_boards, len(SYMBOLS), -1)

    def draw(self, codes: Bytes) -> None:
        """Show boards, shape (B, H * W)."""
        self._kernel(codes, self._drawn, self._planes)


class Pictures:
    """Images of boards in one buffer; only tiles of cells that changed are drawn.

    Attributes:
        array: (B, H * tile_size, W * tile_size, 3).
    """

    def __init__(self, n_boards: int, canvas: tuple[int, int], tile_size: int, backend: str = "auto"):
        height, width = canvas
        self.array = np.zeros((n_boards, height * tile_size, width * tile_size, 3), dtype=np.uint8)
        self._drawn = np.empty((n_boards, height * width), dtype=np.uint8)
        self._kernel = kernels(backend).draw_tiles
        # A line of a tile is copied in the longest words that divide it.
        word = next(f"u{n}" for n in (8, 4, 2, 1) if tile_size * 3 % n == 0)
        self._tiles = tiles(tile_size).reshape(len(SYMBOLS), tile_size, -1).view(word)
        self._words = self.array.reshape(n_boards, height, tile_size, width, -1).view(word)
        self.forget()

    def draw(self, codes: Bytes) -> None:
        """Show boards, shape (B, H * W)."""
        self._kernel(codes, self._drawn, self._tiles, self._words)

    def forget(self) -> None:
        """Let the next `draw` draw every tile."""
        self._drawn.fill(len(SYMBOLS))
