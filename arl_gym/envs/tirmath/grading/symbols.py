r"""Equality of expressions and relations with free symbols, by math-verify's parser and sympy.

Imports sympy: for the worker process only. Two expressions are equal if they have the same symbols and the
same values, to forty digits, at several points; at negative points only where both are real, so that
\sqrt{1/n} = 1/\sqrt{n}, but |x| is not x. What has no value (an unknown function) is left to math-verify.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import sympy
from math_verify import LatexExtractionConfig, parse, verify
from sympy import Basic, Expr, Number, Rational
from sympy.core.relational import Relational

from arl_gym.envs.tirmath.grading.number import Literal, read_number, rounds_to

logging.getLogger("math_verify").setLevel(logging.ERROR)

DIGITS = 50
TOLERANCE = Fraction(1, 10**40)
POSITIVE = ("3/7", "5/4", "11/13", "17/9", "23/29", "31/37", "2/11", "13/6")
"""Values for the symbols in the order of their names; other points shift and scale them."""

# As it comes, math-verify drops a trailing "t" as a unit, and takes a fraction out of what it cannot read.
_WHOLE_BOX = LatexExtractionConfig(
    try_extract_without_anchor=False,
    boxed_match_priority=0,
    normalization_config=replace(
        LatexExtractionConfig().normalization_config,
        basic_latex=False,
        units=False,
        malformed_operators=False,
        nits=False,
        boxed="last",
    ),
)
_FLIPPED = {sympy.Gt: sympy.Lt, sympy.Ge: sympy.Le}


@lru_cache(maxsize=512)
def parsed(latex: str) -> Basic | None:
    """Return what math-verify reads, with decimals as exact fractions; None if it cannot."""
    found = parse(
        rf"\boxed{{{latex}}}",
        extraction_config=[_WHOLE_BOX],
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,
    )
    if len(found) != 1 or not isinstance(found[0], Basic):
        return None
    expr: Basic = found[0]
    return expr.xreplace({f: Rational(str(f)) for f in expr.atoms(sympy.Float)})


def equal(gold: str, answer: str) -> bool:
    """Say whether two pieces of canonical LaTeX mean the same."""
    shown = read_number(answer)
    left, right = parsed(gold), parsed(answer)
    if left is None or right is None or _mixes_cases(gold, answer):
        return False
    if isinstance(left, Relational) and isinstance(right, Relational):
        return _same_relation(left, right)
    if isinstance(left, Expr) and isinstance(right, Expr):
        return _same_value(left, right, shown)
    return False


def _mixes_cases(gold: str, answer: str) -> bool:
    """Say whether a letter occurs big and small: the parser reads both as the same."""
    letters = set(re.sub(r"\\[A-Za-z]+", "", gold + answer))
    return any(c.isalpha() and c.swapcase() in letters for c in letters)


def _names(expr: Basic) -> list[str]:
    return sorted(str(symbol) for symbol in expr.free_symbols)


def _points(expr: Basic) -> list[dict[Basic, Number]]:
    """Return three positive points and two of mixed sign."""
    symbols = sorted(expr.free_symbols, key=str)
    values = [Rational(POSITIVE[i % len(POSITIVE)]) + i // len(POSITIVE) for i in range(len(symbols))]
    moved = [
        values,
        [v * Rational(7, 3) + 1 for v in values],
        [1 / (v + 2) for v in values],
        [-v for v in values],
        [v * (-1) ** i - 3 for i, v in enumerate(values)],
    ]
    return [dict(zip(symbols, point, strict=True)) for point in moved]


def _same_value(gold: Expr, answer: Expr, shown: Literal | None) -> bool:
    if _names(gold) != _names(answer):
        return False
    if not gold.free_symbols:
        return _same_number(gold, answer, shown)
    seen = False
    for i, (p, q) in enumerate(zip(_points(gold), _points(answer), strict=True)):
        agree = _agree_at(gold.subs(p), answer.subs(q), i < 3)
        if agree is False:
            return False
        seen = seen or bool(agree)
    return seen or bool(verify([gold], [answer], timeout_seconds=None))


def _same_number(gold: Expr, answer: Expr, shown: Literal | None) -> bool:
    if shown is not None and shown.digits:
        value = gold.evalf(DIGITS)
        return bool(value.is_real) and rounds_to(_fraction(value), shown)
    return _agree_at(gold, answer, True) is True


def _agree_at(gold: Expr, answer: Expr, complex_too: bool) -> bool | None:
    """Compare two values; None where they say nothing (undefined, or complex and not to be compared)."""
    gold, answer = gold.doit(), answer.doit()
    if gold.is_Rational and answer.is_Rational:
        return bool(gold == answer)
    left, right = gold.evalf(DIGITS), answer.evalf(DIGITS)
    if not (left.is_number and right.is_number and left.is_finite and right.is_finite):
        return None
    if not complex_too and not (left.is_real and right.is_real):
        return None
    off = (gold - answer).evalf(DIGITS)
    return _size(off) <= TOLERANCE * min(Fraction(1), _size(left))


def _size(value: Expr) -> Fraction:
    real, imaginary = value.as_real_imag()
    return max(abs(_fraction(real)), abs(_fraction(imaginary)))


def _fraction(value: Expr) -> Fraction:
    exact = Rational(value)
    return Fraction(int(exact.p), int(exact.q))


def _same_relation(gold: Relational, answer: Relational) -> bool:
    """Say whether one relation is the other times a constant (positive, between inequalities)."""
    gold, answer = (r.func(r.lhs, r.rhs, evaluate=False) for r in (gold, answer))
    kinds = [_FLIPPED.get(r.func, r.func) for r in (gold, answer)]
    if kinds[0] is not kinds[1] or _names(gold) != _names(answer) or not gold.free_symbols:
        return False
    sides = [r.rhs - r.lhs if r.func in _FLIPPED else r.lhs - r.rhs for r in (gold, answer)]
    ratios = [_ratio(sides, p, q) for p, q in zip(_points(gold)[:3], _points(answer)[:3], strict=True)]
    first = ratios[0]
    if first is None or any(r is None or _agree_at(first, r, True) is not True for r in ratios):
        return False
    return kinds[0] in (sympy.Eq, sympy.Ne) or bool(first.is_positive)


def _ratio(
    sides: Sequence[Expr], gold_point: dict[Basic, Number], answer_point: dict[Basic, Number]
) -> Expr | None:
    gold, answer = sides[0].subs(gold_point).doit(), sides[1].subs(answer_point).doit()
    return None if gold.is_zero or answer.is_zero else answer / gold
