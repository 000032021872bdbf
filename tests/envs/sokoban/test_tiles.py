import runpy
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from arl_gym.envs.sokoban.rules import codes
from arl_gym.envs.sokoban.tiles import TILE_SIZES, draw_image, tiles
from arl_gym.errors import ConfigError
from arl_gym.rng import digest
from tests.conftest import ROOT

RED, BLACK, FLOOR, MORTAR, ORANGE = (255, 60, 56), (0, 0, 0), (70, 72, 80), (92, 52, 42), (232, 92, 0)
LINE = {16: 1, 28: 2, 32: 2}
BOARD = "#####\n#PO_#\n#X√S#\n#####"

boards = arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(0, 6))
every_size = pytest.mark.parametrize("size", TILE_SIZES)


def colours(pixels):
    return {tuple(int(c) for c in pixel) for pixel in pixels.reshape(-1, 3)}


def border(tile, width):
    """The pixels of a tile less than `width` from its side."""
    outside = np.ones(tile.shape[:2], dtype=bool)
    outside[width:-width, width:-width] = False
    return tile[outside]


def luma(tile):
    return tile @ np.array([0.2126, 0.7152, 0.0722])


@every_size
def test_the_stored_tiles_are_what_the_script_draws(size):
    drawn = runpy.run_path(str(ROOT / "assets" / "sokoban" / "draw_tiles.py"))["strip"](size)
    assert np.array_equal(np.hstack([*tiles(size)]), drawn)


@every_size
def test_the_three_tiles_of_a_target_have_its_red_outline(size):
    wall, floor, target, box_on_target, box, player, player_on_target = tiles(size)
    for tile in (target, box_on_target, player_on_target):
        assert colours(border(tile, LINE[size])) == {RED}
        assert BLACK in colours(tile)
    for tile in (wall, floor, box, player):
        assert RED not in colours(tile)
    assert colours(border(target[LINE[size] : -LINE[size], LINE[size] : -LINE[size]], 1)) == {BLACK}
    assert colours(target[size // 2 - 1 : size // 2 + 1, size // 2 - 1 : size // 2 + 1]) == {RED}


@every_size
def test_floor_is_plain_and_lies_around_box_and_player(size):
    _, floor, _, _, box, player, _ = tiles(size)
    assert colours(floor[:-1, :-1]) == {FLOOR}
    for tile in (box, player):
        assert np.array_equal(border(tile, 1), border(floor, 1))


@every_size
def test_bricks_end_in_mortar_below_and_at_every_second_course(size):
    wall = tiles(size)[0]
    assert colours(wall[-1]) == {MORTAR}
    last_column = [tuple(pixel) == MORTAR for pixel in wall[1 :: size // 4, -1].tolist()]
    assert last_column == [True, False, True, False]


@every_size
def test_a_box_has_a_cross_from_corner_to_corner_and_a_box_on_target_has_none(size):
    _, _, _, box_on_target, box, _, _ = tiles(size)
    inside = range(2 * LINE[size], size - 2 * LINE[size])
    assert {tuple(box[i, i].tolist()) for i in inside} == {ORANGE}
    assert {tuple(box[i, size - 1 - i].tolist()) for i in inside} == {ORANGE}
    assert ORANGE not in colours(box_on_target)


@every_size
def test_the_player_is_a_green_figure_with_two_eyes_wherever_it_stands(size):
    for tile in tiles(size)[5:]:
        r, g, b = np.moveaxis(tile.astype(int), -1, 0)
        assert ((g > r + 40) & (g > b + 40)).mean() > 0.25
        white = tile.min(axis=2) == 255
        assert white[:, : size // 2].any()
        assert np.array_equal(white, white[:, ::-1])


@every_size
def test_any_two_tiles_differ_clearly_with_and_without_colour(size):
    for one, other in combinations(tiles(size).astype(float), 2):
        assert abs(one - other).mean() > 12
        assert abs(luma(one) - luma(other)).mean() > 12


@given(board=boards, size=st.sampled_from(TILE_SIZES))
def test_every_cell_of_a_picture_is_the_tile_of_its_code(board, size):
    picture = draw_image(board, size)
    assert picture.shape == (board.shape[0] * size, board.shape[1] * size, 3)
    assert picture.dtype == np.uint8
    assert picture.flags.c_contiguous
    for (row, column), code in np.ndenumerate(board):
        cell = picture[row * size : (row + 1) * size, column * size : (column + 1) * size]
        assert np.array_equal(cell, tiles(size)[code])


@pytest.mark.parametrize(
    ("size", "expected"), [(16, "a362e93a4f9e398f"), (28, "67e09490685aed00"), (32, "1b5674f96010ceef")]
)
def test_a_board_looks_as_it_always_did(size, expected):
    assert digest(draw_image(codes(BOARD), size).tobytes()) == expected


def test_a_picture_is_the_callers_to_change():
    first = draw_image(codes(BOARD), 16)
    first[:] = 0
    assert draw_image(codes(BOARD), 16).any()
    with pytest.raises(ValueError, match="read-only"):
        tiles(16)[0, 0, 0, 0] = 1


@pytest.mark.parametrize("size", [0, 24, 64, "32", None])
def test_other_sizes_are_refused(size):
    with pytest.raises(ConfigError, match=r"unknown tile size .* known: 16, 28, 32"):
        draw_image(codes(BOARD), size)
