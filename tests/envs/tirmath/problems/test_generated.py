import re
import subprocess
import sys
from collections import Counter

import pytest

from arl_gym.core import SPLITS
from arl_gym.envs.tirmath.problems import generated
from arl_gym.envs.tirmath.problems.families import TABLE, Family
from arl_gym.envs.tirmath.problems.generated import (
    FAMILIES,
    HELD_OUT_FAMILIES,
    TINY_FAMILIES,
    GeneratedProblems,
)
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.errors import ConfigError, UnknownNameError
from arl_gym.rng import digest

DEFAULT_DIGEST = "a5d92a713fc0c80d"


def everything(problems: GeneratedProblems) -> dict[str, list[Problem]]:
    return {split: [problems.problem(split, i) for i in range(len(problems.ids(split)))] for split in SPLITS}


@pytest.fixture(scope="module")
def default() -> dict[str, list[Problem]]:
    return everything(GeneratedProblems())


def _digest(problems: dict[str, list[Problem]]) -> str:
    return digest("\n".join(repr(problem) for split in SPLITS for problem in problems[split]))


def test_default_problems_never_change(default):
    assert _digest(default) == DEFAULT_DIGEST, "raise generated.VERSION with the digest"
    assert generated.VERSION == 1


def test_another_process_draws_the_same_problems_in_any_order(default):
    code = (
        "import sys\n"
        "from arl_gym.envs.tirmath.problems.generated import GeneratedProblems\n"
        "problems = GeneratedProblems()\n"
        "for split, index in [('test_ood', 499), ('val', 321), ('train', 7999), ('train', 5), ('test', 0)]:\n"
        "    sys.stdout.write(repr(problems.problem(split, index)) + '\\n')\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    wanted = [("test_ood", 499), ("val", 321), ("train", 7999), ("train", 5), ("test", 0)]
    assert shown.splitlines() == [repr(default[split][index]) for split, index in wanted]


def test_drawing_loads_no_sympy():
    code = (
        "import sys\n"
        "from arl_gym.envs.tirmath.problems.generated import GeneratedProblems\n"
        "GeneratedProblems().problem('train', 0)\n"
        "sys.exit(' '.join({'sympy', 'mpmath', 'pyarrow', 'torch'} & {*sys.modules}))\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.stderr.strip() == ""


def test_splits_have_their_sizes(default):
    assert {split: len(found) for split, found in default.items()} == {
        "train": 8000,
        "val": 500,
        "test": 500,
        "test_ood": 500,
    }


def test_no_content_and_no_question_comes_twice(default):
    problems = [problem for found in default.values() for problem in found]
    assert len({problem.program for problem in problems}) == len(problems)
    assert len({problem.question for problem in problems}) == len(problems)


def test_families_levels_and_held_out_families_are_evenly_mixed(default):
    assert len(FAMILIES) == 24
    assert HELD_OUT_FAMILIES == ("floor_sum", "gamblers_ruin", "rational_series")
    for split, found in default.items():
        families = set(HELD_OUT_FAMILIES) if split == "test_ood" else set(FAMILIES) - set(HELD_OUT_FAMILIES)
        counts = Counter((problem.family, problem.level) for problem in found)
        assert set(counts) == {(name, level) for name in families for level in (1, 2, 3, 4, 5)}
        assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("family", TABLE)
def test_every_family_alone_has_enough_problems_in_every_split(family):
    splits = everything(GeneratedProblems([family]))
    levels, held_out = len(TABLE[family].levels), TABLE[family].held_out
    expected = (0, 0, 0, 100) if held_out else (600, 60, 60, 0)
    assert [len(found) for found in splits.values()] == [n * levels for n in expected]
    problems = [problem for found in splits.values() for problem in found]
    assert len({problem.program for problem in problems}) == len(problems)
    assert len({problem.question for problem in problems}) == len(problems)
    assert {problem.family for problem in problems} == {family}


def test_every_family_is_asked_in_several_ways():
    for name in FAMILIES:
        split = "test_ood" if TABLE[name].held_out else "train"
        for level in (1, 5):
            alone = GeneratedProblems([name], [level])
            texts = [alone.problem(split, i).question for i in range(60)]
            openings = {re.sub(r"[^a-z ]", "", text.lower())[:12] for text in texts}
            assert len(openings) >= 3, name


def test_a_smaller_choice_gives_the_same_problems():
    few = GeneratedProblems(["matrix_power", "dice_sums"], [2])
    alone = GeneratedProblems(["dice_sums"], [2])
    assert [few.problem("val", i) for i in range(0, 20, 2)] == [alone.problem("val", i) for i in range(10)]


def test_the_content_hash_follows_what_is_chosen():
    hashes = [
        GeneratedProblems().content_hash,
        GeneratedProblems(["dice_sums"]).content_hash,
        GeneratedProblems(["dice_sums"], [1]).content_hash,
        GeneratedProblems(TINY_FAMILIES).content_hash,
    ]
    assert len(set(hashes)) == 4
    assert GeneratedProblems(levels=range(1, 6), families=FAMILIES[::-1]).content_hash == hashes[0]
    assert GeneratedProblems(TINY_FAMILIES, [1]).content_hash == hashes[3]


def test_a_new_version_changes_the_content_hash(monkeypatch):
    before = GeneratedProblems().content_hash
    monkeypatch.setattr(generated, "VERSION", 2)
    assert GeneratedProblems().content_hash != before


def test_wrong_choices_are_errors():
    with pytest.raises(UnknownNameError, match=r"unknown family 'dice_sum'.*did you mean 'dice_sums'"):
        GeneratedProblems(["dice_sum"])
    with pytest.raises(UnknownNameError, match="unknown level 6"):
        GeneratedProblems(levels=[1, 6])
    with pytest.raises(ConfigError, match="at least one family, got 'dice_sums'"):
        GeneratedProblems("dice_sums")
    with pytest.raises(ConfigError, match="at least one level, got 3"):
        GeneratedProblems(levels=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"at least one family, got \[\]"):
        GeneratedProblems([])
    with pytest.raises(ConfigError, match="none of the families"):
        GeneratedProblems(["tiny_gcd"], [2])


def test_wrong_splits_and_indices_are_errors():
    problems = GeneratedProblems()
    with pytest.raises(UnknownNameError, match="unknown split 'dev'"):
        problems.ids("dev")
    for index in (-1, 500):
        with pytest.raises(IndexError, match=f"problem {index} of the split 'val', which has 500"):
            problems.problem("val", index)


def test_ids_are_numbered_within_their_split():
    ids = GeneratedProblems().ids("test_ood")
    assert (ids[0], ids[499], len(ids)) == ("test_ood-000000", "test_ood-000499", 500)


def test_a_family_that_runs_out_is_an_error(monkeypatch):
    def always(rng, level):
        return Problem(question="one and one?", answer="2", program="print(1 + 1)")

    monkeypatch.setitem(TABLE, "constant", Family(draw=always, levels=(1,), held_out=True))
    problems = GeneratedProblems(["constant"])
    assert problems.problem("test_ood", 0).answer == "2"
    with pytest.raises(ConfigError, match="constant level 1 gave 1 problems for 'test_ood' and no more"):
        problems.problem("test_ood", 1)
