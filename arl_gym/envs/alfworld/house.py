"""The native engine: plays a game as TextWorld does, command for command.

>>> house = House(game)  # doctest: +SKIP
>>> house.act("go to fridge 1")  # doctest: +SKIP
'You arrive at fridge 1. The fridge 1 is closed.'

The rules are those of the ALFRED domain and its text grammar as TextWorld 1.7.0 carries them out. Where they
are odd (a receptacle never fills, what was cooled is "cold", no lamp can be turned off), so are these.
"""

from bisect import insort
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from arl_gym.envs.alfworld.game import Game
from arl_gym.envs.alfworld.scene import (
    CLEANABLE,
    COOLABLE,
    HEATABLE,
    PICKUPABLE,
    SLICEABLE,
    TOGGLEABLE,
    VESSEL,
)
from arl_gym.rng import derive, nth_word

NOTHING_HAPPENS = "Nothing happens."

_WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
_ROOM = "You are in the middle of a room. Looking quickly around you, you see {}."
_FACING = "You are facing the {}. Next to it, you see {}."
# Verb, ability of the object, type of the receptacle.
_TREATMENTS = (
    ("clean", CLEANABLE, "sinkbasin"),
    ("cool", COOLABLE, "fridge"),
    ("heat", HEATABLE, "microwave"),
)
_KNIVES = ("knife", "butterknife")

# Kinds of facts, for the keys of states.
_AT, _HELD, _IN, _LYING, _REMOVED = range(5)
_FLAGS = {kind: 5 + k for k, kind in enumerate(("opened", "clean", "heat", "cool", "toggled", "sliced"))}

Command = tuple[str, int, int]
"""Verb, and the numbers of what it is about; -1 where there is nothing."""


class Stance(NamedTuple):
    """The commands of a location that depend on what is held, sorted, and the parts that need more."""

    doors: list[int]
    """Receptacles that open, in the order of their names."""
    clean: list[str]
    cool: list[str]
    middle: list[str]
    """Everything from `examine` to `look`."""
    puts: list[tuple[str, int]]
    """Command and receptacle, which must be accessible."""


class Tables:
    """What does not change while a game is played."""

    def __init__(self, game: Game):
        self._game = game
        self.object_number = {name: i for i, name in enumerate(game.objects)}
        self.receptacle_number = {name: i for i, name in enumerate(game.receptacles)}
        self.here: list[list[int]] = [[] for _ in game.locations]
        """Receptacles of each location."""
        for r, at in enumerate(game.location_of):
            if at >= 0:
                self.here[at].append(r)
        pairs = zip(game.receptacles, game.location_of, strict=True)
        self._go_to = sorted((f"go to {name}", at) for name, at in pairs if at >= 0)
        self._stances: dict[tuple[int, int], Stance] = {}
        self.has_switches = any(ability & TOGGLEABLE for ability in game.abilities)
        holds = set(game.can_contain)
        by_type = {
            what: frozenset(r for r, kind in enumerate(game.receptacle_types) if (kind, what) in holds)
            for what in set(game.object_types)
        }
        self.fits: list[frozenset[int]] = [by_type[what] for what in game.object_types]
        """Receptacles that may hold each object."""
        self.is_knife = tuple(kind in _KNIVES for kind in game.object_types)
        self.within: dict[int, list[str]] = {}
        for inner, outer in game.within:
            self.within.setdefault(outer, []).append(game.objects[inner])
        self.put, self.put_join = ("move", " to ") if game.grammar == "0.4" else ("put", " in/on ")
        self._pairs = {
            "take": (" from ", self.object_number, self.receptacle_number),
            self.put: (self.put_join, self.object_number, self.receptacle_number),
            "heat": (" with ", self.object_number, self.receptacle_number),
            "cool": (" with ", self.object_number, self.receptacle_number),
            "clean": (" with ", self.object_number, self.receptacle_number),
            "slice": (" with ", self.object_number, self.object_number),
        }
        self._commands: dict[str, Command] = {"look": ("look", -1, -1), "inventory": ("inventory", -1, -1)}
        if game.help:
            self._commands["help"] = ("help", -1, -1)
        self._words: dict[int, int] = {}
        self._ranks: dict[tuple[str, int], int] = {}
        self.root_key = derive(game.content_hash)

    def stance(self, held: int, place: int) -> "Stance":
        """Return what can be done with an object in the hand (or none, -1) at a location."""
        if (held, place) not in self._stances:
            self._stances[held, place] = self._stand(held, place)
        return self._stances[held, place]

    def _stand(self, held: int, place: int) -> "Stance":
        game, names, here = self._game, self._game.receptacles, self.here[place]
        examine = [f"examine {names[r]}" for r in here]
        treat: dict[str, list[str]] = {"clean": [], "cool": [], "heat": []}
        puts: list[tuple[str, int]] = []
        if held >= 0:
            name = game.objects[held]
            examine.append(f"examine {name}")
            for verb, ability, kind in _TREATMENTS:
                if game.abilities[held] & ability:
                    able = [r for r in here if game.receptacle_types[r] == kind]
                    treat[verb] = sorted(f"{verb} {name} with {names[r]}" for r in able)
            fits = self.fits[held]
            puts = sorted((f"{self.put} {name}{self.put_join}{names[r]}", r) for r in here if r in fits)
        return Stance(
            doors=[r for _, r in sorted((names[r], r) for r in here if game.openable[r])],
            clean=treat["clean"],
            cool=treat["cool"],
            middle=[
                *sorted(examine),
                *(command for command, at in self._go_to if at != place),
                *treat["heat"],
                *(["help"] if game.help else []),
                "inventory",
                "look",
            ],
            puts=puts,
        )

    def parse(self, text: str) -> Command | None:
        """Return what a command says, whether or not it can be done; None if it says nothing."""
        found = self._commands.get(text)
        if found is None and (found := self._parse(text)) is not None:
            # Bounded: only texts that name things of this game are kept.
            self._commands[text] = found
        return found

    def _parse(self, text: str) -> Command | None:
        verb, _, rest = text.partition(" ")
        if verb in self._pairs:
            join, first, second = self._pairs[verb]
            a, _, b = rest.partition(join)
            return (verb, first[a], second[b]) if a in first and b in second else None
        if verb == "go" and rest.startswith("to "):
            verb, rest = "go to", rest[3:]
        if rest in self.receptacle_number:
            kinds = ("go to", "open", "close", "examine")
            return (verb, -1, self.receptacle_number[rest]) if verb in kinds else None
        if rest in self.object_number and verb in ("examine", "use"):
            return (verb, self.object_number[rest], -1)
        return None

    def word(self, kind: int, a: int, b: int = 0) -> int:
        """Return the 64-bit word of a fact, for keys that are sums of such words."""
        code = (kind << 40) + (a + 1 << 20) + b
        if code not in self._words:
            self._words[code] = nth_word(self.root_key, code)
        return self._words[code]

    def rank(self, what: str, i: int) -> int:
        """Return a number that orders the choices of `what`, in every game in another way."""
        if (what, i) not in self._ranks:
            self._ranks[what, i] = derive(self.root_key, what, i, 0)
        return self._ranks[what, i]


@lru_cache(maxsize=256)
def tables(game: Game) -> Tables:
    """Return the tables of a game, kept for the games played last."""
    return Tables(game)


class House:
    """A game being played.

    Objects, receptacles and locations are the game's numbers. Read the attributes as you like; only `act`
    changes them.
    """

    def __init__(self, game: Game):
        self.game = game
        self.tables = tables(game)
        self.place = game.start
        self.held = game.held
        """Number of the object in the agent's hand, or -1."""
        self.contents: list[list[int]] = [[] for _ in game.receptacles]
        for o, r in game.inside:
            self.contents[r].append(o)
        self.lying = set(game.lying)
        self.removed: set[tuple[int, int]] = set()
        """(object, receptacle) it was taken out of and not put back into."""
        self.opened = set(game.opened)
        self.clean, self.hot, self.cool = set(game.clean), set(game.hot), set(game.cool)
        self.toggled, self.sliced = set(game.toggled), set(game.sliced)
        self._facts = self._all_words()
        self._listed: dict[int, str] = {}
        self._commands: list[str] | None = None
        self._met: tuple[int, int] | None = None

    # ---- what is seen

    def intro(self) -> str:
        """Return the text the game starts with."""
        game = self.game
        names = [f"a {name}" for name, at in zip(game.receptacles, game.location_of, strict=True) if at >= 0]
        facing = [game.receptacles[r] for r in self.tables.here[game.start]]
        seen = _FACING.format(_list(facing), "nothing") if facing else _ROOM.format(_list(names))
        return f"{_WELCOME}\n\n{seen}\n\nYour task is to: {game.task}"

    def describe(self, r: int) -> str:
        """Return what one sees of a receptacle."""
        name = self.game.receptacles[r]
        if not self.game.openable[r]:
            return f"On the {name}, you see {self._inside(r)}."
        if r in self.opened:
            return f"The {name} is open. In it, you see {self._inside(r)}."
        return f"The {name} is closed."

    def _inside(self, r: int) -> str:
        if r not in self._listed:
            objects = self.game.objects
            self._listed[r] = _list([f"a {objects[o]}" for o in self.contents[r]])
        return self._listed[r]

    def _look(self) -> str:
        here = self.tables.here[self.place]
        if not here:
            return _ROOM.format("nothing")
        names, objects = self.game.receptacles, self.game.objects
        beside = sorted((o, r) for o, r in self.removed if r in here and (o, self.place) in self.lying)
        seen = _list([f"a {objects[o]}" for o, _ in beside])
        return _FACING.format(_list([names[r] for r in here]), seen)

    def _inspect(self, o: int) -> str:
        name, abilities = self.game.objects[o], self.game.abilities[o]
        if abilities & VESSEL:
            within = _list([f"a {inner}" for inner in self.tables.within.get(o, ())])
            return f"This is a normal {name}. In it, you see {within}."
        clean, hot, cool, sliced = (o in s for s in (self.clean, self.hot, self.cool, self.sliced))
        heat = "hot" if hot else "cool" if cool else ""
        if sliced and (clean or heat):
            return f"This is a {heat + ' and clean' if clean and heat else heat or 'clean'} sliced {name}."
        if clean or heat:
            plain = "clean" if clean else "cold" if heat == "cool" else heat
            return f"This is a {heat + ' and clean' if clean and heat else plain} {name}."
        if o in self.toggled and abilities & TOGGLEABLE:
            return f"This {name} is on."
        if sliced and abilities & SLICEABLE:
            return f"This is a sliced {name}."
        return f"There's nothing special about {name}."

    # ---- what can be done

    def accessible(self, r: int) -> bool:
        """Return whether things can be taken out of a receptacle and put in."""
        return not self.game.openable[r] or r in self.opened

    def _sliceable_here(self, o: int) -> bool:
        return bool(self.game.abilities[o] & SLICEABLE) and (o, self.place) in self.lying

    def _switches(self) -> set[int]:
        """Return what can be used here, in closed receptacles too."""
        abilities = self.game.abilities
        return {
            o for r in self.tables.here[self.place] for o in self.contents[r] if abilities[o] & TOGGLEABLE
        }

    def commands(self) -> list[str]:
        """Return the commands that can be carried out, sorted. The list is shared: do not change it."""
        if self._commands is None:
            self._commands = self._list_commands()
        return self._commands

    def _list_commands(self) -> list[str]:
        """Return the commands verb by verb, in the order of the verbs: so the whole is sorted, too."""
        table, names, opened = self.tables, self.game.receptacles, self.opened
        stance = table.stance(self.held, self.place)
        puts = [command for command, r in stance.puts if self.accessible(r)]
        closes = [f"close {names[r]}" for r in stance.doors if r in opened]
        opens = [f"open {names[r]}" for r in stance.doors if r not in opened]
        commands = [*stance.clean, *closes, *stance.cool, *stance.middle]
        commands += puts + opens if table.put == "move" else opens + puts
        if self.held < 0:
            commands += self._takes()
        elif table.is_knife[self.held]:
            commands += self._slices()
        if table.has_switches:
            commands += sorted(f"use {self.game.objects[o]}" for o in self._switches())
        return commands

    def _takes(self) -> list[str]:
        game, contents = self.game, self.contents
        names, objects, abilities = game.receptacles, game.objects, game.abilities
        return sorted(
            [
                f"take {objects[o]} from {names[r]}"
                for r in self.tables.here[self.place]
                if contents[r] and self.accessible(r)
                for o in contents[r]
                if abilities[o] & PICKUPABLE
            ]
        )

    def _slices(self) -> list[str]:
        knife = self.game.objects[self.held]
        found = (o for o, at in self.lying if at == self.place and self._sliceable_here(o))
        return sorted(f"slice {self.game.objects[o]} with {knife}" for o in found)

    # ---- doing it

    def act(self, text: str) -> str:
        """Carry out a command; return what the game says."""
        text = text.strip()
        command = self.tables.parse(text) if text in self.commands() else None
        if command is None:
            return NOTHING_HAPPENS
        verb, o, r = command
        if verb in ("look", "inventory", "help", "examine"):
            return self._ask(verb, o, r)
        self._commands = None
        if verb == "go to":
            return self._go_to(r)
        self._met = None
        return self._change(verb, o, r)

    def _ask(self, verb: str, o: int, r: int) -> str:
        if verb == "look":
            return self._look()
        if verb == "help":
            return self.game.help.removeprefix("\n")
        if verb == "examine":
            return self.describe(r) if o < 0 else self._inspect(o)
        if self.held < 0:
            return "You are not carrying anything."
        return f"You are carrying: a {self.game.objects[self.held]}."

    def _go_to(self, r: int) -> str:
        game, word = self.game, self.tables.word
        self._facts ^= word(_AT, self.place) ^ word(_AT, game.location_of[r])
        self.place = game.location_of[r]
        if game.task_type == "look_at_obj_in_light":
            self._met = None
        arrived = game.receptacles[r] if game.grammar == "0.4" else game.locations[self.place]
        return f"You arrive at {arrived}. {self.describe(r)}"

    def _change(self, verb: str, o: int, r: int) -> str:
        names, objects = self.game.receptacles, self.game.objects
        if verb in ("open", "close"):
            self._flip("opened", self.opened, r)
            return f"You {verb} the {names[r]}." + (f" {self.describe(r)}" if verb == "open" else "")
        if verb == "take":
            self._take(o, r)
            return f"You pick up the {objects[o]} from the {names[r]}."
        if verb == self.tables.put:
            self._put(o, r)
            return f"You {verb} the {objects[o]}{self.tables.put_join}the {names[r]}."
        if verb == "use":
            self._set("toggled", self.toggled, o)
            return f"You turn on the {objects[o]}."
        if verb == "slice":
            self._set("sliced", self.sliced, o)
            return f"You sliced the {objects[o]} with the {objects[r]}."
        self._treat(verb, o)
        return f"You {verb} the {objects[o]} using the {names[r]}."

    def _take(self, o: int, r: int) -> None:
        word = self.tables.word
        self.contents[r].remove(o)
        self._listed.pop(r, None)
        self._facts ^= word(_IN, o, r) ^ word(_HELD, self.held) ^ word(_HELD, o)
        self.held = o
        if (o, self.place) in self.lying:
            self.lying.remove((o, self.place))
            self._facts ^= word(_LYING, o, self.place)
        if (o, r) not in self.removed:
            self.removed.add((o, r))
            self._facts ^= word(_REMOVED, o, r)

    def _put(self, o: int, r: int) -> None:
        word = self.tables.word
        if o not in self.contents[r]:
            insort(self.contents[r], o)
            self._listed.pop(r, None)
            self._facts ^= word(_IN, o, r)
        self._facts ^= word(_HELD, o) ^ word(_HELD, -1)
        self.held = -1
        if (o, self.place) not in self.lying:
            self.lying.add((o, self.place))
            self._facts ^= word(_LYING, o, self.place)
        if (o, r) in self.removed:
            self.removed.remove((o, r))
            self._facts ^= word(_REMOVED, o, r)

    def _treat(self, verb: str, o: int) -> None:
        if verb == "clean":
            self._set("clean", self.clean, o)
            return
        gets, loses = (self.hot, self.cool) if verb == "heat" else (self.cool, self.hot)
        self._set(verb, gets, o)
        if o in loses:
            self._flip("cool" if verb == "heat" else "heat", loses, o)

    def _set(self, kind: str, facts: set[int], i: int) -> None:
        if i not in facts:
            self._flip(kind, facts, i)

    def _flip(self, kind: str, facts: set[int], i: int) -> None:
        facts.symmetric_difference_update((i,))
        self._facts ^= self.tables.word(_FLAGS[kind], i)

    # ---- how far the task is

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        met, wanted = self.conditions()
        return met == wanted

    def conditions(self) -> tuple[int, int]:
        """Return how many conditions of the goal hold, and how many there are.

        To place: 1. To look: the object is held; a lamp is on where the agent stands. To clean, heat or cool:
        an object is in place; one is treated; one is both. Two: the objects in the fullest place, at most 2.
        """
        if self._met is None:
            self._met = self._conditions()
        return self._met

    def _conditions(self) -> tuple[int, int]:
        game, (task, what, where) = self.game, self.game.goal
        if task == "look_at_obj_in_light":
            held = self.held >= 0 and game.object_types[self.held] == what
            lit = any(game.object_types[o] == where and o in self.toggled for o in self._switches())
            return held + lit, 2
        found = [
            [o for o in self.contents[r] if game.object_types[o] == what]
            for r, kind in enumerate(game.receptacle_types)
            if kind == where
        ]
        if task == "pick_two_obj_and_place":
            return min(2, max(map(len, found), default=0)), 2
        placed = any(found)
        if task == "pick_and_place_simple":
            return int(placed), 1
        done, ability = {
            "pick_clean_then_place_in_recep": (self.clean, CLEANABLE),
            "pick_heat_then_place_in_recep": (self.hot, HEATABLE),
            "pick_cool_then_place_in_recep": (self.cool, COOLABLE),
        }[task]
        treated = {o for o in done if game.object_types[o] == what and game.abilities[o] & ability}
        both = any(o in treated for inside in found for o in inside)
        return placed + bool(treated) + both, 3

    @property
    def key(self) -> int:
        """A 64-bit key of the state: equal for equal states, however they were reached."""
        return self._facts

    @property
    def state_key(self) -> str:
        """The key as 16 hex digits."""
        return f"{self._facts:016x}"

    @property
    def house(self) -> "House":
        """Itself: what every engine has for those who need the whole state."""
        return self

    @property
    def task(self) -> str:
        """The goal in words."""
        return self.game.task

    @property
    def grammar(self) -> str:
        """Version of the text grammar."""
        return self.game.grammar

    @property
    def content_hash(self) -> str:
        """Digest of the game."""
        return self.game.content_hash

    def _all_words(self) -> int:
        word, key = self.tables.word, self.tables.root_key
        key ^= word(_AT, self.place) ^ word(_HELD, self.held)
        for o, r in self.game.inside:
            key ^= word(_IN, o, r)
        for o, at in self.lying:
            key ^= word(_LYING, o, at)
        sets = [("opened", self.opened), ("clean", self.clean), ("heat", self.hot), ("cool", self.cool)]
        for kind, facts in [*sets, ("toggled", self.toggled), ("sliced", self.sliced)]:
            for i in facts:
                key ^= word(_FLAGS[kind], i)
        return key


def _list(names: Sequence[str]) -> str:
    if not names:
        return "nothing"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}, and {names[-1]}"
