"""The hot loops of many boards at once, in NumPy: moves, new episodes, one-hot planes and pictures.

Boards lie in arrays: one record a board (`BOARD`), codes and dead squares in arrays of shape (B, H * W), so
that a cell is `row * width + column`. Trusts its arguments, which `batch` checks. `batch_kernels` holds the
compiled twins.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from arl_gym.envs.sokoban.rules import SYMBOLS

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Records = npt.NDArray[np.void]

WALL, FLOOR, TARGET, BOX_ON_TARGET, BOX, PLAYER, PLAYER_ON_TARGET = range(len(SYMBOLS))

UNKNOWN, DEAD_SQUARE, FREEZE = 1, 2, 3
"""What `deadlock` says (positions in `env.DEADLOCKS`): none found; a box where it can reach no target; boxes
that hold one another."""

NEW, PLAYING, OVER, DUE, CHOSEN = range(5)
"""Phases of a board: never begun; running; ended; to begin with a task that is drawn, or with its own."""

NEXT_STEP, SAME_STEP, DISABLED = range(3)
"""When an episode that has ended makes room for the next one."""

REFUSED = -1
"""What `move` returns when it took no step: an action is out of range, or a board is not in play."""

BOARD = np.dtype(
    [
        ("player", "i8"),
        ("boxes", "i8"),
        ("boxes_on_target", "i8"),
        ("optimal_moves", "i8"),
        ("task_index", "i8"),
        ("steps", "i8"),
        ("limit", "i8"),
        ("state_key", "u8"),
        ("reward", "f8"),
        ("score", "f8"),
        ("height", "i4"),
        ("width", "i4"),
        ("deadlock", "i1"),
        ("phase", "i1"),
        ("terminated", "?"),
        ("truncated", "?"),
        ("success", "?"),
        ("action_effective", "?"),
    ],
    align=True,
)
"""An episode as it stands: cell of the player, size without the canvas, numbers, and the last step."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)

BYTES = np.dtype(("V", BOARD.itemsize))
"""A record as plain bytes: NumPy copies records field by field, and bytes at once."""

# What becomes of each code when the player comes or leaves, and when a box is pushed there.
_WITH_PLAYER = (WALL, PLAYER, PLAYER_ON_TARGET, PLAYER_ON_TARGET, PLAYER, FLOOR, TARGET)
_WITH_BOX = (WALL, BOX, BOX_ON_TARGET, BOX_ON_TARGET, BOX, PLAYER, PLAYER_ON_TARGET)
# Tables by the codes ahead of the player and behind that, at 7 * ahead + behind.
_SEVENFOLD = 7 * np.arange(7, dtype=np.uint8)
_PUSHED = np.zeros((7, 7), dtype=np.bool_)
_PUSHED[np.ix_((BOX_ON_TARGET, BOX), (FLOOR, TARGET))] = True
_EFFECTIVE = _PUSHED.copy()
_EFFECTIVE[[FLOOR, TARGET]] = True
_GAIN = np.zeros((7, 7), dtype=np.int64)
_GAIN[BOX, TARGET], _GAIN[BOX_ON_TARGET, FLOOR] = 1, -1
_ENTERED = np.repeat(np.arange(7, dtype=np.uint8)[:, None], 7, axis=1)
"""The code of the cell ahead after the move."""
_ENTERED[_EFFECTIVE] = np.where(np.isin(_ENTERED[_EFFECTIVE], (FLOOR, BOX)), PLAYER, PLAYER_ON_TARGET)

_LEAVES = (PLAYER - FLOOR) * _EFFECTIVE.astype(np.uint8)
"""What the code of the player's cell falls by, with or without a target."""
_REWARD = (10 * _GAIN - 1) / 10
_REWARD_SOLVED = (10 + 100 - 1) / 10

_HOLDS = np.array([2, 0, 0, 9, 9, 0, 0], dtype=np.uint8)
"""How a neighbour holds a box along an axis: a sum of 2 is enough, dead squares add 1, and 9 is a box."""
_BOXED = np.array([WALL, BOX, BOX_ON_TARGET], dtype=np.uint8)
"""Floor and target with a box on it."""


def key_swaps(words: Words) -> Words:
    """Return `swaps` for `move`, of the words of the cells (H, W, 7)."""
    return (words ^ np.stack([words[..., _WITH_PLAYER], words[..., _WITH_BOX]])).reshape(2, -1)


def move(
    boards: Records, codes: Bytes, dead: Bools, actions: Ints, width: int, swaps: Words, autoreset: int
) -> int:
    """Take one step on every board in play; change nothing if any action or board does not allow it.

    Args:
        boards: (B,) of `BOARD`.
        codes: (B, H * W).
        dead: (B, H * W); floor from which a box reaches no target.
        actions: (B,), 0 to 3 for up, down, left, right.
        width: Cells of a row.
        swaps: (2, H * W * 7); at 7 * cell + code what a state key changes by when the player (0) comes to or
            leaves a cell with this code, or a box (1) is pushed there.
        autoreset: With NEXT_STEP boards that are over take no step, they become due; with SAME_STEP those
            become due whose episode ends now.

    Returns:
        How many boards are due, or REFUSED.
    """
    phase = boards["phase"]
    over = phase == OVER
    n_over = int(np.count_nonzero(over))
    n_ready = np.count_nonzero(phase == PLAYING) + (n_over if autoreset == NEXT_STEP else 0)
    if n_ready < len(boards) or np.count_nonzero(actions & ~3):
        return REFUSED
    # Boards that are over go along: their next episode overwrites all of this.
    _walk(boards, codes, dead, np.array([-width, width, -1, 1]).take(actions), width, swaps)
    ended = boards["terminated"] | boards["truncated"]
    phase[ended] = DUE if autoreset == SAME_STEP else OVER
    if autoreset == SAME_STEP:
        return int(np.count_nonzero(ended))
    if n_over:
        phase[over] = DUE
    return n_over


def _walk(boards: Records, codes: Bytes, dead: Bools, delta: Ints, width: int, swaps: Words) -> None:
    flat, player = codes.reshape(-1), boards["player"]
    at = player + _first_cells(*codes.shape)
    ahead = at + delta
    behind = ahead + delta
    here, front = flat.take(at), flat.take(ahead)
    back = flat.take(behind, mode="wrap")  # any code will do behind a wall at the edge
    pair = _SEVENFOLD.take(front) + back
    effective, pushed, gain = _EFFECTIVE.take(pair), _PUSHED.take(pair), _GAIN.take(pair)
    left, entered = here - _LEAVES.take(pair), _ENTERED.take(pair)
    flat[at], flat[ahead] = left, entered

    key, first = boards["state_key"], player * 7
    change = swaps[0].take(first + here) ^ swaps[0].take(first + delta * 7 + front)
    key ^= change * effective
    player += delta * effective
    pushers = pushed.nonzero()[0]
    if pushers.size:
        cells, old = behind.take(pushers), back.take(pushers)
        flat[cells] = _BOXED.take(old)
        key[pushers] ^= swaps[1].take((player + delta).take(pushers) * 7 + old)

    on_target, steps = boards["boxes_on_target"], boards["steps"]
    on_target += gain
    steps += 1
    success = on_target == boards["boxes"]
    boards["action_effective"] = effective
    boards["success"] = boards["terminated"] = success
    boards["truncated"] = (steps >= boards["limit"]) > success
    boards["score"] = on_target / boards["boxes"]
    boards["reward"] = _REWARD.take(pair)
    boards["reward"][success] = _REWARD_SOLVED
    if pushers.size:
        _find_deadlocks(boards, codes, dead, pushers, cells, width)


@cache
def _first_cells(n_boards: int, n_cells: int) -> Ints:
    return np.arange(0, n_boards * n_cells, n_cells)


def _find_deadlocks(
    boards: Records, codes: Bytes, dead: Bools, pushers: Ints, cells: Ints, width: int
) -> None:
    """Look at the boxes that `pushers` have just pushed, at `cells` of the flat arrays."""
    flat, flat_dead, deadlock = codes.reshape(-1), dead.reshape(-1), boards["deadlock"]
    deadlock[pushers[flat_dead.take(cells)]] = DEAD_SQUARE
    # A box with no other beside it can be frozen on a target only, or on a dead square.
    suspect = ((deadlock == UNKNOWN) & (boards["boxes"] > 1))[pushers]
    pushers, cells = pushers[suspect], cells[suspect]
    if pushers.size:
        # Most boxes can move along an axis even if all others count as fixed: no need for the whole board.
        around = cells + np.array([[-1], [-width], [1], [width]])
        holds = _HOLDS.take(flat.take(around)) + flat_dead.take(around)
        across, along = holds[:2] + holds[2:]
        pushers = pushers[(across >= 2) & (along >= 2) & (across + along >= _HOLDS[BOX])]
    if pushers.size:
        deadlock[pushers[frozen(codes[pushers], dead[pushers], width)]] = FREEZE


def frozen(codes: Bytes, dead: Bools, width: int) -> Bools:
    """Return per board, shapes (B, H * W), whether boxes hold one another for good, one of them off target.

    The group is the largest set of boxes that are each blocked along both axes: by a wall or a box of the set
    on one side, or because a push either way would end on a dead square.
    """
    board = codes.reshape(len(codes), -1, width)
    walls = 2 * (board == WALL).view(np.uint8) + dead.reshape(board.shape)
    fixed = (board == BOX) | (board == BOX_ON_TARGET)
    inner = fixed[:, 1:-1, 1:-1]
    n_before = -1
    while (n_fixed := int(np.count_nonzero(fixed))) != n_before:
        n_before = n_fixed
        holds = walls + 2 * fixed.view(np.uint8)
        inner &= holds[:, 1:-1, :-2] + holds[:, 1:-1, 2:] >= 2
        inner &= holds[:, :-2, 1:-1] + holds[:, 2:, 1:-1] >= 2
    return np.asarray((fixed & (board == BOX)).any(axis=(1, 2)))


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
    """Draw a task for every board that is DUE, then begin every CHOSEN one whose level is loaded.

    Args:
        boards: (B,) of `BOARD`.
        codes: (B, H * W).
        dead: (B, H * W).
        streams: (B,); states of the random streams that draw the tasks.
        starts: (R,) of `BOARD`; loaded levels as they begin.
        start_codes: (R, H * W).
        start_dead: (R, H * W).
        row_of: Row of each task in the last three, -1 where it is not loaded.

    Returns:
        How many boards stay CHOSEN because their level is missing.
    """
    phase, task = boards["phase"], boards["task_index"]
    due = (phase == DUE).nonzero()[0]
    if due.size:
        task[due] = _below(streams, due, len(row_of))
        phase[due] = CHOSEN
    chosen = (phase == CHOSEN).nonzero()[0]
    rows = row_of[task[chosen]]
    loaded = rows >= 0
    begins, rows = chosen[loaded], rows[loaded]
    boards.view(BYTES)[begins] = starts.view(BYTES)[rows]
    codes[begins] = start_codes.take(rows, axis=0)
    dead[begins] = start_dead.take(rows, axis=0)
    return len(chosen) - len(begins)


def _below(streams: Words, which: npt.NDArray[np.intp], n: int) -> Ints:
    """Return `arl_gym.rng.Rng.below(n)` of the streams `which`, and advance them."""
    least = np.uint64((1 << 64) % n)
    drawn = _next64(streams, which)
    while (again := (drawn < least).nonzero()[0]).size:
        drawn[again] = _next64(streams, which[again])
    return (drawn % np.uint64(n)).astype(np.int64)


def _next64(streams: Words, which: npt.NDArray[np.intp]) -> Words:
    """Return the next word of the SplitMix64 streams `which`, and advance them."""
    streams[which] = z = streams[which] + _GOLDEN
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


def draw_planes(codes: Bytes, drawn: Bytes, planes: Bytes) -> None:
    """Bring one-hot planes, (B, 7, H * W), from the boards `drawn` to `codes`, and `drawn` with them."""
    board, cell = np.nonzero(codes != drawn)
    new = codes[board, cell]
    planes[board, drawn[board, cell], cell] = 0
    planes[board, new, cell] = 1
    drawn[board, cell] = new


def draw_tiles(codes: Bytes, drawn: Bytes, tiles: npt.NDArray[Any], images: npt.NDArray[Any]) -> None:
    """Bring pictures from the boards `drawn` to `codes`, and `drawn` with them.

    Args:
        codes: (B, H * W).
        drawn: (B, H * W); other numbers than codes where nothing is drawn yet.
        tiles: (7, size, k); lines of k words.
        images: (B, H, size, W, k).
    """
    board, cell = np.nonzero(codes != drawn)
    new = codes[board, cell]
    row, column = np.divmod(cell, images.shape[3])
    images[board, row, :, column] = tiles[new]
    drawn[board, cell] = new
