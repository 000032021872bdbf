import time

import pytest

from arl_gym.envs.alfworld.house import NOTHING_HAPPENS, House
from arl_gym.envs.alfworld.lenient import MAX_LENGTH, read_lenient
from tests.envs.alfworld.rooms import SIMPLE, random_room, room

PLACES = ["drawer 1 @ a", "drawer 2 @ b", "microwave 1 @ c", "fridge 1 @ d", "sinkbasin 1 @ e"]
THINGS = ["mug 1 @ drawer 1", "mug 2 @ drawer 1", "knife 1 @ drawer 1", "desklamp 1 @ drawer 2"]
GAME = room(SIMPLE, "mug", "drawer", PLACES, THINGS)
OLDER = room(SIMPLE, "mug", "drawer", PLACES, THINGS, grammar="0.3")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("  Go To DRAWER 2 ", "go to drawer 2"),
        ("go  to\tdrawer   2", "go to drawer 2"),
        ("go to drawer 2.", "go to drawer 2"),
        ("go drawer 2", "go to drawer 2"),
        ("walk to the drawer 2", "go to drawer 2"),
        ("open drawer2", "open drawer 2"),
        ("take a mug 1 from the drawer 1", "take mug 1 from drawer 1"),
        ("grab mug1 from drawer1", "take mug 1 from drawer 1"),
        ("Pick up the mug 2 from drawer 1.", "take mug 2 from drawer 1"),
        ("turn on the desklamp 1", "use desklamp 1"),
        ("toggle desk lamp 1", "use desklamp 1"),
        ("heat mug 1 using the microwave 1", "heat mug 1 with microwave 1"),
        ("clean mug 1 in sinkbasin 1", "clean mug 1 with sinkbasin 1"),
        ("slice mug 1 with knife 1", "slice mug 1 with knife 1"),
        ("examine the mug 1", "examine mug 1"),
        ("Look around.", "look"),
        ("check inventory", "inventory"),
        ("I", "inventory"),
    ],
)
def test_near_misses_are_read(text, command):
    assert read_lenient(text, GAME) == command


@pytest.mark.parametrize("verb", ["put", "place", "move"])
@pytest.mark.parametrize("join", ["in", "on", "into", "to", "in/on"])
def test_putting_takes_the_words_of_the_game(verb, join):
    text = f"{verb} mug 1 {join} drawer 2"
    assert read_lenient(text, GAME) == "move mug 1 to drawer 2"
    assert read_lenient(text, OLDER) == "put mug 1 in/on drawer 2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "the",
        "go to",
        "go to drawer",
        "go to drawer 3",
        "go to mug 1",
        "take mug from drawer 1",
        "take mug 1",
        "take mug 12 from drawer 1",
        "take drawer 1 from mug 1",
        "heat mug 1 with mug 2",
        "slice mug 1 with drawer 1",
        "put mug 1 and mug 2 in drawer 1",
        "open drawer 1 open drawer 1",
        "open drawer 1, then take mug 1 from drawer 1",
        "help",  # this game has none
        "think: the mug 1 is in drawer 1",
    ],
)
def test_what_names_nothing_of_the_game_is_not_read(text):
    assert read_lenient(text, GAME) is None


def test_the_games_own_commands_are_read_as_they_are():
    for seed in range(10):
        house = House(random_room(SIMPLE, seed, n_places=6, n_things=6))
        for command in house.commands():
            assert read_lenient(command, house.game) == command
            house.act(command)


def test_what_is_read_is_what_the_game_takes():
    house = House(GAME)
    for text in (
        "Go to drawer1",
        "Open the drawer 1",
        "Grab the mug1 from drawer1",
        "Place mug 1 in drawer 1.",
    ):
        assert house.act(text) == NOTHING_HAPPENS
        command = read_lenient(text, GAME)
        assert command is not None
        assert house.act(command) != NOTHING_HAPPENS


@pytest.mark.parametrize("unit", [" ", "a ", "put in ", "take x from ", "mug 1", "(", "."])
def test_long_texts_cost_nothing(unit):
    start = time.perf_counter()
    assert read_lenient(unit * (10_000_000 // len(unit)), GAME) is None
    assert read_lenient((unit * MAX_LENGTH)[:MAX_LENGTH], GAME) is None
    assert time.perf_counter() - start < 1
