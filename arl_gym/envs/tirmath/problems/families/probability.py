"""Families about dice and about tokens that move by chance."""

from fractions import Fraction
from math import prod

from arl_gym.envs.tirmath.problems.families.draws import band, between
from arl_gym.envs.tirmath.problems.families.latex import fraction
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.rng import Rng

_AS_SUM = r"Give $m + n$, where $\frac{m}{n}$ is the probability in lowest terms."


def dice_sums(rng: Rng, level: int) -> Problem:
    """Probability of a total of several dice with different numbers of faces."""
    low, high = ((4, 20), (4, 12), (4, 12), (4, 10), (3, 8))[level - 1]
    faces = sorted(between(rng, low, high) for _ in range(level + 1))
    kind = rng.below(3)
    if kind == 2:
        least = between(rng, 2, 7)
        what, test = f"divisible by ${least}$", f"% {least} == 0"
        totals = range(0, sum(faces) + 1, least)
    else:
        least = between(rng, len(faces) + 1, sum(faces) - 1)
        what, test = ((f"exactly ${least}$", f"== {least}"), (f"at least ${least}$", f">= {least}"))[kind]
        totals = range(least, least + 1 if kind == 0 else sum(faces) + 1)
    ways = _totals(faces)
    value = Fraction(sum(ways[total] for total in totals), prod(faces))
    as_sum = level > 3
    listed = ", ".join(f"${n}$" for n in faces)
    question = rng.choice(
        (
            f"Fair dice with {listed} faces, each numbered from one upwards, are rolled once. "
            f"What is the probability that the total is {what}?",
            f"Somebody rolls {len(faces)} fair dice that have {listed} faces (numbered from one). "
            f"Find the probability of a total that is {what}.",
            f"A box holds one fair die for each of the face counts {listed}, all numbered from one upwards. "
            f"How likely is it that a throw of all of them gives a sum that is {what}?",
        )
    )
    program = _DICE.format(
        faces=faces,
        test=test,
        shown="p.numerator + p.denominator" if as_sum else "p",
    )
    thought = "All throws are equally likely and few enough to list, so I count those with the wanted total."
    return Problem(
        question=f"{question} {_AS_SUM}" if as_sum else question,
        answer=str(value.numerator + value.denominator) if as_sum else fraction(value),
        program=program,
        thought=thought,
    )


_DICE = """\
from fractions import Fraction
from itertools import product
from math import prod
faces = {faces}
good = sum(sum(throw) {test} for throw in product(*(range(1, n + 1) for n in faces)))
p = Fraction(good, prod(faces))
print({shown})"""


def _totals(faces: list[int]) -> list[int]:
    """Return in how many ways each total, from 0 on, is thrown."""
    ways = [1]
    for n in faces:
        longer = [0] * (len(ways) + n)
        for total, count in enumerate(ways):
            for face in range(1, n + 1):
                longer[total + face] += count
        ways = longer
    return ways


_SQUARES = (2, 4, 6, 8, 10, 12)
"""Bounds by level of the last square of a walk; up to square 2 both ways to fall back are the same."""


def _odds(rng: Rng, most: int) -> Fraction:
    """Return a probability strictly between 0 and 1 whose denominator is at most `most`, not one half."""
    value = Fraction(1, 2)
    while value.denominator == 2:
        bottom = between(rng, 3, most)
        value = Fraction(between(rng, 1, bottom - 1), bottom)
    return value


def expected_steps(rng: Rng, level: int) -> Problem:
    """Expected length of a walk along squares that falls back by one or to the start."""
    last = band(rng, level, _SQUARES)
    start, p = rng.below(last), _odds(rng, 30 if level == 1 else 15)
    if rng.below(2):
        fall, back = "returns to square $0$", "0"
        value = (1 - p ** (last - start)) / (p**last * (1 - p))
    else:
        fall, back = "goes one square back (on square $0$ it stays where it is)", "max(k - 1, 0)"
        value = sum(_climbs(p, last)[start:], Fraction(0))
    question = rng.choice(
        (
            f"A token on squares numbered from $0$ to ${last}$ starts on square ${start}$. In every move it "
            f"goes one square forward with probability ${fraction(p)}$, and otherwise {fall}. "
            f"What is the expected number of moves until it reaches the last square?",
            f"On a track of squares $0$ to ${last}$ a piece stands on square ${start}$. With probability "
            f"${fraction(p)}$ a move takes it one square ahead; otherwise it {fall}. "
            f"Find the expected number of moves it needs to reach the end of the track.",
            f"Of the squares $0$ to ${last}$ a frog sits on square ${start}$. Each jump succeeds with "
            f"probability ${fraction(p)}$ and takes it to the next square; if the jump fails, it {fall}. "
            "How many jumps does it need on average to get to the last square?",
        )
    )
    program = _STEPS.format(p=f"{p.numerator}, {p.denominator}", last=last, start=start, back=back)
    thought = (
        "The expected numbers of moves from all squares satisfy linear equations, "
        "one a square; I solve them exactly."
    )
    return Problem(question=question, answer=fraction(value), program=program, thought=thought)


_STEPS = """\
from sympy import Matrix, Rational, eye, ones, zeros
p, n = Rational({p}), {last}
move = zeros(n, n)
for k in range(n):
    move[k, {back}] += 1 - p
    if k + 1 < n:
        move[k, k + 1] += p
print((eye(n) - move).LUsolve(ones(n, 1))[{start}])"""


def _climbs(p: Fraction, last: int) -> list[Fraction]:
    """Return the expected number of moves from each square to the next, for falls by one square."""
    climbs = [1 / p]
    while len(climbs) < last:
        climbs.append((1 + (1 - p) * climbs[-1]) / p)
    return climbs


def gamblers_ruin(rng: Rng, level: int) -> Problem:
    """Probability to reach a goal before being broke; from level 4 on numerator plus denominator."""
    goal = band(rng, level, (2, 4, 6, 8, 10, 12))
    start, p = between(rng, 1, goal - 1), _odds(rng, 40 if level < 3 else 15)
    as_sum = level > 3
    ratio = (1 - p) / p
    value = (1 - ratio**start) / (1 - ratio**goal)
    question = rng.choice(
        (
            f"A player's fortune is ${start}$. Every round raises it by one with probability ${fraction(p)}$ "
            f"and otherwise lowers it by one; the play ends as soon as the fortune is ${goal}$ or zero. "
            "What is the probability that it does not end at zero?",
            f"Starting at position ${start}$, a walker steps one to the right with probability "
            f"${fraction(p)}$ and else one to the left. Find the probability that position ${goal}$ "
            "is reached before the origin.",
            f"The water in a tank stands at mark ${start}$. Every hour it rises by one mark with probability "
            f"${fraction(p)}$, otherwise it falls by one. How likely is it to reach mark ${goal}$ "
            "before the tank is empty, at mark zero?",
        )
    )
    program = _RUIN.format(
        p=f"{p.numerator}, {p.denominator}",
        goal=goal,
        start=start,
        shown="x.numerator + x.denominator" if as_sum else "x",
    )
    thought = (
        "The chances from neighbouring amounts satisfy a linear recurrence; "
        "I run it from zero with an arbitrary scale and normalise at the goal."
    )
    return Problem(
        question=f"{question} {_AS_SUM}" if as_sum else question,
        answer=str(value.numerator + value.denominator) if as_sum else fraction(value),
        program=program,
        thought=thought,
    )


_RUIN = """\
from fractions import Fraction
p = Fraction({p})
h = [Fraction(0), Fraction(1)]
while len(h) <= {goal}:
    h.append((h[-1] - (1 - p) * h[-2]) / p)
x = h[{start}] / h[{goal}]
print({shown})"""
