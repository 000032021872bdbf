from fractions import Fraction

import numpy as np

from tests.envs.tirmath.problems.samples import numbers, rational, samples, search, solve


def _expected_answer(exact: Fraction, problem) -> None:
    if "m + n" in problem.question:
        assert int(problem.answer) == exact.numerator + exact.denominator, problem.question
    else:
        assert rational(problem.answer) == exact, problem.question


def test_dice_probabilities_agree_with_all_throws():
    for problem in samples("dice_sums"):
        listed = search(r"(\$\d+\$(?:, \$\d+\$)+)", problem.question)[0]
        kind, number = search(r"(exactly|at least|divisible by) \$(\d+)\$", problem.question)
        totals = np.zeros(1, dtype=np.int64)
        for n in numbers(listed):
            totals = np.add.outer(totals, np.arange(1, n + 1)).ravel()
        k = int(number)
        good = {"exactly": totals == k, "at least": totals >= k, "divisible by": totals % k == 0}[kind]
        _expected_answer(Fraction(int(good.sum()), totals.size), problem)


def test_expected_steps_agree_with_the_equations_of_the_chain():
    for problem in samples("expected_steps"):
        last = int(search(r"to \$(\d+)\$", problem.question)[0])
        start = int(search(r"square \$(\d+)\$", problem.question)[0])
        p = rational(search(r"probability \$([^$]*)\$", problem.question)[0])
        rows = []
        for k in range(last):
            row = [Fraction(0)] * last + [Fraction(1)]
            row[k] += 1
            row[0 if "returns" in problem.question else max(k - 1, 0)] -= 1 - p
            if k + 1 < last:
                row[k + 1] -= p
            rows.append(row)
        assert rational(problem.answer) == solve(rows)[start], problem.question


def test_ruin_probabilities_agree_with_the_equations_of_the_chain():
    for problem in samples("gamblers_ruin"):
        start, goal = (int(n) for n in search(r"\$(\d+)\$.*?\$(\d+)\$", problem.question))
        p = rational(search(r"probability \$([^$]*)\$", problem.question)[0])
        rows = []
        for k in range(1, goal):
            row = [Fraction(int(i == k)) - p * (i == k + 1) - (1 - p) * (i == k - 1) for i in range(goal + 1)]
            rows.append([*row[1:goal], -row[goal]])
        _expected_answer(solve(rows)[start - 1], problem)
