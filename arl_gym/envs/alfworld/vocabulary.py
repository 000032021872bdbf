"""What ALFWorld's rooms hold: object types, where they fit, what can be done with them.

>>> "mug" in vocabulary().can_contain["coffeemachine"]
True
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from arl_gym.assets import asset
from arl_gym.envs.alfworld.scene import ABILITIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Facts about types. Types are in lower case, as in a `Scene`."""

    can_contain: Mapping[str, frozenset[str]]
    """Receptacle or vessel, and the objects that may be put there."""
    abilities: Mapping[str, int]
    """Object, and the sum of its flags of `scene`."""
    found_in: Mapping[str, tuple[str, ...]]
    """Kind of room, and the objects that occur there, sorted."""
    openable: frozenset[str]
    spelling: Mapping[str, str]
    """Type as the benchmark's folders and files spell it, e.g. "TVStand" for "tvstand"."""


@cache
def vocabulary() -> Vocabulary:
    """Return the vocabulary of ALFWorld 0.4.2."""
    record = json.loads(asset("alfworld/vocabulary.json").read_text(encoding="utf-8"))
    objects = {o for found in record["found_in"].values() for o in found}
    able = {ability: frozenset(types) for ability, types in record["abilities"].items()}
    return Vocabulary(
        can_contain={r.lower(): frozenset(map(str.lower, held)) for r, held in record["can_contain"].items()},
        abilities={
            o.lower(): sum(flag for ability, flag in ABILITIES.items() if o in able[ability]) for o in objects
        },
        found_in={room: tuple(sorted(map(str.lower, found))) for room, found in record["found_in"].items()},
        openable=frozenset(map(str.lower, record["openable"])),
        spelling={kind.lower(): kind for kind in sorted({*objects, *record["can_contain"]})},
    )
