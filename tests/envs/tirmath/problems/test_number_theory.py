import re
from math import isqrt, prod

import numpy as np
from sympy import divisors, totient

from tests.envs.tirmath.problems.samples import numbers, samples, search


def test_remainders_of_powers_agree_with_repeated_multiplication_and_euler():
    for problem in samples("modular_power"):
        base, *exponents, modulus = numbers(problem.question)
        exponent = exponents[0] if len(exponents) == 1 else exponents[0] ** exponents[1]
        if exponent > 1000:
            exponent = exponent % int(totient(modulus)) + int(totient(modulus))
            assert int(problem.answer) == pow(base, exponent, modulus), problem.question
        else:
            result = 1
            for _ in range(exponent):
                result = result * base % modulus
            assert int(problem.answer) == result, problem.question


def test_solutions_of_congruences_satisfy_them_and_are_below_the_period():
    for problem in samples("chinese_remainder"):
        found = numbers(problem.question)
        x, moduli = int(problem.answer), found[1::2]
        assert [x % modulus for modulus in moduli] == found[::2], problem.question
        assert 0 < x < prod(moduli), problem.question
        assert all(np.gcd(a, b) == 1 for i, a in enumerate(moduli) for b in moduli[:i])


def test_divisor_sums_agree_with_the_list_of_divisors():
    for problem in samples("divisor_sums", per_level=5):
        n = prod(int(base) ** int(k) for base, k in re.findall(r"(\d+)\^(\d+)", problem.question))
        found = divisors(n)
        if "squares" in problem.question:
            found = [d for d in found if isqrt(d) ** 2 == d]
        expected = sum(found) if "sum of" in problem.question else len(found)
        assert int(problem.answer) == expected, problem.question


def test_counts_by_digit_sum_agree_with_enumeration():
    for problem in samples("digit_sums"):
        low, high, divisor = numbers(problem.question)
        each = np.arange(low, high + 1)
        total = np.sum([each // 10**place % 10 for place in range(6)], axis=0)
        assert int(problem.answer) == np.sum(total % divisor == 0), problem.question


def test_recurrences_agree_with_the_sequence_or_with_the_powers_of_x():
    for problem in samples("linear_recurrence"):
        text = problem.question
        first, second = (int(search(rf"a_{k} = (\d+)", text)[0]) for k in (1, 2))
        ahead, sign, behind = search(r"= (\d*)a_\{n\+1\} ([+-]) (\d*)a_n", text)
        p, q = int(ahead or 1), int(behind or 1) * (-1 if sign == "-" else 1)
        index, modulus = int(search(r"\$?a_\{(\d+)\}\$", text)[0]), numbers(text)[-1]
        if index <= 1000:
            terms = [first, second]
            while len(terms) < index:
                terms.append(p * terms[-1] + q * terms[-2])
            expected = terms[index - 1] % modulus
        else:
            high, low = _power_of_x(index - 1, p, q, modulus)
            expected = (high * second + low * first) % modulus
        assert int(problem.answer) == expected, text


def _power_of_x(n: int, p: int, q: int, modulus: int) -> tuple[int, int]:
    """Return (a, b) with x^n = a x + b modulo x^2 - p x - q, by binary digits from the left."""
    a, b = 0, 1
    for bit in bin(n)[2:]:
        a, b = a * a * p + 2 * a * b, a * a * q + b * b
        if bit == "1":
            a, b = a * p + b, a * q
        a, b = a % modulus, b % modulus
    return a, b


def test_floor_sums_agree_with_the_summands():
    for problem in samples("floor_sum"):
        one, n, slope, offset, divisor = numbers(problem.question)
        k = np.arange(one, n + 1, dtype=np.int64)
        assert int(problem.answer) == np.sum((slope * k + offset) // divisor), problem.question
