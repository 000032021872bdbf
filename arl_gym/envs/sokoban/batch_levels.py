"""The levels that batched boards have played lately, as arrays that a kernel can begin an episode from."""

from typing import Any

import numpy as np
import numpy.typing as npt

from arl_gym.envs.sokoban.batch_numpy import (
    BOARD,
    BOX,
    DEAD_SQUARE,
    FREEZE,
    PLAYING,
    UNKNOWN,
    Bools,
    Bytes,
    frozen,
)
from arl_gym.envs.sokoban.env import SokobanEnv
from arl_gym.envs.sokoban.keys import board_key
from arl_gym.envs.sokoban.rules import Level, codes, draw
from arl_gym.errors import UnknownNameError

MAX_ROWS = 65_536


class LevelTable:
    """A ring of levels, filled on demand: at most 65,536, or one per board where there are more boards.

    Attributes:
        ids: The task ids.
        arrays: What `batch_numpy.restart` takes after the boards.
    """

    def __init__(self, single: SokobanEnv, num_envs: int, max_episode_steps: int | None):
        self._single, self._max_episode_steps = single, max_episode_steps
        self.ids = single.task_ids()
        n_rows = min(len(self.ids), max(num_envs, MAX_ROWS))
        height, width = single.canvas
        self._starts = np.zeros(n_rows, dtype=BOARD)
        self._codes = np.zeros((n_rows, height * width), dtype=np.uint8)
        self._dead = np.zeros((n_rows, height * width), dtype=np.bool_)
        self._row_of = np.full(len(self.ids), -1, dtype=np.int32)
        self._n_loaded = 0
        self.arrays: tuple[npt.NDArray[Any], ...] = (self._starts, self._codes, self._dead, self._row_of)

    def index(self, task_id: object) -> int:
        """Return the position of a task id.

        Raises:
            UnknownNameError: If there is no such task.
        """
        if not isinstance(task_id, str) or task_id not in self.ids:
            known = [self.ids[0], "…", self.ids[-1]]
            raise UnknownNameError("task_id", task_id, known, f"split {self._single.split!r}")
        return self.ids.index(task_id)

    def load(self, task: int) -> None:
        """Make sure that a task's level is in the arrays; the one that was loaded first may have to go."""
        if self._row_of[task] >= 0:
            return
        level = self._single.level(self.ids[task])
        row = self._n_loaded % len(self._starts)
        if self._n_loaded >= len(self._starts):
            self._row_of[self._starts[row]["task_index"]] = -1
        self._fill(row, task, level)
        self._row_of[task] = row
        self._n_loaded += 1

    def _fill(self, row: int, task: int, level: Level) -> None:
        shape = self._single.canvas
        board = codes(draw(level, level.boxes, level.player))
        self._codes[row] = 0
        self._codes[row].reshape(shape)[: level.height, : level.width] = board
        self._dead[row] = False
        for cell in level.floor - level.pushes_to_target.keys():
            self._dead[row].reshape(shape)[divmod(cell, level.width + 1)] = True

        limit = self._single.step_limit(level)
        player_row, player_column = divmod(level.player, level.width + 1)
        start = self._starts[row]
        start["player"] = player_row * shape[1] + player_column
        start["boxes"] = len(level.boxes)
        start["boxes_on_target"] = len(level.boxes & level.targets)
        start["score"] = start["boxes_on_target"] / start["boxes"]
        start["optimal_moves"] = level.optimal
        start["task_index"] = task
        start["limit"] = min(limit, self._max_episode_steps or limit)
        start["state_key"] = board_key(board)
        start["height"], start["width"] = board.shape
        start["phase"] = PLAYING
        start["deadlock"] = _deadlock(self._codes[row : row + 1], self._dead[row : row + 1], shape[1])


def _deadlock(codes: Bytes, dead: Bools, width: int) -> int:
    if (dead & (codes == BOX)).any():
        return DEAD_SQUARE
    return FREEZE if frozen(codes, dead, width)[0] else UNKNOWN
