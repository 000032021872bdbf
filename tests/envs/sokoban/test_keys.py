import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.envs.sokoban.keys import board_key, cell_keys, key_words, state_key
from arl_gym.envs.sokoban.levels import parse
from arl_gym.envs.sokoban.rules import MOVES, codes, draw, move

ROOM = "#####\n#PXO#\n#####"


def test_walls_around_a_board_below_and_to_the_right_do_not_change_its_key():
    assert board_key(codes(ROOM)) == board_key(np.pad(codes(ROOM), ((0, 3), (0, 2))))


def test_every_change_of_a_cell_changes_the_key():
    boards = {"#####\n#P_O#\n#####", "#####\n#PXO#\n#####", "#####\n#_PO#\n#####", "#####\n#P√O#\n#####"}
    assert len({board_key(codes(board)) for board in boards}) == len(boards)


def test_the_words_of_a_canvas_are_all_different_and_those_of_walls_are_zero():
    words = cell_keys(16, 16)
    assert not words[..., 0].any()
    assert len(np.unique(words[..., 1:])) == 16 * 16 * 6


def test_a_key_is_the_same_in_another_process():
    program = "from arl_gym.envs.sokoban.keys import board_key; print(board_key([[0, 5, 0]]))"
    out = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(out.stdout) == board_key([[0, 5, 0]])


@given(st.lists(st.sampled_from(MOVES), max_size=30))
def test_the_key_of_a_state_is_that_of_its_board(actions):
    (level,) = parse("########\n#+ $ *##\n#  $ .*#\n#    ###\n########", "drawn board")
    boxes, player = level.boxes, level.player
    for name in actions:
        boxes, player = move(level, boxes, player, name)
    assert state_key(key_words(level), boxes, player) == board_key(codes(draw(level, boxes, player)))
