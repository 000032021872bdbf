"""The policy, on pairs labelled by hand and on those of the reference data."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from arl_gym.envs.tirmath.grading import Grader, extract_boxed
from tests.envs.tirmath.grading.labelled import PAIRS

pytest.importorskip("math_verify")


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    # Slow machines are the deadline's business, not that of the rules.
    with Grader(deadline_s=20.0) as grader:
        yield grader


@pytest.mark.parametrize("category", PAIRS)
def test_every_pair_is_decided_as_labelled(grader: Grader, category: str):
    verdicts = {(gold, answer): grader.check(gold, answer) for gold, answer, _ in PAIRS[category]}
    wrong = [
        (*pair[:2], verdicts[pair[:2]]) for pair in PAIRS[category] if verdicts[pair[:2]].equal is not pair[2]
    ]
    assert not wrong
    assert not [pair for pair, verdict in verdicts.items() if verdict.how in ("timeout", "crashed")]


def test_the_reference_pairs_are_decided_as_labelled(grader: Grader, shared_data: Path):
    rows = [
        json.loads(line) for line in (shared_data / "math" / "answer_pairs.jsonl").read_text().splitlines()
    ]
    wrong = []
    for row in rows:
        answer = extract_boxed(row["pred"])
        if (answer is not None and grader.check(row["gold"], answer).equal) is not row["equal"]:
            wrong.append(row["id"])
    assert len(rows) == 67
    assert not wrong


def test_nothing_is_executed(grader: Grader, tmp_path: Path):
    mark = tmp_path / "pwned"
    for answer in (
        f'__import__("os").system("touch {mark}")',
        f'[__import__("os").system("touch {mark}")]',
        f'sqrt(open("{mark}", "w"))',
        rf'\frac{{x}}{{__import__("os").system("touch {mark}")}}',
        f'x + eval("open({str(mark)!r}, chr(119))")',
    ):
        assert not grader.check("x^2", answer).equal
    assert not mark.exists()


@pytest.mark.parametrize(
    ("gold", "answer", "how"),
    [
        ("27", "027", "integer"),
        ("0.5", r"\frac12", "number"),
        ("x", " x ", "string"),
        (r"\text{even}", "EVEN", "text"),
        ("5 cm", "5 kg", "unit"),
        ("11_2", "3", "base"),
        ("1,2", "1,2,3", "structure"),
        ("5", "2+3", "unresolved"),
        ("x+1", "1+x", "math-verify"),
        ("1", "9" * 501, "too-long"),
        ("x", "x^{20001}", "too-complex"),
        ("1", r"\frac{1}", "unparsed"),
        ("x", r"x^{+", "unparsed"),
    ],
)
def test_the_verdict_says_what_decided(grader: Grader, gold: str, answer: str, how: str):
    assert grader.check(gold, answer).how == how
