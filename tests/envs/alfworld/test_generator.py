import os
import subprocess
import sys
from collections import Counter
from itertools import product

import pytest

from arl_gym.core import SPLITS
from arl_gym.envs.alfworld.game import Game
from arl_gym.envs.alfworld.generator import ROOMS, Settings, draw
from arl_gym.envs.alfworld.house import House
from arl_gym.envs.alfworld.scene import CLEANABLE, COOLABLE, HEATABLE, PICKUPABLE, TASK_TYPES, VESSEL
from arl_gym.errors import ConfigError, UnknownNameError

DEFAULT = Settings()
TIGHT = Settings(num_receptacles=3, num_objects=2)
SIZES = {"train": 300, "val": 100, "test": 100, "test_ood": 100}

# Receptacles of a room: at least and at most.
COUNTS = {
    "kitchen": {
        "cabinet": (4, 12),
        "countertop": (1, 3),
        "drawer": (3, 9),
        "stoveburner": (4, 4),
        "diningtable": (0, 2),
        "shelf": (0, 3),
        "fridge": (1, 1),
        "microwave": (1, 1),
        "sinkbasin": (1, 1),
        "coffeemachine": (1, 1),
        "toaster": (1, 1),
        "garbagecan": (1, 1),
    },
    "living": {
        "armchair": (1, 2),
        "coffeetable": (1, 2),
        "sidetable": (1, 3),
        "drawer": (2, 6),
        "shelf": (0, 4),
        "cabinet": (0, 4),
        "tvstand": (0, 1),
        "dresser": (0, 1),
        "diningtable": (0, 1),
        "sofa": (1, 1),
        "garbagecan": (1, 1),
    },
    "bedroom": {
        "desk": (1, 2),
        "sidetable": (1, 2),
        "drawer": (2, 8),
        "shelf": (0, 6),
        "dresser": (0, 1),
        "laundryhamper": (0, 1),
        "safe": (0, 1),
        "armchair": (0, 1),
        "bed": (1, 1),
        "garbagecan": (1, 1),
    },
    "bathroom": {
        "sinkbasin": (1, 2),
        "handtowelholder": (1, 2),
        "bathtubbasin": (0, 1),
        "cabinet": (2, 6),
        "drawer": (0, 4),
        "shelf": (0, 2),
        "toilet": (1, 1),
        "countertop": (1, 1),
        "towelholder": (1, 1),
        "toiletpaperhanger": (1, 1),
        "garbagecan": (1, 1),
    },
}
ROOMS_OF = {
    "pick_and_place_simple": {"kitchen", "living", "bedroom", "bathroom"},
    "look_at_obj_in_light": {"living", "bedroom"},
    "pick_clean_then_place_in_recep": {"kitchen", "bathroom"},
    "pick_heat_then_place_in_recep": {"kitchen"},
    "pick_cool_then_place_in_recep": {"kitchen"},
    "pick_two_obj_and_place": {"kitchen", "living", "bedroom", "bathroom"},
}
TREATMENTS = {
    "pick_clean_then_place_in_recep": ("clean", "sinkbasin", CLEANABLE),
    "pick_heat_then_place_in_recep": ("heat", "microwave", HEATABLE),
    "pick_cool_then_place_in_recep": ("cool", "fridge", COOLABLE),
}
LAMP_STANDS = {"sidetable", "desk", "dresser", "coffeetable", "shelf", "tvstand"}


@pytest.fixture(scope="module")
def drawn():
    """Return the first tasks of every split."""
    return {split: [draw(DEFAULT, split, i) for i in range(n)] for split, n in SIZES.items()}


@pytest.fixture(scope="module")
def tasks(drawn):
    return [task for split in SPLITS for task in drawn[split]]


def game_of(task):
    return Game.of_scene(task.scene, task.goal, task=task.task)


def layout_of(task):
    return tuple(sorted(r.type for r in task.scene.receptacles))


def content_of(task):
    """Return what lies in what, by type: all that a scene is but for ids, numbers and places."""
    kinds = {e.id: e.type for e in (*task.scene.receptacles, *task.scene.things)}
    held = sorted((kinds[o], kinds[r]) for o, r in task.scene.inside | task.scene.within)
    return layout_of(task), tuple(held)


# ---- what is drawn


def test_rooms_have_the_receptacles_of_their_kind(tasks):
    for task in tasks:
        found = Counter(layout_of(task))
        assert found.keys() <= COUNTS[task.room].keys()
        for kind, (lo, hi) in COUNTS[task.room].items():
            assert lo <= found[kind] <= hi


def test_every_number_of_receptacles_occurs(tasks):
    seen = {(task.room, kind, Counter(layout_of(task))[kind]) for task in tasks for kind in COUNTS[task.room]}
    possible = {
        (room, kind, n)
        for room, kinds in COUNTS.items()
        for kind, (lo, hi) in kinds.items()
        for n in range(lo, hi + 1)
    }
    assert seen == possible


def test_every_task_type_comes_in_turn_and_in_every_room_that_allows_it(drawn):
    for tasks_of_split in drawn.values():
        assert [t.goal.task_type for t in tasks_of_split] == [
            TASK_TYPES[i % 6] for i in range(len(tasks_of_split))
        ]
    rooms = {kind: {t.room for t in drawn["train"] if t.goal.task_type == kind} for kind in TASK_TYPES}
    assert rooms == ROOMS_OF


def test_ids_look_like_the_benchmark_s_and_are_unique(tasks):
    scene = tasks[2].scene
    assert all(i == i.lower() for i in (*(t.id for t in scene.things), *(r.id for r in scene.receptacles)))
    basins = [r.id for task in tasks for r in task.scene.receptacles if "basin" in r.type]
    assert all(i.startswith(("sink_bar_", "bathtub_bar_")) and i.endswith("basin") for i in basins)
    for task in tasks:
        ids = [e.id for e in (*task.scene.receptacles, *task.scene.things)]
        assert len(ids) == len(set(ids))
        assert all(i.count("_bar_") == 4 if "basin" in i else i.count("_bar_") == 3 for i in ids)


def test_about_one_receptacle_in_seven_shares_its_place_and_the_agent_starts_at_none(tasks):
    receptacles = places = 0
    for task in tasks:
        at = {r.location for r in task.scene.receptacles}
        assert task.scene.start not in at
        assert all(i.startswith("loc_bar_") and i.count("_bar_") == 4 for i in (*at, task.scene.start))
        receptacles, places = receptacles + len(task.scene.receptacles), places + len(at)
    assert 0.12 < 1 - places / receptacles < 0.17


def test_objects_lie_where_they_fit_and_at_that_place(tasks):
    for task in tasks:
        scene, at = task.scene, {r.id: r.location for r in task.scene.receptacles}
        kinds = {e.id: e.type for e in (*scene.receptacles, *scene.things)}
        holder = dict(scene.inside)
        assert len(holder) == len(scene.inside)
        assert dict(scene.lying) == {
            **{o: at[r] for o, r in scene.inside},
            **{o: at[holder[v]] for o, v in scene.within},
        }
        assert holder.keys() | {o for o, _ in scene.within} == {t.id for t in scene.things}
        for o, r in scene.inside:
            stands = {"desklamp": LAMP_STANDS, "houseplant": {*LAMP_STANDS, "countertop", "diningtable"}}
            assert (kinds[r], kinds[o]) in scene.can_contain or kinds[r] in stands[kinds[o]]
        assert scene.can_contain <= set(product({kinds[r] for r in at}, {t.type for t in scene.things}))


def test_vessels_now_and_then_have_something_in_them(tasks):
    filled = [task for task in tasks if task.scene.within]
    assert 0.02 < len(filled) / len(tasks) < 0.15
    for task in filled:
        ((inner, vessel),) = task.scene.within
        things = {t.id: t for t in task.scene.things}
        assert things[vessel].abilities & VESSEL
        assert things[inner].type not in task.goal[1:]
        assert not any(o == inner for o, _ in task.scene.inside)


def test_some_games_start_with_one_open_receptacle(tasks):
    assert {len(task.scene.opened) for task in tasks} == {0, 1}
    assert 0.08 < sum(len(task.scene.opened) for task in tasks) / len(tasks) < 0.22
    for task in tasks:
        assert task.scene.opened <= {r.id for r in task.scene.receptacles if r.openable}


def test_both_wordings_are_used(drawn):
    kinds = {
        "pick_and_place_simple": {"put a", "put some"},
        "look_at_obj_in_light": {"look at", "examine the"},
    }
    for task_type, starts in kinds.items():
        of_type = [t for t in drawn["train"] if t.goal.task_type == task_type]
        assert {" ".join(t.task.split()[:2]) for t in of_type} == starts
    task = drawn["train"][2]
    assert task.task in {
        f"put a clean {task.goal.object_type} in {task.goal.place_type}.",
        f"clean some {task.goal.object_type} and put it in {task.goal.place_type}.",
    }


# ---- that it can be solved


def solve(game):
    """Play a game by the obvious plan, knowing where everything is."""
    house = House(game)
    task_type, what, where = game.goal
    at = {
        o: r for o, r in game.inside if game.abilities[o] & PICKUPABLE or game.object_types[o] == "desklamp"
    }

    def visit(r):
        house.act(f"go to {game.receptacles[r]}")
        house.act(f"open {game.receptacles[r]}")

    def first(kind):
        return game.receptacle_types.index(kind)

    wanted = [o for o in at if game.object_types[o] == what]
    for o in wanted[: 2 if task_type == "pick_two_obj_and_place" else 1]:
        name = game.objects[o]
        visit(at[o])
        house.act(f"take {name} from {game.receptacles[at[o]]}")
        if task_type == "look_at_obj_in_light":
            lamp = next(o for o in at if game.object_types[o] == where)
            visit(at[lamp])
            house.act(f"use {game.objects[lamp]}")
            continue
        if task_type in TREATMENTS:
            verb, appliance, _ = TREATMENTS[task_type]
            visit(first(appliance))
            house.act(f"{verb} {name} with {game.receptacles[first(appliance)]}")
        visit(first(where))
        house.act(f"move {name} to {game.receptacles[first(where)]}")
    return house


@pytest.mark.parametrize("settings", [DEFAULT, TIGHT], ids=["default", "tight"])
def test_every_game_can_be_won_and_is_not_won_at_the_start(settings):
    for split in SPLITS:
        for i in range(60):
            game = game_of(draw(settings, split, i))
            assert not House(game).won
            assert solve(game).won


def test_the_object_never_starts_where_it_has_to_go(tasks):
    for task in tasks:
        kinds = {e.id: e.type for e in (*task.scene.receptacles, *task.scene.things)}
        held = [(kinds[o], kinds[r]) for o, r in task.scene.inside]
        assert task.goal[1:] not in held
        wanted = [r for o, r in held if o == task.goal.object_type]
        assert len(wanted) >= (2 if task.goal.task_type == "pick_two_obj_and_place" else 1)


def test_no_appliance_is_the_place_it_treats_things_for(tasks):
    for task in tasks:
        if task.goal.task_type in TREATMENTS:
            _, appliance, ability = TREATMENTS[task.goal.task_type]
            assert task.goal.place_type != appliance
            assert appliance in layout_of(task)
            assert all(t.abilities & ability for t in task.scene.things if t.type == task.goal.object_type)


# ---- splits


def test_no_scene_is_in_two_splits_whatever_the_settings(drawn):
    of_split = {
        split: {
            *map(content_of, drawn[split]),
            *(content_of(draw(TIGHT, split, i)) for i in range(SIZES[split])),
            *(
                content_of(
                    draw(Settings(rooms=("bathroom",), task_types=(TASK_TYPES[0],), num_objects=1), split, i)
                )
                for i in range(SIZES[split])
            ),
        }
        for split in SPLITS
    }
    assert sum(map(len, of_split.values())) == len(set().union(*of_split.values()))


def test_out_of_distribution_are_layouts_and_pairs_that_no_other_split_has(drawn):
    for part in (layout_of, lambda task: task.goal[1:]):
        ours = {part(task) for task in drawn["test_ood"]}
        assert not ours & {part(task) for split in ("train", "val", "test") for task in drawn[split]}


def test_games_of_a_split_differ(drawn):
    for tasks_of_split in drawn.values():
        assert len({game_of(task).content_hash for task in tasks_of_split}) == len(tasks_of_split)


# ---- settings


def test_capped_rooms_keep_what_the_task_needs():
    for split, i in product(SPLITS, range(24)):
        scene = draw(TIGHT, split, i).scene
        assert len(scene.receptacles) <= 3
        assert len(scene.things) <= 2


def test_a_cap_above_the_room_s_size_changes_nothing():
    assert draw(Settings(num_receptacles=99, num_objects=999), "val", 2) == draw(DEFAULT, "val", 2)


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"task_types": ("pick_and_place",)}, UnknownNameError, "did you mean 'pick_and_place_simple'"),
        ({"rooms": ("garage",)}, UnknownNameError, "unknown room 'garage'"),
        ({"rooms": ()}, ConfigError, "expected one room or more"),
        ({"task_types": TASK_TYPES[:1] * 2}, ConfigError, "expected one task type or more, each once"),
        (
            {"rooms": ("living", "bathroom")},
            ConfigError,
            "pick_heat_then_place_in_recep needs one of the rooms kitchen",
        ),
        (
            {"task_types": TASK_TYPES[1:2], "rooms": ("kitchen",)},
            ConfigError,
            "needs one of the rooms living, bedroom",
        ),
        ({"num_objects": 1}, ConfigError, "num_objects must be a whole number of at least 2 here, got 1"),
        ({"num_objects": 2.5}, ConfigError, "num_objects must be a whole number of at least 2 here, got 2.5"),
        ({"num_objects": 0, "task_types": TASK_TYPES[:1]}, ConfigError, "at least 1 here, got 0"),
        (
            {"num_receptacles": 1, "task_types": TASK_TYPES[:1]},
            ConfigError,
            "num_receptacles must be .* at least 2",
        ),
        ({"num_receptacles": 0, "task_types": TASK_TYPES[1:2]}, ConfigError, "at least 1 here, got 0"),
    ],
)
def test_settings_that_allow_no_task_are_refused(settings, error, says):
    with pytest.raises(error, match=says):
        Settings(**settings)


def test_the_least_number_of_receptacles_that_is_named_is_enough():
    with pytest.raises(ConfigError, match="at least 3 here, got 2"):
        Settings(num_receptacles=2)
    assert Settings(num_receptacles=3).num_receptacles == 3


def test_an_unknown_split_is_refused():
    with pytest.raises(UnknownNameError, match="unknown split 'dev'"):
        draw(DEFAULT, "dev", 0)


def test_every_kind_of_room_alone_allows_some_task():
    for room in ROOMS:
        settings = Settings(rooms=(room,), task_types=("pick_and_place_simple", "pick_two_obj_and_place"))
        assert {draw(settings, split, i).room for split in SPLITS for i in range(4)} == {room}


# ---- the same everywhere


def test_a_drawn_scene_does_not_depend_on_the_hash_seed():
    code = (
        "from arl_gym.envs.alfworld.generator import Settings, draw\n"
        "from arl_gym.envs.alfworld.pddl import write_problem\n"
        "task = draw(Settings(), 'train', 2)\n"
        "print(task.task, write_problem(task.scene, task.goal))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
