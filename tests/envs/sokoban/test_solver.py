import csv

import pytest

from arl_gym.envs.sokoban.levels import load_levels, parse
from arl_gym.envs.sokoban.rules import move
from arl_gym.envs.sokoban.solver import solve


def level(board):
    return parse(board, "drawn board")[0]


def solved_by(start, moves):
    boxes, player = start.boxes, start.player
    for name in moves:
        boxes, player = move(start, boxes, player, name)
    return boxes == start.targets


def test_the_plan_walks_around_the_box_and_pushes_it():
    solution = solve(level("######\n#  . #\n#  $ #\n#  @ #\n######"))
    assert (solution.status, solution.moves) == ("solved", ("up",))
    solution = solve(level("######\n#  @ #\n#  $ #\n#  . #\n#    #\n######"))
    assert solution.moves == ("down",)
    solution = solve(level("#####\n# . #\n# $ #\n#@  #\n#####"))
    assert solution.moves == ("right", "up")


def test_the_shortest_plan_counts_walks_and_pushes():
    # From above the box to below it: left, down, down, right, then the push.
    start = level("#####\n# . #\n# @ #\n# $ #\n#   #\n#####")
    solution = solve(start)
    assert len(solution.moves) == 6
    assert solved_by(start, solution.moves)


def test_a_bound_tells_too_long_from_unsolvable():
    start = level("#####\n# . #\n# @ #\n# $ #\n#   #\n#####")
    assert solve(start, max_moves=5).status == "too_long"
    assert solve(start, max_moves=6).status == "solved"
    stuck = level("########\n#@$$.. #\n########")
    assert solve(stuck).status == "unsolvable"
    assert solve(stuck, max_moves=100).status == "unsolvable"


def test_a_node_cap_says_unknown():
    start = level("#####\n# . #\n# @ #\n# $ #\n#   #\n#####")
    assert solve(start, max_nodes=1).status == "unknown"


def test_a_box_in_a_corner_is_unsolvable_from_any_state():
    start = level("######\n# .  #\n# $  #\n# @  #\n######")
    corner = start.player - start.deltas["down"] * 2 + 2
    assert solve(start, frozenset({corner}), start.player).status == "unsolvable"


def test_optima_of_real_levels(real_levels):
    """Every listed optimum up to 15 moves, and the shorter ones of Microban above."""
    with (real_levels / "optimal.csv").open() as file:
        limits = {"xsb/microban_xye.xsb": 22}
        rows = [
            row
            for row in csv.DictReader(file)
            if 0 < int(row["optimal_moves"]) <= limits.get(row["file"], 15)
        ]
    assert len(rows) == 17
    files = {row["file"]: list(load_levels(real_levels / row["file"]).values()) for row in rows}
    for row in rows:
        start = files[row["file"]][int(row["index"])]
        solution = solve(start)
        assert len(solution.moves) == int(row["optimal_moves"]), row
        assert solved_by(start, solution.moves)


def test_an_optimum_of_33_moves(real_levels):
    first = load_levels(real_levels / "xsb" / "microban_xye.xsb")["microban_xye:0"]
    assert len(solve(first).moves) == 33


@pytest.mark.parametrize("bound", [1, 5, 10])
def test_a_bound_below_the_optimum_never_finds_a_plan(real_levels, bound):
    first = load_levels(real_levels / "xsb" / "microban_xye.xsb")["microban_xye:1"]  # 16 moves
    assert solve(first, max_moves=bound).status == "too_long"
