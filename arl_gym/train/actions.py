"""Kinds of actions, and how often one kind follows another.

Reads text only: it knows the four environments by id and imports none of them.

    action_type("ARL/WebShop-v0", "click[buy now]")  # "buy"
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arl_gym.errors import UnknownNameError

INVALID = "invalid"

Transitions = Counter[tuple[str, str]]
"""How often an action of the first kind was followed by one of the second in the next turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One action, and what is known about it."""

    action: str
    observation: str = ""
    """What the action answered, without history."""
    valid: bool = True


def action_type(env_id: str, action: str, observation: str = "") -> str:
    r"""Return the kind of an action, "invalid" if it is none of its environment's.

    | environment | kinds |
    |---|---|
    | Sokoban | up, down, left, right |
    | ALFWorld | go to, take, put, open, close, clean, heat, cool, use, slice, examine, look, inventory |
    | WebShop | search, page, product, option, read, back, buy, scroll |
    | TIR-Math | code, answer, void |

    WebShop's "page" turns a page of results and "read" opens a product's description, features, reviews or
    attributes; "back" returns to the search, the results or the product. TIR-Math's turn is "answer" with a
    box before or without a program, "code" with a program, else "void".

    Args:
        env_id: Id of the environment, with or without version.
        action: What the environment got.
        observation: What the action answered, without history. WebShop: tells a product on a page of results
            from an option on a page of a product, and "< prev" there; without it the form decides.

    Raises:
        UnknownNameError: If the kinds of this environment's actions are not known.
    """
    name = env_id.rpartition("/")[2].rpartition("-v")[0] or env_id.rpartition("/")[2]
    if name not in _KINDS:
        raise UnknownNameError("environment", name, _KINDS, "the table of kinds of actions")
    return _KINDS[name](action.strip(), observation)


def move_types(env_id: str, moves: Iterable[Move]) -> list[str]:
    """Return the kinds of an episode's actions; one that its environment refused is "invalid".

    TIR-Math refuses exactly the void turns, which keep their name.

    Raises:
        UnknownNameError: As `action_type`.
    """
    kinds = [(action_type(env_id, m.action, m.observation), m.valid) for m in moves]
    return [kind if valid or kind == "void" else INVALID for kind, valid in kinds]


def transitions(episodes: Iterable[Sequence[str]]) -> Transitions:
    """Count the pairs of kinds in consecutive turns."""
    return Counter(pair for kinds in episodes for pair in pairwise(kinds))


def _sokoban(action: str, observation: str) -> str:
    word = action.lower()
    return word if word in ("up", "down", "left", "right") else INVALID


_VERB = re.compile(r"(go to|take|put|move|open|close|clean|heat|cool|use|slice|examine|look|inventory)\b")


def _alfworld(action: str, observation: str) -> str:
    verb = _VERB.match(action.lower())
    if verb is None:
        return INVALID
    return "put" if verb[1] == "move" else verb[1]


_CLICK = re.compile(r"(search|click|scroll)\[(.*)\]$", re.DOTALL)
_PRODUCT_ID = re.compile(r"(?=.*\d)[0-9a-z]{10}$")
_READ = ("description", "features", "reviews", "attributes")
_RESULTS = re.compile(r"\bpage \d+ \(total results")


def _webshop(action: str, observation: str) -> str:
    parsed = _CLICK.match(action.lower())
    if parsed is None:
        return INVALID
    name, target = parsed[1], parsed[2].strip()
    if name != "click":
        return name
    fixed = {"buy now": "buy", "back to search": "back", "next >": "page", **dict.fromkeys(_READ, "read")}
    page = observation.lower()
    # An anchor may be a digest instead of a page.
    on_results = bool(_RESULTS.search(page)) if "back to search" in page else None
    if target == "< prev":
        return "back" if on_results is False else "page"
    if target in fixed:
        return fixed[target]
    is_product = bool(_PRODUCT_ID.match(target)) if on_results is None else on_results
    return "product" if is_product else "option"


_PROGRAM = re.compile(
    r"```[ \t]*(?:python3?|py)?[ \t]*\n.*?^[ \t]*```", re.DOTALL | re.MULTILINE | re.IGNORECASE
)


def _tirmath(action: str, observation: str) -> str:
    program = _PROGRAM.search(action)
    said = action[: program.start()] if program else action
    if "\\boxed{" in said:
        return "answer"
    return "code" if program else "void"


_KINDS: dict[str, Callable[[str, str], str]] = {
    "Sokoban": _sokoban,
    "ALFWorld": _alfworld,
    "WebShop": _webshop,
    "TIRMath": _tirmath,
}
