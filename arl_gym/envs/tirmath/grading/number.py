r"""Reads numbers written out, and says when two of them are the same.

A literal is an integer, a decimal, one of them times a power of ten, a quotient of integers or a mixed
number; nothing has to be computed to know it. Exact: values are fractions, never floats.

    >>> same_number(read_number(r"\frac{1}{3}"), read_number("0.333333333"))
    True
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

ROUNDED_DIGITS = 6
"""A decimal with at least as many significant digits may stand for a number that it is the rounding of."""
NOISE_DIGITS = 12
"""A decimal with at least as many significant digits may also be off by the noise of float arithmetic."""
NOISE = Fraction(1, 10**12)
INTEGER_NOISE = Fraction(1, 10**6)
MAX_EXPONENT = 400

_DECIMAL = re.compile(
    r"([+-]?)(\d+\.?\d*|\.\d+)(?:(?:\\times|\\cdot|\*)10\^\{?([+-]?\d{1,4})\}?|[eE]([+-]?\d{1,4}))?",
    re.ASCII,
)
_POWER_OF_TEN = re.compile(r"([+-]?)10\^\{([+-]?\d{1,4})\}", re.ASCII)
_QUOTIENT = re.compile(r"([+-]?)(\d*)\\frac\{([+-]?\d+)\}\{([+-]?\d+)\}|([+-]?)(\d+)/(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A number written out."""

    value: Fraction
    is_quotient: bool = False
    percent: bool = False
    """A percent sign stood behind it; `value` is the number before the sign."""
    digits: int = 0
    """Significant digits of a decimal; 0 for what is exact."""
    last_place: Fraction = Fraction(0)
    """Value of one unit in the last digit shown."""

    @property
    def is_integer(self) -> bool:
        """Whether the value is a whole number."""
        return self.value.denominator == 1


def read_number(text: str) -> Literal | None:
    """Read canonical LaTeX as a number, None if it is not just one."""
    if text.endswith(r"\%"):
        number = read_number(text[:-2])
        return number and replace(number, percent=True)
    if match := _DECIMAL.fullmatch(text):
        return _decimal(match.group(1), match.group(2), match.group(3) or match.group(4) or "0")
    if match := _POWER_OF_TEN.fullmatch(text):
        return _decimal(match.group(1), "1", match.group(2))
    if match := _QUOTIENT.fullmatch(text):
        sign, whole, top, bottom = match.group(1, 2, 3, 4)
        if top is None:
            sign, whole, top, bottom = match.group(5), "", match.group(6), match.group(7)
        return _quotient(sign, whole, top, bottom)
    return None


def _decimal(sign: str, mantissa: str, exponent: str) -> Literal | None:
    power = int(exponent)
    if abs(power) > MAX_EXPONENT:
        return None
    value = Fraction(mantissa) * Fraction(10) ** power * (-1 if sign == "-" else 1)
    if "." not in mantissa:
        return Literal(value=value)
    digits = len(mantissa.replace(".", "").lstrip("0"))
    places = len(mantissa.partition(".")[2])
    return Literal(value=value, digits=digits, last_place=Fraction(10) ** (power - places))


def _quotient(sign: str, whole: str, top: str, bottom: str) -> Literal | None:
    if int(bottom) == 0:
        return None
    value = Fraction(int(top), int(bottom))
    if whole:
        # 2\frac{3}{2} may be a product: no mixed number has an improper or signed part.
        if not 0 < value < 1 or not top[0].isdigit() or not bottom[0].isdigit():
            return None
        value += int(whole)
    return Literal(value=-value if sign == "-" else value, is_quotient=int(bottom) != 1)


def same_number(gold: Literal, answer: Literal) -> bool:
    """Say whether `answer` may stand for `gold`.

    The percent sign is optional: 10% is 10 as much as 1/10. It may not be put behind a gold below one (0.5 is
    not 0.5%, it is 50%). Where an integer is asked for, a quotient is a division left to the reader.
    """
    if gold.is_integer and not gold.is_quotient and not gold.percent and answer.is_quotient:
        return False
    if answer.percent and not gold.percent and abs(gold.value) < 1:
        return _close(gold, _scaled(answer))
    if _close(gold, answer):
        return True
    return gold.percent != answer.percent and _close(_scaled(gold), _scaled(answer))


def _scaled(number: Literal) -> Literal:
    if not number.percent:
        return number
    return replace(number, value=number.value / 100, last_place=number.last_place / 100, percent=False)


def _close(gold: Literal, answer: Literal) -> bool:
    if gold.value == answer.value:
        return True
    return rounds_to(gold.value, answer) or (not answer.digits and rounds_to(answer.value, gold))


def rounds_to(exact: Fraction, shown: Literal) -> bool:
    """Say whether the decimal `shown` is `exact`, with float noise or, if it is no integer, rounded."""
    off = abs(exact - shown.value)
    is_noise = shown.digits >= NOISE_DIGITS and off <= abs(exact) * NOISE
    if exact.denominator == 1:
        return is_noise and off < INTEGER_NOISE
    return is_noise or (shown.digits >= ROUNDED_DIGITS and 2 * off <= shown.last_place)
