import dataclasses

import numpy as np
import pytest

from arl_gym.errors import DataError
from arl_gym.train.batch import pack
from arl_gym.train.chat import ChatCodec
from arl_gym.train.model import load_model
from arl_gym.train.pictures import view
from tests.train.trajectories import trajectory
from tests.train.vision_jobs import answered, shown, square


@pytest.fixture(scope="module")
def codec():
    loaded = load_model("tiny-vl", dtype="float32", seed=1)
    return ChatCodec(loaded.tokenizer, loaded.vision)


def batch_of(codec, *messages):
    return pack([trajectory(answered(codec, m, [1])) for m in messages], pad_id=codec.pad_id)


def test_placeholders_name_the_features_of_their_own_pictures(codec):
    # A feature is 16 x 16 pixels: red is 0 to 3, the wide one 4 to 9, blue 10 to 13.
    wide = square("green", 48)
    batch = batch_of(codec, shown("a", "red", wide), shown("b", "blue", "red"), shown("c"))
    seen = view(batch, codec.vision)
    assert seen.grid.tolist() == [[1, 2, 2], [1, 2, 3], [1, 2, 2]]
    assert len(seen.pixels) == 4 + 6 + 4
    is_placeholder = batch.ids == codec.vision.image_id
    assert np.array_equal(seen.features >= 0, is_placeholder)
    rows = [row[mask].tolist() for row, mask in zip(seen.features, is_placeholder, strict=True)]
    assert rows == [[*range(4), *range(4, 10)], [*range(10, 14), *range(4)], []]


def test_rows_bring_only_the_pictures_they_show(codec):
    batch = batch_of(codec, shown("a", "red"), shown("b", "blue")).select([1])
    assert len(batch.pictures) == 2
    alone = view(batch, codec.vision)
    assert alone.pixels.equal(codec.vision.pixels([square("blue")])["pixel_values"])
    assert alone.features.max() == 3


def test_rows_without_pictures_bring_a_blank_one_that_no_token_shows(codec):
    seen = view(batch_of(codec, shown("a"), shown("bc")), codec.vision)
    assert len(seen.grid) == 1
    assert (seen.features == -1).all()
    for row, length in zip(seen.positions.transpose(1, 0, 2), (3, 4), strict=True):
        assert (row[:, :length] == np.arange(length)).all()


def test_positions_of_a_picture_are_those_of_its_rows_and_columns(codec):
    batch = batch_of(codec, shown("a", square("red", 48)))
    at = int(np.flatnonzero(batch.ids[0] == codec.vision.image_id)[0])
    time, height, width = view(batch, codec.vision).positions[:, 0]
    # Two rows of three; what follows goes on after the longer side.
    assert time[at : at + 7].tolist() == [at] * 6 + [at + 3]
    assert (height[at : at + 6] - at).tolist() == [0, 0, 0, 1, 1, 1]
    assert (width[at : at + 6] - at).tolist() == [0, 1, 2, 0, 1, 2]


def test_placeholders_without_their_pictures_are_an_error(codec):
    batch = batch_of(codec, shown("a", "red", "blue"))
    lost = dataclasses.replace(batch, row_pictures=((0,),))
    with pytest.raises(DataError, match=r"trajectory 0 of group 0: 1 pictures take 4 tokens, but .* 8"):
        view(lost, codec.vision)
