from fractions import Fraction

import mpmath
from sympy import N

from tests.envs.tirmath.problems.samples import numbers, python, rational, samples, search, value


def test_integrals_agree_with_quadrature():
    with mpmath.workdps(30):
        for problem in samples("definite_integral"):
            low, high, shown = search(r"\\int_\{(.*?)\}\^\{(.*?)\} (.*?) \\, dx", problem.question)
            integrand = compile(python(shown), "integrand", "eval")
            total = mpmath.quad(
                lambda x, f=integrand: eval(f, {"sqrt": mpmath.sqrt, "x": x}), [int(low), int(high)]
            )
            found = mpmath.mpf(str(N(value(problem.answer), 30)))
            assert mpmath.almosteq(total, found, rel_eps=mpmath.mpf(10) ** -20), problem.question


def test_series_agree_with_their_partial_sums():
    for problem in samples("rational_series"):
        one, n, c, p, q, p_again, r = numbers(problem.question)
        assert (one, p_again) == (1, p)
        total = sum((Fraction(c, (p * k + q) * (p * k + r)) for k in range(1, n + 1)), Fraction(0))
        if "m + n" in problem.question:
            assert int(problem.answer) == total.numerator + total.denominator, problem.question
        else:
            assert rational(problem.answer) == total, problem.question
