import re

import mpmath
from sympy import Matrix, N, Poly, factorint, sympify

from tests.envs.tirmath.problems.samples import matrix, python, rational, samples, search, value


def test_systems_are_solved_by_the_answer_and_have_no_other_solution():
    for problem in samples("linear_system"):
        solution = [rational(part) for part in problem.answer[1:-1].split(", ")]
        letters = dict(zip("xyzw", solution, strict=False))
        equations = search(r"\\begin\{cases\} (.*) \\end\{cases\}", problem.question)[0].split(r" \\ ")
        rows = []
        for equation in equations:
            left, right = equation.split(" = ")
            assert eval(re.sub(r"(?<=\d)(?=[xyzw])", "*", left), {}, letters) == int(right), problem.question
            rows.append([sympify(re.sub(r"(?<=\d)(?=[xyzw])", "*", left)).coeff(c) for c in letters])
        assert Matrix(rows).det() != 0


def _at(expression: str, x: object) -> mpmath.mpf:
    return eval(python(expression), {"sqrt": mpmath.sqrt, "pi": mpmath.pi}, {"x": x})


def _exact(latex: str) -> mpmath.mpf:
    return mpmath.mpf(str(N(value(latex), 60)))


def test_roots_make_the_equation_true_and_are_the_larger_ones():
    with mpmath.workdps(60):
        for problem in samples("quadratic_roots", per_level=40):
            left, right = search(r"\$([^$]*x[^$]*) = (\d+)\$", problem.question)
            root, h = _exact(problem.answer), mpmath.mpf(10) ** -20
            assert abs(_at(left, root) - int(right)) < mpmath.mpf(10) ** -45, problem.question
            if problem.level == 5:
                assert root > 0
            else:
                # The leading coefficient is positive: only the larger root has the parabola rising.
                assert _at(left, root + h) > 0 > _at(left, root - h), problem.question


def test_radicands_have_no_square_factor():
    surds = 0
    for family in ("quadratic_roots", "quadratic_inequality", "triangle_measures", "definite_integral"):
        for problem in samples(family):
            for radicand in re.findall(r"\\sqrt\{(\d+)\}", problem.answer):
                surds += 1
                assert set(factorint(int(radicand)).values()) == {1}, problem.answer
    assert surds > 40


def test_power_sums_agree_with_numerical_roots():
    with mpmath.workdps(80):
        for problem in samples("power_sums"):
            polynomial = search(r"\$(x\^[^$]*) = 0\$", problem.question)[0]
            exponent = int(search(r"r\^\{(\d+)\}", problem.question)[0])
            roots = mpmath.polyroots(
                [int(c) for c in Poly(value(polynomial)).all_coeffs()], maxsteps=1000, extraprec=1000
            )
            total = mpmath.fsum(root**exponent for root in roots)
            assert abs(total - int(problem.answer)) < 1e-9, problem.question


def test_polynomial_remainders_agree_with_division_of_huge_integers():
    x = 10**60
    for problem in samples("polynomial_remainder"):
        dividend, divisor = (
            eval(python(text), {}, {"x": x})
            for text in re.findall(r"\$(?:[PD]\(x\) = )?([^$]*x[^$]*)\$", problem.question)[:2]
        )
        rest = dividend % divisor
        rest -= divisor * (2 * rest > divisor)
        assert eval(python(problem.answer), {}, {"x": x}) == rest, problem.question


def test_intervals_hold_exactly_where_the_inequality_does():
    with mpmath.workdps(60):
        for problem in samples("quadratic_inequality", per_level=40):
            left, sign = search(r"\$([^$]*x[^$]*) (<|>|\\le|\\ge) 0\$", problem.question)
            opening, low, high, closing = search(r"^\\left([\[(])(.*), (.*)\\right([\])])$", problem.answer)
            a, b, h = _exact(low), _exact(high), mpmath.mpf(10) ** -20
            wanted = -1 if sign in ("<", r"\le") else 1
            assert a + 3 * h < b
            for x in (a + h, (a + b) / 2, b - h):
                assert _at(left, x) * wanted > 0, problem.question
            for x in (a - h, a - 1000, b + h, b + 1000):
                assert _at(left, x) * wanted < 0, problem.question
            for end, bracket in ((a, opening), (b, closing)):
                # At a pole the term is not near zero; at 10^-50 beside a zero it is.
                is_zero = abs(_at(left, end + mpmath.mpf(10) ** -50)) < 1e-30
                assert (bracket in "[]") == (is_zero and sign in (r"\le", r"\ge")), problem.question


def test_matrix_powers_agree_with_repeated_products():
    for problem in samples("matrix_power"):
        shown, exponent = (
            search(r"(\\begin.*\\end\{pmatrix\})", problem.question)[0],
            re.findall(r"\^\{(\d+)\}", problem.question),
        )
        factor = matrix(shown)
        power = factor
        for _ in range(int(exponent[0]) - 1):
            power = power * factor
        assert matrix(problem.answer) == power, problem.question
