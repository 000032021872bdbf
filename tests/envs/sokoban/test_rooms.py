import pytest

from arl_gym.envs.sokoban.generator import RoomSpec, room
from arl_gym.envs.sokoban.rooms import DrawnRooms, TaskIds, rooms
from arl_gym.errors import ConfigError, UnknownNameError


@pytest.mark.parametrize(
    ("split", "n"), [("train", 1_000_000), ("val", 512), ("test", 512), ("test_ood", 512)]
)
def test_rooms_are_drawn(split, n):
    source = rooms(height=6, width=6, boxes=1, split=split)
    assert isinstance(source, DrawnRooms)
    assert (len(source), source.lo, source.hi) == (n, 3, 10)
    spec = RoomSpec(height=6, width=6, boxes=1, lo=3, hi=10)
    spec = spec.out_of_distribution if split == "test_ood" else spec
    assert source[7] == room(spec, split, 7)
    assert source[-1] == source[n - 1]
    with pytest.raises(IndexError):
        source[n]


def test_rooms_of_test_ood_are_two_cells_larger_and_have_one_box_more():
    level = rooms(height=6, width=7, boxes=1, split="test_ood")[3]
    assert (level.height, level.width, len(level.boxes)) == (8, 9, 2)


def test_bad_settings_are_refused():
    with pytest.raises(UnknownNameError, match="split 'trian'"):
        rooms(height=6, width=6, boxes=1, split="trian")
    with pytest.raises(ConfigError, match="num_boxes=0"):
        rooms(height=6, width=6, boxes=0, split="train")
    with pytest.raises(ConfigError, match="found no room"):
        rooms(height=6, width=6, boxes=1, split="train", optimal=(90, 99))


def test_task_ids_are_a_sequence_without_storage():
    ids = TaskIds("train", 1_000_000)
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
    assert list(TaskIds("val", 3)) == ["val-000000", "val-000001", "val-000002"]
    assert "val-000003" not in TaskIds("val", 3)
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        TaskIds("trein", 3)
