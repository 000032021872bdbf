"""64-bit keys of states: the same number for the same board in every process and every backend.

A key is the exclusive or of one word per cell that is not wall, so a move changes it in three cells at most,
and walls added around a board do not change it.

    >>> f"{board_key([[0, 0, 0, 0, 0], [0, 5, 4, 2, 0], [0, 0, 0, 0, 0]]):016x}"
    'bb33d146db64787d'
"""

from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from arl_gym.envs.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    SYMBOLS,
    TARGET,
    Boxes,
    Level,
)

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


KeyWords = tuple[int, dict[int, int], dict[int, int]]
"""The key of an empty room, and what a box or the player on a cell changes in it."""


def state_key(words: KeyWords, boxes: Boxes, player: int) -> int:
    """Return `board_key` of a room in this state, from the few cells that hold something."""
    key, box_words, player_words = words
    for box in boxes:
        key ^= box_words[box]
    return key ^ player_words[player]


@lru_cache(maxsize=1024)
def key_words(level: Level) -> KeyWords:
    """Return what `state_key` takes, once a process: all copies of a task ask."""
    all_words = cell_keys(level.height, level.width)
    empty, box_words, player_words = 0, {}, {}
    for cell, symbol in enumerate(level.text):
        if symbol in (FLOOR, TARGET):
            words = dict(zip(SYMBOLS, all_words[divmod(cell, level.width + 1)].tolist(), strict=True))
            on_target = symbol == TARGET
            empty ^= words[symbol]
            box_words[cell] = words[symbol] ^ words[BOX_ON_TARGET if on_target else BOX]
            player_words[cell] = words[symbol] ^ words[PLAYER_ON_TARGET if on_target else PLAYER]
    return empty, box_words, player_words


def _mix(n: int) -> int:
    """Scramble an integer (the finaliser of SplitMix64)."""
    z = (n + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
