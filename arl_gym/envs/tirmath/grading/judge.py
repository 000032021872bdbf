r"""Decides whether an answer equals a gold answer, asking for symbolic mathematics only where it must.

The rules are in the package's docstring. Everything here works on strings and fractions; what needs a
computer algebra system goes through the `symbols` argument, which lives in another process.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from arl_gym.envs.tirmath.grading.latex import Malformed, canonical
from arl_gym.envs.tirmath.grading.limits import MAX_CHARS, too_complex, too_deep
from arl_gym.envs.tirmath.grading.number import read_number, same_number
from arl_gym.envs.tirmath.grading.printed import printed_to_latex
from arl_gym.envs.tirmath.grading.shape import Shape, parse_shape

How = Literal[
    "string", "integer", "number", "text", "unit", "base", "structure", "unresolved", "math-verify",
    "timeout", "too-long", "too-complex", "unparsed", "crashed",
]  # fmt: skip
"""What decided: the same string; two integers; two numbers written out; words; different units; numerals with
a base; different shapes (a list for a number, too few items, other brackets); arithmetic left undone;
math-verify and sympy; the deadline; a cap on length or on what may be computed; a text that is no answer; the
death of the worker process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the answer equals the gold answer, and what decided."""

    equal: bool
    how: How


Symbols = Callable[[str, str], bool]
"""Says whether two expressions or relations in canonical LaTeX, gold first, are equal."""

_COMMAND = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
_UNDERSTOOD = frozenset([
    "frac", "sqrt", "binom", "overline", "cdot", "times", "pi", "infty", "%", "le", "ge", "ne",
    "lfloor", "rfloor", "lceil", "rceil", "sin", "cos", "tan", "cot", "sec", "csc", "arcsin",
    "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln", "exp", "int", "sum", "prod", "lim",
    "to", "max", "min", "gcd", "alpha", "beta", "gamma", "delta", "theta", "lambda", "mu", "rho",
    "sigma", "phi", "omega", "epsilon", "Delta", "angle",
])  # fmt: skip
"""Commands that the parser reads; it drops others without a word, such as an \\approx and what follows."""
_BASE = re.compile(r"(-?[0-9A-Za-z.]*[0-9][0-9A-Za-z.]*|-?[A-F]+)_\{(\d+|\\text\{[a-z]+\})\}")
_BASES = {"two": "2", "eight": "8", "ten": "10", "sixteen": "16"}
_RELATION = re.compile(r"[=<>]|\\(?:le|ge|ne)(?![A-Za-z])")
_LEFT_UNDONE = re.compile(r"\\(?:[io]?int|sum|prod|lim|frac\{d\}|frac\{\\partial)(?![A-Za-z])")
_NAME = re.compile(
    r"[A-Za-z]+(\+[A-Za-z]+)*|\|[A-Za-z]+\||[A-Za-z]+\([^()=]*\)|\(x,y(,z)?\)|\(a,b(,c)?\)"
    r"|\\(?:alpha|beta|gamma|theta|phi|lambda|mu|omega|Delta|(?:angle|triangle) ?[A-Za-z]+)"
    r"|\\(?:text|overline)\{[^{}]*\}|\\frac\{[A-Za-z]+\}\{[A-Za-z]+\}"
)
"""What may stand before "= value": asked for by name, not an equation that is still to be solved."""
_NOT_FOR_A_TUPLE = 2
"""Two numbers in square brackets are a closed interval, never a point or an open interval."""


@lru_cache(maxsize=4096)
def read(text: str) -> Shape | None:
    """Return the shape of an answer as written, None if it is malformed."""
    try:
        return parse_shape(canonical(printed_to_latex(text) or text))
    except Malformed:
        return None


def judge(gold: str, answer: str, symbols: Symbols) -> Verdict:
    """Compare two answers without their boxes; never raises because of what they say.

    Whatever `symbols` raises comes through.
    """
    gold, answer = gold.strip(), answer.strip()
    if gold == answer:
        return Verdict(equal=bool(gold), how="string" if gold else "unparsed")
    if max(len(gold), len(answer)) > MAX_CHARS:
        return Verdict(equal=False, how="too-long")
    if too_deep(gold) or too_deep(answer):
        return Verdict(equal=False, how="too-complex")
    wanted, given = read(gold), read(answer)
    if wanted is None or given is None or not wanted.text or not given.text:
        return Verdict(equal=False, how="unparsed")
    return _compare(wanted, given, symbols)


def _compare(gold: Shape, answer: Shape, symbols: Symbols) -> Verdict:
    if gold.name and answer.name and gold.name != answer.name:
        return _atoms(gold.equation, answer.equation, symbols)
    if bool(gold.name) != bool(answer.name) and not _is_name(gold.name or answer.name, gold):
        return Verdict(equal=False, how="structure")
    gold, answer = _single(gold), _single(answer)
    if gold.text == answer.text and gold.unit == answer.unit:
        return Verdict(equal=True, how="string")
    if gold.kind == answer.kind == "atom":
        if gold.unit and answer.unit and gold.unit != answer.unit:
            return Verdict(equal=False, how="unit")
        return _atoms(gold.text, answer.text, symbols)
    if not _may_match(gold, answer):
        return Verdict(equal=False, how="structure")
    if gold.kind in ("list", "set", "union") and not _is_positional(gold, answer):
        return _in_any_order(gold.items, answer.items, symbols)
    return _in_order(gold.items, answer.items, symbols)


def _single(shape: Shape) -> Shape:
    while shape.kind in ("list", "set", "square") and len(shape.items) == 1:
        shape = shape.items[0]
    return shape


def _is_name(text: str, gold: Shape) -> bool:
    """Say whether `text` names the value behind it. Of a gold answer x+y=0 the equation itself is wanted."""
    name = re.sub(r"_\{[^{}]*\}", "", text)
    return _NAME.fullmatch(name) is not None and not (gold.name and "+" in name)


def _may_match(gold: Shape, answer: Shape) -> bool:
    """Say whether two compound shapes have the same size and compatible brackets."""
    n = len(gold.items)
    if n != len(answer.items) or n == 0:
        return False
    if gold.kind == "interval" or answer.kind == "interval":
        return _same_interval(gold, answer)
    allowed: dict[str, tuple[str, ...]] = {
        "list": ("list", "tuple", "set", "square"),
        "set": ("set", "list", "square"),
        "tuple": ("tuple", "list") if n == _NOT_FOR_A_TUPLE else ("tuple", "list", "square"),
        "square": ("square",) if n == _NOT_FOR_A_TUPLE else ("square", "tuple", "list"),
        "union": ("union",),
        "matrix": ("matrix", "square"),
        "row": ("row", "square"),
    }
    return answer.kind in allowed[gold.kind] and _names_in_order(gold, answer)


def _same_interval(gold: Shape, answer: Shape) -> bool:
    if gold.variable and answer.variable and gold.variable != answer.variable:
        return False
    brackets = {"tuple": "()", "square": "[]"}
    return (gold.brackets or brackets.get(gold.kind)) == (answer.brackets or brackets.get(answer.kind))


def _names_in_order(gold: Shape, answer: Shape) -> bool:
    """Accept x=1, y=2 for the point (1,2), but not y=2, x=1 for (2,1)."""
    names = [item.name for item in answer.items]
    return gold.kind != "tuple" or any(item.name for item in gold.items) or names == sorted(names)


def _is_positional(gold: Shape, answer: Shape) -> bool:
    """Say whether only the place tells which value is which: a=1, b=2 answered by 1, 2."""
    return len({item.name for item in gold.items}) > 1 and not any(item.name for item in answer.items)


def _in_order(gold: tuple[Shape, ...], answer: tuple[Shape, ...], symbols: Symbols) -> Verdict:
    verdict = Verdict(equal=False, how="structure")
    for wanted, given in zip(gold, answer, strict=True):
        verdict = _compare(wanted, given, symbols)
        if not verdict.equal:
            break
    return verdict


def _in_any_order(gold: tuple[Shape, ...], answer: tuple[Shape, ...], symbols: Symbols) -> Verdict:
    """Match every gold item with an answer of its own. Equality is transitive but for rounding: first fit."""
    left = list(answer)
    verdict = Verdict(equal=False, how="structure")
    for wanted in gold:
        for given in left:
            verdict = _compare(wanted, given, symbols)
            if verdict.equal:
                left.remove(given)
                break
        else:
            return verdict
    return verdict


def _atoms(gold: str, answer: str, symbols: Symbols) -> Verdict:
    wanted, given = read_number(gold), read_number(answer)
    if gold == answer:
        return Verdict(equal=True, how="string")
    if wanted and given:
        how: How = "integer" if wanted.is_integer and given.is_integer else "number"
        return Verdict(equal=same_number(wanted, given), how=how)
    numeral = _numeral(gold)
    if numeral or _numeral(answer):
        return Verdict(equal=numeral == _numeral(answer), how="base")
    if _is_text(gold) or _is_text(answer):
        return Verdict(equal=_same_words(gold, answer), how="text")
    if wanted:
        return Verdict(equal=False, how="unresolved")
    if _LEFT_UNDONE.search(answer) and not _LEFT_UNDONE.search(gold):
        return Verdict(equal=False, how="unresolved")
    if bool(_RELATION.search(gold)) != bool(_RELATION.search(answer)):
        return Verdict(equal=False, how="structure")
    if too_complex(gold) or too_complex(answer):
        return Verdict(equal=False, how="too-complex")
    return Verdict(equal=symbols(gold, answer), how="math-verify")


def _numeral(text: str) -> tuple[str, str] | None:
    match = _BASE.fullmatch(re.sub(r"^\\text\{(\w+)\}", r"\1", text))
    if match is None:
        return None
    base = match.group(2).removeprefix(r"\text{").rstrip("}")
    return match.group(1).upper().lstrip("0"), _BASES.get(base, base)


def _is_text(text: str) -> bool:
    """Say whether to compare letter by letter: words, ratios and times, x' and x1, unknown commands."""
    if not re.search(r"[A-Za-z0-9]", text) or re.search(r"[:']|[A-Za-z]\d", _COMMAND.sub("\0", text)):
        return True
    return not _UNDERSTOOD.issuperset(_COMMAND.findall(text))


def _same_words(gold: str, answer: str) -> bool:
    wanted, given = (re.sub(r"\\text\{([^}]*)\}", r"\1", side) for side in (gold, answer))
    wanted, given = (re.sub(r"[\s.]", "", side) for side in (wanted, given))
    if len(wanted) > 1 and r"\text{" in gold:
        wanted, given = wanted.lower(), given.lower()
    return bool(wanted) and wanted == given
