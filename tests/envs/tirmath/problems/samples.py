"""Problems to check, and their texts read back: the checks know a problem by its question alone."""

import re
from fractions import Fraction

from sympy import Expr, Matrix, sympify

from arl_gym.envs.tirmath.problems.families import TABLE
from arl_gym.envs.tirmath.problems.generated import GeneratedProblems
from arl_gym.envs.tirmath.problems.problem import Problem


def samples(family: str, per_level: int = 8) -> list[Problem]:
    split = "test_ood" if TABLE[family].held_out else "train"
    return [
        GeneratedProblems([family], [level]).problem(split, k)
        for level in TABLE[family].levels
        for k in range(per_level)
    ]


def numbers(text: str) -> list[int]:
    return list(map(int, re.findall(r"-?\d+", text)))


def search(pattern: str, text: str) -> tuple[str, ...]:
    match = re.search(pattern, text)
    assert match, f"{pattern} in {text}"
    return match.groups()


def python(latex: str) -> str:
    """Turn the LaTeX of the families into a Python expression."""
    text = re.sub(r"\\left|\\right|\\,", "", latex).replace(r"\pi", "pi").replace(r" \cdot ", "*")
    text = re.sub(r"\^\{(\d+)\}|\^(\d+)", lambda m: f"**{m[1] or m[2]}", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)
    return re.sub(r"(?<=[\dx)]) ?(?=[a-zA-Z(])", "*", text)


def value(latex: str) -> Expr:
    return sympify(python(latex))


def rational(latex: str) -> Fraction:
    parts = search(r"^(-?)(?:\\frac\{(\d+)\}\{(\d+)\}|(\d+))$", latex)
    result = Fraction(int(parts[3])) if parts[3] else Fraction(int(parts[1]), int(parts[2]))
    assert not parts[1] or (result.numerator, result.denominator) == (int(parts[1]), int(parts[2]))
    return -result if parts[0] else result


def matrix(latex: str) -> Matrix:
    rows = re.sub(r"\\left\[|\\right\]|\\(?:begin|end)\{p?matrix\}", "", latex).split(r"\\")
    return Matrix([[int(entry) for entry in row.split("&")] for row in rows])


def solve(rows: list[list[Fraction]]) -> list[Fraction]:
    """Solve a linear system by exact elimination; every row ends with its right side."""
    rows, n = [list(row) for row in rows], len(rows)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]
