"""The real engine behind its interface: what it leaves alone, what it reuses, and what it refuses."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from arl_gym.envs.alfworld.reference import ReferenceGame, made
from arl_gym.errors import DataError, EpisodeOverError
from tests.envs.alfworld.plays import KITCHEN_INTRO, PLAYS

BEDROOM_FILE = PLAYS["place"].file_text


def test_a_new_game_shows_its_intro_and_commands(new_game):
    game = new_game(PLAYS["heat"].file_text)
    assert game.intro() == KITCHEN_INTRO
    assert game.commands()[:2] == ["go to bathtubbasin 1", "go to cabinet 1"]
    assert not game.won


def test_facts_are_those_that_matter_in_words(new_game):
    game = new_game(BEDROOM_FILE)
    before = game.facts()
    assert before[0] == "atlocation(agent1 , loc 5)"
    assert "inreceptacle(book 2, bed 1)" in before
    assert "opened(safe 1)" in before
    game.act("look")
    game.act("examine bed 1")
    assert game.facts() == before
    game.act("take book 2 from bed 1")
    assert set(game.facts()) ^ set(before) == {
        "holds(agent1 , book 2)",
        "inreceptacle(book 2, bed 1)",
        "not_inreceptacle(book 2, bed 1)",
        "objectatlocation(book 2, loc 5)",
    }
    game.act("put book 2 in/on bed 1")
    assert game.facts() == before


def test_the_plan_wins_from_the_present_state(new_game):
    game = new_game(BEDROOM_FILE)
    game.act("go to desk 1")
    game.act("take pencil 1 from desk 1")
    plan = game.plan()
    answers = [game.act(command) for command in plan]
    assert "Nothing happens." not in answers
    assert game.won


def test_fifteen_games_in_turn_share_one_environment():
    ReferenceGame(BEDROOM_FILE).close()
    before = made()
    for _ in range(15):
        game = ReferenceGame(BEDROOM_FILE)
        assert game.act("examine bed 1") == "On the bed 1, you see a book 2."
        game.act("take book 2 from bed 1")
        game.close()
    assert made() == before


def test_two_games_at_once_do_not_disturb_each_other(new_game):
    one, other = new_game(BEDROOM_FILE), new_game(BEDROOM_FILE)
    one.act("take book 2 from bed 1")
    assert other.act("examine bed 1") == "On the bed 1, you see a book 2."
    assert one.act("examine bed 1") == "On the bed 1, you see nothing."


def test_a_closed_game_can_be_read_but_not_played():
    game = ReferenceGame(BEDROOM_FILE)
    game.close()
    game.close()
    other = ReferenceGame(BEDROOM_FILE)
    assert game.intro().startswith("-= Welcome")
    assert "go to desk 1" in game.commands()
    with pytest.raises(EpisodeOverError, match="the game was closed"):
        game.act("look")
    other.close()


def test_arguments_output_and_data_folder_of_the_process_stay(new_game):
    arguments, output, folder = list(sys.argv), sys.stdout, os.environ.get("ALFWORLD_DATA")
    new_game(BEDROOM_FILE).act("look")
    assert (sys.argv, sys.stdout, os.environ.get("ALFWORLD_DATA")) == (arguments, output, folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pddl_problem", ""),
        ("pddl_problem", "(define (problem x)"),
        (
            "pddl_problem",
            "(define (problem x) (:domain alfred) (:objects) (:init (nonsense a)) (:goal (and)))",
        ),
        ("pddl_domain", "(define (domain alfred))"),
        ("grammar", "action {"),
        ("grammar", None),
    ],
)
def test_a_game_that_textworld_cannot_load_is_refused_and_the_next_one_plays(key, value, new_game):
    arguments, output = list(sys.argv), sys.stdout
    record = json.loads(BEDROOM_FILE) | {key: value}
    with pytest.raises(DataError, match="TextWorld cannot load the game: "):
        ReferenceGame(json.dumps(record))
    assert (sys.argv, sys.stdout) == (arguments, output)
    assert new_game(BEDROOM_FILE).act("examine bed 1") == "On the bed 1, you see a book 2."


def test_four_threads_may_play_at_once():
    names = ["place", "look", "two", "place"]

    def play(name: str) -> list[tuple[str, bool]]:
        game = ReferenceGame(PLAYS[name].file_text)
        try:
            return [(game.act(command), game.won) for command, _, _ in list(PLAYS[name].answers())[:10]]
        finally:
            game.close()

    with ThreadPoolExecutor(4) as pool:
        played = list(pool.map(play, names))
    for name, seen in zip(names, played, strict=True):
        assert seen == [(answer, won) for _, answer, won in list(PLAYS[name].answers())[:10]]
