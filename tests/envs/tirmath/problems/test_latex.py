from fractions import Fraction

import pytest

from arl_gym.envs.tirmath.problems.families import latex


@pytest.mark.parametrize(
    ("rational", "coefficient", "radicand", "text"),
    [
        (Fraction(0), Fraction(1), (12,), r"2\sqrt{3}"),
        (Fraction(0), Fraction(-1, 4), (50,), r"-\frac{5\sqrt{2}}{4}"),
        (Fraction(0), Fraction(1, 4), (6, 10), r"\frac{\sqrt{15}}{2}"),
        (Fraction(3), Fraction(-1), (5,), r"3 - \sqrt{5}"),
        (Fraction(-3, 2), Fraction(1, 2), (45,), r"\frac{-3 + 3\sqrt{5}}{2}"),
        (Fraction(1, 2), Fraction(1, 3), (7,), r"\frac{3 + 2\sqrt{7}}{6}"),
        (Fraction(1, 2), Fraction(1, 2), (9,), "2"),
        (Fraction(1), Fraction(1, 2), (9,), r"\frac{5}{2}"),
    ],
)
def test_surds_are_written_over_one_denominator(rational, coefficient, radicand, text):
    assert latex.root_form(rational, coefficient, *radicand) == text


def test_sums_leave_out_zeros_and_ones():
    assert latex.signed_sum([(0, "x"), (-1, "y"), (1, ""), (5, "z")]) == "-y + 1 + 5z"
    assert latex.signed_sum([(0, "x")]) == "0"
    assert latex.polynomial([1] + [0] * 11 + [-3, 1]) == "x^{13} - 3x + 1"


def test_multiples_of_pi():
    texts = [latex.times(value, r"\pi") for value in (Fraction(1), Fraction(-1, 2), Fraction(3, 4))]
    assert texts == [r"\pi", r"-\frac{\pi}{2}", r"\frac{3\pi}{4}"]


def test_fractions_and_tuples_carry_their_sign_in_front():
    assert latex.tuple_of([Fraction(-2, 3), Fraction(4), Fraction(0)]) == r"(-\frac{2}{3}, 4, 0)"


def test_matrices():
    assert latex.matrix([[1, -2], [0, 3]]) == r"\begin{pmatrix} 1 & -2 \\ 0 & 3 \end{pmatrix}"


def test_square_part_of_a_product():
    assert latex.square_part(12, 18, 5) == (6, 30)  # 1080 = 36 * 30
    assert latex.square_part(1) == (1, 1)
