from dataclasses import replace

import pytest

from arl_gym.envs.alfworld.pddl import read_goal, read_problem, write_goal, write_problem
from arl_gym.envs.alfworld.scene import (
    HEATABLE,
    PICKUPABLE,
    TASK_TYPES,
    TOGGLEABLE,
    VESSEL,
    Goal,
    Receptacle,
    Scene,
    Thing,
)

GOAL = Goal("pick_heat_then_place_in_recep", "mug", "shelf")
SCENE = Scene(
    receptacles=(
        Receptacle("cabinet_bar_1", "cabinet", "loc_bar_1", True),
        Receptacle("shelf_bar_1", "shelf", "loc_bar_2", False),
        Receptacle("shelf_bar_2", "shelf", "", False),
    ),
    things=(
        Thing("desklamp_bar_1", "desklamp", TOGGLEABLE),
        Thing("mug_bar_1", "mug", PICKUPABLE | HEATABLE | VESSEL),
        Thing("pen_bar_1", "pen", PICKUPABLE),
        Thing("pen_bar_2", "pen", PICKUPABLE),
    ),
    start="loc_bar_3",
    can_contain=frozenset({("shelf", "mug"), ("cabinet", "mug")}),
    inside=frozenset({("mug_bar_1", "cabinet_bar_1"), ("desklamp_bar_1", "shelf_bar_1")}),
    lying=frozenset({("mug_bar_1", "loc_bar_1"), ("pen_bar_1", "loc_bar_4")}),
    within=frozenset({("pen_bar_1", "mug_bar_1")}),
    opened=frozenset({"cabinet_bar_1"}),
    clean=frozenset({"mug_bar_1"}),
    hot=frozenset({"mug_bar_1"}),
    cool=frozenset({"pen_bar_2"}),
    toggled=frozenset({"desklamp_bar_1"}),
    sliced=frozenset({"pen_bar_1"}),
    held="pen_bar_2",
)


def section(text, name):
    """Return the lines of a section."""
    return text.split(f"(:{name}\n")[1].split("\n)")[0].split("\n")


def test_a_problem_reads_as_it_was_written():
    scene, goal = read_problem(write_problem(SCENE, GOAL))
    assert goal == GOAL
    assert replace(scene, more_ids=frozenset()) == SCENE


def test_the_order_of_a_scene_does_not_show_in_its_file():
    turned = replace(SCENE, receptacles=SCENE.receptacles[::-1], things=SCENE.things[::-1])
    assert write_problem(turned, GOAL) == write_problem(SCENE, GOAL)


def test_every_name_is_declared_once_and_types_of_the_domain_always():
    declared = dict(reversed(line.split(" - ")) for line in section(write_problem(SCENE, GOAL), "objects"))
    assert {kind: names.split() for kind, names in declared.items()} == {
        "agent": ["agent1"],
        "object": ["desklamp_bar_1", "mug_bar_1", "pen_bar_1", "pen_bar_2"],
        "receptacle": ["cabinet_bar_1", "shelf_bar_1", "shelf_bar_2"],
        "location": ["loc_bar_1", "loc_bar_2", "loc_bar_3", "loc_bar_4"],
        "rtype": ["cabinettype", "fridgetype", "microwavetype", "shelftype", "sinkbasintype"],
        "otype": ["butterknifetype", "desklamptype", "knifetype", "mugtype", "pentype"],
    }


def test_facts_are_those_of_the_scene():
    facts = section(write_problem(SCENE, GOAL), "init")
    assert len(facts) == len(set(facts))
    assert [fact for fact in facts if "cabinet_bar_1" in fact] == [
        "(receptacletype cabinet_bar_1 cabinettype)",
        "(receptacleatlocation cabinet_bar_1 loc_bar_1)",
        "(openable cabinet_bar_1)",
        "(inreceptacle mug_bar_1 cabinet_bar_1)",
        "(opened cabinet_bar_1)",
    ]
    assert [fact for fact in facts if "pen_bar_2" in fact] == [
        "(objecttype pen_bar_2 pentype)",
        "(pickupable pen_bar_2)",
        "(iscool pen_bar_2)",
        "(holds agent1 pen_bar_2)",
    ]
    assert "(holdsany agent1)" in facts
    assert not any("holds" in fact for fact in section(write_problem(replace(SCENE, held=""), GOAL), "init"))


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_goals_read_as_they_were_written(task_type):
    goal = Goal(task_type, "mug", "desklamp" if task_type == "look_at_obj_in_light" else "shelf")
    assert read_goal(write_goal(goal)) == goal
    assert read_problem(write_problem(SCENE, goal))[1] == goal
