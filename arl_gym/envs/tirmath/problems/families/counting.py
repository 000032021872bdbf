"""Families that count: integers, points, solutions, arrangements, subsets."""

from itertools import combinations
from math import isqrt, lcm

from arl_gym.envs.tirmath.problems.families.draws import band, between, distinct
from arl_gym.envs.tirmath.problems.families.latex import signed_sum
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.rng import Rng


def inclusion_exclusion(rng: Rng, level: int) -> Problem:
    """How many integers up to a limit are multiples of some, none or exactly one of a few numbers."""
    limit = band(rng, level, (20, 100, 1000, 10_000, 50_000, 200_000))
    divisors = distinct(rng, (2, 3, 3, 4, 4)[level - 1], 2, (12, 15, 20, 25, 30)[level - 1])
    what, test, weights = rng.choice(
        (
            ("at least one", "> 0", (0, 1, -1, 1, -1)),
            ("none", "== 0", (1, -1, 1, -1, 1)),
            ("exactly one", "== 1", (0, 1, -2, 3, -4)),
        )
    )
    answer = sum(
        weights[k] * (limit // lcm(*chosen))
        for k in range(len(divisors) + 1)
        for chosen in combinations(divisors, k)
    )
    listed = ", ".join(f"${divisor}$" for divisor in divisors)
    question = rng.choice(
        (
            f"How many positive integers up to ${limit}$ are divisible by {what} of the numbers {listed}?",
            f"Count the integers $n$ with $1 \\le n \\le {limit}$ "
            f"such that {what} of {listed} divides $n$ without remainder.",
            f"Tickets are numbered from $1$ to ${limit}$. "
            f"On how many of them is the number a multiple of {what} of {listed}?",
        )
    )
    program = f"d = {divisors}\nprint(sum(sum(n % k == 0 for k in d) {test} for n in range(1, {limit} + 1)))"
    thought = "I go through the integers one by one and count how many of the divisors divide each."
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def lattice_points(rng: Rng, level: int) -> Problem:
    """How many points with integer coordinates lie in an ellipse."""
    limit = band(rng, level, (3, 45, 400, 4000, 30_000, 150_000))
    a, b = distinct(rng, 2, 1, 12)
    answer = sum(2 * isqrt((limit - a * x * x) // b) + 1 for x in range(1, isqrt(limit // a) + 1))
    answer = 2 * answer + 2 * isqrt(limit // b) + 1
    ellipse = rf"{signed_sum([(a, 'x^2'), (b, 'y^2')])} \le {limit}"
    question = rng.choice(
        (
            f"How many pairs $(x, y)$ of integers satisfy ${ellipse}$?",
            f"Find the number of points with integer coordinates in the region ${ellipse}$ of the plane.",
            f"Determine how many lattice points $(x, y)$ fulfil ${ellipse}$, those on the border included.",
        )
    )
    program = (
        f"from math import isqrt\nr, s = isqrt({limit} // {a}), isqrt({limit} // {b})\n"
        f"print(sum({a} * x * x + {b} * y * y <= {limit}\n"
        "          for x in range(-r, r + 1) for y in range(-s, s + 1)))"
    )
    thought = "The region fits into a small rectangle, so I test every integer point of that rectangle."
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def diophantine_count(rng: Rng, level: int) -> Problem:
    """How many solutions a linear equation has in positive or non-negative integers."""
    total = band(rng, level, (30, 100, 180, 400, 600, 1500))
    coefficients = distinct(rng, (2, 3, 3, 4, 4)[level - 1], 2, (11, 15, 25, 25, 40)[level - 1])
    least, kind = rng.choice(((0, "non-negative"), (1, "positive")))
    # Solutions in positive integers are those in non-negative ones with one of everything taken away.
    answer = _ways(total - least * sum(coefficients), coefficients)
    if answer == 0:
        return diophantine_count(rng, level)
    letters = "xyzw"[: len(coefficients)]
    equation = f"{signed_sum(zip(coefficients, letters, strict=True))} = {total}"
    names = ", ".join(letters)
    question = rng.choice(
        (
            f"How many solutions in {kind} integers does the equation ${equation}$ have?",
            f"Find the number of tuples $({names})$ of {kind} integers with ${equation}$.",
            f"In how many ways can {kind} integers ${names}$ be chosen such that ${equation}$?",
        )
    )
    program = (
        f"from functools import lru_cache\nc = {tuple(coefficients)}\n@lru_cache(None)\ndef ways(i, rest):\n"
        "    if i == len(c) - 1:\n"
        f"        return int(rest % c[i] == 0 and rest >= {least} * c[i])\n"
        f"    return sum(ways(i + 1, rest - used) for used in range({least} * c[i], rest + 1, c[i]))\n"
        f"print(ways(0, {total}))"
    )
    thought = "I fix the unknowns one after the other and remember how often each rest can be reached."
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def _ways(total: int, coefficients: list[int]) -> int:
    """Return the number of non-negative solutions, from the coefficients of the generating function."""
    if total < 0:
        return 0
    ways = [1] + [0] * total
    for c in coefficients:
        for reached in range(c, total + 1):
            ways[reached] += ways[reached - c]
    return ways[total]


def assignments(rng: Rng, level: int) -> Problem:
    """In how many ways people can take one job each, out of those they can do."""
    n = level + 3
    able = [distinct(rng, between(rng, 2, n - 1), 1, n) for _ in range(n)]
    ways = {0: 1}  # how often the people so far fill a set of jobs, a bit each
    for jobs in able:
        filled = dict[int, int]()
        for taken, count in ways.items():
            for job in jobs:
                if not taken >> job & 1:
                    filled[taken | 1 << job] = filled.get(taken | 1 << job, 0) + count
        ways = filled
    answer = sum(ways.values())
    if answer == 0:
        return assignments(rng, level)
    listed = "; ".join(f"{chr(65 + k)}: {', '.join(map(str, jobs))}" for k, jobs in enumerate(able))
    question = rng.choice(
        (
            "As many jobs as people are to be given out, one each. The people A, B, … can do these jobs: "
            f"{listed}. In how many ways can all jobs be given to people who can do them?",
            f"Every guest orders a different dish. The dishes each guest likes have the numbers {listed}. "
            "How many ways are there to serve each guest a dish they like, every dish once?",
            f"Count the permutations whose entries at the places A, B, … are among these numbers: {listed}.",
        )
    )
    program = (
        f"from itertools import permutations\nable = {able}\n"
        "orders = permutations(range(1, len(able) + 1))\n"
        "print(sum(all(job in jobs for job, jobs in zip(order, able)) for order in orders))"
    )
    thought = "There are few enough orders of the jobs to try them all and count those that suit everybody."
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def subset_sums(rng: Rng, level: int) -> Problem:
    """How many subsets have a sum with a given remainder."""
    n = between(rng, *((4, 5), (7, 8), (10, 12), (13, 14), (15, 16))[level - 1])
    numbers = distinct(rng, n, 1, (15, 30, 60, 150, 400)[level - 1])
    modulus = between(rng, 3, (6, 9, 15, 25, 40)[level - 1])
    wanted = rng.below(modulus)
    counts = [1] + [0] * (modulus - 1)
    for number in numbers:
        counts = [counts[r] + counts[(r - number) % modulus] for r in range(modulus)]
    listed = r"\{" + ", ".join(map(str, numbers)) + r"\}"
    question = rng.choice(
        (
            f"How many subsets of ${listed}$, the empty set with sum zero included, "
            f"have an element sum that leaves remainder ${wanted}$ on division by ${modulus}$?",
            f"Let $S = {listed}$. Count the subsets of $S$ (the empty one too) "
            f"whose sum is congruent to ${wanted}$ modulo ${modulus}$.",
            f"Of the coins with values ${listed}$ any number may be taken, also none. How many choices "
            f"have a total value with remainder ${wanted}$ when divided by ${modulus}$?",
        )
    )
    program = (
        f"from itertools import combinations\ns = {numbers}\n"
        f"print(sum(sum(c) % {modulus} == {wanted} for k in range(len(s) + 1) for c in combinations(s, k)))"
    )
    thought = "The set is small, so I run through all of its subsets and count the sums that fit."
    return Problem(question=question, answer=str(counts[wanted]), program=program, thought=thought)
