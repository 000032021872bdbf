import json

from arl_gym.assets import asset
from arl_gym.envs.alfworld.scene import (
    CLEANABLE,
    COOLABLE,
    HEATABLE,
    PICKUPABLE,
    SLICEABLE,
    TOGGLEABLE,
    VESSEL,
)
from arl_gym.envs.alfworld.vocabulary import vocabulary

WORDS = vocabulary()


def test_what_can_be_done_with_an_object():
    assert WORDS.abilities["egg"] == PICKUPABLE | CLEANABLE | HEATABLE | COOLABLE | SLICEABLE
    assert WORDS.abilities["mug"] == PICKUPABLE | CLEANABLE | HEATABLE | COOLABLE | VESSEL
    assert WORDS.abilities["winebottle"] == PICKUPABLE | COOLABLE
    assert WORDS.abilities["desklamp"] == TOGGLEABLE
    assert WORDS.abilities["houseplant"] == 0


def test_what_fits_where():
    assert WORDS.can_contain["coffeemachine"] == {"mug"}
    assert WORDS.can_contain["stoveburner"] == {"kettle", "pan", "pot"}
    assert WORDS.can_contain["tvstand"] == {"tissuebox"}
    assert WORDS.can_contain["toaster"] == set()  # it takes sliced bread only
    assert WORDS.can_contain["cup"] == {"butterknife", "fork", "spoon"}
    assert WORDS.can_contain["diningtable"] == WORDS.can_contain["sidetable"]
    assert not any(lamp in held for held in WORDS.can_contain.values() for lamp in ("desklamp", "houseplant"))


def test_what_opens():
    assert WORDS.openable == {"box", "cabinet", "drawer", "fridge", "microwave", "safe"}


def test_objects_of_a_room_occur_in_three_of_its_scenes():
    assert {room: len(found) for room, found in WORDS.found_in.items()} == {
        "bathroom": 11,
        "bedroom": 23,
        "kitchen": 30,
        "living": 21,
    }
    assert "creditcard" in WORDS.found_in["kitchen"]  # in 3 of 30
    assert "book" not in WORDS.found_in["kitchen"]  # in 2
    assert "desklamp" in WORDS.found_in["living"]
    assert "teddybear" not in WORDS.found_in["bedroom"]  # in 10, but no receptacle takes it


def test_types_are_spelled_as_in_the_benchmark():
    assert [WORDS.spelling[kind] for kind in ("cd", "tvstand", "basketball", "glassbottle", "desklamp")] == [
        "CD",
        "TVStand",
        "BasketBall",
        "Glassbottle",
        "DeskLamp",
    ]


def test_the_file_is_sorted_and_free_of_slices():
    text = asset("alfworld/vocabulary.json").read_text()
    record = json.loads(text)
    assert "Sliced" not in text
    for lists in (record["abilities"], record["can_contain"], record["found_in"]):
        assert all(held == sorted(held) for held in lists.values())
        assert list(lists) == sorted(lists)
