r"""Numbers, sums and matrices as LaTeX.

>>> signed_sum([(3, "x"), (-1, "y"), (2, "")])
'3x - y + 2'
>>> root_form(Fraction(0), Fraction(3, 4), 20)
'\\frac{3\\sqrt{5}}{2}'
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd, lcm


def fraction(value: Fraction) -> str:
    """Return an integer or a fraction in lowest terms, the sign in front."""
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def times(value: Fraction, symbol: str) -> str:
    r"""Return a multiple of a symbol such as `\pi`: one fraction, the symbol in its numerator."""
    top = _coefficient(abs(value.numerator), symbol)
    sign = "-" if value < 0 else ""
    return sign + (top if value.denominator == 1 else rf"\frac{{{top}}}{{{value.denominator}}}")


def signed_sum(terms: Iterable[tuple[int, str]]) -> str:
    """Return the sum of multiples of symbols; the symbol "" stands for one, and zeros are left out."""
    text = ""
    for number, symbol in terms:
        if number:
            sign = (" - " if number < 0 else " + ") if text else ("-" if number < 0 else "")
            text += sign + _coefficient(abs(number), symbol)
    return text or "0"


def _coefficient(number: int, symbol: str) -> str:
    return str(number) if not symbol else symbol if number == 1 else f"{number}{symbol}"


def polynomial(coefficients: Sequence[int]) -> str:
    """Return a polynomial in x, the highest power first."""
    top = len(coefficients) - 1
    return signed_sum((number, _power(top - k)) for k, number in enumerate(coefficients))


def _power(exponent: int) -> str:
    if exponent < 2:
        return ("", "x")[exponent]
    return f"x^{exponent}" if exponent < 10 else f"x^{{{exponent}}}"


def tuple_of(values: Iterable[Fraction]) -> str:
    """Return an ordered tuple in parentheses."""
    return f"({', '.join(map(fraction, values))})"


def matrix(rows: Sequence[Sequence[int]]) -> str:
    """Return a matrix of integers in parentheses."""
    body = r" \\ ".join(" & ".join(map(str, row)) for row in rows)
    return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"


def prime_exponents(number: int) -> dict[int, int]:
    """Return the exponent of each prime of a small number, by trial division."""
    exponents, prime = dict[int, int](), 2
    while number > 1:
        if prime * prime > number:
            prime = number
        while number % prime == 0:
            exponents[prime] = exponents.get(prime, 0) + 1
            number //= prime
        prime += 1
    return exponents


def square_part(*factors: int) -> tuple[int, int]:
    """Return (s, r) with r free of squares and s * s * r the product of the factors, all of them positive."""
    exponents = dict[int, int]()
    for factor in factors:
        for prime, exponent in prime_exponents(factor).items():
            exponents[prime] = exponents.get(prime, 0) + exponent
    square = free = 1
    for prime, exponent in exponents.items():
        square *= prime ** (exponent // 2)
        free *= prime ** (exponent % 2)
    return square, free


def root_form(rational: Fraction, coefficient: Fraction, *radicand: int) -> str:
    """Return rational + coefficient * sqrt(product of the radicand's factors), over one denominator."""
    square, free = square_part(*radicand)
    coefficient *= square
    if free == 1:
        return fraction(rational + coefficient)
    bottom = lcm(rational.denominator, coefficient.denominator)
    a, b = int(rational * bottom), int(coefficient * bottom)
    assert gcd(a, b, bottom) == 1
    root = rf"\sqrt{{{free}}}"
    if a == 0:
        return times(coefficient, root)
    top = signed_sum([(a, ""), (b, root)])
    return top if bottom == 1 else rf"\frac{{{top}}}{{{bottom}}}"
