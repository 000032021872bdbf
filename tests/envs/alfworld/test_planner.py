import copy
from collections import defaultdict, deque

import pytest

from arl_gym.envs.alfworld.house import NOTHING_HAPPENS, House
from arl_gym.envs.alfworld.planner import NoPlan, plan, thought
from arl_gym.envs.alfworld.scene import TASK_TYPES
from arl_gym.errors import DataError
from arl_gym.rng import Rng
from tests.envs.alfworld.rooms import CLEAN, COOL, HEAT, LOOK, SIMPLE, TWO, random_room, room

QUESTIONS = ("look", "inventory", "help", "examine")
KITCHEN = [
    "countertop 1 @ a",
    "cabinet 1 @ b",
    "fridge 1 @ c",
    "microwave 1 @ d",
    "sinkbasin 1 @ e",
    "shelf 1 @ f",
]


def clone(house):
    """The same state, to be played on separately."""
    twin = copy.copy(house)
    for name in ("lying", "removed", "opened", "clean", "hot", "cool", "toggled", "sliced"):
        setattr(twin, name, set(getattr(house, name)))
    twin.contents = [list(inside) for inside in house.contents]
    return twin


def after(house, command):
    twin = clone(house)
    twin.act(command)
    return twin


def deeds(house):
    return [command for command in house.commands() if not command.startswith(QUESTIONS)]


def length(house):
    """Commands of the plan; None if there is none."""
    try:
        return len(plan(house))
    except NoPlan:
        return None


def distances(house):
    """Every reachable state, and the fewest commands from there to the goal (None: it cannot be reached)."""
    states, todo = {house.key: house}, deque([house])
    before = defaultdict(list)
    while todo:
        state = todo.popleft()
        # Won states are played on, too: what is won can be lost again.
        for command in deeds(state):
            twin = after(state, command)
            if twin.key not in states:
                states[twin.key] = twin
                todo.append(twin)
            before[twin.key].append(state.key)
    left = dict.fromkeys(states) | {key: 0 for key, state in states.items() if state.won}
    queue = deque(key for key, n in left.items() if n == 0)
    while queue:
        key = queue.popleft()
        for earlier in before[key]:
            if left[earlier] is None:
                left[earlier] = left[key] + 1
                queue.append(earlier)
    return [(states[key], left[key]) for key in states]


def play(house, commands):
    for command in commands:
        assert not house.won
        assert house.act(command) != NOTHING_HAPPENS
    assert house.won


# ---- optimal and playable


@pytest.mark.parametrize("task_type", TASK_TYPES)
@pytest.mark.parametrize("seed", range(2))
def test_in_every_state_of_a_small_room_no_commands_win_sooner(task_type, seed):
    for state, fewest in distances(House(random_room(task_type, seed))):
        assert length(state) == fewest


@pytest.mark.parametrize("task_type", TASK_TYPES)
@pytest.mark.parametrize("seed", range(100, 103))
def test_no_command_saves_more_than_itself(task_type, seed):
    """If this holds in every state, and the plans win, no plan can be longer than need be."""
    house = House(random_room(task_type, seed, n_places=6, n_things=6))
    draw = Rng("walk", task_type, seed)
    for _ in range(12):
        here = length(house)
        for command in deeds(house):
            then = length(after(house, command))
            assert then is None or (here is not None and here <= then + 1), command
        house = after(house, draw.choice(deeds(house)))


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_from_any_state_the_plan_wins_at_its_last_command(task_type):
    n_played = 0
    for seed in range(200, 215):
        house = House(random_room(task_type, seed, n_places=8, n_things=8))
        draw = Rng("walk", task_type, seed)
        for _ in range(10):
            if length(house) is not None:
                play(clone(house), plan(house))
                n_played += 1
            house.act(
                draw.choice(
                    [c for c in deeds(house) if not c.startswith("go") or draw.below(3) == 0] or ["look"]
                )
            )
    assert n_played > 50


def test_planning_changes_nothing():
    house = House(random_room(TWO, 0, n_places=6, n_things=6))
    key = house.key
    assert plan(house) == plan(house)
    assert house.key == key


def test_a_won_game_needs_no_commands():
    assert plan(House(room(SIMPLE, "mug", "shelf", KITCHEN, ["mug 1 @ shelf 1"]))) == []


# ---- what it chooses


def test_it_goes_opens_takes_goes_opens_and_moves():
    game = room(SIMPLE, "mug", "fridge", KITCHEN, ["mug 1 @ cabinet 1", "knife 1 @ countertop 1"])
    assert plan(House(game)) == [
        "go to cabinet 1",
        "open cabinet 1",
        "take mug 1 from cabinet 1",
        "go to fridge 1",
        "open fridge 1",
        "move mug 1 to fridge 1",
    ]


def test_it_speaks_the_older_grammar():
    game = room(SIMPLE, "mug", "shelf", KITCHEN, ["mug 1 @ countertop 1"], grammar="0.3")
    assert plan(House(game))[-1] == "put mug 1 in/on shelf 1"


def test_heating_needs_no_open_door():
    game = room(HEAT, "mug", "shelf", KITCHEN, ["mug 1 @ countertop 1"])
    assert plan(House(game)) == [
        "go to countertop 1",
        "take mug 1 from countertop 1",
        "go to microwave 1",
        "heat mug 1 with microwave 1",
        "go to shelf 1",
        "move mug 1 to shelf 1",
    ]


def test_what_lies_in_place_untreated_is_taken_treated_and_put_back():
    game = room(CLEAN, "mug", "shelf", KITCHEN, ["mug 1 @ shelf 1"])
    assert plan(House(game)) == [
        "go to shelf 1",
        "take mug 1 from shelf 1",
        "go to sinkbasin 1",
        "clean mug 1 with sinkbasin 1",
        "go to shelf 1",
        "move mug 1 to shelf 1",
    ]


def test_what_is_cool_already_is_preferred_to_what_is_nearer():
    things = ["mug 1 @ countertop 1", "mug 2 @ cabinet 1"]
    house = House(room(COOL, "mug", "shelf", KITCHEN, things, cool=["mug 2"], opened=["cabinet 1"]))
    house.act("go to countertop 1")
    assert plan(house) == [
        "go to cabinet 1",
        "take mug 2 from cabinet 1",
        "go to shelf 1",
        "move mug 2 to shelf 1",
    ]


def test_treating_wins_where_the_object_still_lies_in_a_second_place():
    house = House(room(CLEAN, "mug", "shelf", KITCHEN, ["mug 1 @ shelf 1 @ sinkbasin 1"]))
    assert plan(house) == ["go to sinkbasin 1", "take mug 1 from sinkbasin 1", "clean mug 1 with sinkbasin 1"]


def test_the_wrong_object_is_left_where_the_way_leads():
    # Nothing may lie on the countertop but what is there; the cabinet must be opened for the mug anyway.
    game = room(
        SIMPLE,
        "mug",
        "shelf",
        KITCHEN,
        ["mug 1 @ cabinet 1", "knife 1 @ countertop 1"],
        unfit=[("countertop", "knife"), ("shelf", "knife")],
    )
    house = House(game)
    house.act("go to countertop 1")
    house.act("take knife 1 from countertop 1")
    assert plan(house) == [
        "go to cabinet 1",
        "open cabinet 1",
        "move knife 1 to cabinet 1",
        "take mug 1 from cabinet 1",
        "go to shelf 1",
        "move mug 1 to shelf 1",
    ]


def test_two_go_where_one_lies_already():
    places = ["cabinet 1 @ a", "cabinet 2 @ b", "countertop 1 @ c"]
    house = House(room(TWO, "mug", "cabinet", places, ["mug 1 @ cabinet 2", "mug 2 @ countertop 1"]))
    assert plan(house) == [
        "go to countertop 1",
        "take mug 2 from countertop 1",
        "go to cabinet 2",
        "open cabinet 2",
        "move mug 2 to cabinet 2",
    ]


def test_two_in_different_cabinets_come_together():
    places = ["cabinet 1 @ a", "cabinet 2 @ a"]
    house = House(room(TWO, "mug", "cabinet", places, ["mug 1 @ cabinet 1", "mug 2 @ cabinet 2"]))
    # Both stand at one location, both are closed: go, open, take, open, move.
    assert length(house) == 5


def test_the_one_held_is_brought_first():
    things = ["mug 1 @ countertop 1", "mug 2"]
    house = House(room(TWO, "mug", "shelf", KITCHEN, things, held="mug 2"))
    assert plan(house) == [
        "go to shelf 1",
        "move mug 2 to shelf 1",
        "go to countertop 1",
        "take mug 1 from countertop 1",
        "go to shelf 1",
        "move mug 1 to shelf 1",
    ]


@pytest.mark.parametrize(
    ("places", "things", "state", "expected"),
    [
        pytest.param(
            ["desk 1 @ a", "drawer 1 @ b"],
            ["mug 1 @ desk 1", "desklamp 1 @ drawer 1"],
            {},
            ["go to desk 1", "take mug 1 from desk 1", "go to drawer 1", "use desklamp 1"],
            id="lamp in a closed drawer",
        ),
        pytest.param(
            ["desk 1 @ a", "shelf 1 @ a"],
            ["mug 1 @ desk 1", "desklamp 1 @ shelf 1"],
            {},
            ["go to desk 1", "take mug 1 from desk 1", "use desklamp 1"],
            id="lamp at the same location",
        ),
        pytest.param(
            ["desk 1 @ a", "shelf 1 @ b"],
            ["mug 1", "desklamp 1 @ shelf 1"],
            {"toggled": ["desklamp 1"], "held": "mug 1"},
            ["go to shelf 1"],
            id="lamp on, object held",
        ),
        pytest.param(
            ["desk 1 @ a"],
            ["mug 1 @ desk 1", "desklamp 1"],
            {"held": "desklamp 1"},
            ["go to desk 1", "move desklamp 1 to desk 1", "take mug 1 from desk 1", "use desklamp 1"],
            id="lamp in the hand",
        ),
    ],
)
def test_looking_needs_the_object_in_the_hand_and_the_lamp_on(places, things, state, expected):
    house = House(room(LOOK, "mug", "desklamp", places, things, **state))
    commands = plan(house)
    assert sorted(commands) == sorted(expected)
    play(house, commands)


def test_equal_choices_are_not_always_the_same_instance():
    places = [f"cabinet {n} @ {n}" for n in range(1, 6)] + ["shelf 1 @ s"]
    rooms = [
        room(SIMPLE, "mug", "shelf", places, [f"mug {n} @ cabinet {n}" for n in range(1, k)])
        for k in range(3, 7)
    ]
    assert len({plan(House(game))[0] for game in rooms}) > 1


@pytest.mark.parametrize(
    ("task_type", "what", "where", "things", "more"),
    [
        pytest.param(SIMPLE, "mug", "shelf", ["mug 1 @ countertop 1"], {"fixed": ["mug 1"]}, id="fixed"),
        pytest.param(SIMPLE, "mug", "shelf", ["mug 1 @ cabinet 9"], {}, id="out of reach"),
        pytest.param(
            SIMPLE, "mug", "shelf", ["mug 1 @ fridge 1"], {"unfit": [("shelf", "mug")]}, id="does not fit"
        ),
        pytest.param(TWO, "mug", "shelf", ["mug 1 @ countertop 1"], {}, id="only one"),
        pytest.param(
            LOOK, "mug", "desklamp", ["mug 1 @ shelf 1", "desklamp 1"], {}, id="lamp in no receptacle"
        ),
    ],
)
def test_what_cannot_be_done_is_said(task_type, what, where, things, more):
    game = room(task_type, what, where, [*KITCHEN, "cabinet 9 @ "], things, **more)
    with pytest.raises(NoPlan, match=f"no commands win from here.*{what}"):
        plan(House(game))


# ---- thoughts


def test_every_command_of_a_plan_has_its_reason():
    house = House(room(HEAT, "mug", "fridge", KITCHEN, ["mug 1 @ cabinet 1"]))
    said = []
    for i, command in enumerate(commands := plan(house)):
        said.append(thought(house, commands[i:]))
        house.act(command)
    assert said == [
        "I need a mug to heat; one is in cabinet 1.",
        "Cabinet 1 is closed; I open it to get the mug.",
        "The mug is here; I take it.",
        "The mug has to be hot; microwave 1 is for that.",
        "The mug has to be hot; I am at microwave 1.",
        "The mug is hot now; it goes in fridge 1.",
        "Fridge 1 is closed; I open it so that the mug can go in.",
        "The mug goes here, in fridge 1.",
    ]


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_thoughts_are_short_sentences(task_type):
    for seed in range(20):
        house = House(random_room(task_type, seed, n_places=6, n_things=6))
        commands = plan(house) if length(house) else []
        for i, command in enumerate(commands):
            text = thought(house, commands[i:])
            assert text[0].isupper()
            assert text.endswith(".")
            assert len(text) <= 100
            house.act(command)


def test_a_thought_is_only_about_plans():
    house = House(room(SIMPLE, "mug", "shelf", KITCHEN, ["mug 1 @ countertop 1"]))
    with pytest.raises(DataError, match="expected a command of a plan, got 'look'"):
        thought(house, ["look"])
