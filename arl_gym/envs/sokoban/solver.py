r"""A move-optimal solver: A* over (boxes, player), one edge a push with the walk before it.

Plain Python, meant for generated rooms and small levels; a node cap keeps it from running away on large ones.

    >>> from arl_gym.envs.sokoban.rules import make_level
    >>> level = make_level("#####\n#___#\n#__O#\n#####", boxes={14}, player=9)
    >>> solve(level)
    Solution(status='solved', moves=('left', 'left', 'down', 'right'))
"""

import heapq
from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import Literal

from arl_gym.envs.sokoban.rules import Boxes, Level, Plan

State = tuple[Boxes, int]

Status = Literal["solved", "unsolvable", "too_long", "unknown"]
"""Solved; proven to have no solution; proven to need more than `max_moves`; node cap reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What the search found; `moves` is empty unless solved."""

    status: Status
    moves: Plan = ()


def solve(
    level: Level,
    boxes: Boxes | None = None,
    player: int | None = None,
    *,
    max_moves: int | None = None,
    max_nodes: int = 20_000,
) -> Solution:
    """Find a solution with the fewest moves (walks and pushes count alike).

    Args:
        level: The board.
        boxes: State to start from; default the level's own.
        player: Likewise.
        max_moves: Longer solutions are not looked for.
        max_nodes: States expanded at most.

    References:
        A*: "A formal basis for the heuristic determination of minimum cost paths", IEEE TSSC 4(2), 1968.
    """
    start: State = (level.boxes if boxes is None else boxes, level.player if player is None else player)
    far = level.pushes_to_target
    if any(box not in far for box in start[0]):
        return Solution(status="unsolvable")
    bound = float("inf") if max_moves is None else max_moves
    pushes_left = sum(far[box] for box in start[0])
    if pushes_left > bound:
        return Solution(status="too_long")

    # Entries: (estimate of all moves, pushes still needed at least, tie-breaker, state, moves so far).
    tie = count()
    queue = [(pushes_left, pushes_left, next(tie), start, 0)]
    best = {start: 0}
    came_from: dict[State, tuple[State, str]] = {}
    cut = False
    expanded = 0
    while queue:
        _, pushes_left, _, state, moves = heapq.heappop(queue)
        if pushes_left == 0:
            return Solution(status="solved", moves=_moves(level, state, came_from))
        if moves > best[state]:
            continue
        if expanded == max_nodes:
            return Solution(status="unknown")
        expanded += 1
        boxes = state[0]
        walk = _walk(level, *state)
        for box in boxes:
            for name, delta in level.deltas.items():
                to = box + delta
                if box - delta not in walk or to not in far or to not in level.floor or to in boxes:
                    continue
                pushed: State = ((boxes - {box}) | {to}, box)
                cost = moves + walk[box - delta] + 1
                if cost >= best.get(pushed, bound + 1):
                    cut = cut or pushed not in best
                    continue
                left = pushes_left - far[box] + far[to]
                if cost + left > bound:
                    cut = True
                    continue
                best[pushed] = cost
                came_from[pushed] = (state, name)
                heapq.heappush(queue, (cost + left, left, next(tie), pushed, cost))
    return Solution(status="too_long" if cut else "unsolvable")


def _walk(level: Level, boxes: Boxes, player: int) -> dict[int, int]:
    """Return the walking distance of every cell that the player can reach without a push."""
    floor = level.floor
    steps = tuple(level.deltas.values())
    distance = {player: 0}
    queue = [player]
    for cell in queue:  # grows while it is read
        n = distance[cell] + 1
        for delta in steps:
            to = cell + delta
            if to in floor and to not in boxes and to not in distance:
                distance[to] = n
                queue.append(to)
    return distance


def _moves(level: Level, state: State, came_from: dict[State, tuple[State, str]]) -> Plan:
    """Return the moves of a chain of pushes, walks filled in."""
    parts: list[Plan] = []
    while state in came_from:
        before, name = came_from[state]
        # After a push the player stands where the box was: one cell back is where the push began.
        parts.append((*_path(level, *before, state[1] - level.deltas[name]), name))
        state = before
    return tuple(name for part in reversed(parts) for name in part)


def _path(level: Level, boxes: Boxes, player: int, goal: int) -> Plan:
    """Return the moves of a shortest walk that pushes nothing."""
    came_by: dict[int, str] = {player: ""}
    queue = deque([player])
    while goal not in came_by:
        cell = queue.popleft()
        for name, delta in level.deltas.items():
            to = cell + delta
            if to in level.floor and to not in boxes and to not in came_by:
                came_by[to] = name
                queue.append(to)
    names = []
    while goal != player:
        names.append(came_by[goal])
        goal -= level.deltas[names[-1]]
    return tuple(reversed(names))
