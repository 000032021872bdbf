import json

import pytest

from arl_gym.assets import asset
from arl_gym.envs.alfworld.game import Game, read_game
from arl_gym.envs.alfworld.grammars import UnknownRules, check_domain, read_grammar
from arl_gym.envs.alfworld.scene import PICKUPABLE, Goal, Receptacle, Scene, Thing
from arl_gym.errors import DataError

DOMAIN = asset("alfworld/alfred.pddl").read_text()
GRAMMAR = asset("alfworld/alfred.twl2").read_text()
GOAL = Goal("pick_and_place_simple", "mug", "shelf")


def scene(**changes) -> Scene:
    parts = {
        "receptacles": (
            Receptacle("shelf_bar_1", "shelf", "loc_bar_1", False),
            Receptacle("shelf_bar_2", "shelf", "loc_bar_2", False),
            Receptacle("sink_bar_1_bar_sinkbasin", "sinkbasin", "loc_bar_1", False),
        ),
        "things": (Thing("mug_bar_1", "mug", PICKUPABLE), Thing("apple_bar_9", "apple", PICKUPABLE)),
        "start": "loc_bar_9",
        "can_contain": frozenset({("shelf", "mug"), ("bed", "mug")}),
        "inside": frozenset({("mug_bar_1", "sink_bar_1_bar_sinkbasin")}),
        "lying": frozenset({("mug_bar_1", "loc_bar_1")}),
    }
    return Scene(**{**parts, **changes})


def game(**changes) -> Game:
    return Game.of_scene(scene(**changes), GOAL, task="put a mug in shelf.")


def file_text(**changes: object) -> str:
    problem = """(define (problem p) (:domain alfred) (:objects a - agent)
        (:init (atLocation agent1 loc_bar_9) (= (total-cost) 0) (= (distance loc_bar_9 loc_bar_1) 3) ; words
        (receptacleType Shelf_bar_1 ShelfType) (receptacleAtLocation Shelf_bar_1 loc_bar_1)
        (objectType Mug_bar_1 MugType) (pickupable Mug_bar_1) (canContain ShelfType MugType))
        (:goal (and (exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r)
        (objectType ?o MugType) (receptacleType ?r ShelfType)))))))"""
    grammar = GRAMMAR.replace("UNKNOWN GOAL", "put a mug in shelf")
    return json.dumps({"pddl_domain": DOMAIN, "grammar": grammar, "pddl_problem": problem, **changes})


def test_the_first_id_of_a_class_gets_the_highest_number():
    assert game().receptacles == ("shelf 2", "shelf 1", "sinkbasin 1")
    assert game().objects == ("apple 1", "mug 1")
    assert game().locations == ("loc 3", "loc 2", "loc 1")


def test_ids_without_a_place_count_in_the_numbers():
    assert game(more_ids=frozenset({"loc_bar_5", "agent1"})).locations == ("loc 4", "loc 3", "loc 1")


def test_the_content_is_what_can_be_seen_and_done():
    renamed = scene()
    things = (Thing("mug_bar_7", "mug", PICKUPABLE), renamed.things[1])
    same = scene(
        things=things,
        inside=frozenset({("mug_bar_7", "sink_bar_1_bar_sinkbasin")}),
        lying=frozenset({("mug_bar_7", "loc_bar_1")}),
        can_contain=frozenset({("shelf", "mug")}),  # no bed here: what it holds does not matter
    )
    again = Game.of_scene(same, GOAL, task="put a mug in shelf.")
    assert again.content_hash == game().content_hash
    assert game(start="loc_bar_1").content_hash != game().content_hash
    assert len(game().content_hash) == 16


def test_a_game_survives_the_way_through_json():
    once = game(opened=frozenset({"shelf_bar_2"}), held="apple_bar_9", hot=frozenset({"apple_bar_9"}))
    again = Game.from_row(json.loads(json.dumps(once.to_row())))
    assert again.to_row() == once.to_row()
    assert (again.goal, again.content_hash, again.held) == (GOAL, once.content_hash, 0)


def test_a_scene_that_names_what_it_lacks_is_refused():
    with pytest.raises(DataError, match="names 'cup_bar_1'"):
        game(inside=frozenset({("cup_bar_1", "shelf_bar_1")}))


def test_a_file_is_read_in_any_case_and_with_comments():
    read = read_game(file_text())
    assert (read.task, read.goal, read.grammar) == ("put a mug in shelf.", GOAL, "0.4")
    assert (read.receptacles, read.objects, read.locations) == (("shelf 1",), ("mug 1",), ("loc 2", "loc 1"))
    assert read.help.startswith("\nAvailable commands:\n  look:")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"pddl_domain": "(define', "no JSON"),
        ("", "no JSON"),
        ("[1, 2]", "expected a JSON object, got list"),
        ('{"levels": 3}', "expected a text under 'pddl_domain', got the keys \\['levels'\\]"),
        (file_text(grammar=7), "expected a text under 'grammar'"),
        (file_text(pddl_problem="(define (problem p))"), "no section \\(:init"),
        (file_text(pddl_problem="(:init (atlocation a l)) (:goal (and))"), "none of the 6 known"),
        (file_text(pddl_problem="(:init ) (:goal (and))"), "expected one fact \\(atlocation"),
        (file_text(pddl_problem="(:init (atlocation a)) (:goal (and))"), "has 1 arguments, expected 2"),
        (file_text(grammar="nothing"), 'no rule "task"'),
    ],
)
def test_a_file_that_is_no_game_says_what_is_wrong(text, says):
    with pytest.raises(DataError, match=says):
        read_game(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"pddl_domain": DOMAIN.replace("(isClean ?o)", "(isHot ?o)")},
        {"grammar": GRAMMAR.replace("You open the", "You carefully open the")},
        {"grammar": GRAMMAR.replace("UNKNOWN GOAL", "put #something# down")},
    ],
)
def test_rules_that_are_not_known_are_told_apart_from_broken_files(changes):
    with pytest.raises(UnknownRules):
        read_game(file_text(**changes))


def test_rules_are_known_by_their_content_not_their_layout():
    check_domain("; another comment\n" + DOMAIN.replace("(:types", "( :types\n\n"))
    assert read_grammar(GRAMMAR.replace("\n", "\r\n"))[0] == "0.4"
