"""What a household task consists of: a scene of objects and receptacles, and a goal.

A `Scene` speaks in the ids of the problem file; `game.Game` is the same thing ready to be played.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six tasks, in the order of their numbers in the benchmark."""

# What can be done with an object; a `Thing` holds the sum.
PICKUPABLE, CLEANABLE, HEATABLE, COOLABLE, TOGGLEABLE, SLICEABLE, VESSEL = (1 << k for k in range(7))

ABILITIES = {
    "pickupable": PICKUPABLE,
    "cleanable": CLEANABLE,
    "heatable": HEATABLE,
    "coolable": COOLABLE,
    "toggleable": TOGGLEABLE,
    "sliceable": SLICEABLE,
    "isreceptacleobject": VESSEL,
}
"""Predicate of the problem file, and the flag it sets."""


class Goal(NamedTuple):
    """What is wanted: `object_type` in a `place_type`, or under it if the task is to look at something.

    Types are in lower case, without the ending "type" of the problem file.
    """

    task_type: str
    object_type: str
    place_type: str
    """Type of the receptacle; of the lamp for look_at_obj_in_light."""


class Receptacle(NamedTuple):
    """A place that holds objects."""

    id: str
    type: str
    location: str
    """Id of the location one stands at; "" if it cannot be reached."""
    openable: bool


class Thing(NamedTuple):
    """An object."""

    id: str
    type: str
    abilities: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The first state of a room, in ids. The order of the sequences carries no meaning."""

    receptacles: tuple[Receptacle, ...]
    things: tuple[Thing, ...]
    start: str
    """Location of the agent."""
    can_contain: frozenset[tuple[str, str]]
    """(receptacle type, object type): what may be put where."""
    inside: frozenset[tuple[str, str]]
    """(object, receptacle)."""
    lying: frozenset[tuple[str, str]]
    """(object, location). In the benchmark some objects lie at a location, but in no receptacle."""
    within: frozenset[tuple[str, str]] = frozenset()
    """(object, vessel): contents that only show when the vessel is examined."""
    opened: frozenset[str] = frozenset()
    clean: frozenset[str] = frozenset()
    hot: frozenset[str] = frozenset()
    cool: frozenset[str] = frozenset()
    toggled: frozenset[str] = frozenset()
    sliced: frozenset[str] = frozenset()
    held: str = ""
    more_ids: frozenset[str] = field(default_factory=frozenset)
    """Ids the problem names beside these, e.g. locations without a receptacle: they count in the naming."""
