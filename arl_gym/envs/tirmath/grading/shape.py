r"""Takes an answer apart: lists, tuples, sets, intervals, unions, matrices, names before an equals sign.

What cannot be taken apart is an atom, for `number` and `symbols` to understand.

    >>> parse_shape("x\\ge 3").kind, parse_shape("(1,2)").kind, parse_shape("k=5").name
    ('interval', 'tuple', 'k')
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from arl_gym.envs.tirmath.grading.latex import Malformed
from arl_gym.envs.tirmath.grading.limits import MAX_ITEMS

Kind = Literal["atom", "list", "tuple", "square", "set", "interval", "union", "matrix", "row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A piece of an answer."""

    kind: Kind
    text: str
    """The piece in canonical LaTeX, without its name and, of an atom, without its unit."""
    items: tuple["Shape", ...] = ()
    name: str = ""
    """What stood before the equals sign."""
    equation: str = ""
    """The piece with what stood before the equals sign."""
    brackets: str = ""
    """Those of an interval: "[)" and so on."""
    variable: str = ""
    """That of the inequality that an interval was written as."""
    unit: str = ""


_BRACKETS: dict[str, tuple[str, Kind]] = {"(": (")", "tuple"), "[": ("]", "square"), r"\{": (r"\}", "set")}
_TOKEN = re.compile(r"\\text\{[^}]*\}|\\[A-Za-z]+|\\.|.", re.DOTALL)
_OPENING = frozenset(["(", "[", "{", r"\{", r"\begin"])
_CLOSING = frozenset([")", "]", "}", r"\}", r"\end"])
_RELATIONS = frozenset(["<", ">", r"\le", r"\ge"])
_FLIPPED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
_VARIABLE = re.compile(r"[a-zA-Z]|\\(?:alpha|beta|theta|lambda|mu|phi|omega)")
_MATRIX = re.compile(r"\\begin\{pmatrix\}(.*)\\end\{pmatrix\}", re.DOTALL)
_UNIT = re.compile(r"(.*[\w})!])\\text\{([^{}\d]{1,30})\}(\^\{[23]\})?", re.DOTALL)
_LETTER = re.compile(r"(?<![\\A-Za-z])[A-Za-z]|\\text")
_NO_UNIT = frozenset(["hundred", "thousand", "million", "billion", "trillion", "dozen", "pi", "sqrt", "not"])
_UNITS = {
    "cm": "centimeter", "km": "kilometer", "mm": "millimeter", "m": "meter", "metre": "meter", "in": "inch",
    "inche": "inch", "ft": "foot", "feet": "foot", "sec": "second", "min": "minute", "hr": "hour",
    "gm": "gram", "kg": "kilogram", "lb": "pound", "usd": "dollar", "sq": "square", "unit": "", "units": "",
}  # fmt: skip


def parse_shape(text: str) -> Shape:
    """Take canonical LaTeX apart.

    Raises:
        Malformed: If an item is empty or there are too many.
    """
    text = text.removeprefix(r"\approx").removeprefix("+").strip()
    parts = split(text, {",", ";"})
    if len(parts) > 1:
        return _sequence("list", text, parts)
    if len(signs := split(text, {r"\pm"})) == 2:
        left, right = signs
        return _sequence("list", text, [f"{left}+{right}", f"{left}-{right}"])
    if (interval := _inequality(text)) is not None:
        return interval
    parts = split(text, {"="})
    if len(parts) > 1 and re.search(r"[A-Za-z]", parts[0]):
        return replace(parse_shape(parts[-1]), name=parts[0], equation=text)
    if match := re.fullmatch(rf"({_VARIABLE.pattern})\\in *(.*)", text):
        return parse_shape(match.group(2))
    if len(parts := split(text, {r"\cup"})) > 1:
        return _sequence("union", text, parts)
    return _bracketed(text) or _atom(text)


def split(text: str, separators: set[str]) -> list[str]:
    """Split at those separators that stand outside all brackets; braces of arguments are brackets too."""
    depth, parts, start = 0, [], 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 0 and token in separators:
            parts.append(text[start : match.start()])
            start = match.end()
    return [part.strip() for part in [*parts, text[start:]]]


def _sequence(kind: Kind, text: str, parts: Sequence[str]) -> Shape:
    if kind == "list":
        # "2, 3, \text{ and } 4" has two separators in a row.
        parts = [part for i, part in enumerate(parts) if part or i in (0, len(parts) - 1)]
    if "" in parts or len(parts) > MAX_ITEMS:
        raise Malformed(f"expected 1 to {MAX_ITEMS} items and none empty, got {len(parts)}, in {text[:80]!r}")
    items = [parse_shape(part) for part in parts]
    if kind in ("list", "set"):  # 1\\pm 2 is a list within the list
        items = [inner for item in items for inner in (item.items if item.kind == "list" else (item,))]
    shape = Shape(kind=kind, text=text, items=tuple(items))
    if kind == "list" and all(item.kind == "interval" and item.variable for item in shape.items):
        return replace(shape, kind="union")
    return shape


def _bracketed(text: str) -> Shape | None:
    if match := _MATRIX.fullmatch(text):
        rows = [row for row in split(match.group(1), {r"\\"}) if row]
        cells = [_sequence("row", row, split(row, {"&"})) for row in rows]
        return Shape(kind="matrix", text=text, items=tuple(cells))
    opening = r"\{" if text.startswith(r"\{") else text[:1]
    closing, kind = _BRACKETS.get(opening, ("", "atom"))
    if not closing or not _spans(text):
        return None
    end = r"\}" if text.endswith(r"\}") else text[-1:]
    parts = split(text[len(opening) : -len(end)], {",", ";"})
    if opening == r"\{" and parts == [""]:
        return _atom(r"\emptyset")
    if end == closing:
        return _closed(kind, text, parts)
    return _interval(text, opening + end, parts) if len(parts) == 2 else None


def _closed(kind: Kind, text: str, parts: Sequence[str]) -> Shape | None:
    if kind == "set" and len(parts) == 1 and (split(parts[0], {"|", ":", r"\mid"}) != parts):
        return None  # set-builder notation
    if kind == "tuple" and len(parts) == 1:
        return parse_shape(parts[0])
    if len(parts) == 2 and kind != "set" and any(r"\infty" in part for part in parts):
        return _interval(text, text[0] + text[-1], parts)
    return _sequence(kind, text, parts)


def _spans(text: str) -> bool:
    """Say whether the first bracket is closed by the last token."""
    depth = 0
    for match in _TOKEN.finditer(text):
        depth += (match.group() in _OPENING) - (match.group() in _CLOSING)
        if depth == 0:
            return match.end() == len(text)
    return False


def _interval(text: str, brackets: str, ends: Sequence[str], variable: str = "") -> Shape:
    shape = _sequence("interval", text, ends)
    left, right = (item.text for item in shape.items)
    # Infinity belongs to no interval, whatever was printed.
    brackets = ("(" if r"\infty" in left else brackets[0]) + (")" if r"\infty" in right else brackets[1])
    return replace(shape, brackets=brackets, variable=variable)


def _inequality(text: str) -> Shape | None:
    """Read a variable compared with one or two values as an interval."""
    signs = [m.group() for m in _TOKEN.finditer(text) if m.group() in _RELATIONS]
    parts = split(text, set(_RELATIONS))
    if not 2 <= len(parts) <= 3 or len(signs) != len(parts) - 1 or not all(parts):
        return None
    if len(parts) == 3:
        if not _VARIABLE.fullmatch(parts[1]) or len({s in (">", r"\ge") for s in signs}) > 1:
            return None
        if signs[0] in (">", r"\ge"):
            parts, signs = parts[::-1], [_FLIPPED[s] for s in signs[::-1]]
        brackets = ("(" if signs[0] == "<" else "[") + (")" if signs[1] == "<" else "]")
        return _interval(text, brackets, (parts[0], parts[2]), parts[1])
    left, right, sign = parts[0], parts[1], signs[0]
    if _VARIABLE.fullmatch(right):
        left, right, sign = right, left, _FLIPPED[sign]
    if not _VARIABLE.fullmatch(left) or left in right:
        return None
    if sign in ("<", r"\le"):
        return _interval(text, "(" + (")" if sign == "<" else "]"), (r"-\infty", right), left)
    return _interval(text, ("(" if sign == ">" else "[") + ")", (right, r"\infty"), left)


def _atom(text: str) -> Shape:
    if text.startswith(r"\$") or text.startswith(r"-\$") or text.endswith(r"\$"):
        return Shape(kind="atom", text=text.replace(r"\$", ""), unit="dollar")
    match = _UNIT.fullmatch(text)
    if match is None or not re.search(r"\d|\\pi", match.group(1)) or _LETTER.search(match.group(1)):
        return Shape(kind="atom", text=text)
    words = match.group(2).lower().replace(".", "").split()
    if not words or not _NO_UNIT.isdisjoint(words):
        return Shape(kind="atom", text=text)
    unit = " ".join(filter(None, (_UNITS.get(w, _UNITS.get(w.rstrip("s"), w.rstrip("s"))) for w in words)))
    power = {"": "", "^{2}": "square ", "^{3}": "cubic "}[match.group(3) or ""]
    return Shape(kind="atom", text=match.group(1), unit=power + unit)
