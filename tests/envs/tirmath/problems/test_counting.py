import re
from collections import Counter
from itertools import product

import numpy as np

from tests.envs.tirmath.problems.samples import numbers, samples, search


def test_divisibility_counts_agree_with_sets_of_multiples():
    for problem in samples("inclusion_exclusion"):
        found = numbers(problem.question)
        limit, *divisors = found[1:] if found[0] == 1 else found
        hits = Counter(n for d in divisors for n in range(d, limit + 1, d))
        expected = {
            "at least one": len(hits),
            "none": limit - len(hits),
            "exactly one": sum(count == 1 for count in hits.values()),
        }
        kind = search(r"(at least one|none|exactly one) of", problem.question)[0]
        assert int(problem.answer) == expected[kind], problem.question


def test_points_in_an_ellipse_agree_with_a_grid():
    for problem in samples("lattice_points"):
        a, b, limit = search(r"(\d*)x\^2 \+ (\d*)y\^2 \\le (\d+)", problem.question)
        reach = np.arange(-400, 401)
        inside = int(a or 1) * reach[:, None] ** 2 + int(b or 1) * reach**2 <= int(limit)
        assert not (inside[0] | inside[:, 0]).any()
        assert int(problem.answer) == inside.sum(), problem.question


def test_solutions_of_linear_equations_agree_with_loops_and_convolutions():
    for problem in samples("diophantine_count"):
        left, right = search(r"\$(\d[^$=]*) = (\d+)\$", problem.question)
        coefficients, total = numbers(left), int(right)
        least = 0 if "non-negative" in problem.question else 1
        if len(coefficients) < 4:
            *others, last = coefficients
            ranges = [range(least * c, total + 1, c) for c in others]
            rests = [total - sum(used) for used in product(*ranges)]
            expected = sum(rest >= least * last and rest % last == 0 for rest in rests)
        else:
            series = np.ones(1, dtype=np.int64)
            for c in coefficients:
                term = np.zeros(total + 1, dtype=np.int64)
                term[least * c :: c] = 1
                series = np.convolve(series, term)[: total + 1]
            expected = series[total]
        assert int(problem.answer) == expected, problem.question


def test_assignments_agree_with_inclusion_and_exclusion():
    for problem in samples("assignments"):
        listed = re.findall(r"[A-H]: ([\d, ]*\d)", problem.question)
        able = np.zeros((len(listed), len(listed)), dtype=np.int64)
        for row, jobs in zip(able, listed, strict=True):
            row[np.array(numbers(jobs)) - 1] = 1
        # Ryser's formula: the people's choices within a set of jobs, over all sets, with alternating sign.
        expected = 0
        for chosen in product((0, 1), repeat=len(listed)):
            expected += (-1) ** (len(listed) - sum(chosen)) * int(np.prod(able @ np.array(chosen)))
        assert int(problem.answer) == expected, problem.question


def test_subset_sums_agree_with_all_subsets():
    for problem in samples("subset_sums"):
        inside, rest = search(r"\\\{(.*)\\\}(.*)", problem.question.replace("\n", " "))
        sums = np.zeros(1, dtype=np.int64)
        for number in numbers(inside):
            sums = np.concatenate([sums, sums + number])
        wanted, modulus = numbers(rest)
        assert int(problem.answer) == np.sum(sums % modulus == wanted), problem.question
