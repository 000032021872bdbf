"""Sokoban for one player: observations, rewards, info keys, the expert, and the card of the environment."""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from arl_gym.core import SPLITS, Outcome, TextEnv, Unicode
from arl_gym.envs.sokoban.deadlock import MoveTable, find_deadlock, n_states
from arl_gym.envs.sokoban.keys import key_words, state_key
from arl_gym.envs.sokoban.levels import Source
from arl_gym.envs.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    MOVES,
    PLAYER,
    PLAYER_ON_TARGET,
    SYMBOLS,
    Boxes,
    Level,
    Plan,
    draw,
    move,
    place_codes,
)
from arl_gym.envs.sokoban.solver import solve
from arl_gym.envs.sokoban.tasks import LevelTasks, RoomTasks, Tasks, first_solution
from arl_gym.envs.sokoban.tiles import TILE_SIZES, draw_image
from arl_gym.errors import ActionError, ConfigError, UnknownNameError

TextFormat = Literal["spaced", "compact", "inner"]
ActionMode = Literal["text", "discrete"]
ObsMode = Literal["text", "grid", "planes", "image", "both"]

DEADLOCKS = ("none", "unknown", "dead_square", "freeze", "exact")
"""What `info["deadlock"]` may say. Batched environments give the position: from 2 on the room is lost."""

_SPACED = {symbol: f" {symbol} \t" for symbol in SYMBOLS}
_TASK = "Push every box onto a target."
_STEPS = 15
"""Steps of an episode, unless a room needs more."""
_STEPS_PER_MOVE = 1.5
"""Steps per move of the shortest solution, where that is more."""
_STEPS_UNSOLVED = 200
"""Steps where the shortest solution is not known."""


class SokobanEnv(TextEnv):
    """Sokoban: push every box onto a target.

    ## Task
    A room of walls and floor with as many targets as boxes. The player walks up, down, left or right and
    pushes the box it walks into, one at a time, if the cell behind is free. Boxes cannot be pulled, so a
    careless push can make the room unsolvable; the game then goes on to the step limit, and
    `info["deadlock"]` says so where it can be known.

    ## Observation
    The board as text (default), an integer grid, one-hot planes, an image, or text and image, by `obs_mode`.
    Every view shows the same seven kinds of cell; the codes are their numbers:

    | code | symbol | cell |
    |---|---|---|
    | 0 | `#` | wall |
    | 1 | `_` | floor |
    | 2 | `O` | target |
    | 3 | `√` | box on target |
    | 4 | `X` | box |
    | 5 | `P` | player |
    | 6 | `S` | player on target |

    - `"text"`: a string, laid out by `text_format`. `"spaced"` (default): a blank, the symbol, a blank and a
      tab per cell, rows joined by a newline. `"compact"`: the symbols alone, one row a line. `"inner"`:
      compact without the outermost ring, which is wall.
    - `"grid"`: the codes, `Box(0, 6, (H, W), uint8)`.
    - `"planes"`: one plane a code, 1 where the cell has it, `Box(0, 1, (7, H, W), uint8)`.
    - `"image"`: `tile_size` pixels a cell, 32, 28 or 16, `Box(0, 255, (H * tile_size, W * tile_size, 3),
      uint8)`. 32 and 28 are drawn so that one cell is one vision token of Qwen3-VL and Qwen2.5-VL.
    - `"both"`: a dict of `text` and `image`.

    Arrays and images have one size per environment: boards of different sizes (`levels`) get walls at the
    right and at the bottom. The same room, compact and inner:

        ######
        #_#__#      _#__
        #_P__#      _P__
        #O_X_#      O_X_
        #__###      __##
        ######

    ## Action
    `up`, `down`, `left` or `right`; outer blanks and letter case do not matter. Any other string is a step
    without a move, with `action_valid` False. A blocked move is a valid action. `action_mode="discrete"`
    takes 0, 1, 2, 3 for these names in this order; it is the default for `"grid"` and `"planes"`.

    ## Reward
    | event | reward |
    |---|---|
    | every step, garbage and blocked moves too | -0.1 |
    | more boxes on target than before | +1 |
    | fewer boxes on target than before | -1 |
    | all boxes on target | +10 |

    The step that solves a room gives 10.9. One box solved in n moves returns 11 - 0.1 n.

    ## Episode end
    Terminated only when all boxes are on targets; truncated after `max_steps` actions (15, more where a room
    needs it). By default that is 15, or 1.5 times the room's fewest moves (rounded up) if that is more, or
    200 if these are not known.

    ## Info
    The keys of every environment, `score` being the share of boxes on target, and

    - `optimal_moves` (int): fewest moves from the first state, 0 if unknown.
    - `moves_left` (int): fewest moves from here, -1 if there is no solution or the room is too large to know.
    - `deadlock` (str): "none", there is a solution; "dead_square", a box is where it can reach no target;
      "freeze", boxes off target hold one another for good; "exact", lost in another way; "unknown", none of
      these was found, but the room is too large to exclude it. Without "unknown" it is exact.
    - `action_effective` (bool): the player moved.
    - `boxes_on_target` (int), `max_steps` (int): the limit of this episode.

    `content_hash` is equal for boards that are turned or mirrored; `state_key` is 16 hex digits for the board
    as it lies.

    ## Reset options
    `{"task_id": id}`: `train-000000` to `train-999999`, `val-`, `test-` and `test_ood-000000` to `-000511`
    (rooms from a pool: as many as it has); with `levels`, `<file stem>:<index>` or, for levels given as text,
    `level:<index>`, counted from 0.

    ## Arguments
    - `split`: "train", "val", "test" or "test_ood": rooms two cells larger each way with one box more.
    - `dim_room` (6, 6) with the border, `num_boxes` 1, `optimal` (lo, hi): the range of the fewest moves.
      None is (3, 10), or all that the pool has for the sizes that come from one: (10, 10) with 4 boxes,
      (12, 12) with 5 and (14, 14) with 6.
    - `levels`: instead of generated rooms a file or folder of .txt, .xsb or .sok, a level as text, or a list
      of these. A range `optimal` keeps those that the solver proves to lie in it. The split is a label only.
    - `num_tasks`: only the first so many tasks of the split. None: all.
    - `max_steps`: the limit of every episode. None: as said above.
    - `obs_mode`, `text_format`, `tile_size`, `action_mode`, `render_mode` ("ansi", "rgb_array", "human").
    - `exact_states` (1,000): rooms with at most so many states are searched backwards once, which makes
      `deadlock` exact and `moves_left` known.
    - `max_nodes` (100,000): states that the solver expands at most, for one solution.

    ## Many at once
    `gym.make_vec("ARL/Sokoban-v0", num_envs=64, obs_mode="grid")` steps all boards together in arrays
    (`arl_gym.envs.sokoban.batch.SokobanVectorEnv`); so do "planes", and "image" with
    `action_mode="discrete"`. Text comes from `TextVectorEnv`.

    ## Determinism
    A task id with the same arguments is the same room in every process, with every NumPy version, with numba
    and without. Nothing else is random. Splits are disjoint by content, turned and mirrored rooms counting as
    equal, for all settings together.

    ## Data and licence
    Rooms are generated, or come from pools that were generated for this package (dataset "generated").
    `levels` reads your own files (dataset "levels"), e.g. Boxoban or XSB collections; none are shipped.

    ## Baselines
    Random moves solve 11 % of the default rooms (1000 train tasks), and none of 256 test rooms of 10x10 with
    4 boxes. The expert, an optimal solver, solves all of both in exactly `optimal_moves`.

    ## Version history
    - v0: first release.
    """

    def __init__(
        self,
        *,
        split: str = "train",
        levels: Source | Sequence[Source] | None = None,
        dim_room: Sequence[int] = (6, 6),
        num_boxes: int = 1,
        optimal: Sequence[int] | None = None,
        num_tasks: int | None = None,
        max_steps: int | None = None,
        obs_mode: ObsMode = "text",
        text_format: TextFormat = "spaced",
        tile_size: int = 32,
        action_mode: ActionMode | None = None,
        exact_states: int = 1_000,
        max_nodes: int = 100_000,
        render_mode: str | None = None,
    ):
        super().__init__(
            dataset="generated" if levels is None else "levels",
            split=split,
            max_steps=_STEPS if max_steps is None else max_steps,
            render_mode=render_mode,
        )
        if action_mode is None:
            action_mode = "discrete" if obs_mode in ("grid", "planes") else "text"
        for name, value, known in (
            ("split", split, SPLITS),
            ("obs_mode", obs_mode, ("text", "grid", "planes", "image", "both")),
            ("text_format", text_format, ("spaced", "compact", "inner")),
            ("tile_size", tile_size, TILE_SIZES),
            ("action_mode", action_mode, ("text", "discrete")),
        ):
            if value not in known:
                raise UnknownNameError(name, value, known, "SokobanEnv")
        self.obs_mode, self.text_format, self.tile_size = obs_mode, text_format, tile_size
        self.action_mode = action_mode
        self._exact_states = _whole("exact_states", exact_states, least=0)
        self._max_nodes = _whole("max_nodes", max_nodes)
        self._fixed_limit = max_steps
        self._num_tasks = None if num_tasks is None else _whole("num_tasks", num_tasks)
        wanted = None if optimal is None else _pair("optimal", optimal)
        self._tasks: Tasks
        if levels is None:
            size, boxes = _pair("dim_room", dim_room), _whole("num_boxes", num_boxes)
            self._tasks = RoomTasks(size, boxes, wanted, max_steps, split)
        else:
            self._tasks = LevelTasks(levels, wanted, max_nodes=self._max_nodes)
        self.canvas = self._tasks.canvas
        self.observation_space = self._space()
        self.action_space = Unicode() if action_mode == "text" else gym.spaces.Discrete(len(MOVES))

    def _space(self) -> gym.Space[Any]:
        height, width = self.canvas
        image = gym.spaces.Box(0, 255, (height * self.tile_size, width * self.tile_size, 3), np.uint8)
        return {
            "text": Unicode(),
            "grid": gym.spaces.Box(0, len(SYMBOLS) - 1, (height, width), np.uint8),
            "planes": gym.spaces.Box(0, 1, (len(SYMBOLS), height, width), np.uint8),
            "image": image,
            "both": gym.spaces.Dict(text=Unicode(), image=image),
        }[self.obs_mode]

    # ---- tasks

    def task_ids(self, split: str | None = None) -> Sequence[str]:
        """Return the ids of a split, at most `num_tasks`; with `levels`, of all levels.

        Raises:
            UnknownNameError: If the split is unknown.
        """
        if split is not None and split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS, "SokobanEnv")
        return self._tasks.ids(split or self.split, self._num_tasks)

    def level(self, task_id: str) -> Level:
        """Return the room of a task, its optimum filled in (0 where the solver gave up)."""
        return self._tasks.level(task_id)

    def step_limit(self, level: Level) -> int:
        """Return the steps after which an episode in this room is truncated."""
        if self._fixed_limit is not None:
            return self._fixed_limit
        if level.optimal == 0:
            return _STEPS_UNSOLVED
        return max(_STEPS, ceil(_STEPS_PER_MOVE * level.optimal))

    def _begin(self, task_id: str) -> None:
        self._level = self.level(task_id)
        self.max_steps = self.step_limit(self._level)
        self._key_words = key_words(self._level)
        self._spaced = _spaced_cells(self._level)
        self._exact = n_states(self._level) <= self._exact_states
        self._effective = False
        self._plan: Plan | None = None
        self._boxes: Boxes = frozenset()
        self._place(self._level.boxes, self._level.player)

    def _place(self, boxes: Boxes, player: int) -> None:
        if boxes is not self._boxes:
            self._n_on_target = len(boxes & self._level.targets)
        self._boxes, self._player = boxes, player
        # What not every view or info needs is made when it is asked for.
        self._drawn: str | None = None
        self._seen_ahead: tuple[str, int] | None = None

    @property
    def _board(self) -> str:
        if self._drawn is None:
            self._drawn = draw(self._level, self._boxes, self._player)
        return self._drawn

    # ---- one step

    def _check_action(self, action: Any) -> None:
        if self.action_mode == "text":
            super()._check_action(action)
        elif not _is_move(action):
            raise ActionError(
                f"SokobanEnv(action_mode='discrete') takes 0 to {len(MOVES) - 1}, got "
                f"{type(action).__name__}: {action!r}"
            )

    def _apply(self, action: Any) -> Outcome:
        name = action.strip().lower() if self.action_mode == "text" else MOVES[int(action)]
        self._effective = False
        if name not in MOVES:
            return Outcome(reward=-0.1, terminated=False, valid=False)
        boxes, player = move(self._level, self._boxes, self._player, name)
        n_before = self._n_on_target
        if player != self._player:
            self._effective = True
            # An optimal plan minus its first move is optimal for the state that move leads to.
            self._plan = self._plan[1:] if self._plan and self._plan[0] == name else None
            self._place(boxes, player)
        solved = self._success()
        tenths = -1 + 10 * (self._n_on_target - n_before) + 100 * solved
        return Outcome(reward=tenths / 10, terminated=solved, valid=True)

    # ---- what is seen

    def _observation(self) -> Any:
        if self.obs_mode == "text":
            return self._text()
        if self.obs_mode == "grid":
            return self._codes()
        if self.obs_mode == "planes":
            return (self._codes() == np.arange(len(SYMBOLS))[:, None, None]).astype(np.uint8)
        if self.obs_mode == "image":
            return self._rgb()
        return {"text": self._text(), "image": self._rgb()}

    def _text(self) -> str:
        if self.text_format == "compact":
            return self._board
        if self.text_format == "inner":
            return "\n".join(row[1:-1] for row in self._board.split("\n")[1:-1])
        cells, targets = self._spaced.copy(), self._level.targets
        for box in self._boxes:
            cells[box] = _SPACED[BOX_ON_TARGET if box in targets else BOX]
        cells[self._player] = _SPACED[PLAYER_ON_TARGET if self._player in targets else PLAYER]
        return "".join(cells)

    def _codes(self) -> npt.NDArray[np.uint8]:
        """Return the codes of the board on the canvas, (H, W); what lies around the board is wall."""
        board = place_codes(self._level, self._boxes, self._player)
        if board.shape == self.canvas:
            return board
        padded = np.zeros(self.canvas, dtype=np.uint8)
        padded[: board.shape[0], : board.shape[1]] = board
        return padded

    def _ansi(self) -> str:
        return self._board

    def _rgb(self) -> npt.NDArray[np.uint8]:
        return draw_image(self._codes(), self.tile_size)

    def _task(self) -> str:
        return _TASK

    def _content_hash(self) -> str:
        return self._level.content_hash

    def _success(self) -> bool:
        return self._n_on_target == len(self._boxes)

    def _score(self) -> float:
        return self._n_on_target / len(self._boxes)

    def _state_key(self) -> str:
        return f"{state_key(self._key_words, self._boxes, self._player):016x}"

    def _admissible(self) -> list[str]:
        return list(MOVES)

    def _extra_info(self) -> dict[str, Any]:
        if self._seen_ahead is None:
            self._seen_ahead = self._outlook()
        deadlock, moves_left = self._seen_ahead
        return {
            "optimal_moves": self._level.optimal,
            "moves_left": moves_left,
            "deadlock": deadlock,
            "action_effective": self._effective,
            "boxes_on_target": self._n_on_target,
            "max_steps": self.max_steps,
        }

    def _outlook(self) -> tuple[str, int]:
        """Return the kind of deadlock and the fewest moves left (-1: none, or not known)."""
        level, boxes, player = self._level, self._boxes, self._player
        if self._exact:
            if level.optimal and (boxes, player) == (level.boxes, level.player):
                return "none", level.optimal  # as the table would say, which a reset alone does not need
            left = _move_table(level).remaining(boxes, player)
            if left is not None:
                return "none", left
        found = find_deadlock(level, boxes)
        if found != "none":
            return found, -1
        return ("exact" if self._exact else "unknown"), -1

    # ---- the expert

    def expert_action(self) -> Any:
        """Return the next move of an optimal solution from the present state, as `step` takes it.

        Where none is found (the state is a dead end, or too hard for the solver's node limit) it is the first
        of up, down, left, right that moves the player, "up" if none does.
        """
        name = self._expert_move()
        return name if self.action_mode == "text" else MOVES.index(name)

    def _expert_move(self) -> str:
        plan = self._current_plan()
        if plan:
            return plan[0]
        return next((name for name in MOVES if self._moves_player(name)), MOVES[0])

    def expert_thought(self) -> str:
        """Return one sentence that says what the expert's move does."""
        plan = self._current_plan()
        name = self._expert_move()
        if not plan:
            return f"I see no way to solve the room from here, so I just go {name}."
        if self._pushes(name):
            ahead = self._player + 2 * self._level.deltas[name]
            onto = " onto a target" if ahead in self._level.targets else ""
            return f"I stand right behind the box, so I push it {name}{onto}."
        boxes, player = self._boxes, self._player
        for later in plan:
            before = boxes
            boxes, player = move(self._level, boxes, player, later)
            if boxes != before:
                return f"I want to push a box {later}, so I walk {name} to get behind it."
        raise AssertionError("a plan ends with a push")

    def _current_plan(self) -> Plan:
        if self._plan is None:
            if (self._boxes, self._player) == (self._level.boxes, self._level.player):
                self._plan = first_solution(self._level, self._max_nodes).moves
            else:
                self._plan = solve(self._level, self._boxes, self._player, max_nodes=self._max_nodes).moves
        return self._plan

    def _moves_player(self, name: str) -> bool:
        return move(self._level, self._boxes, self._player, name)[1] != self._player

    def _pushes(self, name: str) -> bool:
        return self._player + self._level.deltas[name] in self._boxes


@lru_cache(maxsize=1024)
def _spaced_cells(level: Level) -> list[str]:
    """Return the cells of an empty room as the spaced text shows them, for all copies of a task."""
    return [_SPACED.get(symbol, symbol) for symbol in level.text]


@lru_cache(maxsize=256)
def _move_table(level: Level) -> MoveTable:
    """Search a room backwards, once a process: all copies of a task ask."""
    return MoveTable(level)


def _is_move(action: Any) -> bool:
    """Return whether an action is an integer of the discrete space; many times faster than asking it."""
    if isinstance(action, np.ndarray) and action.shape == ():
        action = action[()]
    if type(action) is int:
        return 0 <= action < len(MOVES)
    is_integer = isinstance(action, (int, np.integer)) and not isinstance(action, bool)
    return is_integer and 0 <= int(action) < len(MOVES)


def _whole(name: str, value: object, *, least: int | None = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ConfigError(f"Sokoban: {name} must be a whole number, got {value!r}")
    if least is not None and value < least:
        raise ConfigError(f"Sokoban: {name} must be at least {least}, got {value}")
    return int(value)


def _pair(name: str, value: Sequence[int]) -> tuple[int, int]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ConfigError(f"Sokoban: {name} must be two whole numbers, got {value!r}")
    return _whole(name, value[0], least=None), _whole(name, value[1], least=None)
