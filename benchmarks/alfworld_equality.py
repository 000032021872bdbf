"""Is the native ALFWorld engine equal to the real one, and how much faster? Both play the same commands.

    make test-alfworld                    # once: builds .venv-alfworld with the real packages
    .venv-alfworld/bin/python benchmarks/alfworld_equality.py FOLDER --games 60 --steps 40 --processes 2

FOLDER holds `.tw-pddl` files, at any depth; `--games` takes that many of them, evenly. In each an object is
treated in every way, random commands follow, and the game is solved by our planner; every second game is
solved first, by its walkthrough if it has one. After each command the answers, the lists of commands and
`won` must be equal, and native state keys must be equal exactly when the real facts are. Exit status 1 if
anything differs.

Seconds are CPU seconds of the same process; a step is a command with its list of commands and `won`. The
native engine's are those of playing the same commands once more, at a stretch.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Protocol

from arl_gym.envs.alfworld.game import read_game
from arl_gym.envs.alfworld.house import House
from arl_gym.envs.alfworld.planner import NoPlan, plan
from arl_gym.envs.alfworld.reference import ReferenceGame
from arl_gym.envs.alfworld.scene import CLEANABLE, HEATABLE, SLICEABLE, VESSEL
from arl_gym.rng import Rng, digest

ANSWERS = {
    "go to, on": r"You arrive at .*\. On the ",
    "go to, open": r"You arrive at .*\. The .* is open\.",
    "go to, closed": r"You arrive at .*\. The .* is closed\.",
    "open": r"You open the ",
    "close": r"You close the ",
    "take": r"You pick up the ",
    "move": r"You (move|put) the ",
    "heat with": r"You heat the ",
    "cool with": r"You cool the ",
    "clean with": r"You clean the ",
    "use": r"You turn on the ",
    "slice": r"You sliced the ",
    "examine, on": r"On the ",
    "examine, open": r"The .* is open\.",
    "examine, closed": r"The .* is closed\.",
    "vessel, empty": r"This is a normal .* nothing\.$",
    "vessel, full": r"This is a normal .*",
    "hot and clean sliced": r"This is a hot and clean sliced ",
    "cool and clean sliced": r"This is a cool and clean sliced ",
    "clean sliced": r"This is a clean sliced ",
    "hot sliced": r"This is a hot sliced ",
    "cool sliced": r"This is a cool sliced ",
    "hot and clean": r"This is a hot and clean ",
    "cool and clean": r"This is a cool and clean ",
    "hot": r"This is a hot ",
    "clean": r"This is a clean ",
    "cold": r"This is a cold ",
    "lamp on": r"This .* is on\.",
    "sliced": r"This is a sliced ",
    "nothing special": r"There's nothing special",
    "look, nowhere": r"You are in the middle of a room",
    "look, nothing beside": r"You are facing the .* you see nothing\.",
    "look, something beside": r"You are facing the ",
    "inventory, empty": r"You are not carrying",
    "inventory": r"You are carrying: ",
    "help": r"Available commands:",
    "nothing happens": r"Nothing happens\.$",
}
"""Kinds of answers, and how to tell them: the first that matches."""

# How often a verb is chosen where its commands are listed: what random play seldom reaches weighs more.
WEIGHTS = Counter(
    {
        "go": 8,
        "open": 8,
        "close": 1,
        "take": 4,
        "move": 3,
        "put": 3,
        "heat": 8,
        "cool": 8,
        "clean": 8,
        "use": 4,
    }
    | {"slice": 8, "examine": 3, "look": 1, "inventory": 1, "help": 1}
)
_INTERESTING = re.compile(r"microwave|fridge|sinkbasin|desklamp|knife")


Seen = tuple[str, list[str], bool]
"""What a command shows: its answer, the commands listed after it, and whether the goal holds."""


class Engine(Protocol):
    """What both engines offer."""

    def act(self, text: str) -> str:
        """Carry out a command; return what the game says."""
        ...

    def commands(self) -> list[str]:
        """Return the commands that can be carried out."""
        ...

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        ...


@dataclass
class Tally:
    """What a comparison found."""

    games: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    won_steps: int = 0
    won_games: int = 0
    native_s: float = 0.0
    reference_s: float = 0.0
    load_s: float = 0.0
    differences: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add what another comparison found."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))


# ---- choosing commands


def choose_listed(house: House, rng: Rng) -> str:
    """Return a command that does something: the verb by weight, then any of its commands."""
    by_verb: dict[str, list[str]] = {}
    for command in house.commands():
        by_verb.setdefault(command.split(" ")[0], []).append(command)
    tickets = [verb for verb in sorted(by_verb) for _ in range(WEIGHTS[verb])]
    commands = by_verb[rng.choice(tickets)]
    interesting = [c for c in commands if _INTERESTING.search(c)]
    held = [] if house.held < 0 else [f"examine {house.game.objects[house.held]}"]
    narrower = interesting or (held if commands[0].startswith("examine") else [])
    return rng.choice(narrower if narrower and rng.below(2) else commands)


def near_miss(house: House, rng: Rng) -> str:
    """Return a well-formed command about any things of the game; mostly it does nothing."""
    game = house.game
    objects, receptacles = game.objects or ("mug 1",), game.receptacles
    one = rng.choice([*objects, *receptacles])
    patterns = ("go to {}", "open {}", "close {}", "examine {}", "use {}")
    if rng.below(3) == 0:
        return rng.choice(patterns).format(one)
    thing = game.objects[house.held] if house.held >= 0 and rng.below(2) else rng.choice(objects)
    pairs = ("take {} from {}", "move {} to {}", "put {} in/on {}", "heat {} with {}", "cool {} with {}")
    pair = rng.choice((*pairs, "clean {} with {}", "slice {} with {}"))
    return pair.format(thing, rng.choice(objects if pair.startswith("slice") else receptacles))


def misspell(house: House, rng: Rng) -> str:
    """Return a listed command in another form, or a text that is none."""
    command = rng.choice(house.commands())
    other = (command.upper(), command.title(), command.replace(" ", "  "), command + ".", command[:-1])
    return rng.choice((*other, f"  {command}\n", "", "help", "Help", "use desklamp 1", "put down", "go to"))


CHOICES: dict[str, tuple[int, Callable[[House, Rng], str]]] = {
    "listed": (14, choose_listed),
    "near miss": (4, near_miss),
    "other form": (2, misspell),
}
"""Kind of command: how often, and how to choose one."""


def random_commands(house: House, rng: Rng, steps: int) -> Iterator[tuple[str, str]]:
    """Yield kinds and texts of commands; `house` must carry out each before the next is asked for."""
    tickets = [kind for kind, (weight, _) in CHOICES.items() for _ in range(weight)] + ["listed before"] * 2
    before = ["look"]
    for _ in range(steps):
        kind = rng.choice(tickets)
        command = rng.choice(before) if kind == "listed before" else CHOICES[kind][1](house, rng)
        if kind == "listed":
            before.append(command)
        yield kind, command


def errand_commands(house: House, rng: Rng) -> Iterator[tuple[str, str]]:
    """Yield commands that slice an object, if there is a knife, treat it in every way, and look at it."""
    game, put = house.game, "put {} in/on {}" if house.game.grammar == "0.3" else "move {} to {}"
    at = {o: game.receptacles[r] for r, inside in enumerate(house.contents) for o in inside}
    knives = [k for k in at if game.object_types[k] in ("knife", "butterknife")]
    treatable = [
        o for o in at if game.abilities[o] & (HEATABLE | CLEANABLE) and not game.abilities[o] & VESSEL
    ]
    sliceable = [o for o in at if game.abilities[o] & SLICEABLE]
    if not treatable:
        return
    o = rng.choice(sliceable or treatable)
    thing, place, commands = game.objects[o], at[o], list[str]()
    if o in sliceable and knives and rng.below(2):
        k = rng.choice(knives)
        knife = game.objects[k]
        commands = [f"go to {at[k]}", f"open {at[k]}", f"take {knife} from {at[k]}", f"examine {knife}"]
        commands += [
            f"go to {place}",
            f"open {place}",
            f"slice {thing} with {knife}",
            put.format(knife, place),
        ]
        commands += ["go to countertop 1", put.format(knife, "countertop 1"), "look"]
    commands += [f"go to {place}", f"open {place}", f"take {thing} from {place}", f"examine {thing}"]
    treatments = [("heat", "microwave 1"), ("cool", "fridge 1"), ("clean", "sinkbasin 1")] * 2
    rng.shuffle(treatments)
    for verb, where in treatments:
        commands += [f"go to {where}", f"{verb} {thing} with {where}", f"examine {thing}"]
    yield from (("errand", command) for command in commands)


def solving_commands(house: House, walkthrough: Sequence[str], rng: Rng) -> Iterator[tuple[str, str]]:
    """Yield the commands of the walkthrough, or of a plan from here; now and then a question between."""
    try:
        commands = walkthrough or plan(house)
    except NoPlan:
        commands = ()
    for command in commands:
        yield "solution", command
        if rng.below(3) == 0:
            yield "question", rng.choice(("look", "inventory", "help", "examine mug 1"))


# ---- comparing


def answer_kind(text: str) -> str:
    """Return the kind of an answer, or the answer itself if it is of none."""
    return next((kind for kind, pattern in ANSWERS.items() if re.match(pattern, text)), text)


class Match:
    """One game in both engines."""

    def __init__(self, name: str, file_text: str, tally: Tally):
        self.name, self.tally = name, tally
        start = time.process_time()
        self.reference = ReferenceGame(file_text)
        tally.load_s += time.process_time() - start
        self.house = House(read_game(file_text))
        self.won = False
        self.path: list[str] = []
        self._facts: dict[int, tuple[str, ...]] = {}
        self._keys: dict[tuple[str, ...], int] = {}
        first = [(e.intro(), e.commands(), e.won) for e in (self.house, self.reference)]
        self.equal = self._check(*first)

    def play(self, commands: Iterator[tuple[str, str]]) -> None:
        """Play commands, given with their kinds, until the engines differ."""
        for kind, command in commands if self.equal else ():
            native, tally = _step(self.house, command), self.tally
            start = time.process_time()
            real = _step(self.reference, command)
            tally.reference_s += time.process_time() - start
            tally.commands[kind] += 1
            tally.answers[answer_kind(real[0])] += 1
            tally.won_steps += real[2]
            self.won |= real[2]
            self.path.append(command)
            self.equal = self._check(native, real)
            if not self.equal:
                break

    def _check(self, native: Seen, real: Seen) -> bool:
        key, facts = self.house.key, self.reference.facts()
        found = [
            f"{what}: {ours!r}, but TextWorld: {theirs!r}"
            for what, ours, theirs in zip(("answer", "commands", "won"), native, real, strict=True)
            if ours != theirs
        ]
        if self._facts.setdefault(key, facts) != facts:
            found.append("one key for two states")
        if self._keys.setdefault(facts, key) != key:
            found.append("two keys for one state")
        self.tally.differences += [f"{self.name} after {self.path}: {text}" for text in found]
        return not found


def _step(engine: Engine, command: str) -> Seen:
    return engine.act(command), engine.commands(), engine.won


def _replay_s(text: str, path: Sequence[str]) -> float:
    """Return the seconds the native engine needs for all commands, first uses of its tables included."""
    house = House(read_game(text))
    start = time.process_time()
    for command in path:
        _step(house, command)
    return time.process_time() - start


def compare_file(path: Path, seed: int, steps: int, solve_first: bool) -> Tally:
    """Return what one game shows."""
    tally = Tally()
    text = path.read_text()
    rng = Rng("alfworld equality", seed, digest(text))
    match = Match(path.as_posix(), text, tally)
    tally.games[f"{match.house.game.task_type} ({match.house.game.grammar})"] += 1
    walkthrough = json.loads(text).get("walkthrough") or ()
    solving = solving_commands(match.house, walkthrough if solve_first else (), rng)
    others = errand_commands(match.house, rng), random_commands(match.house, rng, steps)
    for commands in (solving, *others) if solve_first else (*others, solving):
        match.play(commands)
    match.reference.close()
    tally.native_s += _replay_s(text, match.path)
    tally.won_games += match.won
    return tally


# ---- the report


def report(tally: Tally) -> str:
    """Return the tables."""
    steps = tally.commands.total()
    lines = [f"| {kind} | {n} |" for kind, n in sorted(tally.games.items())]
    lines = ["| games | |", "|---|---|", *lines, f"| all | {tally.games.total()} |", ""]
    lines += [
        "| steps | |",
        "|---|---|",
        *(f"| {kind} | {n} |" for kind, n in sorted(tally.commands.items())),
    ]
    lines += [f"| all | {steps} |", f"| with the goal met | {tally.won_steps} |", ""]
    missing = [kind for kind in ANSWERS if not tally.answers[kind]]
    lines += [
        "| answer | times |",
        "|---|---|",
        *(f"| {kind} | {tally.answers[kind]} |" for kind in ANSWERS),
        "",
    ]
    lines += [f"answers of no known kind: {sorted(tally.answers.keys() - ANSWERS.keys()) or 'none'}"]
    lines += [f"kinds of answers not met: {', '.join(missing) or 'none'}"]
    lines += [f"games won: {tally.won_games} of {tally.games.total()}"]
    lines += [f"differences: {len(tally.differences)}", *(f"  {text}" for text in tally.differences[:10])]
    native, reference = (steps / max(s, 1e-9) for s in (tally.native_s, tally.reference_s))
    lines += [f"steps per CPU second: native {native:,.0f}, TextWorld {reference:.1f}"]
    lines += [f"ratio: {native / max(reference, 1e-9):,.0f}"]
    lines += [f"TextWorld's load and reset of a game: {tally.load_s / tally.games.total():.2f} CPU seconds"]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, print the tables, return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", type=int, default=60)
    parser.add_argument("--steps", type=int, default=40, help="random commands a game")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    files = sorted(args.folder.rglob("*.tw-pddl"))
    if not files:
        parser.error(f"no .tw-pddl file under {args.folder}")
    chosen = files[:: max(1, len(files) // args.games)][: args.games]
    n, tally = len(chosen), Tally()
    jobs = (chosen, [args.seed] * n, [args.steps] * n, [k % 2 == 0 for k in range(n)])
    with ProcessPoolExecutor(args.processes) as pool:
        for found in pool.map(compare_file, *jobs):
            tally.add(found)
    print(report(tally))
    return int(bool(tally.differences))


if __name__ == "__main__":
    sys.exit(main())
