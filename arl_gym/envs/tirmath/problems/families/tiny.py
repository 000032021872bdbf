"""Families for models that know a few hundred words.

One wording each, spaces between the words, and numbers below 100 in question, program and answer.
"""

from math import gcd, prod

from arl_gym.envs.tirmath.problems.families.draws import between, distinct
from arl_gym.envs.tirmath.problems.families.latex import prime_exponents
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.rng import Rng


def tiny_mod(rng: Rng, level: int) -> Problem:
    """Remainder of a product."""
    a, b = distinct(rng, 2, 2, 99)
    m = between(rng, 2, 99)
    return Problem(
        question=f"what is {a} * {b} mod {m} ?",
        answer=str(a * b % m),
        program=f"print ( {a} * {b} % {m} )",
        thought="multiply and take the remainder .",
    )


def tiny_gcd(rng: Rng, level: int) -> Problem:
    """Greatest common divisor of two numbers that have one, lest the answer be mostly 1."""
    factor = between(rng, 2, 12)
    a, b = (factor * k for k in distinct(rng, 2, 1, 99 // factor))
    return Problem(
        question=f"what is gcd of {a} and {b} ?",
        answer=str(gcd(a, b)),
        program=f"from math import gcd\nprint ( gcd ( {a} , {b} ) )",
        thought="math has gcd .",
    )


def tiny_digit_sum(rng: Rng, level: int) -> Problem:
    """Sum of the digits of a product of three numbers."""
    a, b, c = distinct(rng, 3, 2, 99)
    return Problem(
        question=f"what is digit sum of {a} * {b} * {c} ?",
        answer=str(sum(a * b * c // 10**k % 10 for k in range(6))),
        program=f"print ( sum ( map ( int , str ( {a} * {b} * {c} ) ) ) )",
        thought="multiply and add the digits .",
    )


def tiny_divisors(rng: Rng, level: int) -> Problem:
    """Number of divisors of a product."""
    a, b = distinct(rng, 2, 2, 99)
    return Problem(
        question=f"how many divisors has {a} * {b} ?",
        answer=str(prod(k + 1 for k in prime_exponents(a * b).values())),
        program=f"n = {a} * {b}\nprint ( sum ( n % k == 0 for k in range ( 1 , n + 1 ) ) )",
        thought="try all numbers up to n .",
    )


def tiny_squares(rng: Rng, level: int) -> Problem:
    """Remainder of a sum of squares."""
    a, b = distinct(rng, 2, 1, 98)
    m = between(rng, 2, 99)
    total = b * (b + 1) * (2 * b + 1) // 6 - (a - 1) * a * (2 * a - 1) // 6
    return Problem(
        question=f"what is sum of squares from {a} to {b} mod {m} ?",
        answer=str(total % m),
        program=f"print ( sum ( k * k for k in range ( {a} , {b} + 1 ) ) % {m} )",
        thought="add all squares and take the remainder .",
    )


def tiny_gcd_product(rng: Rng, level: int) -> Problem:
    """Greatest common divisor of a product and a number: made of words the other tiny families use."""
    a, b = distinct(rng, 2, 2, 99)
    c = between(rng, 2, 99)
    return Problem(
        question=f"what is gcd of {a} * {b} and {c} ?",
        answer=str(gcd(a * b, c)),
        program=f"from math import gcd\nprint ( gcd ( {a} * {b} , {c} ) )",
        thought="math has gcd .",
    )
