import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arl_gym.envs.sokoban.deadlock import MoveTable, find_deadlock, n_states
from arl_gym.envs.sokoban.generator import RoomSpec, room
from arl_gym.envs.sokoban.levels import parse
from arl_gym.envs.sokoban.rules import MOVES, make_level, move

TOP_TARGETS = """
#######
#   ..#
# $$  #
#  @  #
#######
"""
WALLED_IN = """
#######
#@$ . #
#######
#*#####
#######
"""


def level(board):
    return parse(board, "drawn board")[0]


def at(start, *places):
    """Return cells by row and column."""
    return frozenset(row * (start.width + 1) + column for row, column in places)


def generated(boxes, index, size=6):
    return room(RoomSpec(height=size, width=size, boxes=boxes, lo=1, hi=20), "train", index)


def states(start):
    """Every state: boxes anywhere on the floor, the player on any cell without a box."""
    for boxes in map(frozenset, combinations(start.floor, len(start.boxes))):
        for player in start.floor - boxes:
            yield boxes, player


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ([(2, 2), (2, 3)], "none"),
        ([(1, 4), (1, 5)], "none"),  # frozen, but on the targets
        ([(1, 2), (2, 3)], "none"),
        ([(1, 1), (2, 3)], "dead_square"),
        ([(3, 2), (2, 3)], "dead_square"),  # the wall below leads to no target
        ([(1, 2), (1, 3)], "freeze"),
        ([(1, 3), (1, 4)], "freeze"),  # one of the two on its target
        ([(1, 5), (1, 3)], "none"),
        ([(1, 5), (2, 5)], "freeze"),
        ([(1, 5), (3, 5)], "dead_square"),
    ],
)
def test_what_shows_at_a_glance(places, found):
    start = level(TOP_TARGETS)
    assert find_deadlock(start, at(start, *places)) == found


def test_a_block_of_four_boxes_is_frozen():
    start = level("########\n#.    .#\n# $$   #\n#      #\n# $$ @ #\n#.    .#\n########")
    assert find_deadlock(start, start.boxes) == "none"
    assert find_deadlock(start, at(start, (2, 2), (2, 3), (3, 2), (3, 3))) == "freeze"
    assert find_deadlock(start, at(start, (2, 2), (2, 3), (3, 2), (4, 3))) == "none"


def test_boxes_that_are_walled_in_on_targets_are_no_deadlock():
    start = level(WALLED_IN)
    assert find_deadlock(start, start.boxes) == "none"
    assert find_deadlock(start, start.boxes - at(start, (1, 2)) | at(start, (1, 5))) == "dead_square"


@pytest.mark.parametrize(("boxes", "size"), [(1, 6), (2, 6), (3, 6), (2, 7)])
def test_no_state_called_a_deadlock_has_a_solution(boxes, size):
    found = set()
    for index in range(3):
        start = generated(boxes, index, size)
        table = MoveTable(start)
        for state in map(frozenset, combinations(start.floor, boxes)):
            kind = find_deadlock(start, state)
            found.add(kind)
            if kind != "none":
                assert all(table.remaining(state, player) is None for player in start.floor - state)
    assert found >= {"none", "dead_square"} | ({"freeze"} if boxes > 2 else set())


def test_moves_left_by_hand():
    start = level("#####\n# . #\n# @ #\n# $ #\n#   #\n#####")
    table = MoveTable(start)
    assert table.remaining(start.boxes, start.player) == 6  # left, down, down, right, up, up
    assert table.remaining(at(start, (1, 2)), start.player) == 0
    (below,) = start.boxes
    assert table.remaining(frozenset({start.player}), below) == 1
    assert table.remaining(at(start, (4, 2)), start.player) is None


@pytest.mark.parametrize(("boxes", "index", "size"), [(1, 0, 6), (1, 1, 6), (2, 0, 6), (2, 3, 7), (3, 1, 6)])
def test_every_state_is_one_move_further_than_its_best_successor(boxes, index, size):
    """With 0 for the solved states this leaves a table no choice."""
    start = generated(boxes, index, size)
    table = MoveTable(start)
    never = 10**9
    for state, player in states(start):
        here = table.remaining(state, player)
        successors = [table.remaining(*move(start, state, player, name)) for name in MOVES]
        if state == start.targets:
            assert here == 0
        else:
            best = min(never if moves is None else moves for moves in successors)
            assert (never if here is None else here) == min(best + 1, never)


@settings(max_examples=50, deadline=None)
@given(index=st.integers(0, 500), boxes=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_the_table_says_the_optimum_of_generated_rooms_and_falls_by_one_a_move_at_most(index, boxes, seed):
    start = generated(boxes, index)
    table = MoveTable(start)
    state = start.boxes, start.player
    assert table.remaining(*state) == start.optimal
    draw = random.Random(seed)
    for _ in range(20):
        before, state = table.remaining(*state), move(start, *state, draw.choice(MOVES))
        after = table.remaining(*state)
        assert after is None or (before is not None and after >= before - 1)


def test_a_table_takes_walled_in_boxes_as_walls():
    start = level(WALLED_IN)
    table = MoveTable(start)
    assert table.remaining(start.boxes, start.player) == 2
    assert n_states(start) == 25
    assert table.remaining(start.boxes & start.floor, start.player) is None  # a box of the level is missing


@pytest.mark.parametrize(("boxes", "n"), [(1, 256), (2, 1_920), (3, 8_960)])
def test_states_of_an_open_room(boxes, n):
    text = "\n".join(["######", "#____#", "#____#", "#____#", "#_OOO#", "######"])
    assert n_states(make_level(text, boxes=range(8, 8 + boxes), player=15)) == n
