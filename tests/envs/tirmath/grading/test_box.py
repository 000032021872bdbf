import pytest

from arl_gym.envs.tirmath.grading import extract_boxed, has_box


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{42}", "42"),
        (r"so $\boxed{ 42 }$.", "42"),
        (r"\boxed{41}, no, \boxed{42}", "42"),
        (r"\boxed{\frac{\frac{1}{2}}{3}}", r"\frac{\frac{1}{2}}{3}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\}}", r"\}"),
        (r"\boxed{a\\}", r"a\\"),
        (r"\boxed {7}", "7"),
        (r"\boxed 42", "42"),
        (r"\boxed 42.", "42"),
        (r"\boxed{}", ""),
        (r"\boxed{1} then \boxed{2", "1"),
        (r"\boxed{2 and \boxed{3}", "3"),
        (r"\boxed{\boxed{3}}", r"\boxed{3}"),
        ("\\boxed{1\n+2}", "1\n+2"),
    ],
)
def test_the_last_complete_box_is_the_answer(text: str, content: str):
    assert extract_boxed(text) == content
    assert has_box(text)


@pytest.mark.parametrize(
    "text",
    ["", "the answer is 42", r"\boxed{42", r"\boxed{\frac{1}{}", r"\fbox{42}", r"\boxedfoo{42}", r"\boxed"],
)
def test_without_a_complete_box_there_is_no_answer(text: str):
    assert extract_boxed(text) is None
    assert not has_box(text)


def test_a_million_unclosed_braces_cost_no_time():
    assert extract_boxed(r"\boxed{" + "{" * 1_000_000) is None
