"""Draws household tasks: rooms with ALFWorld's vocabulary, furnished and worded as its games are.

A task is a pure function of (settings, split, index), and it can always be solved: the room has what the task
needs, everything can be reached, and the goal does not hold at the start.

Splits are kept apart by content, for all settings together. Out of distribution (test_ood) are a fifth of the
layouts and, with them, a fifth of the pairs of object and place; no other split has one of either. Among the
others the digest of what lies where says whether a scene belongs to train, val or test.

    >>> draw(Settings(), "val", 0).task
    'put some cellphone on sidetable.'
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import NamedTuple

from arl_gym.core import SPLITS
from arl_gym.envs.alfworld.scene import (
    CLEANABLE,
    COOLABLE,
    HEATABLE,
    PICKUPABLE,
    TASK_TYPES,
    VESSEL,
    Goal,
    Receptacle,
    Scene,
    Thing,
)
from arl_gym.envs.alfworld.vocabulary import vocabulary
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.rng import Rng, derive

_VERSION = 1
"""Part of every key: a change that alters a task raises it."""

_KITCHEN = {
    "cabinet": (4, 12),
    "countertop": (1, 3),
    "drawer": (3, 9),
    "stoveburner": (4, 4),
    "diningtable": (0, 2),
    "shelf": (0, 3),
    **dict.fromkeys(("fridge", "microwave", "sinkbasin", "coffeemachine", "toaster"), (1, 1)),
}
_LIVING = {
    "armchair": (1, 2),
    "coffeetable": (1, 2),
    "sidetable": (1, 3),
    "drawer": (2, 6),
    **dict.fromkeys(("shelf", "cabinet"), (0, 4)),
    **dict.fromkeys(("tvstand", "dresser", "diningtable"), (0, 1)),
    "sofa": (1, 1),
}
_BEDROOM = {
    **dict.fromkeys(("desk", "sidetable"), (1, 2)),
    "drawer": (2, 8),
    "shelf": (0, 6),
    **dict.fromkeys(("dresser", "laundryhamper", "safe", "armchair"), (0, 1)),
    "bed": (1, 1),
}
_BATHROOM = {
    **dict.fromkeys(("sinkbasin", "handtowelholder"), (1, 2)),
    "bathtubbasin": (0, 1),
    "cabinet": (2, 6),
    "drawer": (0, 4),
    "shelf": (0, 2),
    **dict.fromkeys(("toilet", "countertop", "towelholder", "toiletpaperhanger"), (1, 1)),
}
_FURNITURE = {"kitchen": _KITCHEN, "living": _LIVING, "bedroom": _BEDROOM, "bathroom": _BATHROOM}
"""Kind of room: type of receptacle: how many at least and at most. Every room has a garbage can, too."""

ROOMS = tuple(_FURNITURE)

# Where the objects stand that nobody can put anywhere.
_LAMP_STANDS = frozenset(("sidetable", "desk", "dresser", "coffeetable", "shelf", "tvstand"))
_STANDS = {"desklamp": _LAMP_STANDS, "houseplant": _LAMP_STANDS | {"countertop", "diningtable"}}

_LOOK, _TWO = "look_at_obj_in_light", "pick_two_obj_and_place"
_TREATMENTS = {
    "pick_clean_then_place_in_recep": (CLEANABLE, "sinkbasin"),
    "pick_heat_then_place_in_recep": (HEATABLE, "microwave"),
    "pick_cool_then_place_in_recep": (COOLABLE, "fridge"),
}
"""What the object must allow, and the receptacle that does it."""

_WORDINGS = {
    "pick_and_place_simple": ("put a {o} in {r}.", "put some {o} on {r}."),
    "look_at_obj_in_light": ("look at {o} under the {r}.", "examine the {o} with the {r}."),
    "pick_clean_then_place_in_recep": ("put a clean {o} in {r}.", "clean some {o} and put it in {r}."),
    "pick_heat_then_place_in_recep": ("put a hot {o} in {r}.", "heat some {o} and put it in {r}."),
    "pick_cool_then_place_in_recep": ("put a cool {o} in {r}.", "cool some {o} and put it in {r}."),
    "pick_two_obj_and_place": ("put two {o} in {r}.", "find two {o} and put them in {r}."),
}

_COPIES = (0, 1, 1, 2, 3)
_SHARED_PERCENT, _OPEN_PERCENT, _VESSEL_PERCENT = 15, 15, 10
"""How often a receptacle stands beside another, one is open at the start, a vessel has something in it."""

_DIGITS = {"train": range(2), "val": range(2, 3), "test": range(3, 4)}
"""Digest of a scene modulo 4 and its split."""
_OUT_OF_DISTRIBUTION = "test_ood"
_HELD_OUT_SHARE = 5

_TRIES = 20_000
"""Draws per task at most: what passed a trial of `_TRIAL_TRIES` is never short of them."""
_TRIAL_TRIES = 1_000


@dataclass(frozen=True)
class Settings:
    """What tasks are drawn. Equal settings give equal tasks.

    Args:
        task_types: Their types, in turn by the number of the task.
        rooms: Kinds of room.
        num_receptacles: Receptacles of a room at most; None leaves it as it is. What a task needs stays.
        num_objects: Objects of a room at most, likewise.

    Raises:
        UnknownNameError: If there is no such task type or kind of room.
        ConfigError: If none of the rooms allows a task type, or a number is too small for one.
    """

    task_types: tuple[str, ...] = TASK_TYPES
    rooms: tuple[str, ...] = ROOMS
    num_receptacles: int | None = None
    num_objects: int | None = None

    def __post_init__(self) -> None:
        _check_names("task type", self.task_types, TASK_TYPES)
        _check_names("room", self.rooms, ROOMS)
        for task_type in self.task_types:
            if not all(_rooms_for(self.rooms, task_type, held_out) for held_out in (False, True)):
                able = [room for room in ROOMS if _rooms_for((room,), task_type, True)]
                raise ConfigError(
                    f"ALFWorld: {task_type} needs one of the rooms {', '.join(able)}; got {self.rooms}"
                )
        self._check_number("num_objects", self.num_objects, lambda n: n >= self._least_objects)
        self._check_number("num_receptacles", self.num_receptacles, self._furnishes)

    def _check_number(self, name: str, n: int | None, suffices: Callable[[int], bool]) -> None:
        if n is None or (isinstance(n, int) and suffices(n)):
            return
        least = next(k for k in count(1) if suffices(k))
        raise ConfigError(f"ALFWorld: {name} must be a whole number of at least {least} here, got {n!r}")

    @property
    def _least_objects(self) -> int:
        return max(2 if task_type in (_LOOK, _TWO) else 1 for task_type in self.task_types)

    def _furnishes(self, num_receptacles: int) -> bool:
        """Return whether every split has tasks of every type with so few receptacles, judged by the first."""
        return num_receptacles > 0 and all(
            _draft(self, num_receptacles, split, number, _TRIAL_TRIES)
            for split in SPLITS
            for number in range(len(self.task_types))
        )


def _check_names(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known, "ALFWorld")
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"ALFWorld: expected one {kind} or more, each once, got {names}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A task."""

    scene: Scene
    goal: Goal
    task: str
    """The goal in words."""
    room: str
    """Kind of room."""


def draw(settings: Settings, split: str, index: int) -> Drawn:
    """Return a task: the same in every process.

    Raises:
        UnknownNameError: If there is no such split.
        ConfigError: If no such task turns up.
    """
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS, "ALFWorld")
    drafted = _draft(settings, settings.num_receptacles, split, index, _TRIES)
    if drafted is None:
        raise ConfigError(f"ALFWorld: no task for split {split!r}, index {index} of {settings}")
    return _furnish(*drafted)


# ---- what a room of a kind can have


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of room. `goals` are keyed by task type and by whether their pairs are held out."""

    name: str
    furniture: tuple[tuple[str, int, int], ...]
    """Type of receptacle, how many at least, and how many numbers there are to choose from."""
    holders: Mapping[str, tuple[str, ...]]
    """Object type: where it can lie."""
    goals: Mapping[tuple[str, bool], tuple[Goal, ...]]


@cache
def _kind(name: str) -> _Kind:
    words, furniture = vocabulary(), _FURNITURE[name] | {"garbagecan": (1, 1)}
    holders = {
        o: tuple(r for r in furniture if o in words.can_contain[r] or r in _STANDS.get(o, ()))
        for o in words.found_in[name]
    }
    goals: dict[tuple[str, bool], tuple[Goal, ...]] = {}
    for task_type in TASK_TYPES:
        all_goals = list(_goals(task_type, holders, furniture))
        for held_out in (False, True):
            goals[task_type, held_out] = tuple(g for g in all_goals if _held_out("pair", *g[1:]) == held_out)
    return _Kind(
        name=name,
        furniture=tuple((r, lo, hi - lo + 1) for r, (lo, hi) in furniture.items()),
        holders=holders,
        goals=goals,
    )


def _goals(
    task_type: str, holders: Mapping[str, tuple[str, ...]], furniture: Mapping[str, object]
) -> Iterable[Goal]:
    abilities = vocabulary().abilities
    ability, appliance = _TREATMENTS.get(task_type, (PICKUPABLE, ""))
    if appliance and appliance not in furniture:
        return
    for o, places in holders.items():
        if not abilities[o] & PICKUPABLE or not abilities[o] & ability:
            continue
        if task_type != _LOOK:
            yield from (Goal(task_type, o, r) for r in places if r != appliance and len(places) > 1)
        elif "desklamp" in holders:
            yield Goal(task_type, o, "desklamp")


def _held_out(what: str, *content: str) -> bool:
    return derive("alfworld", _VERSION, what, *content) % _HELD_OUT_SHARE == 0


@cache
def _rooms_for(rooms: tuple[str, ...], task_type: str, held_out: bool) -> tuple[_Kind, ...]:
    return tuple(kind for kind in map(_kind, rooms) if kind.goals[task_type, held_out])


# ---- drawing what there is; a draft that does not suit is thrown away, so it has no ids yet


class _Draft(NamedTuple):
    rng: Rng
    room: str
    goal: Goal
    layout: dict[str, int]
    """Receptacle types and their number."""
    stock: list[tuple[str, str]]
    """Each object's type, and the type of the receptacle or vessel it is in."""


def _draft(
    settings: Settings, num_receptacles: int | None, split: str, index: int, tries: int
) -> _Draft | None:
    task_type = settings.task_types[index % len(settings.task_types)]
    held_out = split == _OUT_OF_DISTRIBUTION
    kinds = _rooms_for(settings.rooms, task_type, held_out)
    for attempt in range(tries):
        rng = Rng("alfworld", _VERSION, split, index, attempt)
        kind = rng.choice(kinds)
        goal = rng.choice(kind.goals[task_type, held_out])
        layout = _layout(rng, kind, goal, num_receptacles)
        if layout is None or _held_out("layout", *_listed(layout)) != held_out:
            continue
        stock = _stock(rng, kind, goal, layout, settings.num_objects)
        if held_out or _digit(layout, stock) in _DIGITS[split]:
            return _Draft(rng, kind.name, goal, layout, stock)
    return None


def _listed(layout: Mapping[str, int]) -> list[str]:
    """Name every receptacle's type. Not the kind of room: a capped room may look like one of another kind."""
    return [r for r in sorted(layout) for _ in range(layout[r])]


def _digit(layout: Mapping[str, int], stock: Iterable[tuple[str, str]]) -> int:
    lying = sorted(f"{o} {r}" for o, r in stock)
    return derive("alfworld", _VERSION, "scene", *_listed(layout), *lying) % 4


def _layout(rng: Rng, kind: _Kind, goal: Goal, cap: int | None) -> dict[str, int] | None:
    """Draw the receptacles; None if they lack one that the goal needs."""
    layout = {r: n for r, lo, choices in kind.furniture if (n := lo + rng.below(choices))}
    needed = _needed(goal)
    sources, stands = _sources(kind, goal, layout), _stands(kind, goal, layout)
    if not all(r in layout for r in needed) or not sources or not stands:
        return None
    if cap is None or sum(layout.values()) <= cap:
        return layout
    kept = dict.fromkeys([rng.choice(stands)] if goal.task_type == _LOOK else needed, 1)
    if len(kept) < cap:
        kept[rng.choice(sources)] = 1
    rest = [r for r, n in layout.items() for _ in range(n - kept.get(r, 0))]
    rng.shuffle(rest)
    for r in rest[: cap - len(kept)]:
        kept[r] = kept.get(r, 0) + 1
    return kept if len(kept) <= cap and _sources(kind, goal, kept) else None


def _needed(goal: Goal) -> tuple[str, ...]:
    if goal.task_type == _LOOK:
        return ()
    _, appliance = _TREATMENTS.get(goal.task_type, (0, ""))
    return (goal.place_type, appliance) if appliance else (goal.place_type,)


def _sources(kind: _Kind, goal: Goal, layout: Mapping[str, int]) -> list[str]:
    """Return where the goal's object may lie at the start: never where it has to go."""
    return [r for r in kind.holders[goal.object_type] if r in layout and r != goal.place_type]


def _stands(kind: _Kind, goal: Goal, layout: Mapping[str, int]) -> list[str]:
    """Return where the goal's lamp may stand; all receptacles if there is none."""
    return [r for r in kind.holders.get(goal.place_type, layout) if r in layout]


def _stock(
    rng: Rng, kind: _Kind, goal: Goal, layout: Mapping[str, int], cap: int | None
) -> list[tuple[str, str]]:
    needed = {goal.object_type: 2 if goal.task_type == _TWO else 1}
    if goal.task_type == _LOOK:
        needed[goal.place_type] = 1
    first, more = list[tuple[str, str]](), list[tuple[str, str]]()
    for o, holders in kind.holders.items():
        wanted = needed.get(o, 0)
        n = max(wanted, rng.choice(_COPIES))
        places = [r for r in holders if r in layout]
        if o == goal.object_type and goal.place_type in places:
            places.remove(goal.place_type)
        if n and places:
            lying = [(o, rng.choice(places)) for _ in range(n)]
            first += lying[:wanted]
            more += lying[wanted:]
    if cap is not None and len(first) + len(more) > cap:
        rng.shuffle(more)
        del more[cap - len(first) :]
    if rng.below(100) < _VESSEL_PERCENT:
        _fill_vessel(rng, first, more)
    return first + more


def _fill_vessel(rng: Rng, first: Sequence[tuple[str, str]], more: list[tuple[str, str]]) -> None:
    """Put an object that the goal does not need into a vessel, if one fits."""
    words, needed = vocabulary(), {o for o, _ in first}
    vessels = sorted({o for o, _ in (*first, *more) if words.abilities[o] & VESSEL})
    fitting = [
        (i, v)
        for i, (o, _) in enumerate(more)
        for v in vessels
        if o in words.can_contain[v] and o != v and o not in needed
    ]
    if fitting:
        i, vessel = rng.choice(fitting)
        more[i] = (more[i][0], vessel)


# ---- giving it ids and places

_AXIS = tuple(
    f"_{'minus' if c < 0 else 'plus'}_{abs(c) // 100:02d}_dot_{abs(c) % 100:02d}" for c in range(-500, 500)
)
_STEP = tuple(f"{'_minus_' if c < 0 else ''}{abs(c)}" for c in range(-20, 21))
_BASINS = {"sinkbasin": "sink", "bathtubbasin": "bathtub"}


class _Ids:
    """Draws ids that look like the benchmark's, each once."""

    def __init__(self, rng: Rng):
        self._rng = rng
        self._used: set[int] = set()
        self._used_locations: set[int] = set()

    def entity(self, kind: str) -> str:
        at, x = divmod(_new(self._rng, 1000 * 300 * 1000, self._used), 1000)
        z, y = divmod(at, 300)
        where = f"_bar_{_AXIS[x]}_bar_{_AXIS[500 + y]}_bar_{_AXIS[z]}"
        return f"{_BASINS[kind]}{where}_bar_{kind}" if kind in _BASINS else kind + where

    def location(self) -> str:
        at, turn = divmod(_new(self._rng, 41 * 41 * 16, self._used_locations), 16)
        z, x = divmod(at, 41)
        return f"loc_bar_{_STEP[x]}_bar_{_STEP[z]}_bar_{turn // 4}_bar_{(0, 15, 30, 45)[turn % 4]}"


def _new(rng: Rng, n: int, used: set[int]) -> int:
    while (number := rng.below(n)) in used:
        pass
    used.add(number)
    return number


def _furnish(rng: Rng, room: str, goal: Goal, layout: dict[str, int], stock: list[tuple[str, str]]) -> Drawn:
    ids, words, present = _Ids(rng), vocabulary(), {o for o, _ in stock}
    receptacles = _receptacles(rng, ids, layout)
    things = tuple(Thing(ids.entity(o), o, words.abilities[o]) for o, _ in stock)
    holder = _holders(rng, receptacles, things, stock)
    at = {r.id: r.location for r in receptacles}
    doors = [r.id for r in receptacles if r.openable]
    is_open = doors and rng.below(100) < _OPEN_PERCENT
    scene = Scene(
        receptacles=receptacles,
        things=things,
        start=ids.location(),
        can_contain=frozenset((r, o) for r in layout for o in words.can_contain[r] & present),
        inside=frozenset((o, r) for o, r in holder.items() if r in at),
        lying=frozenset((o, at[r] if r in at else at[holder[r]]) for o, r in holder.items()),
        within=frozenset((o, vessel) for o, vessel in holder.items() if vessel not in at),
        opened=frozenset([rng.choice(doors)] if is_open else ()),
    )
    wording = rng.choice(_WORDINGS[goal.task_type])
    return Drawn(
        scene=scene, goal=goal, task=wording.format(o=goal.object_type, r=goal.place_type), room=room
    )


def _receptacles(rng: Rng, ids: _Ids, layout: Mapping[str, int]) -> tuple[Receptacle, ...]:
    openable, locations = vocabulary().openable, list[str]()
    receptacles = list[Receptacle]()
    for kind in _listed(layout):
        shared = locations and rng.below(100) < _SHARED_PERCENT
        locations.append(rng.choice(locations) if shared else ids.location())
        receptacles.append(Receptacle(ids.entity(kind), kind, locations[-1], kind in openable))
    return tuple(receptacles)


def _holders(
    rng: Rng, receptacles: Iterable[Receptacle], things: Sequence[Thing], stock: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Choose the receptacle or vessel of every object among those of the type."""
    of_type: dict[str, list[str]] = defaultdict(list)
    for r in receptacles:
        of_type[r.type].append(r.id)
    for t in things:
        of_type[t.type].append(t.id)
    return {thing.id: rng.choice(of_type[where]) for thing, (_, where) in zip(things, stock, strict=True)}
