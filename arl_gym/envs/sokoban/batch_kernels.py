"""The compiled twins of `batch_numpy`: same arguments, same results, one board after the other.

The docstrings are there. Imports numba: see `compiled`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from arl_gym.envs.sokoban.batch_numpy import (
    _GOLDEN,
    _MIX_1,
    _MIX_2,
    BOX,
    BOX_ON_TARGET,
    CHOSEN,
    DEAD_SQUARE,
    DUE,
    FLOOR,
    FREEZE,
    NEXT_STEP,
    OVER,
    PLAYER,
    PLAYER_ON_TARGET,
    PLAYING,
    REFUSED,
    SAME_STEP,
    TARGET,
    UNKNOWN,
    WALL,
    Bools,
    Bytes,
    Ints,
    Records,
    Words,
    _27,
    _30,
    _31,
)
from arl_gym.envs.sokoban.compiled import jit


@jit
def move(
    boards: Records, codes: Bytes, dead: Bools, actions: Ints, width: int, swaps: Words, autoreset: int
) -> int:
    """Take one step on every board in play."""
    for i in range(len(boards)):
        phase = boards[i]["phase"]
        ready = phase == PLAYING or (phase == OVER and autoreset == NEXT_STEP)
        if not ready or actions[i] < 0 or actions[i] > 3:
            return REFUSED
    due = 0
    for i in range(len(boards)):
        board = boards[i]
        if board["phase"] == OVER:
            board["phase"] = DUE
            due += 1
            continue
        # Up, down, left, right without a branch.
        delta = (2 * (actions[i] & 1) - 1) * (width if actions[i] < 2 else 1)
        _walk(board, codes, dead, i, delta, width, swaps)
        if board["terminated"] or board["truncated"]:
            board["phase"] = OVER
            if autoreset == SAME_STEP:
                board["phase"] = DUE
                due += 1
    return due


@jit
def _walk(board: Any, codes: Bytes, dead: Bools, i: int, delta: int, width: int, swaps: Words) -> None:
    at = board["player"]
    ahead = at + delta
    front = codes[i, ahead]
    cell = ahead + delta
    gain = 0
    pushed = False
    effective = front in (FLOOR, TARGET)
    if front in (BOX, BOX_ON_TARGET):
        back = codes[i, cell]
        if back in (FLOOR, TARGET):
            pushed = effective = True
            gain = int(back == TARGET) - int(front == BOX_ON_TARGET)
            board["boxes_on_target"] += gain
            board["state_key"] ^= swaps[1, 7 * cell + back]
            codes[i, cell] = BOX if back == FLOOR else BOX_ON_TARGET
    if effective:
        here = codes[i, at]
        board["player"] = ahead
        board["state_key"] ^= swaps[0, 7 * at + here] ^ swaps[0, 7 * ahead + front]
        codes[i, at] = FLOOR if here == PLAYER else TARGET
        codes[i, ahead] = PLAYER if front in (FLOOR, BOX) else PLAYER_ON_TARGET
    success = board["boxes_on_target"] == board["boxes"]
    board["steps"] += 1
    board["action_effective"] = effective
    board["success"] = success
    board["terminated"] = success
    board["truncated"] = not success and board["steps"] >= board["limit"]
    board["score"] = board["boxes_on_target"] / board["boxes"]
    board["reward"] = (10 * gain + 100 * int(success) - 1) / 10
    if pushed:
        _find_deadlock(board, codes, dead, i, cell, width)


@jit
def _find_deadlock(board: Any, codes: Bytes, dead: Bools, i: int, cell: int, width: int) -> None:
    """Look at the box that was just pushed to `cell`."""
    if dead[i, cell]:
        board["deadlock"] = DEAD_SQUARE
    elif board["deadlock"] == UNKNOWN and not board["success"]:
        has_neighbour = False
        for step in (-1, 1, -width, width):
            has_neighbour = has_neighbour or codes[i, cell + step] in (BOX, BOX_ON_TARGET)
        if has_neighbour and _is_frozen(codes, dead, i, width):
            board["deadlock"] = FREEZE


@jit
def _is_frozen(codes: Bytes, dead: Bools, i: int, width: int) -> bool:
    board = codes[i]
    solid = (board == WALL) | (board == BOX) | (board == BOX_ON_TARGET)
    changed = True
    while changed:
        changed = False
        for cell in range(width, len(board) - width):
            if solid[cell] and board[cell] != WALL:
                for step in (1, width):
                    held = solid[cell - step] or solid[cell + step]
                    if not held and not (dead[i, cell - step] and dead[i, cell + step]):
                        solid[cell] = False
                        changed = True
    return bool((solid & (board == BOX)).any())


@jit
def restart(
    boards: Records,
    codes: Bytes,
    dead: Bools,
    streams: Words,
    starts: Records,
    start_codes: Bytes,
    start_dead: Bools,
    row_of: npt.NDArray[np.int32],
) -> int:
    """Draw a task for every board that is DUE, then begin every CHOSEN one whose level is loaded."""
    missing = 0
    for i in range(len(boards)):
        board = boards[i]
        if board["phase"] == DUE:
            board["task_index"] = _below(streams, i, np.uint64(len(row_of)))
            board["phase"] = CHOSEN
        if board["phase"] == CHOSEN:
            row = row_of[board["task_index"]]
            if row < 0:
                missing += 1
                continue
            boards[i] = starts[row]
            for cell in range(codes.shape[1]):
                codes[i, cell] = start_codes[row, cell]
                dead[i, cell] = start_dead[row, cell]
    return missing


@jit
def _below(streams: Words, i: int, n: np.uint64) -> int:
    least = (np.uint64(0) - n) % n  # 2**64 mod n
    drawn = _next64(streams, i)
    while drawn < least:
        drawn = _next64(streams, i)
    return int(drawn % n)


@jit
def _next64(streams: Words, i: int) -> np.uint64:
    streams[i] += _GOLDEN
    z = streams[i]
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return np.uint64(z ^ (z >> _31))


@jit
def draw_planes(codes: Bytes, drawn: Bytes, planes: Bytes) -> None:
    """Bring one-hot planes to `codes`."""
    for i in range(codes.shape[0]):
        for cell in range(codes.shape[1]):
            new = codes[i, cell]
            if new != drawn[i, cell]:
                planes[i, drawn[i, cell], cell] = 0
                planes[i, new, cell] = 1
                drawn[i, cell] = new


@jit
def draw_tiles(codes: Bytes, drawn: Bytes, tiles: npt.NDArray[Any], images: npt.NDArray[Any]) -> None:
    """Bring pictures to `codes`."""
    width, size, line = images.shape[3], images.shape[2], images.shape[4]
    for i in range(codes.shape[0]):
        for cell in range(codes.shape[1]):
            new = codes[i, cell]
            if new != drawn[i, cell]:
                row, column = cell // width, cell % width
                # Word by word: assigning slices is ten times slower here.
                for y in range(size):
                    for x in range(line):
                        images[i, row, y, column, x] = tiles[new, y, x]
                drawn[i, cell] = new
