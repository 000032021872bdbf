"""Families about polygons on a grid and about triangles."""

from fractions import Fraction
from functools import cmp_to_key
from math import gcd

from arl_gym.envs.tirmath.problems.families.draws import band, between
from arl_gym.envs.tirmath.problems.families.latex import fraction, root_form
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.rng import Rng

Point = tuple[int, int]


def lattice_polygon(rng: Rng, level: int) -> Problem:
    """Area of a polygon with integer corners, or its grid points inside or on the border."""
    corners = _star(rng, *((3, 6), (4, 12), (5, 30), (7, 80), (9, 200))[level - 1])
    pairs = list(zip(corners, corners[1:] + corners[:1], strict=True))
    doubled = sum(a * d - b * c for (a, b), (c, d) in pairs)
    border = sum(gcd(c - a, d - b) for (a, b), (c, d) in pairs)
    inside = (doubled - border + 2) // 2  # Pick: area = inside + border / 2 - 1
    what, answer, shown = rng.choice(
        (
            ("area of", fraction(Fraction(doubled, 2)), "Fraction(doubled, 2)"),
            ("number of points with integer coordinates strictly inside", str(inside), "inside"),
            ("number of points with integer coordinates on the boundary of", str(border), "border"),
        )
    )
    listed = ", ".join(f"$({x}, {y})$" for x, y in corners)
    question = rng.choice(
        (
            f"A polygon has the corners {listed}, in this order. Find the {what} this polygon.",
            f"Connect the points {listed} in this order and close the line. "
            f"What is the {what} the polygon enclosed?",
            f"Determine the {what} the simple polygon whose corners, one after the other, are {listed}.",
        )
    )
    program = _PICK.format(corners=corners, shown=shown)
    thought = "The shoelace formula gives the area, divisors the border, and Pick's theorem the inside."
    return Problem(question=question, answer=answer, program=program, thought=thought)


_PICK = """\
from fractions import Fraction
from math import gcd
p = {corners}
sides = list(zip(p, p[1:] + p[:1]))
doubled = abs(sum(a * d - b * c for (a, b), (c, d) in sides))
border = sum(gcd(a - c, b - d) for (a, b), (c, d) in sides)
inside = (doubled - border) // 2 + 1
print({shown})"""


def _star(rng: Rng, n: int, reach: int) -> list[Point]:
    """Return n corners, counter-clockwise around a point from which all of the border is seen."""
    while True:
        points = [(between(rng, -reach, reach), between(rng, -reach, reach)) for _ in range(n)]
        points.sort(key=cmp_to_key(_turn))
        if all(a * d - b * c > 0 for (a, b), (c, d) in zip(points, points[1:] + points[:1], strict=True)):
            break
    dx, dy = between(rng, -reach, reach), between(rng, -reach, reach)
    return [(x + dx, y + dy) for x, y in points]


def _turn(p: Point, q: Point) -> int:
    """Compare two directions by their angle from 0 to a full turn."""
    half_p, half_q = (point[1] < 0 or (point[1] == 0 and point[0] < 0) for point in (p, q))
    return half_p - half_q or q[0] * p[1] - q[1] * p[0]


def triangle_measures(rng: Rng, level: int) -> Problem:
    """Area, inradius or circumradius of a triangle of integer sides, mostly a surd."""
    longest = band(rng, level, (5, 25, 80, 300, 1000, 4000))
    shorter = between(rng, 2, longest)
    shortest = between(rng, max(2, longest - shorter + 1), max(shorter, longest - shorter + 1))
    a, b, c = sorted((shortest, shorter, longest))
    around = a + b + c
    factors = around, around - 2 * a, around - 2 * b, around - 2 * c  # their product is 16 times area squared
    square = around * factors[1] * factors[2] * factors[3]
    what, coefficient, formula = rng.choice(
        (
            ("area", Fraction(1, 4), "area"),
            ("radius of the inscribed circle", Fraction(1, 2 * around), "area / s"),
            ("radius of the circumscribed circle", Fraction(a * b * c, square), "a * b * c / (4 * area)"),
        )
    )
    question = rng.choice(
        (
            f"A triangle has sides of length ${a}$, ${b}$ and ${c}$. Find the exact {what}.",
            f"What is the {what} of a triangle with sides ${a}$, ${b}$ and ${c}$? Give the exact value.",
            f"The sides of a triangle are ${a}$, ${b}$ and ${c}$ long. Determine, in simplest radical form, "
            f"the {what} of the triangle.",
        )
    )
    program = (
        f"from sympy import Rational, sqrt\na, b, c = {a}, {b}, {c}\ns = Rational(a + b + c, 2)\n"
        f"area = sqrt(s * (s - a) * (s - b) * (s - c))\nprint({formula})"
    )
    thought = "Heron's formula gives the area from the sides, and the radii follow from the area."
    answer = root_form(Fraction(0), coefficient, *factors)
    return Problem(question=question, answer=answer, program=program, thought=thought)
