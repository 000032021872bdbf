import re
from collections.abc import Callable

from arl_gym.envs.tirmath.problems.generated import TINY_FAMILIES
from tests.envs.tirmath.problems.samples import numbers, samples


def _divisors(n: int) -> set[int]:
    return {d for d in range(1, n + 1) if n % d == 0}


def test_tiny_answers_agree_with_counting():
    expected: dict[str, Callable[..., int]] = {
        "tiny_mod": lambda a, b, m: sum(a for _ in range(b)) % m,
        "tiny_gcd": lambda a, b: max(_divisors(a) & _divisors(b)),
        "tiny_digit_sum": lambda a, b, c: sum(map(int, str(a * b * c))),
        "tiny_divisors": lambda a, b: len(_divisors(a * b)),
        "tiny_squares": lambda a, b, m: sum(k**2 for k in range(a, b + 1)) % m,
        "tiny_gcd_product": lambda a, b, c: max(_divisors(a * b) & _divisors(c)),
    }
    assert set(expected) == set(TINY_FAMILIES)
    for name, answer in expected.items():
        for problem in samples(name, per_level=30):
            assert int(problem.answer) == answer(*numbers(problem.question)), problem.question


def test_tiny_problems_are_made_of_few_words_and_of_numbers_below_100():
    problems = [problem for name in TINY_FAMILIES for problem in samples(name, per_level=100)]
    texts = [text for p in problems for text in (p.question, p.answer, p.program, p.thought)]
    words = {word for text in texts for word in text.split()}
    assert all(re.fullmatch(r"\d{1,2}|[a-z]+|[^\w\s]+", word) for word in words)
    assert len({word for word in words if not word.isdigit()}) < 60


def test_every_word_of_the_held_out_tiny_family_occurs_in_the_others():
    def words(names):
        questions = [p.question for name in names for p in samples(name, per_level=50)]
        return {word for text in questions for word in text.split() if not word.isdigit()}

    held_out = {"tiny_gcd_product"}
    assert words(held_out) <= words(set(TINY_FAMILIES) - held_out)
