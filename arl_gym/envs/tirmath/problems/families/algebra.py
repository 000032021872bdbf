"""Families about equations, polynomials, inequalities and matrices."""

import re
from collections.abc import Sequence
from fractions import Fraction
from math import gcd, isqrt

from arl_gym.envs.tirmath.problems.families import latex
from arl_gym.envs.tirmath.problems.families.draws import between, distinct, nonzero
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.rng import Rng


def linear_system(rng: Rng, level: int) -> Problem:
    """The one solution of two to four linear equations."""
    n, top, bottom = ((2, 5, 1), (2, 20, 9), (3, 9, 4), (3, 30, 9), (4, 20, 6))[level - 1]
    solution = [Fraction(nonzero(rng, top), between(rng, min(2, bottom), bottom)) for _ in range(n)]
    rows = [[between(rng, -top, top) for _ in range(n)] for _ in range(n)]
    while _determinant(rows) == 0:
        rows = [[between(rng, -top, top) for _ in range(n)] for _ in range(n)]
    rows, right = _whole(rows, solution)
    letters = "xyzw"[:n]
    system = r" \\ ".join(
        f"{latex.signed_sum(zip(row, letters, strict=True))} = {value}"
        for row, value in zip(rows, right, strict=True)
    )
    system, names = rf"\begin{{cases}} {system} \end{{cases}}", ", ".join(letters)
    question = rng.choice(
        (
            f"Solve the system $${system}$$ and give the solution as $({names})$.",
            f"Find the tuple $({names})$ that satisfies all equations of $${system}$$",
            f"Which numbers ${names}$ fulfil the following equations? Answer with $({names})$. $${system}$$",
        )
    )
    program = f"from sympy import Matrix\na = Matrix({rows})\nb = Matrix({right})\nprint(tuple(a.LUsolve(b)))"
    thought = "This is a linear system with as many equations as unknowns; I solve it exactly with sympy."
    return Problem(question=question, answer=latex.tuple_of(solution), program=program, thought=thought)


def _determinant(rows: Sequence[Sequence[int]]) -> int:
    if len(rows) == 1:
        return rows[0][0]
    return sum(
        (-1) ** k * number * _determinant([[*row[:k], *row[k + 1 :]] for row in rows[1:]])
        for k, number in enumerate(rows[0])
        if number
    )


def _whole(rows: list[list[int]], solution: list[Fraction]) -> tuple[list[list[int]], list[int]]:
    """Return the rows, and their values at the solution, each times what makes the value an integer."""
    scaled, right = list[list[int]](), list[int]()
    for row in rows:
        value = sum((a * x for a, x in zip(row, solution, strict=True)), Fraction(0))
        scaled.append([a * value.denominator for a in row])
        right.append(value.numerator)
    return scaled, right


def quadratic_roots(rng: Rng, level: int) -> Problem:
    """The larger root of a quadratic equation, or the positive one of an equation with fractions."""
    if level < 5:
        a, b, c = _quadratic(rng, level)
        which, equation, zero = "larger", f"{latex.polynomial([a, b, c])} = 0", _python([a, b, c])
    else:
        p, q, r, s = (between(rng, 2, 30) for _ in range(4))
        a, b, c = s, s * r - p - q, -p * r
        equation = rf"\frac{{{p}}}{{x}} + \frac{{{q}}}{{x + {r}}} = {s}"
        which, zero = "positive", f"{p}/x + {q}/(x + {r}) - {s}"
    question = rng.choice(
        (
            f"Find the {which} solution of ${equation}$.",
            f"The equation ${equation}$ has two real solutions. What is the {which} one, in exact form?",
            f"Solve ${equation}$ for $x$ and give the {which} solution exactly.",
        )
    )
    program = f'from sympy import solve, symbols\nx = symbols("x")\nprint(max(solve({zero}, x)))'
    thought = "I let sympy solve the equation exactly and take the greatest of its real solutions."
    return Problem(question=question, answer=_roots(a, b, c)[1], program=program, thought=thought)


def _quadratic(rng: Rng, level: int) -> tuple[int, int, int]:
    """Return coefficients with a > 0 and two real roots: integers, rationals, then surds."""
    if level < 3:
        p = q = r = s = 1
        while p * s == q * r:  # a double root
            p, q = distinct(rng, 2, -20, 20)
            r, s = (1, 1) if level == 1 else distinct(rng, 2, 2, 9)
        scale = between(rng, 1, 3)
        return scale * r * s, -scale * (r * q + s * p), scale * p * q  # (r x - p)(s x - q)
    top = 30 if level == 3 else 400
    while True:
        a = 1 if level == 3 else between(rng, 2, 50)
        b, c = nonzero(rng, top), nonzero(rng, top)
        square = b * b - 4 * a * c
        if square > 0 and isqrt(square) ** 2 != square and gcd(a, b, c) == 1:
            return a, b, c


def _roots(a: int, b: int, c: int) -> tuple[str, str]:
    """Return the roots of a x^2 + b x + c with a > 0, the smaller first."""
    middle, width = Fraction(-b, 2 * a), Fraction(1, 2 * a)
    low, high = (latex.root_form(middle, sign * width, b * b - 4 * a * c) for sign in (-1, 1))
    return low, high


def _python(coefficients: Sequence[int]) -> str:
    """Return a polynomial in x as a Python expression, the highest power first."""
    text = latex.polynomial(coefficients).translate({ord("^"): "**", ord("{"): "", ord("}"): ""})
    return re.sub(r"(?<=\d)x", "*x", text)


def power_sums(rng: Rng, level: int) -> Problem:
    """Sum of equal powers of all roots of a polynomial."""
    degree, low, high = ((2, 2, 3), (2, 5, 8), (3, 6, 10), (3, 12, 18), (4, 18, 24))[level - 1]
    exponent = between(rng, low, high)
    coefficients = [1, *(nonzero(rng, 15 if degree == 2 else 9) for _ in range(degree))]
    letters = "rstu"[:degree]
    total = " + ".join(f"{letter}^{{{exponent}}}" for letter in letters)
    names = ", ".join(letters)
    equation = f"{latex.polynomial(coefficients)} = 0"
    question = rng.choice(
        (
            f"Let ${names}$ be the complex roots of ${equation}$, multiple ones repeated. Find ${total}$.",
            f"The equation ${equation}$ has the complex solutions ${names}$, counted with multiplicity. "
            f"Compute ${total}$.",
            f"Given that ${names}$ are all roots (with multiplicity, real or not) of ${equation}$, "
            f"what is the value of ${total}$?",
        )
    )
    program = (
        f"from sympy import Matrix\nc = {coefficients}\nn = len(c) - 1\n"
        "a = Matrix(n, n, lambda i, j: -c[j + 1] if i == 0 else int(i == j + 1))\n"
        f"print((a ** {exponent}).trace())"
    )
    thought = (
        "The roots are the eigenvalues of the companion matrix, so the sum is the trace of a power of it."
    )
    answer = str(_power_sum(coefficients, exponent))
    return Problem(question=question, answer=answer, program=program, thought=thought)


def _power_sum(coefficients: Sequence[int], exponent: int) -> int:
    """Return the power sum of the roots of a monic polynomial, by Newton's identities."""
    sums, degree = [len(coefficients) - 1], len(coefficients) - 1
    for k in range(1, exponent + 1):
        known = sum(coefficients[i] * sums[k - i] for i in range(1, min(k - 1, degree) + 1))
        sums.append(-known - (k * coefficients[k] if k <= degree else 0))
    return sums[exponent]


def polynomial_remainder(rng: Rng, level: int) -> Problem:
    """Remainder of one polynomial on division by another."""
    low, high, degree = ((3, 3, 2), (5, 7, 2), (9, 14, 2), (15, 20, 3), (21, 28, 3))[level - 1]
    top = between(rng, low, high)
    divisor = [1, *(nonzero(rng, 5 if level < 3 else 3) for _ in range(degree))]
    dividend = [1, *(nonzero(rng, 9) if k < 3 or rng.below(4) == 0 else 0 for k in range(top))]
    rest = list(dividend)
    for k in range(top - degree + 1):
        factor = rest[k]
        for i, number in enumerate(divisor):
            rest[k + i] -= factor * number
    p, d = latex.polynomial(dividend), latex.polynomial(divisor)
    question = rng.choice(
        (
            f"Find the remainder when ${p}$ is divided by ${d}$.",
            f"Divide the polynomial ${p}$ by ${d}$. Which polynomial is left as the remainder?",
            f"Let $P(x) = {p}$ and $D(x) = {d}$. Determine the polynomial $R$ of lower degree than $D$ "
            "for which $D$ divides $P - R$.",
        )
    )
    program = (
        f'from sympy import rem, symbols\nx = symbols("x")\n'
        f"print(rem({_python(dividend)}, {_python(divisor)}, x))"
    )
    thought = "Polynomial division is mechanical, so I leave the remainder to sympy."
    answer = latex.polynomial(rest[-degree:])
    return Problem(question=question, answer=answer, program=program, thought=thought)


def quadratic_inequality(rng: Rng, level: int) -> Problem:
    """The interval on which an inequality holds."""
    strict = rng.below(2) == 1
    sign, opening, closing = ("<", "(", ")") if strict else (r"\le", "[", "]")
    if level == 2:
        return _quotient_inequality(rng, strict)
    a, b, c = _quadratic(rng, level - (level > 2))
    low, high = _roots(a, b, c)
    flipped = rng.below(2) == 1
    left = latex.polynomial([-a, -b, -c] if flipped else [a, b, c])
    condition = f"{left} {sign.replace('<', '>').replace('le', 'ge') if flipped else sign} 0"
    program = (
        'from sympy import solve, symbols\nx = symbols("x")\n'
        f"low, high = sorted(solve({_python([a, b, c])}, x))\n"
        f'print(f"{opening}{{low}}, {{high}}{closing}")'
    )
    thought = "The sign changes only at the two roots, and the condition holds between them."
    answer = rf"\left{opening}{low}, {high}\right{closing}"
    return Problem(question=_solve(rng, condition), answer=answer, program=program, thought=thought)


def _quotient_inequality(rng: Rng, strict: bool) -> Problem:
    """Where a quotient of linear terms is negative, or not positive: the pole never belongs to it."""
    p, r = between(rng, 2, 15), between(rng, 2, 15)
    q, s = nonzero(rng, 40), nonzero(rng, 40)
    zero, pole = Fraction(q, p), Fraction(s, r)
    if zero == pole:
        return _quotient_inequality(rng, strict)
    sign, bracket = ("<", "()") if strict else (r"\le", "[]")
    top, bottom = latex.polynomial([p, -q]), latex.polynomial([r, -s])
    condition = rf"\frac{{{top}}}{{{bottom}}} {sign} 0"
    if zero < pole:
        answer = rf"\left{bracket[0]}{latex.fraction(zero)}, {latex.fraction(pole)}\right)"
    else:
        answer = rf"\left({latex.fraction(pole)}, {latex.fraction(zero)}\right{bracket[1]}"
    program = (
        f"from sympy import Rational\nzero, pole = Rational({q}, {p}), Rational({s}, {r})\n"
        f'print(f"{bracket[0]}{{zero}}, {{pole}})" if zero < pole else f"({{pole}}, {{zero}}{bracket[1]}")'
    )
    thought = "Where a term is zero the quotient changes its sign, and between the two zeros it is negative."
    return Problem(question=_solve(rng, condition), answer=answer, program=program, thought=thought)


def _solve(rng: Rng, condition: str) -> str:
    return rng.choice(
        (
            f"Solve ${condition}$ and write the set of all real solutions as an interval.",
            f"For which real numbers $x$ is ${condition}$? Answer in interval notation.",
            f"Find the interval of all real $x$ with ${condition}$.",
        )
    )


def matrix_power(rng: Rng, level: int) -> Problem:
    """A power of a matrix of integers."""
    size, low, high = ((2, 2, 2), (2, 4, 5), (2, 8, 12), (3, 5, 7), (3, 9, 12))[level - 1]
    exponent, top = between(rng, low, high), 5 if level == 1 else 3
    rows = [[between(rng, -top, top) for _ in range(size)] for _ in range(size)]
    power = _power(rows, exponent)
    shown = latex.matrix(rows)
    question = rng.choice(
        (
            f"Let $A = {shown}$. Compute $A^{{{exponent}}}$.",
            f"Find the matrix $A^{{{exponent}}}$ for $$A = {shown}.$$",
            f"What is ${shown}^{{{exponent}}}$?",
        )
    )
    program = f"from sympy import Matrix, latex\nprint(latex(Matrix({rows}) ** {exponent}))"
    thought = "I raise the matrix to the power with sympy and print it as LaTeX."
    return Problem(question=question, answer=latex.matrix(power), program=program, thought=thought)


def _power(rows: list[list[int]], exponent: int) -> list[list[int]]:
    """Return a power of a square matrix by squaring."""
    if exponent == 1:
        return rows
    half = _power(rows, exponent // 2)
    square = _product(half, half)
    return _product(square, rows) if exponent % 2 else square


def _product(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
    columns = list(zip(*b, strict=True))
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in a]
