"""Reads commands that are nearly right: other verbs, articles, letter case, "mug1" for "mug 1".

>>> read_lenient("Put the mug1 into the drawer 2.", game)  # doctest: +SKIP
'move mug 1 to drawer 2'

It only rewords: it does not ask whether the command can be carried out now, corrects no spelling, and never
guesses which of several things is meant.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from arl_gym.envs.alfworld.game import Game
from arl_gym.envs.alfworld.house import tables

MAX_LENGTH = 200
"""Longer texts are no commands; the longest of the benchmark's has about 60 characters."""

_ARTICLES = ("a", "an", "the")

# The game's verb, words for it, and words between its two things.
_TWO_THINGS = (
    ("take", "take|grab|get|pick up", "from|out of"),
    ("put", "put|place|move|insert", "in/on|in|into|on|onto|to"),
    ("heat", "heat", "with|using|in"),
    ("cool", "cool", "with|using|in"),
    ("clean", "clean", "with|using|in"),
    ("slice", "slice|cut", "with|using"),
)
_ONE_THING = (
    ("go to", "go to|go|walk to|walk"),
    ("open", "open"),
    ("close", "close|shut"),
    ("examine", "examine|inspect"),
    ("use", "use|toggle|turn on|switch on"),
)
_ALONE = {"look around": "look", "check inventory": "inventory", "i": "inventory"}

_PATTERNS = [
    *((verb, re.compile(rf"(?:{verbs}) (.+?) (?:{joins}) (.+)")) for verb, verbs, joins in _TWO_THINGS),
    *((verb, re.compile(rf"(?:{verbs}) (.+)")) for verb, verbs in _ONE_THING),
]


def read_lenient(text: str, game: Game) -> str | None:
    """Return the game's own wording of a command; None if it names nothing the game has."""
    if len(text) > MAX_LENGTH:
        return None
    words = text.lower().strip().rstrip(" .").split()
    plain = " ".join(word for word in words if word not in _ARTICLES)
    for command in (text.strip(), _ALONE.get(plain, plain), *_rewordings(plain, game)):
        if tables(game).parse(command) is not None:
            return command
    return None


def _rewordings(plain: str, game: Game) -> Iterator[str]:
    put, put_join = tables(game).put, tables(game).put_join
    known = _names(game)
    for verb, pattern in _PATTERNS:
        found = pattern.fullmatch(plain)
        names = [known.get(name.replace(" ", ""), "") for name in found.groups()] if found else []
        if names and all(names):
            join = {"take": " from ", "put": put_join}.get(verb, " with ")
            yield f"{put if verb == 'put' else verb} {join.join(names)}"


@lru_cache(maxsize=256)
def _names(game: Game) -> dict[str, str]:
    """Return the names by their letters without blanks, those left out that are then the same."""
    pairs = [(name.replace(" ", ""), name) for name in (*game.objects, *game.receptacles)]
    count = Counter(short for short, _ in pairs)
    return {short: name for short, name in pairs if count[short] == 1}
