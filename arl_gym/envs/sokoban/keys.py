"""64-bit keys of states: the same number for the same board in every process and every backend.

A key is the exclusive or of one word per cell that is not wall, so a move changes it in three cells at most,
and walls added around a board do not change it.

    >>> f"{board_key([[0, 0, 0, 0, 0], [0, 5, 4, 2, 0], [0, 0, 0, 0, 0]]):016x}"
    'bb33d146db64787d'
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from arl_gym.envs.sokoban.rules import SYMBOLS

_MASK = (1 << 64) - 1


@cache
def cell_keys(height: int, width: int) -> npt.NDArray[np.uint64]:
    """Return the word of each (row, column, code), shape (height, width, 7); that of a wall is 0."""
    words = np.zeros((height, width, len(SYMBOLS)), dtype=np.uint64)
    for r in range(height):
        for c in range(width):
            words[r, c, 1:] = [_mix((r << 32) | (c << 8) | code) for code in range(1, len(SYMBOLS))]
    words.flags.writeable = False
    return words


def board_key(codes: npt.ArrayLike) -> int:
    """Return the key of a board of codes, shape (H, W)."""
    board = np.asarray(codes)
    rows, columns = np.indices(board.shape)
    return int(np.bitwise_xor.reduce(cell_keys(*board.shape)[rows, columns, board], axis=None))


def _mix(n: int) -> int:
    """Scramble an integer (the finaliser of SplitMix64)."""
    z = (n + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
