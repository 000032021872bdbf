import json
from collections import Counter

import pytest

from arl_gym.envs.sokoban.generator import RoomSpec, draw_room
from arl_gym.envs.sokoban.pools import encode, find_pool, read_pool
from arl_gym.envs.sokoban.solver import solve
from arl_gym.errors import DataError
from arl_gym.rng import digest

POOLS = {(10, 4): 12_200, (12, 5): 2_440, (14, 6): 610}
"""Rooms of split train by size and number of boxes."""
SETTINGS = list(POOLS)


def shipped(setting):
    size, boxes = setting
    pool = find_pool(size, size, boxes)
    assert pool is not None
    return pool


def every_room(pool, split):
    source = pool.rooms(split, pool.lo, pool.hi)
    return [source[i] for i in range(len(source))]


def test_shipped_rooms_all_differ_by_content_and_keep_to_their_split():
    digits = {"train": range(8), "val": [8], "test": [9]}
    hashes = []
    for setting in SETTINGS:
        for split in digits:
            found = [level.content_hash for level in every_room(shipped(setting), split)]
            assert all(int(h, 16) % 10 in digits[split] for h in found)
            hashes += found
    assert len(hashes) == len(set(hashes)) == sum(POOLS.values()) + 6 * 512


@pytest.mark.parametrize("setting", SETTINGS)
def test_optima_of_a_shipped_pool_are_spread_evenly_from_10_to_70(setting):
    pool = shipped(setting)
    assert (pool.lo, pool.hi) == (10, 70)
    for split, n in {"train": POOLS[setting], "val": 512, "test": 512}.items():
        numbers = Counter(pool.rooms(split, 10, 70).records["optimal"].tolist())
        assert sum(numbers.values()) == n
        assert len(numbers) == 61
        assert max(numbers.values()) - min(numbers.values()) <= 1


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_first_rooms_of_a_split_are_a_fair_sample(setting):
    first = shipped(setting).rooms("train", 10, 70).records["optimal"][:300]
    # Even on 10 to 70: mean 40, deviation 17.6, so the mean of 300 is within 3 in all but one case of 300.
    assert abs(first.mean() - 40) < 3


@pytest.mark.parametrize("setting", SETTINGS)
def test_rooms_of_a_shipped_pool_have_their_size_and_boxes_off_target(setting):
    size, boxes = setting
    for level in every_room(shipped(setting), "test")[:100]:
        assert (level.height, level.width) == (size, size)
        assert len(level.boxes) == len(level.targets) == boxes
        assert not level.boxes & level.targets
        assert level.boxes | level.targets | {level.player} <= level.floor
        assert level.player not in level.boxes


@pytest.mark.parametrize("setting", SETTINGS)
def test_optima_of_shipped_rooms_are_the_solver_s(setting):
    checked = 0
    for level in every_room(shipped(setting), "val")[:30]:
        solution = solve(level, max_nodes=1000)
        assert solution.status in ("solved", "unknown")
        if solution.status == "solved":
            assert len(solution.moves) == level.optimal
            checked += 1
    assert checked >= 5


@pytest.mark.parametrize("setting", SETTINGS)
def test_shipped_rooms_are_those_that_the_generator_draws(setting):
    size, boxes = setting
    pool = shipped(setting)
    for optimum in (12, 18):
        spec = RoomSpec(height=size, width=size, boxes=boxes, lo=optimum, hi=optimum)
        source = pool.rooms("test", optimum, optimum)
        assert draw_room(spec, "test", 0) in [source[i] for i in range(len(source))]


# ---- the file


def small_rooms():
    spec = RoomSpec(height=7, width=9, boxes=2, lo=3, hi=20)
    return {split: [draw_room(spec, split, i) for i in range(20)] for split in ("train", "val")}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "7x9-2.pool"
    path.write_bytes(encode(small_rooms()))
    return path


def test_a_pool_holds_the_rooms_it_was_made_of(file):
    pool = read_pool(file)
    made = small_rooms()
    assert (pool.height, pool.width, pool.boxes) == (7, 9, 2)
    for split, levels in made.items():
        read = every_room(pool, split)
        assert set(read) == set(levels)
        optima = {level: level.optimal for level in levels}
        assert all(level.optimal == optima[level] for level in read)
        assert all(isinstance(cell, int) for cell in {*read[0].floor, *read[0].boxes, read[0].player})
    assert min(level.optimal for split in made for level in made[split]) == pool.lo


def test_a_range_keeps_the_order(file):
    pool = read_pool(file)
    all_rooms = every_room(pool, "train")
    some = pool.rooms("train", 5, 9)
    assert [some[i] for i in range(len(some))] == [r for r in all_rooms if 5 <= r.optimal <= 9]


def test_no_file_is_no_pool():
    assert find_pool(6, 6, 1) is None


@pytest.mark.parametrize("place", [0, 5, 17, 60, 300, -1])
def test_a_changed_byte_is_an_error_that_names_the_file(file, place):
    raw = bytearray(file.read_bytes())
    raw[place] ^= 1
    file.write_bytes(raw)
    with pytest.raises(DataError, match=r"7x9-2\.pool: damaged: expected the digest"):
        read_pool(file)


@pytest.mark.parametrize("length", [0, 10, 17, 200, -1])
def test_a_cut_file_is_an_error(file, length):
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(DataError, match=r"7x9-2\.pool: damaged"):
        read_pool(file)


def test_another_format_and_another_number_of_rooms_are_errors(file):
    _, head, body = file.read_bytes().split(b"\n", 2)
    for change, message in [
        ({"format": "arl_gym Sokoban pool, version 9"}, "expected the format .*version 1.*version 9"),
        ({"rooms": {"train": 20, "val": 21}}, "expected .*'val': 21.* rooms of 11 bytes, got 440 bytes"),
    ]:
        content = json.dumps(json.loads(head) | change).encode() + b"\n" + body
        file.write_bytes(digest(content).encode() + b"\n" + content)
        with pytest.raises(DataError, match=message):
            read_pool(file)


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="cannot read the pool"):
        read_pool(tmp_path)
