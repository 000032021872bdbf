"""Sokoban as a text environment: rewards, info keys, the expert, and the card of the environment."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from arl_gym.core import Outcome, TextEnv, Unicode
from arl_gym.envs.sokoban.levels import Source, load_levels
from arl_gym.envs.sokoban.rooms import RoomSource, TaskIds, rooms
from arl_gym.envs.sokoban.rules import MOVES, SYMBOLS, Boxes, Level, Plan, draw, move
from arl_gym.envs.sokoban.solver import Solution, solve
from arl_gym.errors import ActionError, ConfigError, DataError, UnknownNameError
from arl_gym.rng import digest

TextFormat = Literal["spaced", "compact", "inner"]
ActionMode = Literal["text", "discrete"]

_SPACED = str.maketrans({symbol: f" {symbol} \t" for symbol in SYMBOLS})
_TASK = "Push every box onto a target."
# Nodes that the solver may expand: about a second of plain Python at worst.
_MAX_NODES = 10_000


class SokobanEnv(TextEnv):
    """Sokoban: push every box onto a target.

    ## Task
    A room of walls and floor with as many targets as boxes. The player walks up, down, left or right and
    pushes the box it walks into, one at a time, if the cell behind is free. Boxes cannot be pulled, so a
    careless push can make the room unsolvable; the game then goes on to the step limit.

    ## Observation
    The board as text, one symbol a cell: `#` wall, `_` floor, `O` target, `√` box on target, `X` box,
    `P` player, `S` player on target. `text_format` says how:

    - `"spaced"` (default): a blank, the symbol, a blank and a tab per cell; rows joined by a newline.
    - `"compact"`: the symbols alone, one row a line.
    - `"inner"`: compact without the outermost ring, which is wall.

    The same room, compact and inner:

        ######
        #_#__#      _#__
        #_P__#      _P__
        #O_X_#      O_X_
        #__###      __##
        ######

    ## Action
    `up`, `down`, `left` or `right`; outer blanks and letter case do not matter. Any other string is a step
    without a move, with `action_valid` False. A blocked move is a valid action. `action_mode="discrete"`
    takes 0, 1, 2, 3 for these names in this order (`expert_action` still returns the name).

    ## Reward
    | event | reward |
    |---|---|
    | every step, garbage and blocked moves too | -0.1 |
    | more boxes on target than before | +1 |
    | fewer boxes on target than before | -1 |
    | all boxes on target | +10 |

    The step that solves a room gives 10.9. One box solved in n moves returns 11 - 0.1 n.

    ## Episode end
    Terminated only when all boxes are on targets; truncated after `max_steps` (15) actions. Levels from files
    often need more than 15 moves: give `max_steps`, or choose them by `optimal`.

    ## Info
    The keys of every environment, `score` being the share of boxes on target, and
    `optimal_moves` (int, fewest moves from the first state, 0 if unknown), `action_effective` (bool, the
    player moved) and `boxes_on_target` (int). `content_hash` is equal for boards that are turned or mirrored;
    `state_key` is the digest of the board as it lies.

    ## Reset options
    `{"task_id": id}`: `train-000000` to `train-999999`, `val-`, `test-` and `test_ood-000000` to `-000511`;
    with `levels`, `<file stem>:<index>` or, for levels given as text, `level:<index>`, counted from 0.

    ## Arguments
    `split`; `levels` (a file or folder of .txt or .xsb, a level as text, or a list of these; None: generated
    rooms); `dim_room` (6, 6) with the border; `num_boxes` 1; `optimal` (lo, hi), the range of the fewest
    moves (None: (3, 10) for generated rooms, all for `levels`; with `levels` a range keeps those that the
    solver proves to lie in it); `max_steps`; `text_format`; `action_mode`; `render_mode`.
    `test_ood` rooms are two cells larger each way and have one box more. With `levels` the split is a label
    only, and dim_room and num_boxes are not used.

    ## Determinism
    A task id with the same arguments is the same room in every process and with every NumPy version. Nothing
    else is random. Splits are disjoint by content, turned and mirrored rooms counting as equal, for all
    settings together.

    ## Data and licence
    Rooms are generated (dataset "generated"). `levels` reads your own files (dataset "levels"), e.g. Boxoban
    or XSB collections; none are shipped.

    ## Baselines
    Default rooms, 15 steps: random moves solve 9 % (1000 train tasks); the expert, an optimal solver, solves
    all in exactly `optimal_moves`.

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
        max_steps: int = 15,
        text_format: TextFormat = "spaced",
        action_mode: ActionMode = "text",
        render_mode: str | None = None,
    ):
        dataset = "generated" if levels is None else "levels"
        super().__init__(dataset=dataset, split=split, max_steps=max_steps, render_mode=render_mode)
        TaskIds(split, 0)  # refuses unknown splits
        for name, value, known in (
            ("text_format", text_format, ("spaced", "compact", "inner")),
            ("action_mode", action_mode, ("text", "discrete")),
        ):
            if value not in known:
                raise UnknownNameError(name, value, known, "SokobanEnv")
        self.text_format, self.action_mode = text_format, action_mode
        self.observation_space = Unicode()
        self.action_space = Unicode() if action_mode == "text" else gym.spaces.Discrete(len(MOVES))
        self._levels: dict[str, Level] | None = None
        if levels is None:
            self._size = _pair("dim_room", dim_room)
            self._n_boxes = _whole("num_boxes", num_boxes)
            self._range = None if optimal is None else _pair("optimal", optimal)
            self._rooms = self._source(split)
        else:
            self._levels = load_levels(levels)
            if optimal is not None:
                self._levels = _in_range(self._levels, *_pair("optimal", optimal))

    # ---- tasks

    def task_ids(self, split: str | None = None) -> Sequence[str]:
        """Return the ids of a split; with `levels`, of all levels.

        Raises:
            UnknownNameError: If the split is unknown.
        """
        split = self.split if split is None else split
        if self._levels is None:
            return TaskIds(split, len(self._source(split)))
        TaskIds(split, 0)
        return tuple(self._levels)

    def _source(self, split: str) -> RoomSource:
        height, width = self._size
        return rooms(height=height, width=width, boxes=self._n_boxes, split=split, optimal=self._range)

    def _begin(self, task_id: str) -> None:
        if self._levels is None:
            self._level = self._rooms[TaskIds(self.split, len(self._rooms)).index(task_id)]
            self._optimal = self._level.optimal
        else:
            self._level = self._levels[task_id]
            solution = _first_solution(self._level)
            if solution.status == "unsolvable":
                raise DataError(f"{self._level.where}: the level has no solution")
            self._optimal = len(solution.moves)
        self._effective = False
        self._plan: Plan | None = None
        self._place(self._level.boxes, self._level.player)

    def _place(self, boxes: Boxes, player: int) -> None:
        self._boxes, self._player = boxes, player
        self._n_on_target = len(boxes & self._level.targets)
        self._board = draw(self._level, boxes, player)

    # ---- one step

    def _check_action(self, action: Any) -> None:
        if self.action_mode == "text":
            super()._check_action(action)
        elif not self.action_space.contains(action):
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
        change = self._n_on_target - n_before
        tenths = -1 + 10 * change + 100 * self._success()
        return Outcome(reward=tenths / 10, terminated=self._success(), valid=True)

    # ---- what is seen

    def _observation(self) -> str:
        if self.text_format == "compact":
            return self._board
        if self.text_format == "inner":
            return "\n".join(row[1:-1] for row in self._board.split("\n")[1:-1])
        return self._board.translate(_SPACED)

    def _ansi(self) -> str:
        return self._board

    def _task(self) -> str:
        return _TASK

    def _content_hash(self) -> str:
        return self._level.content_hash

    def _success(self) -> bool:
        return self._n_on_target == len(self._boxes)

    def _score(self) -> float:
        return self._n_on_target / len(self._boxes)

    def _state_key(self) -> str:
        return digest(self._board)

    def _admissible(self) -> list[str]:
        return list(MOVES)

    def _extra_info(self) -> dict[str, Any]:
        return {
            "optimal_moves": self._optimal,
            "action_effective": self._effective,
            "boxes_on_target": self._n_on_target,
        }

    def get_state(self) -> dict[str, Any]:
        """Return a JSON-able snapshot: the task and the actions so far."""
        state = super().get_state()
        if self.action_mode == "discrete":
            state["actions"] = [int(action) for action in state["actions"]]
        return state

    # ---- the expert

    def expert_action(self) -> str:
        """Return the next move of an optimal solution from the present state.

        Where none is found (the state is a dead end, or too hard for the solver's node limit) it is the first
        of up, down, left, right that moves the player, "up" if none does.
        """
        plan = self._current_plan()
        if plan:
            return plan[0]
        return next((name for name in MOVES if self._moves_player(name)), MOVES[0])

    def expert_thought(self) -> str:
        """Return one sentence that says what the expert's move does."""
        plan = self._current_plan()
        name = self.expert_action()
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
                self._plan = _first_solution(self._level).moves
            else:
                self._plan = solve(self._level, self._boxes, self._player, max_nodes=_MAX_NODES).moves
        return self._plan

    def _moves_player(self, name: str) -> bool:
        return move(self._level, self._boxes, self._player, name)[1] != self._player

    def _pushes(self, name: str) -> bool:
        return self._player + self._level.deltas[name] in self._boxes


@lru_cache(maxsize=1024)
def _first_solution(level: Level) -> Solution:
    """Solve a level from its first state, once a process."""
    return solve(level, max_nodes=_MAX_NODES)


@lru_cache(maxsize=1 << 16)
def _bounded_solution(level: Level, hi: int) -> Solution:
    """Solve a level in at most `hi` moves, once a process: all environments of a vector env ask."""
    return solve(level, max_moves=hi, max_nodes=_MAX_NODES)


def _in_range(levels: Mapping[str, Level], lo: int, hi: int) -> dict[str, Level]:
    if not 1 <= lo <= hi:
        raise ConfigError(f"Sokoban: optimal must be (lo, hi) with 1 <= lo <= hi, got ({lo}, {hi})")
    kept = {}
    for task_id, level in levels.items():
        solution = _bounded_solution(level, hi)
        if solution.status == "unsolvable":
            raise DataError(f"{level.where}: the level has no solution")
        if lo <= len(solution.moves) <= hi:
            kept[task_id] = level
    if not kept:
        raise ConfigError(
            f"Sokoban: none of the {len(levels)} levels is solved in {lo} to {hi} moves (optimal)"
        )
    return kept


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ConfigError(f"Sokoban: {name} must be a whole number, got {value!r}")
    return int(value)


def _pair(name: str, value: Sequence[int]) -> tuple[int, int]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ConfigError(f"Sokoban: {name} must be two whole numbers, got {value!r}")
    return _whole(name, value[0]), _whole(name, value[1])
