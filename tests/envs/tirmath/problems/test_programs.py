import json
import subprocess
import sys

from sympy import N, expand, sympify

from arl_gym.envs.tirmath.problems.families import TABLE
from tests.envs.tirmath.problems.samples import matrix, samples, search, value

# All programs run in one process, each in a namespace of its own; prints [[output, seconds], ...].
RUNNER = """
import contextlib, io, json, sys, time
import sympy
results = []
for program in json.load(sys.stdin):
    shown, start = io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(shown):
        exec(program, {"__name__": "__main__"})
    results.append([shown.getvalue(), time.process_time() - start])
json.dump(results, sys.stdout)
"""


def _is_same(gold, shown):
    if "pmatrix" in gold:
        return matrix(shown) == matrix(gold)
    if gold.startswith(r"\left"):
        opening, low, high, closing = search(r"^\\left(.)(.*), (.*)\\right(.)$", gold)
        first, second = shown[1:-1].split(", ")
        brackets = shown[0] == opening and shown[-1] == closing
        return brackets and _is_equal(first, low) and _is_equal(second, high)
    if gold.startswith("("):
        parts = shown[1:-1].split(", ")
        return len(parts) == gold.count(",") + 1 and all(map(_is_equal, parts, gold[1:-1].split(", ")))
    return _is_equal(shown, gold)


def _is_equal(shown, gold):
    difference = expand(sympify(shown) - value(gold))
    return difference == 0 or abs(N(difference, 60)) < 1e-40 * max(1, abs(N(value(gold))))


def test_reference_programs_print_the_answer_and_nothing_else():
    problems = [problem for family in TABLE for problem in samples(family, per_level=3)]
    finished = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps([problem.program for problem in problems]),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    results = json.loads(finished.stdout)
    assert len(results) == len(problems) > 350
    for problem, (shown, seconds) in zip(problems, results, strict=True):
        assert shown.count("\n") == 1, problem.program
        assert _is_same(problem.answer, shown.strip()), (problem.question, problem.answer, shown)
        assert seconds < 5, problem.program  # ten times what the slowest takes


def test_a_program_states_its_problem_completely():
    for family in TABLE:
        for problem in samples(family, per_level=3):
            compile(problem.program, problem.family, "exec")
            assert problem.thought.endswith(".")
            assert problem.answer not in problem.thought.split()
