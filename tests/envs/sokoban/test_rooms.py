import pytest

from arl_gym.core import SPLITS
from arl_gym.envs.sokoban.generator import RoomSpec, room
from arl_gym.envs.sokoban.rooms import DrawnRooms, rooms
from arl_gym.errors import ConfigError, UnknownNameError


def hashes(source, n):
    return [source[i].content_hash for i in range(n)]


@pytest.mark.parametrize(
    ("split", "n"), [("train", 1_000_000), ("val", 512), ("test", 512), ("test_ood", 512)]
)
def test_rooms_without_a_pool_are_drawn(split, n):
    source = rooms(height=6, width=6, boxes=1, split=split)
    assert isinstance(source, DrawnRooms)
    assert (len(source), source.lo, source.hi) == (n, 3, 10)
    spec = RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10)
    spec = spec.out_of_distribution if split == "test_ood" else spec
    assert source[7] == room(spec, split, 7)
    assert source[-1] == source[n - 1]
    with pytest.raises(IndexError):
        source[n]


@pytest.mark.parametrize(("size", "boxes"), [(6, 1), (10, 4)])
def test_rooms_of_test_ood_are_two_cells_larger_and_have_one_box_more(size, boxes):
    level = rooms(height=size, width=size, boxes=boxes, split="test_ood")[3]
    assert (level.height, level.width, len(level.boxes)) == (size + 2, size + 2, boxes + 1)


def test_a_range_that_the_pool_holds_comes_from_the_pool():
    whole = rooms(height=10, width=10, boxes=4, split="val")
    assert (len(whole), whole.lo, whole.hi) == (512, 10, 70)
    part = rooms(height=10, width=10, boxes=4, split="val", optimal=(20, 29))
    optima = [part[i].optimal for i in range(len(part))]
    assert set(optima) == set(range(20, 30))
    kept = [h for h, i in zip(hashes(whole, 512), range(512), strict=True) if 20 <= whole[i].optimal <= 29]
    assert hashes(part, len(part)) == kept


def test_a_range_that_the_pool_does_not_hold_is_drawn():
    source = rooms(height=10, width=10, boxes=4, split="val", optimal=(3, 12))
    assert isinstance(source, DrawnRooms)
    assert 3 <= source[0].optimal <= 12


def test_the_default_range_is_that_of_the_size_asked_for_even_if_test_ood_has_a_pool():
    # 8x8 with 3 boxes has no pool, 10x10 with 4 boxes has one, of other optima.
    source = rooms(height=8, width=8, boxes=3, split="test_ood")
    assert (source.lo, source.hi) == (3, 10)
    assert isinstance(source, DrawnRooms)


def test_rooms_out_of_distribution_are_the_test_rooms_of_the_larger_pool():
    ood = rooms(height=10, width=10, boxes=4, split="test_ood")
    assert hashes(ood, 20) == hashes(rooms(height=12, width=12, boxes=5, split="test"), 20)


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_of_a_pooled_setting_has_rooms(split):
    assert len(rooms(height=12, width=12, boxes=5, split=split)) >= 512


def test_bad_settings_are_refused():
    with pytest.raises(UnknownNameError, match="split 'trein'"):
        rooms(height=6, width=6, boxes=1, split="trein")
    with pytest.raises(ConfigError, match="num_boxes=0"):
        rooms(height=6, width=6, boxes=0, split="train")
    with pytest.raises(ConfigError, match="found no room"):
        rooms(height=6, width=6, boxes=1, split="train", optimal=(90, 99))
