import pytest
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.envs.sokoban.levels import parse
from arl_gym.envs.sokoban.rules import MOVES, canonical_digest, codes, draw, move, place_codes


def play(board, *names):
    """Return the drawn boards after each move, starting from an XSB board."""
    (level,) = parse(board, "drawn board")
    boxes, player = level.boxes, level.player
    for name in names:
        boxes, player = move(level, boxes, player, name)
    return draw(level, boxes, player).split("\n")


def test_every_symbol_of_the_board_is_drawn():
    assert play("#######\n#+ *$.#\n# $   #\n#     #\n#######") == [
        "#######",
        "#S_√XO#",
        "#_X___#",
        "#_____#",
        "#######",
    ]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("up", ["#######", "#__P__#", "#_____#", "#_____#", "#__XO_#", "#######"]),
        ("down", ["#######", "#_____#", "#_____#", "#__P__#", "#__XO_#", "#######"]),
        ("left", ["#######", "#_____#", "#_P___#", "#_____#", "#__XO_#", "#######"]),
        ("right", ["#######", "#_____#", "#___P_#", "#_____#", "#__XO_#", "#######"]),
    ],
)
def test_each_action_walks_one_cell_its_own_way(name, rows):
    assert play("#######\n#     #\n#  @  #\n#     #\n#  $. #\n#######", name) == rows


def test_walking_into_a_wall_changes_nothing():
    assert play("#####\n#@$.#\n#####", "up") == ["#####", "#PXO#", "#####"]


def test_a_box_is_pushed_onto_a_target():
    assert play("#####\n#@$.#\n#####", "right") == ["#####", "#_P√#", "#####"]


def test_pushing_a_box_into_a_wall_leaves_it_in_place():
    assert play("######\n#@$. #\n######", *["right"] * 3) == ["######", "#__SX#", "######"]


def test_two_boxes_in_a_row_cannot_be_pushed():
    assert play("#######\n#@$$..#\n#######", "right") == ["#######", "#PXXOO#", "#######"]


def test_a_box_is_pushed_off_a_target_and_the_player_stands_on_it():
    assert play("#########\n#@*   $.#\n#########", "right")[1] == "#_SX__XO#"


def test_boxes_are_never_pulled():
    assert play("######\n# @$.#\n######", "left")[1] == "#P_XO#"


TURNED = [
    "#####\n#P__#\n#X#_#\n#_O_#\n#####",
    "#####\n#_XP#\n#O#_#\n#___#\n#####",  # a quarter turn
    "#####\n#_O_#\n#_#X#\n#__P#\n#####",  # half a turn
    "#####\n#__P#\n#_#X#\n#_O_#\n#####",  # mirrored
]


def test_turned_and_mirrored_boards_share_their_digest():
    assert len({canonical_digest(board) for board in TURNED}) == 1


def test_oblong_boards_share_their_digest_too():
    assert canonical_digest("#####\n#PXO#\n#__##\n#####") == canonical_digest("####\n#P_#\n#X_#\n#O##\n####")


def test_thicker_walls_do_not_change_the_digest():
    assert canonical_digest("#####\n#PXO#\n#####") == canonical_digest("######\n######\n##PXO#\n######")


@pytest.mark.parametrize("row", ["#PO_X#", "#P_XO#", "#_PXO#", "#P#XO#", "#XO_P#"])
def test_boards_that_differ_in_one_thing_have_different_digests(row):
    assert canonical_digest(f"######\n{row}\n#____#\n######") != canonical_digest(
        "######\n#PX_O#\n#____#\n######"
    )


(BUSY,) = parse("########\n#  .   #\n# $ @* #\n#  $ $ #\n#.    .#\n########", "drawn board")


@given(st.lists(st.sampled_from(MOVES), max_size=60))
def test_moves_conserve_boxes_walls_and_targets(names):
    boxes, player = BUSY.boxes, BUSY.player
    for name in names:
        boxes, player = move(BUSY, boxes, player, name)
    board = draw(BUSY, boxes, player)
    assert board.count("X") + board.count("√") == 4
    assert board.count("O") + board.count("√") + board.count("S") == 4
    assert board.count("P") + board.count("S") == 1
    assert board.count("#") == draw(BUSY, BUSY.boxes, BUSY.player).count("#")
    assert boxes | {player} <= BUSY.floor
    assert player not in boxes


@given(st.lists(st.sampled_from(MOVES), max_size=40))
def test_a_walk_is_undone_by_the_opposite_walk(names):
    (level,) = parse("#######\n#+ *$.#\n# $   #\n#     #\n#######", "drawn board")
    boxes, player = level.boxes, level.player
    for name in names:
        after = move(level, boxes, player, name)
        if after[0] == boxes and after[1] != player:
            opposite = MOVES[MOVES.index(name) ^ 1]
            assert move(level, *after, opposite) == (boxes, player)
        boxes, player = after


def test_codes_of_a_board_are_the_positions_of_its_symbols():
    assert codes("#_O√\nXPS#").tolist() == [[0, 1, 2, 3], [4, 5, 6, 0]]
    assert codes("#_O").tolist() == [[0, 1, 2]]


@given(st.lists(st.sampled_from(MOVES), max_size=30))
def test_the_codes_of_a_state_are_those_of_its_drawing(names):
    (level,) = parse("#######\n#+ *$.#\n# $   #\n#     #\n#######", "drawn board")
    boxes, player = level.boxes, level.player
    for name in names:
        boxes, player = move(level, boxes, player, name)
    assert (place_codes(level, boxes, player) == codes(draw(level, boxes, player))).all()
