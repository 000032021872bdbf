import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.errors import ConfigError
from arl_gym.train.conditions import Condition

FIELDS = {
    "group": 3,
    "return": 9.6,
    "success": True,
    "format_valid": False,
    "response": "<think>open it</think><action>open drawer 1</action>",
    "action": "open drawer 1",
    "ratios": [0.9, 1.3, None],
    "entropies": [],
    "advantage": None,
}


def holds(text: str) -> bool:
    return Condition(text, FIELDS).matches(FIELDS)


@pytest.mark.parametrize(
    "text",
    [
        "format_valid==0 and success",
        "return > 5",
        "  return>9.5 and not return >= 9.7 ",
        "len(response) > 51 and len(response) == 52",
        "'drawer' in action",
        '"return" not in action',
        "group==3",
        "group in (1, 3)",
        "group not in [1, 2]",
        "2 <= group < 4",
        "group * 2 - 1 == 5 and group // 2 == 1 and group % 2 == 1 and group / 2 == 1.5",
        "-group == -3 and abs(-group) == +3",
        "max(ratios) == 1.3 and min(ratios) < 1",
        "mean(ratios) > 1.09 and mean(ratios) < 1.11",
        "sum(ratios) > 2",
        "any(ratios > 1.2) and not all(ratios > 1.2)",
        "sum(1 < ratios) == 1",
        "len(entropies) == 0",
        "advantage == None or group == 4",
        "success == 1 and success != False",
        "'a' < 'b'",
    ],
)
def test_what_holds_matches(text):
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "group == 4",
        "not success",
        "'fridge' in action",
        # What is not known is neither more nor less than anything.
        "advantage > 0",
        "advantage <= 0",
        "advantage + 1 > 0",
        "abs(advantage) >= 0",
        "-advantage < 0",
        "advantage in (1, 2)",
        "max(entropies) > 0",
        "mean(entropies) < 1",
    ],
)
def test_what_does_not_hold_does_not_match(text):
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no expression"),
        ("group ==", "no expression"),
        ("(group", "no expression"),
        ("group = 3", "no expression"),
        ("'drawer in action", "no expression"),
        ("not " * 5000 + "success", "no expression"),
        ("steps == 3", "unknown field 'steps'"),
        ("action.upper() == 'A'", "'action.upper' is no function"),
        ("action.__class__", "Attribute is not allowed"),
        ("response[0] == 'a'", "Subscript is not allowed"),
        ("__import__('os')", "'__import__' is no function"),
        ("open('x')", "'open' is no function"),
        ("(lambda: 1)()", "is no function"),
        ("[x for x in ratios]", "ListComp is not allowed"),
        ("f'{group}' == '3'", "JoinedStr is not allowed"),
        ("9 ** 9 ** 9 > 1", "Pow is not allowed"),
        ("group is 3", "Is is not allowed"),
        ("(group := 3)", "NamedExpr is not allowed"),
        ("b'a' == action", "neither a number nor a text"),
        ("max(1, 2) > 1", "max takes one argument"),
        ("max(ratios, key=abs)", "max takes one argument"),
        ("max > 1", "max is a function"),
        ("action > 5", "> cannot compare 'open drawer 1' with 5"),
        ("group in 3", "in needs a text or a list"),
        ("3 in action", "in needs a text or a list"),
        ("'a' * 1000000000 == action", "* needs two numbers"),
        ("ratios + 1 > 0", "+ needs two numbers"),
        ("ratios", "put it in any"),
        ("ratios > 1 and success", "put it in any"),
        ("any(1 < ratios < 2)", "a list stands in one comparison only"),
        ("len(group) > 1", "len does not take 3"),
        ("sum((1e999, -1e999)) > 1", "sum does not take"),
        ("group / 0 > 1", "division by zero"),
    ],
)
def test_anything_else_is_an_error_that_names_the_fields(text, why):
    with pytest.raises(ConfigError) as err:
        holds(text)
    assert why in str(err.value)
    assert "advantage, entropies, format_valid" in str(err.value)


def test_names_are_checked_before_any_turn_is_looked_at():
    with pytest.raises(ConfigError, match="unknown field 'advantage'"):
        Condition("success or advantage > 0", {"success"})


@given(st.text(alphabet="()[]{}+-*/%<>=!'\"., \nabagroupreturnnotinandor0123456789_", max_size=60))
def test_any_text_is_a_condition_or_one_clear_error(text):
    with contextlib.suppress(ConfigError):
        holds(text)
