"""The expert of the household tasks: a shortest list of commands that wins, and a sentence of reasons.

>>> for command in plan(house):  # doctest: +SKIP
...     house.act(command)

The planner sees the whole state, closed receptacles too. It does not search over commands: a task takes a
few errands (take this there, heat it there, put it there), so it lists the ways to choose them and counts
the commands of each.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product

from arl_gym.envs.alfworld.house import Command, House
from arl_gym.envs.alfworld.scene import CLEANABLE, COOLABLE, HEATABLE, PICKUPABLE, TOGGLEABLE
from arl_gym.errors import DataError

Route = tuple[Command, ...]
"""Errands in order: verb, object, receptacle. The verb "be" asks to stand there, with nothing to do."""

# Verb, ability of the object, type of the receptacle, and what the object is then.
_TREATMENTS = {
    "pick_clean_then_place_in_recep": ("clean", CLEANABLE, "sinkbasin", "clean"),
    "pick_heat_then_place_in_recep": ("heat", HEATABLE, "microwave", "hot"),
    "pick_cool_then_place_in_recep": ("cool", COOLABLE, "fridge", "cool"),
}


class NoPlan(DataError):
    """The goal cannot be reached from the present state."""


def plan(house: House) -> list[str]:
    """Return as few commands as possible that win from the present state; none if it is won.

    Among equally short ways a digest of the game decides, so no instance is preferred for its number.

    Raises:
        NoPlan: If no commands win.
    """
    if house.won:
        return []
    best: list[Command] = []
    ways = [(_fewest_steps(house, route), route) for route in _routes(house)]
    for fewest, route in sorted(ways, key=lambda way: way[0]):
        if best and fewest >= len(best):
            break
        for full in _with_free_hand(house, route):
            steps = _steps(house, full)
            if not best or len(steps) < len(best):
                best = steps
    if not best:
        raise NoPlan(f"no commands win from here; the task is {house.game.task!r}, {house.game.goal}")
    return [_command(house, step) for step in best]


# ---- from errands to commands


def _steps(house: House, route: Route) -> list[Command]:
    """Return the commands that do the errands: going there and opening the door, where needed."""
    location_of, put = house.game.location_of, house.tables.put
    place = house.place
    steps: list[Command] = []
    for verb, o, r in route:
        if location_of[r] != place:
            place = location_of[r]
            steps.append(("go to", -1, r))
        if (verb == "take" or verb == put) and not house.accessible(r) and ("open", -1, r) not in steps:
            steps.append(("open", -1, r))
        if verb != "be":
            steps.append((verb, o, r))
    return steps


def _command(house: House, step: Command) -> str:
    verb, o, r = step
    if o < 0:
        return f"{verb} {house.game.receptacles[r]}"
    if verb == "use":
        return f"use {house.game.objects[o]}"
    join = {"take": " from ", house.tables.put: house.tables.put_join}.get(verb, " with ")
    return f"{verb} {house.game.objects[o]}{join}{house.game.receptacles[r]}"


def _fewest_steps(house: House, route: Route) -> int:
    # Emptying the hand takes one command where one is anyway; it never makes the rest shorter.
    return len(_steps(house, route)) + _needs_free_hand(house, route)


def _needs_free_hand(house: House, route: Route) -> bool:
    takes = any(verb == "take" for verb, _, _ in route)
    return house.held >= 0 and takes and route[0][0] != house.tables.put


def _with_free_hand(house: House, route: Route) -> Iterator[Route]:
    """Yield the ways to put down what is held before something is taken; the route itself if none is."""
    if not _needs_free_hand(house, route):
        yield route
        return
    take = next(i for i, (verb, _, _) in enumerate(route) if verb == "take")
    for r in _resting_places(house, route):
        for i in range(take + 1):
            yield *route[:i], (house.tables.put, house.held, r), *route[i:]


def _resting_places(house: House, route: Route) -> list[int]:
    """Return where the held object may be left: anywhere on the way, and the best place off it."""
    location_of = house.game.location_of
    on_the_way = {house.place, *(location_of[r] for _, _, r in route)}
    places = sorted(_mixed(house, _places_for(house, house.held)), key=lambda r: not house.accessible(r))
    near = [r for r in places if location_of[r] in on_the_way]
    far = [r for r in places if location_of[r] not in on_the_way]
    return near + far[:1]


# ---- the choices


def _routes(house: House) -> Iterator[Route]:
    """Yield the errands of every way worth considering, but not the emptying of the hand."""
    if house.game.task_type == "look_at_obj_in_light":
        return _look(house)
    if house.game.task_type == "pick_two_obj_and_place":
        return _place_two(house)
    return _place(house)


def _place(house: House) -> Iterator[Route]:
    kinds, where = house.game.receptacle_types, house.game.goal.place_type
    for o in _wanted(house):
        holds = [r for r, inside in enumerate(house.contents) if o in inside and kinds[r] == where]
        for get, treat in product(_gets(house, o), _treats(house, o)):
            # An object may lie in two places: when one is taken from the one, it still lies in the other.
            lies = any(("take", o, r) not in get for r in holds)
            for put in [()] if lies else _puts(house, o):
                yield get + treat + put


def _gets(house: House, o: int) -> list[Route]:
    if o == house.held:
        return [()]
    return [(("take", o, r),) for r in _sources(house, o)]


def _treats(house: House, o: int) -> list[Route]:
    """Return the ways to make an object what the goal says: one, empty, if it is; none if it cannot be."""
    if house.game.task_type not in _TREATMENTS:
        return [()]
    verb, ability, kind, _ = _TREATMENTS[house.game.task_type]
    if not house.game.abilities[o] & ability:
        return []
    if _is_treated(house, o):
        return [()]
    return [((verb, o, r),) for r in _of_type(house, kind)]


def _is_treated(house: House, o: int) -> bool:
    state = _TREATMENTS[house.game.task_type][3]
    return o in {"clean": house.clean, "hot": house.hot, "cool": house.cool}[state]


def _puts(house: House, o: int) -> list[Route]:
    fits, put = house.tables.fits[o], house.tables.put
    return [((put, o, r),) for r in _of_type(house, house.game.goal.place_type) if r in fits]


def _place_two(house: House) -> Iterator[Route]:
    put, wanted = house.tables.put, _wanted(house)
    sources = {o: _sources(house, o) for o in wanted}
    for target in _of_type(house, house.game.goal.place_type):
        missing = [o for o in wanted if o not in house.contents[target]]
        n_missing = 2 - (len(wanted) - len(missing))
        fitting = [o for o in missing if target in house.tables.fits[o]]
        first: Route = ((put, house.held, target),) if house.held in fitting else ()
        others = [o for o in fitting if o != house.held]
        for pair in permutations(others, n_missing - len(first)):
            for places in product(*(sources[o] for o in pair)):
                carried = ((("take", o, r), (put, o, target)) for o, r in zip(pair, places, strict=True))
                yield first + tuple(errand for errands in carried for errand in errands)


def _look(house: House) -> Iterator[Route]:
    for o in _wanted(house):
        for get, (prepare, lamp, r) in product(_gets(house, o), _lamps(house)):
            if (prepare and not get) or ("take", lamp, r) in get:
                continue
            be, use = ("be", -1, r), ("use", lamp, r)
            if lamp in house.toggled:
                yield (*prepare, *get, be)
            else:
                yield (*prepare, *get, use)
                yield (*prepare, use, *get, be)


def _lamps(house: House) -> Iterator[tuple[Route, int, int]]:
    """Yield where a lamp of the goal can be used: what must be done before, the lamp, and its receptacle."""
    game = house.game

    def is_lamp(o: int) -> bool:
        return game.object_types[o] == game.goal.place_type and bool(game.abilities[o] & TOGGLEABLE)

    for r in _mixed(house, range(len(game.receptacles))):
        if game.location_of[r] >= 0:
            yield from (((), o, r) for o in house.contents[r] if is_lamp(o))
    # A lamp in the hand gives no light until it stands somewhere.
    if house.held >= 0 and is_lamp(house.held):
        for r in _mixed(house, _places_for(house, house.held)):
            yield ((house.tables.put, house.held, r),), house.held, r


# ---- what there is


def _wanted(house: House) -> list[int]:
    kinds, what = house.game.object_types, house.game.goal.object_type
    rank = house.tables.rank
    return sorted((o for o, kind in enumerate(kinds) if kind == what), key=lambda o: rank("pick", o))


def _sources(house: House, o: int) -> list[int]:
    """Return the receptacles an object can be taken from."""
    if not house.game.abilities[o] & PICKUPABLE:
        return []
    return [r for r, inside in enumerate(house.contents) if o in inside and house.game.location_of[r] >= 0]


def _of_type(house: House, kind: str) -> list[int]:
    kinds, location_of = house.game.receptacle_types, house.game.location_of
    return _mixed(house, (r for r, k in enumerate(kinds) if k == kind and location_of[r] >= 0))


def _places_for(house: House, o: int) -> list[int]:
    return [r for r in house.tables.fits[o] if house.game.location_of[r] >= 0]


def _mixed(house: House, receptacles: Iterable[int]) -> list[int]:
    """Order receptacles by the digest of the game, not by number."""
    rank = house.tables.rank
    return sorted(receptacles, key=lambda r: rank("choose", r))


# ---- the reasons

# What the errand is, and the command on the way to it: "go to", "open", or the errand's own ("").
_REASONS = {
    ("take", "go to"): "I need {need}; one is {at} {place}.",
    ("take", "open"): "{Place} is closed; I open it to get the {thing}.",
    ("take", ""): "The {thing} is here; I take it.",
    ("put", "go to"): "{ready}; it goes {at} {place}.",
    ("put", "open"): "{Place} is closed; I open it so that the {thing} can go in.",
    ("put", ""): "The {thing} goes here, {at} {place}.",
    ("put away", "go to"): "I need a free hand; {place} can take the {thing}.",
    ("put away", "open"): "{Place} is closed; I open it to leave the {thing} in it.",
    ("put away", ""): "I need a free hand; I leave the {thing} here.",
    ("treat", "go to"): "The {thing} has to be {state}; {place} is for that.",
    ("treat", ""): "The {thing} has to be {state}; I am at {place}.",
    ("use", "go to"): "I need light; the {thing} is at {place}.",
    ("use", ""): "I need light; the {thing} is here.",
    ("be", "go to"): "I have the {what}; the {lamp} at {place} is on.",
}


def thought(house: House, commands: Sequence[str]) -> str:
    """Return why the first of a plan's commands is given: one sentence, at most 100 characters.

    Args:
        house: The present state.
        commands: What `plan` returned for it; not empty.

    Raises:
        DataError: If one of them is no command of a plan.
    """
    game, goal = house.game, house.game.goal
    (verb, _, r), errand = _first_errand(house, commands)
    thing, place = game.object_types[errand[1]], game.receptacles[r]
    *_, state = _TREATMENTS.get(game.task_type, ("",))
    return _REASONS[_kind_of_errand(house, errand), verb if verb in ("go to", "open") else ""].format(
        thing=thing,
        place=place,
        Place=place.capitalize(),
        at="in" if game.openable[r] else "on",
        need=_need(house, errand[1]),
        ready=f"The {thing} is {state} now" if state else f"I have the {thing}",
        state=state,
        what=goal.object_type,
        lamp=goal.place_type,
    )


def _first_errand(house: House, commands: Sequence[str]) -> tuple[Command, Command]:
    """Return the first command, and the one it leads to; an errand "be" if it leads to none."""
    steps = []
    for command in commands:
        step = house.tables.parse(command)
        if step is None or step[0] in ("look", "inventory", "help", "examine", "close", "slice"):
            raise DataError(f"expected a command of a plan, got {command!r}")
        steps.append(step)
    errands = (step for step in steps if step[0] not in ("go to", "open"))
    return steps[0], next(errands, ("be", -1, -1))


def _kind_of_errand(house: House, errand: Command) -> str:
    verb, o, r = errand
    if verb != house.tables.put:
        return verb if verb in ("take", "use", "be") else "treat"
    game, goal = house.game, house.game.goal
    delivers = game.object_types[o] == goal.object_type and game.receptacle_types[r] == goal.place_type
    return "put" if delivers else "put away"


def _need(house: House, o: int) -> str:
    name = house.game.object_types[o]
    if house.game.task_type == "pick_two_obj_and_place" and house.conditions()[0]:
        return f"another {name}"
    article = "an" if name[:1] in "aeiou" else "a"
    if house.game.task_type not in _TREATMENTS:
        return f"{article} {name}"
    verb, _, _, state = _TREATMENTS[house.game.task_type]
    return f"a {state} {name}" if _is_treated(house, o) else f"{article} {name} to {verb}"
