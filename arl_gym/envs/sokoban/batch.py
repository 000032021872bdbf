"""Sokoban for many players at once: all boards step together in arrays, compiled where numba is installed.

Plays exactly the tasks of `SokobanEnv` with the same seeds. Text and text actions are for `TextVectorEnv`.

    >>> vec = SokobanVectorEnv(64, obs_mode="grid")  # doctest: +SKIP
    >>> observations, infos = vec.reset(seed=0)  # doctest: +SKIP
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from arl_gym.envs.sokoban import batch_numpy
from arl_gym.envs.sokoban.batch_levels import LevelTable
from arl_gym.envs.sokoban.batch_numpy import BOARD, BYTES, CHOSEN, DUE, NEW, PLAYING, Records
from arl_gym.envs.sokoban.batch_views import Pictures, Planes, kernels
from arl_gym.envs.sokoban.compiled import use_numba
from arl_gym.envs.sokoban.env import SokobanEnv
from arl_gym.envs.sokoban.keys import cell_keys
from arl_gym.envs.sokoban.rules import MOVES, SYMBOLS
from arl_gym.errors import ActionError, ConfigError, EpisodeOverError, UnknownNameError
from arl_gym.rng import Rng

OBS_MODES = ("grid", "planes", "image")

Observations = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_INFOS = (
    "task_index",
    "success",
    "score",
    "action_effective",
    "boxes_on_target",
    "optimal_moves",
    "deadlock",
    "state_key",
)
_MODES = {
    AutoresetMode.NEXT_STEP: batch_numpy.NEXT_STEP,
    AutoresetMode.SAME_STEP: batch_numpy.SAME_STEP,
    AutoresetMode.DISABLED: batch_numpy.DISABLED,
}


class SokobanVectorEnv(VectorEnv[Observations, npt.ArrayLike, npt.NDArray[Any]]):
    """Sokoban boards side by side: rules, rewards, limits and tasks are those of `SokobanEnv`.

    Observations are, by `obs_mode`, "grid": codes (B, H, W); "planes": one-hot (B, 7, H, W); or "image":
    (B, H * tile_size, W * tile_size, 3); all uint8. Actions are integers 0 to 3 for up, down, left, right.

    Infos are dense arrays of shape (B,), one value per board, without masks:

    | key | type | |
    |---|---|---|
    | `task_index` | int64 | position of the task in `task_ids()` |
    | `success` | bool | all boxes are on targets |
    | `score` | float64 | share of boxes on target |
    | `action_effective` | bool | the player moved |
    | `boxes_on_target` | int64 | |
    | `optimal_moves` | int64 | fewest moves from the first state, 0 if unknown |
    | `deadlock` | int8 | 1 none found, 2 "dead_square", 3 "freeze"; positions in `env.DEADLOCKS` |
    | `state_key` | uint64 | `keys.board_key` of the board |

    What happens after the end of an episode is up to `autoreset_mode`:

    - NEXT_STEP: the next step ignores the board's action, gives reward 0 and begins a new episode.
    - SAME_STEP: observation and infos are those of the new episode already. When any episode has ended,
      `final_obs` (an array) and `final_info` (a dict of arrays) hold the observations and infos of all boards
      before the new episodes; the masks `_final_obs` and `_final_info` say which boards ended.
    - DISABLED: the board must be reset, with `reset_mask`, before the next step.

    Args:
        num_envs: Boards.
        autoreset_mode: A mode, or its value as a string ("NextStep", "SameStep", "Disabled").
        copy: Whether every observation is an array of its own. If not, it is a read-only view of the env's
            buffer, which the next step overwrites; infos and final observations are fresh all the same.
        backend: "numba", "numpy", or "auto": numba where it is installed. The results are equal.
        max_episode_steps: A further limit on the steps of an episode.
        env_kwargs: Keyword arguments of `SokobanEnv`.

    Attributes:
        backend: "numba" or "numpy", what it runs on.

    Raises:
        ConfigError: If the mode of observations, actions or rendering needs `TextVectorEnv`, or a number is
            out of range.
        DependencyMissing: If numba is asked for and not installed.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        backend: str = "auto",
        max_episode_steps: int | None = None,
        **env_kwargs: Any,
    ):
        if num_envs < 1:
            raise ConfigError(f"SokobanVectorEnv needs num_envs >= 1, got {num_envs}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ConfigError(f"max_episode_steps must be None or at least 1, got {max_episode_steps}")
        if autoreset_mode not in [*AutoresetMode, *(mode.value for mode in AutoresetMode)]:
            raise UnknownNameError("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self._single = single = SokobanEnv(**env_kwargs)
        _check_modes(single)
        self.num_envs, self._copy = num_envs, copy
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.render_mode = single.render_mode
        self.metadata = {
            **single.metadata,
            "render_modes": ["ansi", "rgb_array"],
            "autoreset_mode": self.autoreset_mode,
        }
        self.single_observation_space: Space[Any] = single.observation_space
        self.single_action_space: Space[Any] = single.action_space
        self.observation_space = batch_space(single.observation_space, num_envs)
        self.action_space = batch_space(single.action_space, num_envs)

        self.backend = "numba" if use_numba(backend) else "numpy"
        self._kernels = kernels(self.backend)
        self._levels = LevelTable(single, num_envs, max_episode_steps)
        self._set_boards(*single.canvas)

    def _set_boards(self, height: int, width: int) -> None:
        n, cells = self.num_envs, height * width
        self._boards = np.zeros(n, dtype=BOARD)
        self._bytes = self._boards.view(BYTES)
        self._fields = {name: self._boards[name] for name in BOARD.names or ()}
        self._codes = np.zeros((n, cells), dtype=np.uint8)
        self._dead = np.zeros((n, cells), dtype=np.bool_)
        self._streams = np.zeros(n, dtype=np.uint64)
        self._has_stream = np.zeros(n, dtype=np.bool_)
        self._actions = np.zeros(n, dtype=np.int64)
        swaps = batch_numpy.key_swaps(cell_keys(height, width))
        self._step_args = (
            *(self._boards, self._codes, self._dead, self._actions),
            *(width, swaps, _MODES[self.autoreset_mode]),
        )
        self._picture: Planes | Pictures | None = None
        if self._single.obs_mode == "planes":
            self._picture = Planes(n, (height, width), self.backend)
        elif self._single.obs_mode == "image":
            self._picture = Pictures(n, (height, width), self._single.tile_size, self.backend)
        self._seen = self._codes.reshape(n, height, width) if self._picture is None else self._picture.array
        self._seen_only = self._seen.view()
        self._seen_only.flags.writeable = False

    def task_ids(self) -> Sequence[str]:
        """Return the ids of the tasks that are played; `infos["task_index"]` counts in it."""
        return self._levels.ids

    # ---- Gymnasium's interface

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Start episodes on all boards, or on those of a mask.

        A board with a seed plays the tasks of a `SokobanEnv` with that seed, now and in all later resets.

        Args:
            seed: An int s seeds board i with s + i; a list gives one seed each, None where the board's stream
                goes on.
            options: `{"reset_mask": bool array}` resets only those boards; `{"task_id": [...]}` gives one
                task each (None: a drawn one), a single id goes to all.

        Returns:
            Observations and infos of all boards.

        Raises:
            ConfigError: If a list or mask does not have one entry per board, or the first reset is partial.
            UnknownNameError: If an option or a task id is unknown.
            DataError: If a level has no solution; its board is left without an episode.
        """
        options = options or {}
        for key in options:
            if key not in ("reset_mask", "task_id"):
                raise UnknownNameError("reset option", key, ["reset_mask", "task_id"], "SokobanVectorEnv")
        mask = self._mask(options.get("reset_mask"))
        tasks = self._tasks(options.get("task_id"))
        seeds = self._seeds(seed)
        for i in np.flatnonzero(mask).tolist():
            self._set_stream(i, seeds[i])
            self._fields["phase"][i] = DUE if tasks[i] is None else CHOSEN
            if tasks[i] is not None:
                self._fields["task_index"][i] = tasks[i]
        self._restart()
        self._draw()
        return self._observations(), _infos(self._snapshot())

    def step(self, actions: npt.ArrayLike) -> tuple[Observations, Floats, Flags, Flags, dict[str, Any]]:
        """Step all boards.

        Args:
            actions: Integers of shape (B,), 0 to 3.

        Returns:
            Observations, rewards (float64), terminations, truncations (bool) and infos.

        Raises:
            ActionError: If the actions are no integers from 0 to 3; no board has moved then.
            ConfigError: If there is not one action per board.
            EpisodeOverError: If a board has no episode, or with DISABLED one that has ended; likewise.
            DataError: If the level of a new episode has no solution; all other boards have moved then.
        """
        self._accept(actions)
        due = self._kernels.move(*self._step_args)
        if due == batch_numpy.REFUSED:
            raise self._refusal(actions)
        if due and self.autoreset_mode is AutoresetMode.NEXT_STEP:
            self._restart()
        self._draw()
        boards = self._snapshot()
        rewards, terminations, truncations = boards["reward"], boards["terminated"], boards["truncated"]
        infos = _infos(boards)
        if due and self.autoreset_mode is AutoresetMode.SAME_STEP:
            ended = terminations | truncations
            final = {"final_obs": self._seen.copy(), "final_info": infos}
            self._restart()
            self._draw()
            infos = {**_infos(self._snapshot()), **final, "_final_obs": ended, "_final_info": ended.copy()}
        return self._observations(), rewards, terminations, truncations, infos

    def render(self) -> tuple[Any, ...] | None:
        """Return one frame a board: images, or texts without the walls around small boards."""
        if self.render_mode is None:
            return None
        if self._never_begun().size:
            raise EpisodeOverError("SokobanVectorEnv.render needs episodes: call reset() first")
        height, width = self._single.canvas
        if self.render_mode == "rgb_array":
            pictures = Pictures(self.num_envs, (height, width), self._single.tile_size, self.backend)
            pictures.draw(self._codes)
            return tuple(pictures.array)
        boards = self._codes.reshape(-1, height, width)
        return tuple(
            "\n".join("".join(SYMBOLS[code] for code in row) for row in board[:rows, :columns])
            for board, rows, columns in zip(
                boards, self._fields["height"], self._fields["width"], strict=True
            )
        )

    # ---- what a step shows

    def _draw(self) -> None:
        if self._picture is not None:
            self._picture.draw(self._codes)

    def _snapshot(self) -> Records:
        """Return a copy of the boards' records: rewards, flags and infos are its fields."""
        return self._bytes.copy().view(BOARD)

    def _observations(self) -> Observations:
        return self._seen.copy() if self._copy else self._seen_only

    # ---- new episodes

    def _restart(self) -> None:
        """Begin what is due; load levels that are missing."""
        arrays = (self._boards, self._codes, self._dead, self._streams, *self._levels.arrays)
        if not self._kernels.restart(*arrays):
            return
        waiting = self._fields["phase"] == CHOSEN
        try:
            for task in self._fields["task_index"][waiting].tolist():
                self._levels.load(task)
        except BaseException:
            self._fields["phase"][waiting] = NEW  # of these boards nothing is left to play
            raise
        self._kernels.restart(*arrays)

    def _set_stream(self, i: int, seed: int | None) -> None:
        if seed is None:
            if self._has_stream[i]:
                return
            seed = int(self.np_random.integers(0, 1 << 62))
        self._streams[i] = Rng("task", seed).state
        self._has_stream[i] = True

    # ---- checks

    def _mask(self, mask: Any) -> Flags:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        given = np.asarray(mask)
        if given.dtype != np.bool_ or given.shape != (self.num_envs,) or not given.any():
            raise ConfigError(
                f"reset_mask must be a bool array of shape ({self.num_envs},) with a True, got {mask!r}"
            )
        never = self._never_begun()
        if left_out := never[~given[never]].tolist():
            raise ConfigError(
                f"boards without an episode must be reset, but reset_mask leaves out {left_out}"
            )
        return given

    def _never_begun(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self._fields["phase"] == NEW)

    def _tasks(self, ids: Any) -> list[int | None]:
        several = isinstance(ids, (list, tuple, np.ndarray))
        each = self._one_each("task_id", ids) if several else [ids] * self.num_envs
        return [None if task_id is None else self._levels.index(task_id) for task_id in each]

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
            return [int(seed) + i for i in range(self.num_envs)]
        each = self._one_each("seed", seed)
        for i, one in enumerate(each):
            if one is not None and (not isinstance(one, (int, np.integer)) or one < 0):
                raise ConfigError(f"seed must be None or a whole number >= 0, got {one!r} for env {i}")
        return [None if one is None else int(one) for one in each]

    def _one_each(self, what: str, values: Any) -> list[Any]:
        if isinstance(values, str) or len(values) != self.num_envs:
            raise ConfigError(f"{what} needs one entry per env, {self.num_envs}, got {values!r}")
        return list(values)

    def _accept(self, actions: npt.ArrayLike) -> None:
        """Copy the actions to the array that the kernels read; their range is checked there."""
        try:
            given = np.asarray(actions)
        except ValueError as err:  # rows of different lengths
            raise ConfigError(f"actions needs one entry per env, {self.num_envs}, got {actions!r}") from err
        if given.dtype.kind not in "iu":
            raise ActionError(
                f"SokobanVectorEnv takes integers from 0 to {len(MOVES) - 1} as actions, got {given.dtype}: "
                f"{actions!r}"
            )
        if given.shape != (self.num_envs,):
            raise ConfigError(
                f"actions needs one entry per env, shape ({self.num_envs},), got shape {given.shape}"
            )
        self._actions[:] = given

    def _refusal(self, actions: npt.ArrayLike) -> ActionError | EpisodeOverError:
        bad = np.flatnonzero((self._actions < 0) | (self._actions >= len(MOVES)))
        if bad.size:
            return ActionError(
                f"SokobanVectorEnv takes integers from 0 to {len(MOVES) - 1} as actions, got "
                f"{np.asarray(actions)[bad[0]]} for env {bad[0]}"
            )
        over = np.flatnonzero(self._fields["phase"] != PLAYING).tolist()
        return EpisodeOverError(f"envs {over} have no running episode: reset them before the next step")


def _infos(boards: Records) -> dict[str, Any]:
    return {name: boards[name] for name in _INFOS}


def _check_modes(single: SokobanEnv) -> None:
    if single.obs_mode not in OBS_MODES or single.action_space != Discrete(len(MOVES)):
        raise ConfigError(
            f"SokobanVectorEnv needs obs_mode in {OBS_MODES} and action_mode='discrete', got "
            f"obs_mode={single.obs_mode!r} and action_mode={single.action_mode!r}: for text take "
            "gymnasium.make_vec('ARL/Sokoban-v0', ...), which makes a TextVectorEnv"
        )
    if single.render_mode == "human":
        raise ConfigError("SokobanVectorEnv renders 'ansi' or 'rgb_array', got render_mode='human'")
