"""Writes `vocabulary.json` beside this file from an unpacked ALFWorld wheel (0.4.2).

It holds the object types that occur in a few scenes at least of a kind of room, what can be done with them
and where they fit. Slices are left out, since none of the six tasks cuts anything.

    python assets/alfworld/build_vocabulary.py FOLDER_OF_THE_WHEEL
"""

import json
import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

SCENES = {
    "kitchen": range(1, 31),
    "living": range(201, 231),
    "bedroom": range(301, 331),
    "bathroom": range(401, 431),
}
MIN_SCENES = 3
STANDING = {"DeskLamp", "HousePlant"}
"""Objects that lie in receptacles, though nobody can carry them."""


def main() -> None:
    """Write the vocabulary of the wheel that the command line names."""
    gen = Path(sys.argv[1]) / "alfworld" / "gen"
    constants = runpy.run_path(str(gen / "constants.py"))
    holds: dict[str, set[str]] = constants["VAL_RECEPTACLE_OBJECTS"]
    known = STANDING.union(*holds.values())
    found_in = {room: found(gen / "layouts", scenes) & known for room, scenes in SCENES.items()}
    objects = set[str]().union(*found_in.values())
    can_do = {ability.lower(): types for ability, types in constants["VAL_ACTION_OBJECTS"].items()}
    can_do["pickupable"] = objects - STANDING
    can_do["isreceptacleobject"] = constants["MOVABLE_RECEPTACLES"]
    vocabulary = {
        "abilities": {ability: sorted(objects.intersection(types)) for ability, types in can_do.items()},
        "can_contain": {r: sorted(objects & types) for r, types in holds.items()},
        "found_in": {room: sorted(types) for room, types in found_in.items()},
        "openable": sorted(constants["OPENABLE_CLASS_LIST"]),
    }
    text = json.dumps(vocabulary, indent=1, sort_keys=True)
    # A list a line: short, and still readable in a diff.
    text = re.sub(r"\[[^]]*\]", lambda found: " ".join(found[0].split()), text) + "\n"
    Path(__file__).with_name("vocabulary.json").write_text(text, encoding="utf-8")


def found(layouts: Path, scenes: Iterable[int]) -> set[str]:
    """Return the types that occur in `MIN_SCENES` of the scenes."""
    lists = [json.loads((layouts / f"FloorPlan{n}-objects.json").read_text()) for n in scenes]
    scenes_of = Counter(kind for kinds in lists for kind in set(kinds))
    return {kind for kind, n in scenes_of.items() if n >= MIN_SCENES}


if __name__ == "__main__":
    main()
