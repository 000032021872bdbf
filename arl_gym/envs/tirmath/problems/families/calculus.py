"""Families about integrals and sums with a closed form."""

from fractions import Fraction
from math import factorial

from arl_gym.envs.tirmath.problems.families.draws import band, between, nonzero
from arl_gym.envs.tirmath.problems.families.latex import fraction, polynomial, root_form, signed_sum, times
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.rng import Rng


def definite_integral(rng: Rng, level: int) -> Problem:
    """A definite integral: of polynomials, square roots, or a quotient that gives a multiple of pi."""
    draw = (_of_polynomial, _of_polynomial, _of_root, _of_quotient, _of_product)[level - 1]
    shown, expression, low, high, answer = draw(rng, level)
    integral = rf"\int_{{{fraction(low)}}}^{{{fraction(high)}}} {shown} \, dx"
    question = rng.choice(
        (
            f"Evaluate ${integral}$.",
            f"Find the exact value of the definite integral $${integral}.$$",
            f"What is ${integral}$, in closed form?",
            f"Compute the integral ${integral}$ exactly.",
        )
    )
    program = (
        f'from sympy import integrate, pi, sqrt, symbols\nx = symbols("x")\n'
        f"print(integrate({expression}, (x, {low}, {high})))"
    )
    thought = "The integrand has an elementary antiderivative, so sympy can integrate it exactly."
    return Problem(question=question, answer=answer, program=program, thought=thought)


Integral = tuple[str, str, Fraction, Fraction, str]
"""Integrand as LaTeX and as Python, limits, value as LaTeX."""


def _of_polynomial(rng: Rng, level: int) -> Integral:
    degree, top = (2, 6) if level == 1 else (4, 12)
    coefficients = [nonzero(rng, top) for _ in range(degree + 1)]
    low = between(rng, -3, 3) if level == 1 else between(rng, -9, 9)
    high = low + between(rng, 1, 4 if level == 1 else 9)
    value = sum(
        (
            Fraction(number, k + 1) * (high ** (k + 1) - low ** (k + 1))
            for k, number in enumerate(reversed(coefficients))
        ),
        Fraction(0),
    )
    terms = " + ".join(f"{number}*x**{degree - k}" for k, number in enumerate(coefficients))
    shown = rf"\left({polynomial(coefficients)}\right)"
    return shown, terms, Fraction(low), Fraction(high), fraction(value)


def _of_root(rng: Rng, level: int) -> Integral:
    """The integral of p sqrt(q (x - low)) over a length from low on: 2/3 p length sqrt(q length)."""
    p, q, low, length = between(rng, 1, 12), between(rng, 1, 20), between(rng, -12, 12), between(rng, 1, 20)
    root = signed_sum([(q, "x"), (-q * low, "")])
    shown = rf"\sqrt{{{root}}}" if p == 1 else rf"{p}\sqrt{{{root}}}"
    value = root_form(Fraction(0), Fraction(2 * p * length, 3), q, length)
    expression = f"{p} * sqrt({q}*x - {q * low})".replace("- -", "+ ")
    return shown, expression, Fraction(low), Fraction(low + length), value


def _of_quotient(rng: Rng, level: int) -> Integral:
    """The integral of c / ((x - h)^2 + r^2) from h - r, or from h, to h + r."""
    c, h, r, sides = between(rng, 1, 60), nonzero(rng, 20), between(rng, 2, 30), between(rng, 1, 2)
    bottom = [1, -2 * h, h * h + r * r]
    shown = rf"\frac{{{c}}}{{{polynomial(bottom)}}}"
    expression = f"{c}/(x**2 + {bottom[1]}*x + {bottom[2]})"
    low = Fraction(h - r * (sides - 1))
    return shown, expression, low, Fraction(h + r), times(Fraction(sides * c, 4 * r), r"\pi")


def _of_product(rng: Rng, level: int) -> Integral:
    """The integral of c (x - low)^m (high - x)^n between its zeros, by Euler's beta function."""
    c, m, n = between(rng, 1, 9), between(rng, 3, 7), between(rng, 3, 7)
    low, length = nonzero(rng, 9), between(rng, 1, 6)
    high = low + length
    if high == 0:
        return _of_product(rng, level)
    first, second = signed_sum([(1, "x"), (-low, "")]), signed_sum([(high, ""), (-1, "x")])
    scale = "" if c == 1 else str(c)
    shown = rf"{scale}({first})^{m} ({second})^{n}"
    value = Fraction(c * factorial(m) * factorial(n) * length ** (m + n + 1), factorial(m + n + 1))
    expression = f"{c} * (x - {low})**{m} * ({high} - x)**{n}".replace("- -", "+ ")
    return shown, expression, Fraction(low), Fraction(high), fraction(value)


def rational_series(rng: Rng, level: int) -> Problem:
    """A telescoping sum of reciprocal products, from level 4 on as numerator plus denominator."""
    n = band(rng, level, (2, 9, 60, 300, 1000, 3000))
    c, p, q = between(rng, 1, 9), between(rng, 2, 9), between(rng, 1, 9)
    value = Fraction(c * n, (p + q) * (p * n + p + q))
    as_sum = level > 3
    first, second = signed_sum([(p, "k"), (q, "")]), signed_sum([(p, "k"), (p + q, "")])
    series = rf"\sum_{{k=1}}^{{{n}}} \frac{{{c}}}{{({first})({second})}}"
    question = rng.choice(
        (
            f"Find the exact value of ${series}$.",
            f"Evaluate the sum $${series}$$ exactly.",
            f"What rational number is ${series}$?",
        )
    )
    program = (
        "from fractions import Fraction\n"
        f"s = sum(Fraction({c}, ({p}*k + {q}) * ({p}*k + {p + q})) for k in range(1, {n} + 1))\n"
        f"print({'s.numerator + s.denominator' if as_sum else 's'})"
    )
    thought = "Exact fractions add without rounding, so I sum the terms directly."
    return Problem(
        question=rf"{question} Give $m + n$, where $\frac{{m}}{{n}}$ is this number in lowest terms."
        if as_sum
        else question,
        answer=str(value.numerator + value.denominator) if as_sum else fraction(value),
        program=program,
        thought=thought,
    )
