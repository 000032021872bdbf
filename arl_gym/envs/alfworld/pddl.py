"""Reads and writes the problem files of ALFWorld.

>>> scene, goal = read_problem(Path("game.pddl").read_text())  # doctest: +SKIP

Not a general PDDL parser: it knows the predicates of the ALFRED domain and the goals of its six tasks, and
says so when something else comes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from arl_gym.envs.alfworld.scene import ABILITIES, Goal, Receptacle, Scene, Thing
from arl_gym.errors import DataError

Facts = dict[str, list[tuple[str, ...]]]

_COMMENT = re.compile(r";[^\n]*")
_NUMERIC = re.compile(r"\(\s*=\s*\([^()]*\)[^()]*\)|\(\s*=[^()]*\)")
_FACT = re.compile(r"\(([^()]*)\)")
_SECTION = re.compile(r"\(\s*:(\w+)")

# Number of arguments of the predicates whose facts have a meaning here; the others only name ids.
_ARITY = {
    "atlocation": 2,
    "receptacleatlocation": 2,
    "objectatlocation": 2,
    "openable": 1,
    "opened": 1,
    "inreceptacle": 2,
    "inreceptacleobject": 2,
    "receptacletype": 2,
    "cancontain": 2,
    "objecttype": 2,
    "holds": 2,
    "isclean": 1,
    "ishot": 1,
    "iscool": 1,
    "istoggled": 1,
    "issliced": 1,
    **dict.fromkeys(ABILITIES, 1),
}


def read_problem(text: str) -> tuple[Scene, Goal]:
    """Return the scene and the goal of a problem.

    Raises:
        DataError: If the text is no problem of the ALFRED domain, or has a goal none of the six tasks has.
    """
    text = _COMMENT.sub("", text.lower())
    sections = _sections(text)
    for name in ("init", "goal"):
        if name not in sections:
            raise DataError(f"the problem has no section (:{name} …), only: {', '.join(sections) or 'none'}")
    return _scene(_facts(sections["init"])), read_goal(sections["goal"])


def _sections(text: str) -> dict[str, str]:
    starts = list(_SECTION.finditer(text))
    return {
        start[1]: text[start.end() : end.start() if end else len(text)]
        for start, end in zip(starts, [*starts[1:], None], strict=False)
    }


def _facts(init: str) -> Facts:
    facts: Facts = defaultdict(list)
    for body in _FACT.findall(_NUMERIC.sub("", init)):
        name, *args = body.split()
        if len(args) != _ARITY.get(name, len(args)):
            raise DataError(f"({body}) has {len(args)} arguments, expected {_ARITY[name]}")
        facts[name].append(tuple(args))
    return facts


def _scene(facts: Facts) -> Scene:
    at = facts["atlocation"]
    if len(at) != 1:
        raise DataError(f"expected one fact (atlocation agent location), got {len(at)}")
    held = facts["holds"]
    if len(held) > 1:
        raise DataError(f"the agent can hold one object, got {len(held)}")
    if bool(held) != bool(facts["holdsany"]):
        raise DataError("expected both facts (holds agent object) and (holdsany agent), or neither")
    types = _unique(facts["receptacletype"], "receptacle", "type")
    places = _unique(facts["receptacleatlocation"], "receptacle", "location")
    kinds = _unique(facts["objecttype"], "object", "type")
    in_receptacle, openable = facts["inreceptacle"], _ones(facts["openable"])
    abilities: dict[str, int] = defaultdict(int)
    for predicate, flag in ABILITIES.items():
        for (thing,) in facts[predicate]:
            abilities[thing] |= flag
    receptacles = types.keys() | places.keys() | {r for _, r in in_receptacle}
    things = {
        *kinds,
        *abilities,
        *(o for o, _ in in_receptacle),
        *(o for o, _ in facts["objectatlocation"]),
        *(o for pair in facts["inreceptacleobject"] for o in pair),
    }
    if both := receptacles & things:
        raise DataError(f"{min(both)} is an object and a receptacle")
    return Scene(
        receptacles=tuple(
            Receptacle(r, _plain(types.get(r, "")), places.get(r, ""), r in openable)
            for r in sorted(receptacles)
        ),
        things=tuple(Thing(o, _plain(kinds.get(o, "")), abilities[o]) for o in sorted(things)),
        start=at[0][1],
        can_contain=frozenset((_plain(rt), _plain(ot)) for rt, ot in facts["cancontain"]),
        inside=_pairs(in_receptacle),
        lying=_pairs(facts["objectatlocation"]),
        within=_pairs(facts["inreceptacleobject"]),
        opened=_ones(facts["opened"]),
        clean=_ones(facts["isclean"]),
        hot=_ones(facts["ishot"]),
        cool=_ones(facts["iscool"]),
        toggled=_ones(facts["istoggled"]),
        sliced=_ones(facts["issliced"]),
        held=held[0][1] if held else "",
        more_ids=frozenset(arg for rows in facts.values() for args in rows for arg in args),
    )


def _unique(pairs: Iterable[tuple[str, ...]], what: str, of: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise DataError(f"{what} {key} has two {of}s: {found[key]} and {value}")
    return found


def _ones(rows: Iterable[tuple[str, ...]]) -> frozenset[str]:
    return frozenset(row[0] for row in rows)


def _pairs(rows: Iterable[tuple[str, ...]]) -> frozenset[tuple[str, str]]:
    return frozenset((a, b) for a, b in rows)


def _plain(type_name: str) -> str:
    return type_name.removesuffix("type")


# ---- goals

_PLACE = (
    "(and (exists (?r - receptacle) (exists (?o - object) (and {treated}(objecttype ?o {o}type)"
    " (receptacletype ?r {r}type){done} (inreceptacle ?o ?r)))))"
)
_GOALS = {
    "pick_and_place_simple": (
        "(and (exists (?r - receptacle) (exists (?o - object) (and (inreceptacle ?o ?r)"
        " (objecttype ?o {o}type) (receptacletype ?r {r}type)))))"
    ),
    "look_at_obj_in_light": (
        "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objecttype ?ot {r}type)"
        " (toggleable ?ot) (istoggled ?ot) (receptacleatlocation ?r ?l) (atlocation ?a ?l)"
        " (inreceptacle ?ot ?r))) (exists (?o - object ?a - agent) (and (objecttype ?o {o}type)"
        " (holds ?a ?o))))"
    ),
    "pick_clean_then_place_in_recep": _PLACE.replace("{treated}", "(cleanable ?o) ").replace(
        "{done}", " (isclean ?o)"
    ),
    "pick_heat_then_place_in_recep": _PLACE.replace("{treated}", "(heatable ?o) ").replace(
        "{done}", " (ishot ?o)"
    ),
    "pick_cool_then_place_in_recep": _PLACE.replace("{treated}", "(coolable ?o) ").replace(
        "{done}", " (iscool ?o)"
    ),
    "pick_two_obj_and_place": (
        "(and (exists (?r - receptacle) (exists (?o1 - object) (and (objecttype ?o1 {o}type)"
        " (receptacletype ?r {r}type) (inreceptacle ?o1 ?r) (exists (?o2 - object) (and"
        " (not (= ?o1 ?o2)) (objecttype ?o2 {o}type) (receptacletype ?r {r}type)"
        " (inreceptacle ?o2 ?r)))))))"
    ),
}
"""The goals as formulas, blanks normalised."""


def _tokens(text: str) -> str:
    return " ".join(text.replace("(", " ( ").replace(")", " ) ").split())


def _pattern(formula: str) -> re.Pattern[str]:
    seen: set[str] = set()

    def group(hole: re.Match[str]) -> str:
        name = hole[1]
        found = rf"(?P={name})" if name in seen else rf"(?P<{name}>[^\s()]+?)"
        seen.add(name)
        return found

    return re.compile(re.sub(r"\\\{([or])\\\}", group, re.escape(_tokens(formula))))


_PATTERNS = {task: _pattern(formula) for task, formula in _GOALS.items()}


def read_goal(text: str) -> Goal:
    """Return the goal a formula says.

    Raises:
        DataError: If it is none of the six tasks'.
    """
    plain = _tokens(text)
    for task, pattern in _PATTERNS.items():
        if found := pattern.match(plain):
            return Goal(task, found["o"], found["r"])
    raise DataError(f"the goal is none of the {len(_GOALS)} known: {plain[:200]}")


def write_goal(goal: Goal) -> str:
    """Return the goal's formula, without the section's own brackets."""
    return _GOALS[goal.task_type].format(o=goal.object_type, r=goal.place_type)


# ---- writing

_NAMED_IN_THE_DOMAIN = {
    "rtype": ("fridgetype", "microwavetype", "sinkbasintype"),
    "otype": ("butterknifetype", "knifetype"),
}


def write_problem(scene: Scene, goal: Goal) -> str:
    """Return the problem file that `read_problem` reads back. What only `more_ids` names is left out."""
    facts = _list_facts(scene)
    declared = {
        "agent": ["agent1"],
        "object": [t.id for t in scene.things],
        "receptacle": [r.id for r in scene.receptacles],
        "location": [args[-1] for name, *args in facts if name.endswith("atlocation")],
        "rtype": [args[0] for name, *args in facts if name == "cancontain"],
        "otype": [args[1] for name, *args in facts if name in ("cancontain", "objecttype")],
    }
    declared["rtype"] += [args[1] for name, *args in facts if name == "receptacletype"]
    for kind, names in _NAMED_IN_THE_DOMAIN.items():
        declared[kind] += names
    objects = [f"{' '.join(sorted(set(names)))} - {kind}" for kind, names in declared.items() if names]
    lines = [
        "(define (problem household)",
        "(:domain alfred)",
        "(:objects",
        *objects,
        ")",
        "(:init",
        *(f"({' '.join(fact)})" for fact in facts),
        ")",
        f"(:goal {write_goal(goal)})",
        ")",
    ]
    return "\n".join(lines) + "\n"


def _list_facts(scene: Scene) -> list[tuple[str, ...]]:
    facts: list[tuple[str, ...]] = [("atlocation", "agent1", scene.start)]
    for r in sorted(scene.receptacles):
        facts += [("receptacletype", r.id, r.type + "type")] if r.type else []
        facts += [("receptacleatlocation", r.id, r.location)] if r.location else []
        facts += [("openable", r.id)] if r.openable else []
    for t in sorted(scene.things):
        facts += [("objecttype", t.id, t.type + "type")] if t.type else []
        facts += [(ability, t.id) for ability, flag in ABILITIES.items() if t.abilities & flag]
    facts += [("cancontain", f"{r}type", f"{o}type") for r, o in sorted(scene.can_contain)]
    pairs = {
        "inreceptacle": scene.inside,
        "objectatlocation": scene.lying,
        "inreceptacleobject": scene.within,
    }
    for name, both in pairs.items():
        facts += [(name, *pair) for pair in sorted(both)]
    states = {"opened": scene.opened, "isclean": scene.clean, "ishot": scene.hot, "iscool": scene.cool}
    for name, ids in (states | {"istoggled": scene.toggled, "issliced": scene.sliced}).items():
        facts += [(name, i) for i in sorted(ids)]
    return facts + ([("holds", "agent1", scene.held), ("holdsany", "agent1")] if scene.held else [])
