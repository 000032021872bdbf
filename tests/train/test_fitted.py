"""Pictures in the size and the colours that a model sees."""

import pytest
from PIL import Image

from arl_gym.errors import DataError
from tests.train.pictures import noise
from tests.train.test_vision import vision

SEES = vision(patch=16, merge=2, least=4 * 32 * 32, most=9 * 32 * 32)


# To the nearest multiple of 32 a side; then to 4 up to 9 squares of 32 pixels with about the same shape.
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((96, 96), (96, 96)),
        ((70, 90), (64, 96)),
        ((20, 20), (64, 64)),
        # 100 squares are too many: both sides times 3 / 10
        ((320, 320), (96, 96)),
        # 20 x 5 of them: both sides times 3 / 10 is 6 x 1.5, rounded down
        ((640, 160), (192, 32)),
    ],
)
def test_a_picture_gets_the_size_that_its_tokens_read(size, expected):
    fitted = SEES.fitted(noise(*size))
    assert fitted.size == expected
    assert SEES.n_tokens(noise(*size)) == expected[0] * expected[1] // 32**2
    assert SEES.fitted(fitted).tobytes() == fitted.tobytes()


def test_a_picture_gets_three_colours_and_keeps_pixels_that_need_no_resizing():
    grey = noise(64, 64).convert("L")
    fitted = SEES.fitted(grey)
    assert fitted.mode == "RGB"
    assert [band.tobytes() for band in fitted.split()] == [grey.tobytes()] * 3
    assert SEES.pixels([grey])["pixel_values"].equal(SEES.pixels([fitted])["pixel_values"])


def test_a_picture_that_cannot_be_cut_is_an_error():
    with pytest.raises(DataError, match=r"a picture of 402 x 2 pixels cannot be read"):
        SEES.fitted(Image.new("RGB", (402, 2)))
