import csv
import random
import subprocess
import sys
from itertools import islice

import pytest

from arl_gym.envs.sokoban.deadlock import MoveTable, find_deadlock
from arl_gym.envs.sokoban.generator import RoomSpec, room
from arl_gym.envs.sokoban.levels import load_levels, parse
from arl_gym.envs.sokoban.rules import MOVES, move
from arl_gym.envs.sokoban.solver import Objective, solve
from arl_gym.errors import ConfigError, DependencyMissing, UnknownNameError
from tests.envs.sokoban.batches import BACKENDS, needs_numba

BOXOBAN = ("boxoban/unfiltered_valid_000_first200.txt", "boxoban/medium_valid_000_first200.txt")
MICROBAN = "xsb/microban_xye.xsb"

CAPS: tuple[tuple[Objective, int], ...] = (("moves", 3), ("moves", 300), ("pushes", 30), ("pushes", 300))


def level(board):
    return parse(board, "drawn board")[0]


def generated(size, boxes, index):
    return room(RoomSpec(height=size, width=size, boxes=boxes, lo=1, hi=25), "train", index)


def played(start, n_moves, seed):
    """The state after random moves."""
    draw = random.Random(seed)
    state = start.boxes, start.player
    for _ in range(n_moves):
        state = move(start, *state, draw.choice(MOVES))
    return state


def pushes_that_solve(start, state, moves):
    """Play a plan; return how many of its moves push a box."""
    boxes, player = state
    n = 0
    for name in moves:
        after, player = move(start, boxes, player, name)
        n += after != boxes
        boxes = after
    assert boxes <= start.targets
    return n


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_plan_walks_around_the_box_and_pushes_it(backend):
    solution = solve(level("######\n#  . #\n#  $ #\n#  @ #\n######"), backend=backend)
    assert (solution.status, solution.moves, solution.pushes) == ("solved", ("up",), 1)
    solution = solve(level("######\n#  @ #\n#  $ #\n#  . #\n#    #\n######"), backend=backend)
    assert solution.moves == ("down",)
    solution = solve(level("#####\n# . #\n# $ #\n#@  #\n#####"), backend=backend)
    assert solution.moves == ("right", "up")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_shortest_plan_counts_walks_and_pushes(backend):
    # From above the box to below it: left, down, down, right, then the push.
    start = level("#####\n# . #\n# @ #\n# $ #\n#   #\n#####")
    solution = solve(start, backend=backend)
    assert len(solution.moves) == 6
    assert pushes_that_solve(start, (start.boxes, start.player), solution.moves) == solution.pushes == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_fewest_pushes_may_take_more_moves(backend):
    # One push a box from below and from the left takes a walk of six around them.
    start = level("#####\n#+  #\n#$$.#\n#   #\n#   #\n#####")
    moves = solve(start, backend=backend)
    assert (len(moves.moves), moves.pushes) == (7, 4)
    pushes = solve(start, objective="pushes", backend=backend)
    assert pushes.moves == ("right", "right", "down", "down", "left", "left", "up", "right")
    assert pushes.pushes == pushes_that_solve(start, (start.boxes, start.player), pushes.moves) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_bound_tells_too_long_from_unsolvable(backend):
    start = level("#####\n# . #\n# @ #\n# $ #\n#   #\n#####")
    assert solve(start, max_moves=5, backend=backend).status == "too_long"
    assert solve(start, max_moves=6, backend=backend).status == "solved"
    stuck = level("########\n#@$$.. #\n########")
    assert solve(stuck, backend=backend).status == "unsolvable"
    assert solve(stuck, max_moves=100, backend=backend).status == "unsolvable"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_cap_says_unknown(backend):
    start = level("#####\n# . #\n# @ #\n# $ #\n#   #\n#####")
    assert solve(start, max_nodes=1, backend=backend).status == "unknown"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_solved_state_needs_nothing(backend):
    start = level("#####\n# . #\n# $ #\n# @ #\n#####")
    solution = solve(start, start.targets, start.player, max_nodes=0, backend=backend)
    assert (solution.status, solution.moves, solution.pushes) == ("solved", (), 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dead_squares_and_frozen_boxes_are_unsolvable_without_a_search(backend):
    start = level("#######\n#   ..#\n# $$  #\n#  @  #\n#######")
    row = start.width + 1
    for boxes, kind in (({row + 1, 2 * row + 3}, "dead_square"), ({row + 2, row + 3}, "freeze")):
        assert find_deadlock(start, frozenset(boxes)) == kind
        assert (
            solve(start, frozenset(boxes), start.player, max_nodes=0, backend=backend).status == "unsolvable"
        )


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_boxes_for_one_target_of_a_wall_are_unsolvable(backend):
    # Both boxes of the top row can reach its only target, but not both at once.
    start = level("########\n#  $ $.#\n#      #\n#.@    #\n########")
    assert find_deadlock(start, start.boxes) == "none"
    assert solve(start, max_nodes=0, backend=backend).status == "unsolvable"


@pytest.mark.parametrize("backend", BACKENDS)
def test_boxes_walled_in_on_targets_stay(backend):
    start = level("#######\n#@$ . #\n#######\n#*#*###\n#######")
    assert solve(start, backend=backend).moves == ("right", "right")


@pytest.mark.parametrize("backend", BACKENDS)
def test_more_than_64_cells_and_20_boxes(backend):
    width = 42
    board = "\n".join(
        [
            "#" * width,
            "#@" + " " * (width - 3) + "#",
            "# " + "$ " * 20 + "#",
            "# " + ". " * 20 + "#",
            "#" * width,
        ]
    )
    start = level(board)
    assert (len(start.boxes), len(start.floor)) == (20, 122)
    solution = solve(start, backend=backend, objective="pushes")
    assert pushes_that_solve(start, (start.boxes, start.player), solution.moves) == solution.pushes == 20


def test_the_other_settings_are_checked():
    start = level("#####\n#@$.#\n#####")
    with pytest.raises(ConfigError, match="max_moves=3 needs objective='moves'"):
        solve(start, objective="pushes", max_moves=3)
    with pytest.raises(UnknownNameError, match="unknown objective 'move'"):
        solve(start, objective="move")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="unknown backend 'cuda'"):
        solve(start, backend="cuda")


def test_without_numba_its_backend_is_refused_and_auto_does_without(monkeypatch):
    monkeypatch.setattr("arl_gym.envs.sokoban.compiled.numba_installed", lambda: False)
    start = level("##########\n#@$.     #\n#        #\n#  $.    #\n#  $.    #\n#        #\n##########")
    assert solve(start).status == "solved"
    with pytest.raises(DependencyMissing, match="fast"):
        solve(start, backend="numba")


def test_small_rooms_are_solved_without_numba():
    program = """
import sys
from arl_gym.envs.sokoban.generator import RoomSpec, room
from arl_gym.envs.sokoban.solver import solve
for size, boxes in ((6, 1), (6, 3), (8, 2)):
    assert solve(room(RoomSpec(height=size, width=size, boxes=boxes, lo=3, hi=10), "train", 0)).moves
print("numba" in sys.modules)
"""
    out = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert out.stdout == "False\n"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("size", "boxes"), [(6, 1), (6, 2), (6, 3), (7, 2)])
def test_the_solver_agrees_with_the_exact_table(size, boxes, backend):
    """From first states and after random play, solvable or not."""
    statuses = set()
    for index in range(20):
        start = generated(size, boxes, index)
        table = MoveTable(start)
        for n_moves in (0, 10, 40):
            state = played(start, n_moves, index)
            left = table.remaining(*state)
            solution = solve(start, *state, backend=backend)
            statuses.add(solution.status)
            pushes = solve(start, *state, objective="pushes", backend=backend)
            assert pushes.status == solution.status
            if left is None:
                assert solution.status == "unsolvable"
                continue
            assert (solution.status, len(solution.moves)) == ("solved", left)
            assert pushes_that_solve(start, state, solution.moves) == solution.pushes
            assert pushes_that_solve(start, state, pushes.moves) == pushes.pushes <= solution.pushes
            assert solve(start, *state, max_moves=left, backend=backend) == solution
            if left:
                assert solve(start, *state, max_moves=left - 1, backend=backend).status == "too_long"
    assert statuses == {"solved", "unsolvable"}


@needs_numba
@pytest.mark.parametrize("objective", ["moves", "pushes"])
@pytest.mark.parametrize(("size", "boxes"), [(6, 1), (6, 2), (7, 3), (9, 2), (8, 4)])
def test_both_codings_find_the_same_plans_in_generated_rooms(size, boxes, objective):
    for index in range(12):
        start = generated(size, boxes, index)
        state = played(start, 7 * (index % 3), index)
        for cap in (1, 10, 100, 2_000):
            plain, compiled = (
                solve(start, *state, objective=objective, max_nodes=cap, backend=backend)
                for backend in ("numpy", "numba")
            )
            assert plain == compiled
        plain, compiled = (solve(start, *state, max_moves=12, backend=b) for b in ("numpy", "numba"))
        assert plain == compiled


@needs_numba
@pytest.mark.parametrize("file", [*BOXOBAN, MICROBAN])
def test_both_codings_find_the_same_plans_in_real_levels(real_levels, file):
    statuses = set()
    for start in islice(load_levels(real_levels / file).values(), 3, None, 11):
        for objective, cap in CAPS:
            plain, compiled = (
                solve(start, objective=objective, max_nodes=cap, backend=backend)
                for backend in ("numpy", "numba")
            )
            assert plain == compiled
            statuses.add(plain.status)
    assert statuses == {"solved", "unknown"}


@needs_numba
@pytest.mark.parametrize("index", [0, 2, 7])
def test_both_codings_expand_as_many_states(real_levels, index):
    start = load_levels(real_levels / BOXOBAN[1])[f"medium_valid_000_first200:{index}"]
    low, high = 0, 100_000  # the compiled search gives up at one and solves at the other
    while high - low > 1:
        middle = (low + high) // 2
        if solve(start, max_nodes=middle, backend="numba").status == "solved":
            high = middle
        else:
            low = middle
    assert solve(start, max_nodes=low, backend="numpy").status == "unknown"
    assert solve(start, max_nodes=high, backend="numpy").status == "solved"


def rows_of(real_levels, file):
    """Yield (level, optimal moves, optimal pushes)."""
    levels = list(load_levels(real_levels / file).values())
    with (real_levels / "optimal.csv").open() as lines:
        for row in csv.DictReader(lines):
            if row["file"] == file:
                yield levels[int(row["index"])], int(row["optimal_moves"]), int(row["optimal_pushes"])


def check_optima(start, moves, pushes, backend):
    fewest = solve(start, max_nodes=10**6, backend=backend)
    assert len(fewest.moves) == moves, start.where
    assert pushes_that_solve(start, (start.boxes, start.player), fewest.moves) == fewest.pushes
    fewest = solve(start, objective="pushes", max_nodes=10**6, backend=backend)
    assert fewest.pushes == pushes, start.where
    assert pushes_that_solve(start, (start.boxes, start.player), fewest.moves) == pushes


@needs_numba
@pytest.mark.parametrize("file", BOXOBAN)
def test_optima_of_boxoban(real_levels, file):
    for start, moves, pushes in rows_of(real_levels, file):
        check_optima(start, moves, pushes, "numba")


@needs_numba
def test_optima_of_microban_up_to_150_moves(real_levels):
    rows = [row for row in rows_of(real_levels, MICROBAN) if 0 < row[1] <= 150]
    assert len(rows) == 109
    for start, moves, pushes in rows:
        check_optima(start, moves, pushes, "numba")


def test_optima_of_short_levels_in_plain_python(real_levels):
    for file, longest in ((BOXOBAN[0], 16), (BOXOBAN[1], 22), (MICROBAN, 33)):
        rows = [row for row in rows_of(real_levels, file) if 0 < row[1] <= longest]
        assert len(rows) >= 4
        for start, moves, pushes in rows:
            check_optima(start, moves, pushes, "numpy")


def test_a_long_walk_through_217_cells(real_levels):
    """Two pushes and 427 steps: the table, which searches the other way round, says the same."""
    start = load_levels(real_levels / MICROBAN)["microban_xye:153"]
    assert len(start.floor) == 217
    solution = solve(start, backend="numpy")
    assert (len(solution.moves), solution.pushes) == (429, 2)
    assert MoveTable(start).remaining(start.boxes, start.player) == 429


@pytest.mark.parametrize("bound", [1, 5, 15])
def test_a_bound_below_the_optimum_never_finds_a_plan(real_levels, bound):
    first = load_levels(real_levels / MICROBAN)["microban_xye:1"]  # 16 moves
    assert solve(first, max_moves=bound).status == "too_long"
