import time
from itertools import product

import pytest

from arl_gym.envs.alfworld.game import read_game
from arl_gym.envs.alfworld.house import NOTHING_HAPPENS, House
from arl_gym.rng import Rng
from benchmarks.alfworld_equality import ANSWERS, answer_kind
from tests.envs.alfworld.plays import HELP, KITCHEN_INTRO, PLAYS


def house(name, *commands):
    """Return the house of a play after some commands, all of which must do something."""
    entered = House(read_game(PLAYS[name].file_text))
    for command in commands:
        assert entered.act(command) != NOTHING_HAPPENS, command
    return entered


@pytest.mark.parametrize("name", PLAYS)
def test_every_command_of_the_transcript_is_answered_as_written_down(name):
    played = house(name)
    for command, answer, won in PLAYS[name].answers():
        assert (command, played.act(command), played.won) == (command, answer, won)


@pytest.mark.parametrize("name", PLAYS)
def test_the_transcript_says_something_exactly_where_its_command_is_listed(name):
    played = house(name)
    for command, answer, _ in PLAYS[name].answers():
        assert (command in played.commands()) == (answer != NOTHING_HAPPENS), command
        played.act(command)


def test_the_transcripts_show_every_kind_of_answer():
    answers = (answer for play in PLAYS.values() for _, answer, _ in play.answers())
    assert {answer_kind(answer) for answer in answers} == set(ANSWERS)


def test_the_intro_lists_the_receptacles_in_the_order_of_their_ids():
    assert house("heat").intro() == KITCHEN_INTRO


def test_a_game_that_starts_at_a_receptacle_begins_with_a_look_at_it():
    assert house("two").intro() == (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are facing the bed 1. Next to it, you see nothing."
        "\n\nYour task is to: put two pencil in drawer."
    )


def test_the_intro_stays_the_same_while_the_game_goes_on():
    assert house("heat", "go to fridge 1", "open fridge 1").intro() == KITCHEN_INTRO


def test_the_commands_are_sorted_as_plain_text():
    assert house("heat", "go to countertop 1").commands() == [
        "examine countertop 1",
        "examine drawer 1",
        "examine shelf 1",
        "go to bathtubbasin 1",
        "go to cabinet 1",
        "go to cabinet 10",
        "go to cabinet 2",
        "go to cabinet 3",
        "go to cabinet 4",
        "go to cabinet 5",
        "go to cabinet 6",
        "go to cabinet 7",
        "go to cabinet 8",
        "go to cabinet 9",
        "go to fridge 1",
        "go to microwave 1",
        "go to sinkbasin 1",
        "help",
        "inventory",
        "look",
        "open drawer 1",
        "take apple 2 from countertop 1",
        "take knife 1 from countertop 1",
        "take mug 1 from countertop 1",
        "take mug 1 from shelf 1",
        "take pan 1 from shelf 1",
        "take potato 1 from countertop 1",
    ]


def test_a_knife_in_the_hand_lists_what_can_be_sliced_and_where_it_may_be_put():
    at = house("heat", "go to countertop 1", "open drawer 1", "take knife 1 from countertop 1")
    assert [c for c in at.commands() if not c.startswith("go to")] == [
        "close drawer 1",
        "examine countertop 1",
        "examine drawer 1",
        "examine knife 1",
        "examine shelf 1",
        "help",
        "inventory",
        "look",
        "move knife 1 to countertop 1",
        "move knife 1 to drawer 1",
        "slice apple 2 with knife 1",
        "slice bread 1 with knife 1",
        "slice potato 1 with knife 1",
    ]


def test_the_older_grammar_puts_in_or_on_and_has_no_help():
    assert house("place", "take book 2 from bed 1").commands() == [
        "examine bed 1",
        "examine book 2",
        "go to desk 1",
        "go to drawer 1",
        "go to drawer 2",
        "go to safe 1",
        "go to shelf 1",
        "inventory",
        "look",
        "put book 2 in/on bed 1",
    ]


def every_command(game):
    names = [*game.objects, *game.receptacles, "desklamp 3", "agent1 "]
    verbs = ["go to", "open", "close", "examine", "use", "take", "put", "slice"]
    joins = [("take", "from"), ("move", "to"), ("put", "in/on"), ("slice", "with"), ("heat", "with")]
    joins += [("cool", "with"), ("clean", "with")]
    yield from ["look", "inventory", "help"]
    yield from (f"{verb} {name}" for verb, name in product(verbs, names))
    yield from (f"{verb} {a} {join} {b}" for (verb, join), a, b in product(joins, names, names))


@pytest.mark.parametrize("name", ["heat", "look", "place"])
def test_what_is_not_listed_does_nothing_and_what_is_listed_something(name):
    played, rng = house(name), Rng("listed", name)
    for _ in range(25):
        listed, key = played.commands(), played.key
        assert listed == sorted(set(listed))
        missing = [c for c in every_command(played.game) if c not in listed]
        assert all(played.act(command) == NOTHING_HAPPENS for command in missing)
        assert played.key == key
        assert played.act(rng.choice(listed)) != NOTHING_HAPPENS


ODD = ["", " ", "Look", "LOOK", "go  to fridge 1", "go to Fridge 1", "go to fridge", "go to fridge 01"]
ODD += [
    "go to fridge 1.",
    "go to\tfridge 1",
    "fridge 1",
    "take  from ",
    "go to ",
    "look\0",
    "look around",
    "use",
]


@pytest.mark.parametrize("text", ODD)
def test_any_other_text_does_nothing(text):
    played = house("heat")
    key = played.key
    assert played.act(text) == NOTHING_HAPPENS
    assert played.key == key


def test_ten_megabytes_of_text_do_nothing_soon():
    played = house("heat")
    start = time.process_time()
    for text in (
        "x" * 10_000_000,
        "take " + "mug 1 from " * 900_000,
        "go to fridge 1" + "\n" * 10_000_000 + "x",
    ):
        assert played.act(text) == NOTHING_HAPPENS
    assert time.process_time() - start < 1


@pytest.mark.parametrize("text", [" look", "look\n", "\t look \r\n"])
def test_blanks_around_a_command_are_ignored(text):
    assert house("heat").act(text).startswith("You are in the middle of a room.")


def test_help_is_the_text_of_the_grammar():
    assert house("heat").act("help") == HELP.removeprefix("\n")


# ---- how far the task is


def progress(name, *commands):
    played = house(name)
    found = [played.conditions()[0]]
    for command in commands:
        assert played.act(command) != NOTHING_HAPPENS, command
        found.append(played.conditions()[0])
    return found, played.conditions()[1]


def test_placing_has_one_condition():
    commands = [
        "take book 2 from bed 1",
        "go to safe 1",
        "put book 2 in/on safe 1",
        "take book 2 from safe 1",
    ]
    assert progress("place", *commands) == ([0, 0, 0, 1, 0], 1)


def test_looking_needs_the_object_in_the_hand_and_the_lamp_on_where_one_stands():
    commands = ["go to desk 1", "use desklamp 2", "take pencil 3 from desk 1", "go to bed 1", "go to shelf 1"]
    assert progress("look", *commands) == ([0, 0, 1, 2, 1, 2], 2)


def test_a_treated_object_and_another_one_in_place_meet_two_of_three_conditions():
    # An apple lies on the countertop from the start, not cooled.
    commands = ["go to fridge 1", "open fridge 1", "take apple 1 from fridge 1", "cool apple 1 with fridge 1"]
    found, of = progress("cool", *commands, "go to countertop 1", "move apple 1 to countertop 1")
    assert (found, of) == ([1, 1, 1, 1, 2, 2, 3], 3)


def test_heating_undoes_cooling_and_keeps_clean():
    commands = ["go to fridge 1", "open fridge 1", "take apple 1 from fridge 1", "cool apple 1 with fridge 1"]
    found, _ = progress("cool", *commands, "go to microwave 1", "heat apple 1 with microwave 1")
    assert found == [1, 1, 1, 1, 2, 2, 1]


def test_two_objects_count_only_in_the_same_receptacle():
    commands = ["go to desk 1", "take pencil 1 from desk 1", "go to drawer 1", "open drawer 1"]
    commands += ["move pencil 1 to drawer 1", "go to desk 1", "take pencil 2 from desk 1", "go to drawer 2"]
    commands += [
        "open drawer 2",
        "move pencil 2 to drawer 2",
        "take pencil 2 from drawer 2",
        "go to drawer 1",
    ]
    found, of = progress("two", *commands, "move pencil 2 to drawer 1")
    assert (found, of) == ([0] * 5 + [1] * 8 + [2], 2)


# ---- keys


@pytest.mark.parametrize(
    ("name", "before", "undone"),
    [
        ("heat", ["go to fridge 1"], ["open fridge 1", "close fridge 1"]),
        ("heat", ["go to fridge 1"], ["look", "inventory", "help", "examine fridge 1"]),
        ("look", [], ["take book 2 from bed 1", "examine book 2", "move book 2 to bed 1"]),
        ("look", ["go to desk 1"], ["go to bed 1", "go to shelf 1"]),
        (
            "heat",
            ["go to cabinet 1", "open cabinet 1"],
            ["take saltshaker 1 from cabinet 1", "move saltshaker 1 to cabinet 1"],
        ),
    ],
)
def test_doing_and_undoing_leads_back_to_the_key(name, before, undone):
    played = house(name, *before)
    key = played.key
    for command in undone:
        assert played.act(command) != NOTHING_HAPPENS
    assert played.key == key


def test_the_order_of_independent_commands_does_not_show_in_the_key():
    one = house("heat", "go to drawer 1", "open drawer 1", "go to fridge 1", "open fridge 1")
    other = house(
        "heat", "go to fridge 1", "open fridge 1", "go to drawer 1", "open drawer 1", "go to fridge 1"
    )
    assert one.key == other.key


def test_every_change_has_a_key_of_its_own():
    played = house("heat")
    keys = {played.key: "start"}
    commands = ["go to countertop 1", "take knife 1 from countertop 1", "slice apple 2 with knife 1"]
    commands += ["slice potato 1 with knife 1", "open drawer 1", "move knife 1 to drawer 1"]
    commands += ["take apple 2 from countertop 1", "go to microwave 1", "heat apple 2 with microwave 1"]
    commands += ["go to fridge 1", "cool apple 2 with fridge 1", "go to sinkbasin 1"]
    for command in [*commands, "clean apple 2 with sinkbasin 1", "move apple 2 to sinkbasin 1"]:
        assert played.act(command) != NOTHING_HAPPENS
        assert played.key not in keys, (command, keys[played.key])
        keys[played.key] = command


def test_turning_a_lamp_on_again_changes_nothing():
    played = house("look", "go to desk 1")
    dark = played.key
    played.act("use desklamp 2")
    lit = played.key
    played.act("use desklamp 2")
    assert played.key == lit != dark


def test_an_object_put_back_from_another_receptacle_leaves_a_trace_that_look_shows():
    played = house("heat", "go to countertop 1", "open drawer 1")
    key = played.key
    for command in (
        "take knife 1 from countertop 1",
        "move knife 1 to drawer 1",
        "take knife 1 from drawer 1",
    ):
        played.act(command)
    played.act("move knife 1 to countertop 1")
    assert played.key != key
    assert played.act("look").endswith("Next to it, you see a knife 1.")
