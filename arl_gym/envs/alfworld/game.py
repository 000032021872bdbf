"""A game ready to be played: names and numbers instead of ids.

>>> game = read_game(Path("game.tw-pddl").read_text())  # doctest: +SKIP
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, cast

from arl_gym.envs.alfworld.grammars import check_domain, read_grammar
from arl_gym.envs.alfworld.pddl import read_problem
from arl_gym.envs.alfworld.scene import Goal, Scene
from arl_gym.errors import DataError
from arl_gym.rng import digest

GrammarVersion = Literal["0.3", "0.4"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Game:
    """One game. Objects, receptacles and locations are numbered in the order of their ids.

    That order is the order of every list the game shows. `content_hash` is equal for games that show and do
    the same, whatever their ids.
    """

    grammar: GrammarVersion
    help: str
    """Answer to the command `help`; "" where there is none."""
    task: str
    """The goal in words, as the first observation has it."""
    goal: Goal
    objects: tuple[str, ...]
    """Names, e.g. "mug 2"."""
    object_types: tuple[str, ...]
    abilities: tuple[int, ...]
    """Sums of the flags of `scene`."""
    receptacles: tuple[str, ...]
    receptacle_types: tuple[str, ...]
    openable: tuple[bool, ...]
    location_of: tuple[int, ...]
    """Location of each receptacle; -1 if it has none."""
    locations: tuple[str, ...]
    """Names, e.g. "loc 7"."""
    can_contain: tuple[tuple[str, str], ...]
    start: int
    inside: tuple[tuple[int, int], ...]
    lying: tuple[tuple[int, int], ...]
    within: tuple[tuple[int, int], ...]
    opened: tuple[int, ...]
    clean: tuple[int, ...]
    hot: tuple[int, ...]
    cool: tuple[int, ...]
    toggled: tuple[int, ...]
    sliced: tuple[int, ...]
    held: int
    """Object held at the start; -1 for none."""

    @property
    def task_type(self) -> str:
        """The benchmark's name of the kind of task."""
        return self.goal.task_type

    @cached_property
    def content_hash(self) -> str:
        """Digest of everything that can be seen or done."""
        return digest(json.dumps(self.to_row(), separators=(",", ":")))

    def to_row(self) -> list[Any]:
        """Return the game as lists, strings and numbers, for `from_row`."""
        return [getattr(self, f.name) for f in fields(self)]

    @classmethod
    def from_row(cls, row: list[Any]) -> "Game":
        """Return the game of a row that went through JSON."""
        values = {f.name: _tuple(value) for f, value in zip(fields(cls), row, strict=True)}
        return cls(**(values | {"goal": Goal(*values["goal"])}))

    @classmethod
    def of_scene(
        cls, scene: Scene, goal: Goal, *, task: str, grammar: GrammarVersion = "0.4", help: str = ""
    ) -> "Game":
        """Return the game a scene and a goal make.

        Raises:
            DataError: If an object lies in, or the agent stands at, something the scene does not have.
        """
        receptacles = sorted(scene.receptacles)
        things = sorted(scene.things)
        places = (
            {r.location for r in receptacles if r.location} | {scene.start} | {at for _, at in scene.lying}
        )
        locations = sorted(places)
        names = _names({*(r.id for r in receptacles), *(t.id for t in things), *locations, *scene.more_ids})
        number_o = {t.id: i for i, t in enumerate(things)}
        number_r = {r.id: i for i, r in enumerate(receptacles)}
        number_l = {at: i for i, at in enumerate(locations)}
        try:
            return cls(
                grammar=grammar,
                help=help,
                task=task,
                goal=goal,
                objects=tuple(names[t.id] for t in things),
                object_types=tuple(t.type for t in things),
                abilities=tuple(t.abilities for t in things),
                receptacles=tuple(names[r.id] for r in receptacles),
                receptacle_types=tuple(r.type for r in receptacles),
                openable=tuple(r.openable for r in receptacles),
                location_of=tuple(number_l[r.location] if r.location else -1 for r in receptacles),
                locations=tuple(names[at] for at in locations),
                can_contain=_present(scene),
                start=number_l[scene.start],
                inside=_numbered(scene.inside, number_o, number_r),
                lying=_numbered(scene.lying, number_o, number_l),
                within=_numbered(scene.within, number_o, number_o),
                opened=tuple(sorted(number_r[r] for r in scene.opened if r in number_r)),
                clean=_numbers(scene.clean, number_o),
                hot=_numbers(scene.hot, number_o),
                cool=_numbers(scene.cool, number_o),
                toggled=_numbers(scene.toggled, number_o),
                sliced=_numbers(scene.sliced, number_o),
                held=number_o[scene.held] if scene.held else -1,
            )
        except KeyError as err:
            raise DataError(f"the scene names {err.args[0]!r}, but does not have it") from err


def _tuple(value: Any) -> Any:
    """Make a list, which may hold lists, what it was before JSON."""
    if not isinstance(value, list):
        return value
    return tuple(map(tuple, value)) if value and isinstance(value[0], list) else tuple(value)


def _numbers(ids: Iterable[str], number: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted(number[i] for i in ids))


def _numbered(
    pairs: Iterable[tuple[str, str]], first: Mapping[str, int], second: Mapping[str, int]
) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((first[a], second[b]) for a, b in pairs))


def _present(scene: Scene) -> tuple[tuple[str, str], ...]:
    """Leave out what cannot matter here: equal scenes may come with longer or shorter lists."""
    receptacle_types = {r.type for r in scene.receptacles}
    object_types = {t.type for t in scene.things}
    return tuple(sorted((r, o) for r, o in scene.can_contain if r in receptacle_types and o in object_types))


def _names(ids: Iterable[str]) -> dict[str, str]:
    """Name ids as ALFWorld does: the class and a number, the first id of a class getting the highest."""
    classes = {i: _class_of(i) for i in ids}
    left = Counter(classes.values())
    names = {}
    for i in sorted(classes):
        kind = classes[i]
        names[i] = f"{kind} {left[kind]}" if kind else f"{i} "
        left[kind] -= 1
    return names


def _class_of(i: str) -> str:
    kind, bar, _ = i.partition("_bar_")
    if not bar:
        return ""
    return kind + "basin" if "basin" in i else kind


def read_record(text: str) -> dict[str, Any]:
    """Return the JSON object of a `.tw-pddl` file.

    Raises:
        DataError: If the text is none.
    """
    try:
        record = json.loads(text)
    except ValueError as err:
        raise DataError(f"no JSON ({err}); it starts with {text[:60]!r}") from err
    if not isinstance(record, dict):
        raise DataError(f"expected a JSON object, got {type(record).__name__}")
    return record


def read_game(text: str) -> Game:
    """Return the game of a `.tw-pddl` file.

    Raises:
        DataError: If the text is not such a file, or not one of the six tasks.
        UnknownRules: If its domain or grammar is unknown.
    """
    record = read_record(text)
    for key in ("pddl_domain", "grammar", "pddl_problem"):
        if not isinstance(record.get(key), str):
            raise DataError(f"expected a text under {key!r}, got the keys {sorted(record)[:10]}")
    check_domain(record["pddl_domain"])
    version, task, help_text = read_grammar(record["grammar"])
    scene, goal = read_problem(record["pddl_problem"])
    return Game.of_scene(scene, goal, task=task, grammar=cast(GrammarVersion, version), help=help_text)
