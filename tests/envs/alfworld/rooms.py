"""Small rooms written as short texts, for tests."""

from arl_gym.envs.alfworld.game import Game
from arl_gym.envs.alfworld.scene import (
    CLEANABLE,
    COOLABLE,
    HEATABLE,
    PICKUPABLE,
    TASK_TYPES,
    TOGGLEABLE,
    Goal,
    Receptacle,
    Scene,
    Thing,
)
from arl_gym.rng import Rng

SIMPLE, LOOK, CLEAN, HEAT, COOL, TWO = TASK_TYPES
DOORS = ("cabinet", "drawer", "fridge", "microwave")
TREATABLE = CLEANABLE | HEATABLE | COOLABLE


def id_of(name):
    """An id that gives this name: of a class, the first id gets the highest number."""
    kind, number = name.split()
    plain = kind.removesuffix("basin")
    return f"{plain}_bar_{99 - int(number):02d}" + ("_bar_sinkbasin" if plain != kind else "")


def room(task_type, what, where, receptacles, things, *, fixed=(), unfit=(), held="", grammar="0.4", **state):
    """A game from "cabinet 1 @ a" (the location; none: out of reach) and "mug 1 @ cabinet 1 @ shelf 1".

    `fixed` objects cannot be picked up, `unfit` pairs (receptacle type, object type) do not go together, the
    rest of the keywords are fields of `Scene`, in names.
    """
    at = {
        r: f"loc_bar_{place}" if place else ""
        for r, _, place in (row.partition(" @ ") for row in receptacles)
    }
    spots = {o: places for o, *places in (row.split(" @ ") for row in things)}
    fits = {(r.split()[0], o.split()[0]) for r in at for o in spots}

    def abilities(o):
        can_do = TOGGLEABLE if o.startswith("desklamp") else TREATABLE
        return can_do | (0 if o in fixed else PICKUPABLE)

    scene = Scene(
        receptacles=tuple(Receptacle(id_of(r), r.split()[0], at[r], r.startswith(DOORS)) for r in at),
        things=tuple(Thing(id_of(o), o.split()[0], abilities(o)) for o in spots),
        start="loc_bar_start",
        can_contain=frozenset(fits - set(unfit)),
        inside=frozenset((id_of(o), id_of(r)) for o, places in spots.items() for r in places),
        lying=frozenset((id_of(o), at[r]) for o, places in spots.items() for r in places if at[r]),
        held=id_of(held) if held else "",
        **{key: frozenset(map(id_of, names)) for key, names in state.items()},
    )
    return Game.of_scene(scene, Goal(task_type, what, where), task="do it", grammar=grammar)


KINDS = {
    SIMPLE: "shelf",
    CLEAN: "cabinet",
    HEAT: "garbagecan",
    COOL: "drawer",
    TWO: "cabinet",
    LOOK: "desklamp",
}
APPLIANCES = {CLEAN: "sinkbasin", HEAT: "microwave", COOL: "fridge"}


def random_room(task_type, seed, *, n_places=3, n_things=2):
    """A room of any kind, with what is rare in real ones, such as objects in two places at once."""
    draw = Rng("random room", task_type, seed)

    def chance(one_in):
        return draw.below(one_in) == 0

    def numbered(kinds):
        return [f"{kind} {kinds[: i + 1].count(kind)}" for i, kind in enumerate(kinds)]

    target = KINDS[task_type]
    must = [APPLIANCES[task_type]] if task_type in APPLIANCES else []
    must += [] if task_type == LOOK else [target]
    more = ["countertop", "drawer", "cabinet", target if task_type != LOOK else "desk", *must]
    kinds = must + [draw.choice(more) for _ in range(n_places - len(must))]
    receptacles = [
        f"{r} @ {'' if chance(16) else draw.choice('abcd'[: n_places + 1])}" for r in numbered(kinds)
    ]
    places = [row.partition(" @ ")[0] for row in receptacles]
    first = ["mug", "mug"] if task_type == TWO else ["mug", "desklamp"] if task_type == LOOK else ["mug"]
    names = numbered(first + [draw.choice(["mug", "mug", "knife"]) for _ in range(n_things - len(first))])
    held = draw.choice(names) if chance(3) else ""
    things = [
        " @ ".join(
            [name]
            + ([] if name == held else [draw.choice(places)])
            + ([draw.choice(places)] if chance(6) else [])
        )
        for name in names
    ]
    lamps = [name for name in names if name.startswith("desklamp")]
    fixed = [name for name in names if chance(12)] + ([] if chance(2) else lamps)
    pairs = sorted({(r.split()[0], o.split()[0]) for r in places for o in names})
    return room(
        task_type,
        "mug",
        target,
        receptacles,
        things,
        fixed=fixed,
        unfit=[pair for pair in pairs if chance(10)],
        opened=[r for r in places if r.startswith(DOORS) and chance(4)],
        held=held,
        **(
            {"hot": ["mug 1"], "cool": ["mug 1"], "clean": ["mug 1"]}
            if chance(6) and task_type != LOOK
            else {}
        ),
        **({"toggled": lamps} if chance(4) else {}),
    )
