"""Families about remainders, divisors, digits and recurrences."""

from math import gcd, prod

from arl_gym.envs.tirmath.problems.families.draws import band, between, distinct, nonzero
from arl_gym.envs.tirmath.problems.families.latex import prime_exponents, signed_sum
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.rng import Rng


def modular_power(rng: Rng, level: int) -> Problem:
    """Remainder of a power; from level 4 on of a tower of powers."""
    modulus = band(rng, level, (2, 25, 100, 1000, 10**5, 10**9))
    base = between(rng, 2, (20, 60, 1000, 10**4, 10**6)[level - 1])
    if level < 4:
        exponent = between(rng, 2, (6, 40, 500)[level - 1])
        power, answer = f"{base}^{{{exponent}}}", pow(base, exponent, modulus)
        program = f"print({base} ** {exponent} % {modulus})"
        thought = "The power is exact in Python however long it gets, so I compute it and take the remainder."
    else:
        inner, height = between(rng, 2, 30), between(rng, 10, 40)
        power, answer = f"{base}^{{{inner}^{{{height}}}}}", pow(base, inner**height, modulus)
        program = (
            f"x = {base}\nfor _ in range({height}):\n    x = pow(x, {inner}, {modulus})\nprint(x % {modulus})"
        )
        thought = (
            "The exponent is itself a power, so raising to the inner base again and again, "
            "modulo the divisor every time, gets there."
        )
    question = rng.choice(
        (
            f"What is the remainder when ${power}$ is divided by ${modulus}$?",
            f"Find the integer $r$ that is congruent to ${power}$ modulo ${modulus}$, "
            "not negative and smaller than the modulus.",
            f"Somebody divides ${power}$ by ${modulus}$ with remainder. Which remainder is left?",
            rf"Compute ${power} \bmod {modulus}$.",
        )
    )
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def chinese_remainder(rng: Rng, level: int) -> Problem:
    """Smallest positive number with given remainders by pairwise coprime divisors."""
    n, low, high = ((2, 3, 15), (2, 16, 80), (3, 3, 40), (4, 3, 60), (5, 3, 90))[level - 1]
    moduli = distinct(rng, n, low, high)
    while any(gcd(a, b) > 1 for a in moduli for b in moduli if a < b):
        moduli = distinct(rng, n, low, high)
    answer = between(rng, 1, prod(moduli) - 1)
    pairs = [(answer % modulus, modulus) for modulus in moduli]
    system = ", ".join(rf"$x \equiv {r} \pmod{{{m}}}$" for r, m in pairs)
    spoken = ", ".join(f"remainder ${r}$ on division by ${m}$" for r, m in pairs)
    question = rng.choice(
        (
            f"Find the smallest positive integer $x$ with {system}.",
            f"A positive integer leaves {spoken}. What is the smallest it can be?",
            f"Which least positive integer $x$ satisfies all of these congruences? {system}",
        )
    )
    program = (
        f"x, step = 0, 1\nfor r, m in {pairs}:\n    while x % m != r:\n        x += step\n"
        "    step *= m\nprint(x)"
    )
    thought = (
        "I keep a solution of the first congruences and add their common period until the next one holds too."
    )
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def divisor_sums(rng: Rng, level: int) -> Problem:
    """Number or sum of the divisors of a product of powers, or number of its square divisors."""
    n, low, high = ((2, 2, 14), (2, 15, 40), (3, 2, 40), (3, 41, 150), (4, 2, 150))[level - 1]
    bases, most = distinct(rng, n, low, high), 4 if level == 1 else 6
    powers = [(base, between(rng, 2, most)) for base in bases]
    exponents = dict[int, int]()
    for base, exponent in powers:
        for prime, k in prime_exponents(base).items():
            exponents[prime] = exponents.get(prime, 0) + k * exponent
    what, answer, term = rng.choice(
        (
            ("the number of positive divisors of $N$", prod(k + 1 for k in exponents.values()), "k + 1"),
            (
                "the sum of all positive divisors of $N$",
                prod((p ** (k + 1) - 1) // (p - 1) for p, k in exponents.items()),
                "sum(p ** i for i in range(k + 1))",
            ),
            (
                "the number of positive divisors of $N$ that are perfect squares",
                prod(k // 2 + 1 for k in exponents.values()),
                "k // 2 + 1",
            ),
        )
    )
    number = r" \cdot ".join(f"{base}^{exponent}" for base, exponent in powers)
    question = rng.choice(
        (
            f"Find {what}, where $N = {number}$.",
            f"Let $N = {number}$. Determine {what}.",
            f"For the integer $N = {number}$, what is {what}?",
        )
    )
    product = " * ".join(f"{base}**{exponent}" for base, exponent in powers)
    program = (
        "from math import prod\nfrom sympy import factorint\n"
        f"n = {product}\nprint(prod({term} for p, k in factorint(n).items()))"
    )
    thought = "What is asked is multiplicative, so I factor the number and multiply over its primes."
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def digit_sums(rng: Rng, level: int) -> Problem:
    """How many integers of a range have a digit sum that a number divides."""
    high = band(rng, level, (30, 99, 2000, 20_000, 80_000, 200_000))
    low = high - between(rng, 8, 24) if level == 1 else between(rng, 1, high // 2)
    divisor = between(rng, 2, 9 if level == 1 else 13)
    answer = _below(high + 1, divisor) - _below(low, divisor)
    question = rng.choice(
        (
            f"How many integers from ${low}$ to ${high}$, both included, "
            f"have a digit sum divisible by ${divisor}$?",
            f"Count the integers $n$ with ${low} \\le n \\le {high}$ "
            f"whose decimal digits add up to a multiple of ${divisor}$.",
            f"The page numbers of a fragment run from ${low}$ to ${high}$. "
            f"On how many of its pages is the sum of the digits of the number a multiple of ${divisor}$?",
        )
    )
    program = f"print(sum(sum(map(int, str(n))) % {divisor} == 0 for n in range({low}, {high} + 1)))"
    thought = "The range is short enough to look at every integer and add its digits."
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def _below(limit: int, divisor: int) -> int:
    """Return how many integers from 0 to limit - 1 have a digit sum that `divisor` divides."""
    digits = [int(digit) for digit in str(limit)]
    tails = [[1] + [0] * (divisor - 1)]  # tails[k][r]: k free digits whose sum leaves remainder r
    for _ in digits:
        last = tails[-1]
        tails.append([sum(last[(r - digit) % divisor] for digit in range(10)) for r in range(divisor)])
    count = total = 0
    for place, digit in enumerate(digits):
        free = tails[len(digits) - place - 1]
        count += sum(free[-(total + smaller) % divisor] for smaller in range(digit))
        total += digit
    return count


def linear_recurrence(rng: Rng, level: int) -> Problem:
    """Remainder of a far term of a recurrence of order two."""
    index = band(rng, level, (4, 8, 40, 1000, 50_000, 500_000))
    modulus = between(rng, 5, (30, 100, 1000, 10**5, 10**7)[level - 1])
    first, second = between(rng, 0, 9), between(rng, 1, 9)
    p, q = between(rng, 1, 9), nonzero(rng, 9)
    answer = _term(index, first, second, p, q, modulus)
    rule = f"a_{{n+2}} = {signed_sum([(p, 'a_{n+1}'), (q, 'a_n')])}"
    question = rng.choice(
        (
            f"A sequence starts with $a_1 = {first}$ and $a_2 = {second}$ and obeys ${rule}$. "
            f"Find the remainder of $a_{{{index}}}$ on division by ${modulus}$.",
            f"Let $a_1 = {first}$, $a_2 = {second}$ and ${rule}$ for all $n \\ge 1$. "
            f"What is $a_{{{index}}}$ modulo ${modulus}$, as a non-negative integer below the modulus?",
            f"The numbers $a_1 = {first}$, $a_2 = {second}$, … satisfy ${rule}$. "
            f"Determine the remainder when $a_{{{index}}}$ is divided by ${modulus}$.",
        )
    )
    program = (
        f"a, b = {first}, {second}\nfor _ in range({index} - 1):\n"
        f"    a, b = b, ({p} * b + {q} * a) % {modulus}\nprint(a % {modulus})"
    )
    thought = "I run the recurrence step by step and keep only remainders, so that the numbers stay small."
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def _term(index: int, first: int, second: int, p: int, q: int, modulus: int) -> int:
    """Return term `index` of the recurrence by squaring its matrix (p, q; 1, 0)."""
    result, square, n = (1, 0, 0, 1), (p, q, 1, 0), index - 1
    while n:
        if n & 1:
            result = _product(result, square, modulus)
        square, n = _product(square, square, modulus), n >> 1
    return (result[2] * second + result[3] * first) % modulus


def _product(
    a: tuple[int, int, int, int], b: tuple[int, int, int, int], modulus: int
) -> tuple[int, int, int, int]:
    return (
        (a[0] * b[0] + a[1] * b[2]) % modulus,
        (a[0] * b[1] + a[1] * b[3]) % modulus,
        (a[2] * b[0] + a[3] * b[2]) % modulus,
        (a[2] * b[1] + a[3] * b[3]) % modulus,
    )


def floor_sum(rng: Rng, level: int) -> Problem:
    """Sum of the rounded-down values of a linear function."""
    n = band(rng, level, (3, 9, 60, 1000, 50_000, 300_000))
    top = (12, 40, 200, 2000, 20_000)[level - 1]
    divisor = between(rng, 3, top)
    slope, offset = between(rng, 2, top), between(rng, 1, top)
    answer = _floor_sum(n + 1, divisor, slope, offset) - offset // divisor
    term = rf"\frac{{{slope}k + {offset}}}{{{divisor}}}"
    question = rng.choice(
        (
            rf"Evaluate $\sum_{{k=1}}^{{{n}}} \left\lfloor {term} \right\rfloor$.",
            rf"For each integer $k$ from $1$ to ${n}$ the number ${term}$ is rounded down to an integer. "
            "What do these integers add up to?",
            rf"Let $S$ be the sum over $k = 1, \dots, {n}$ of the largest integer up to ${term}$. Find $S$.",
        )
    )
    program = f"print(sum(({slope} * k + {offset}) // {divisor} for k in range(1, {n} + 1)))"
    thought = "Integer division rounds down, so a plain sum over all k does it."
    return Problem(question=question, answer=str(answer), program=program, thought=thought)


def _floor_sum(n: int, divisor: int, slope: int, offset: int) -> int:
    """Return the sum over 0 <= k < n of floor((slope * k + offset) / divisor), by Euclid's steps."""
    total = n * (n - 1) // 2 * (slope // divisor) + n * (offset // divisor)
    slope, offset = slope % divisor, offset % divisor
    last = slope * n + offset
    if last >= divisor:
        total += _floor_sum(last // divisor, slope, divisor, last % divisor)
    return total
