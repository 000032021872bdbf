import re
from fractions import Fraction

import mpmath
import numpy as np
from sympy import N

from tests.envs.tirmath.problems.samples import numbers, rational, samples, value


def _points(corners: list[tuple[int, int]]) -> tuple[int, int]:
    """Return how many grid points lie inside and on the border, by a test of every one around."""
    (left, low), (right, high) = np.min(corners, axis=0), np.max(corners, axis=0)
    x, y = np.meshgrid(np.arange(left, right + 1), np.arange(low, high + 1))
    border, inside = np.zeros(x.shape, dtype=bool), np.zeros(x.shape, dtype=bool)
    for (a, b), (c, d) in zip(corners, corners[1:] + corners[:1], strict=True):
        turn = (c - a) * (y - b) - (d - b) * (x - a)
        between = (np.minimum(a, c) <= x) & (x <= max(a, c)) & (min(b, d) <= y) & (y <= max(b, d))
        border |= (turn == 0) & between
        crosses = (b > y) != (d > y)  # the ray to the right
        inside ^= crosses & ((turn > 0) == (d > b))
    return int((inside & ~border).sum()), int(border.sum())


def test_polygons_agree_with_a_look_at_every_grid_point():
    for problem in samples("lattice_polygon"):
        corners = [(int(a), int(b)) for a, b in re.findall(r"\((-?\d+), (-?\d+)\)", problem.question)]
        inside, border = _points(corners)
        if "strictly inside" in problem.question:
            assert int(problem.answer) == inside, problem.question
        elif "on the boundary" in problem.question:
            assert int(problem.answer) == border, problem.question
        else:
            assert rational(problem.answer) == Fraction(2 * inside + border, 2) - 1, problem.question


def test_triangles_agree_with_coordinates():
    with mpmath.workdps(50):
        for problem in samples("triangle_measures"):
            a, b, c = map(mpmath.mpf, numbers(problem.question))
            x = (a * a + c * c - b * b) / (2 * c)  # corners (0, 0), (c, 0) and (x, y)
            y = mpmath.sqrt(a * a - x * x)
            centre = (a * a - c * x) / (2 * y)  # height of the circumcentre, which is above c / 2
            expected = {
                "area": c * y / 2,
                "inscribed": c * y / (a + b + c),
                "circumscribed": mpmath.hypot(c / 2, centre),
            }
            kind = re.findall("area|inscribed|circumscribed", problem.question)[0]
            found = mpmath.mpf(str(N(value(problem.answer), 50)))
            assert mpmath.almosteq(found, expected[kind], rel_eps=mpmath.mpf(10) ** -30), problem.question
