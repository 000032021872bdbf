import os
import subprocess
import sys

import pytest

from arl_gym.core import SPLITS
from arl_gym.envs.sokoban.generator import RoomSpec, TaskIds, check_possible, room
from arl_gym.envs.sokoban.rules import draw, make_level
from arl_gym.envs.sokoban.solver import solve
from arl_gym.errors import ConfigError, UnknownNameError

SPEC = RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10)


def board(level):
    return draw(level, level.boxes, level.player)


def turned(level):
    """Return the same room after a quarter turn."""
    rows = [list(row) for row in zip(*level.text.split("\n")[::-1], strict=True)]
    stride, height = level.width + 1, level.text.count("\n") + 1

    def at(cell):
        r, c = divmod(cell, stride)
        return c * (height + 1) + height - 1 - r

    text = "\n".join("".join(row) for row in rows)
    return make_level(text, boxes=map(at, level.boxes), player=at(level.player))


@pytest.mark.parametrize("split", SPLITS)
def test_stated_optimum_is_the_solver_s_and_in_range(split):
    for i in range(64):
        level = room(SPEC, split, i)
        assert SPEC.lo <= level.optimal <= SPEC.hi
        assert len(solve(level).moves) == level.optimal
        assert not level.boxes & level.targets


def test_the_table_is_exact_with_more_boxes_in_oblong_rooms():
    spec = RoomSpec(height=7, width=9, boxes=3, lo=8, hi=14)
    for i in range(4):
        level = room(spec, "train", i)
        assert len(solve(level, max_nodes=10**6).moves) == level.optimal
        assert len(level.boxes) == 3
        assert [len(row) for row in level.text.split("\n")] == [9] * 7


def test_splits_are_disjoint_by_content_even_across_symmetric_rooms():
    hashes = {split: {room(SPEC, split, i).content_hash for i in range(200)} for split in SPLITS}
    for a in SPLITS:
        for b in SPLITS:
            assert a == b or not hashes[a] & hashes[b]
    for split in SPLITS:
        level = room(SPEC, split, 0)
        assert turned(level).content_hash == level.content_hash
        assert board(turned(level)) != board(level)


@pytest.mark.parametrize(
    ("split", "digits"), [("train", range(8)), ("val", [8]), ("test", [9]), ("test_ood", [9])]
)
def test_the_last_digit_of_the_content_hash_names_the_split_in_any_configuration(split, digits):
    for spec in (SPEC, RoomSpec(height=7, width=6, boxes=2, lo=4, hi=8)):
        assert all(int(room(spec, split, i).content_hash, 16) % 10 in digits for i in range(20))


@pytest.mark.parametrize("split", ["val", "test", "test_ood"])
def test_held_out_rooms_all_differ(split):
    assert len({room(SPEC, split, i).content_hash for i in range(512)}) == 512


def test_test_ood_rooms_are_larger_and_have_one_box_more():
    level = room(SPEC, "test_ood", 3)
    assert level.text.count("\n") + 1 == level.width == 8
    assert len(level.boxes) == 2


SCRIPT = """
from arl_gym.envs.sokoban.generator import RoomSpec, room
spec = RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10)
for split, index in [("val", 40), ("train", 999_999), ("test_ood", 5), ("train", 0), ("val", 3)]:
    level = room(spec, split, index)
    print(level.text.replace("\\n", "/"), sorted(level.boxes), level.player, level.optimal)
"""


def test_rooms_are_equal_in_every_process():
    # In other orders, with other hash seeds: nothing may depend on what was drawn before.
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONIOENCODING": "utf-8",
            },
        ).stdout
        for seed in ("1", "2")
    }
    here = []
    for split, index in reversed(
        [("val", 40), ("train", 999_999), ("test_ood", 5), ("train", 0), ("val", 3)]
    ):
        level = room(SPEC, split, index)
        here.append(f"{level.text!s} {sorted(level.boxes)} {level.player} {level.optimal}".replace("\n", "/"))
    assert outputs == {"\n".join(reversed(here)) + "\n"}


def test_a_known_room_never_changes():
    """Recorded at the first release: a change here needs a new version of the environment."""
    assert board(room(SPEC, "train", 0)) == "######\n######\n####_#\n#__P_#\n#_OX_#\n######"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"height": 3, "width": 4}, r"2 \* num_boxes \+ 1 cells"),
        ({"height": 2, "width": 9}, "num_boxes"),
        ({"boxes": 8}, "num_boxes=8"),
        ({"boxes": 0}, "num_boxes=0"),
        ({"lo": 5, "hi": 4}, r"lo <= hi, got \(5, 4\)"),
        ({"lo": 0}, r"1 <= lo"),
        ({"lo": 60, "hi": 90}, r"found no room .* optimal=\(60, 90\)"),
        ({"boxes": 7}, "found no room .* num_boxes=7"),
    ],
)
def test_impossible_settings_are_refused(spec, message):
    values = {"height": 6, "width": 6, "boxes": 1, "lo": 3, "hi": 10} | spec
    with pytest.raises(ConfigError, match=message):
        check_possible(RoomSpec(**values), "train")


def test_a_held_out_split_of_too_few_different_rooms_is_refused_at_once():
    tiny = RoomSpec(height=3, width=7, boxes=1, lo=1, hi=4)
    check_possible(tiny, "train")
    with pytest.raises(ConfigError, match=r"found no room for task .* of split 'val'"):
        check_possible(tiny, "val")


def test_task_ids_are_a_sequence_without_storage():
    ids = TaskIds("train")
    assert (len(ids), ids[0], ids[-1]) == (1_000_000, "train-000000", "train-999999")
    assert ids[5:7] == ["train-000005", "train-000006"]
    assert ids.index("train-000123") == 123
    assert "train-000123" in ids
    for no_id in ("train-1000000", "train-123", "val-000001", "train-00012x", "train-²²²²²²", 7, ""):
        assert no_id not in ids
    with pytest.raises(IndexError):
        ids[1_000_000]
    with pytest.raises(ValueError, match="no task id"):
        ids.index("val-000001")
    assert len(list(TaskIds("val"))) == 512
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        TaskIds("trein")
