import time

import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from arl_gym.errors import ActionError, ConfigError, UnknownNameError
from arl_gym.wrappers import FormatPenalty, format_instructions, parse_response
from tests.wrappers.fakes import Corridor, FullCorridor

GOOD = "<think>wall left</think><action>Up</action>"

# (response, action, valid as strict, as lenient, as action_only)
CASES = [
    (GOOD, "up", True, True, True),
    (f" \n{GOOD}\t\n", "up", True, True, True),
    ("<think>a</think>\n\n <action> Go To\tFridge 1 </action>", "go to\tfridge 1", True, True, True),
    ("<THINK>a</Think><Action>up</ACTION>", "up", True, True, True),
    ("<think>two\nlines</think><action>search[red\nshoes]</action>", "search[red\nshoes]", True, True, True),
    ("<think></think><action></action>", "", True, True, True),
    ("<think>a < b > c</think><action>up</action>", "up", True, True, True),
    ("<think>\u00e9t\u00e9 \u3042 \u2713</think><action>up</action>", "up", True, True, True),
    # CJK ideographs, first and last of the range, and just outside it
    ("<think>\u4e00</think><action>up</action>", "up", False, False, True),
    ("<think>a</think><action>\u9fff</action>", "\u9fff", False, False, True),
    ("<think>\u4dff\ua000</think><action>up</action>", "up", True, True, True),
    # text outside the blocks
    ("Sure! " + GOOD, "up", False, True, True),
    (GOOD + " done", "up", False, True, True),
    ("<think>a</think> so <action>up</action>", "up", False, True, True),
    # order and nesting
    ("<action>up</action><think>a</think>", "up", False, True, True),
    ("<think>a<action>up</action></think>", "up", False, True, True),
    ("<think>a</think></action><action>up", None, False, False, False),
    ("</action><think>a</think><action>up</action>", "up", False, True, False),
    # a tag missing
    ("<action>up</action>", "up", False, False, True),
    ("a</think><action>up</action>", "up", False, False, True),
    ("<think>a<action>up</action>", "up", False, False, True),
    ("<think>a</think><action>up", None, False, False, False),
    ("<think>a</think>up</action>", None, False, False, False),
    ("<think>a</think>up", None, False, False, False),
    ("", None, False, False, False),
    ("up", None, False, False, False),
    # a tag twice: the first block counts
    ("<think>a</think><action>up</action><action>down</action>", "up", False, True, False),
    ("<think>a</think><think>b</think><action>up</action>", "up", False, True, True),
    ("<think><think>a</think><action>up</action>", "up", False, True, True),
    ("<think>a</think></think><action>up</action>", "up", False, True, True),
    ("<think>a</think><action>up</action></action>", "up", False, True, False),
    ("<think>say <action>x</action></think><action>up</action>", "x", False, True, False),
    # white space inside tags: executed, never valid
    ("<think>a</think>< action >up</ action\n>", "up", False, False, False),
    ("<think>a</think><action>up< / action>", "up", False, False, False),
    ("< think >a</ think ><action>up</action>", "up", False, False, True),
    # look-alikes are no tags: dotless i, Kelvin sign, attributes
    ("<think>a</think><act\u0131on>up</act\u0131on>", None, False, False, False),
    ("<thin\u212a>a</thin\u212a><action>up</action>", "up", False, False, True),
    ('<think>a</think><action id="1">up</action>', None, False, False, False),
]


@pytest.mark.parametrize(("text", "action", "strict", "lenient", "action_only"), CASES)
def test_every_rule_gives_the_action_and_the_verdict(text, action, strict, lenient, action_only):
    assert parse_response(text, "strict") == (action, strict)
    assert parse_response(text, "lenient") == (action, lenient)
    assert parse_response(text, "action_only") == (action, action_only)


@pytest.mark.parametrize("text", ["", "Up ", "<action>Up</action>", "```python\nX\n```"])
def test_without_a_format_the_whole_response_is_the_action(text):
    assert parse_response(text, "none") == (text, True)


@given(st.text(alphabet="<>/ thinkacoTIAN\n\u4e00", max_size=80), st.sampled_from(["strict", "lenient"]))
def test_a_valid_response_always_has_an_action(text, format):
    parsed = parse_response(text, format)
    assert parsed.action is not None or not parsed.valid


@given(st.text(max_size=60))
def test_what_strict_takes_the_looser_rules_take_too(inner):
    text = f"<think>{inner}</think><action>{inner}</action>"
    strict = parse_response(text, "strict")
    if strict.valid:
        assert strict == parse_response(text, "lenient") == parse_response(text, "action_only")


@pytest.mark.parametrize("format", ["strict", "lenient", "action_only"])
@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 100_000,
        "<action>" * 100_000,
        "</action>" * 100_000,
        "<think></think>" * 60_000 + "<action>",
        "<" * 1_000_000,
        "<" + " " * 1_000_000,
        "< " * 500_000,
        "<action" + " " * 1_000_000,
        "<action>" + "< / " * 250_000,
        "<think>a</think>" + " " * 1_000_000 + "x",
    ],
    ids=range(10),
)
def test_a_megabyte_of_hostile_tags_takes_linear_time(text, format):
    start = time.perf_counter()
    parse_response(text, format)
    assert time.perf_counter() - start < 3.0  # quadratic would be hours


def test_instructions_name_the_tags_that_the_format_wants():
    for format in ("strict", "lenient"):
        words = format_instructions(format)
        assert all(tag in words for tag in ("<think>", "</think>", "<action>", "</action>"))
    assert "<action>" in format_instructions("action_only")
    assert "think" not in format_instructions("action_only").lower()
    assert format_instructions("none") == ""


def test_reset_gives_the_info_of_a_turn_without_fault():
    _, info = FormatPenalty(Corridor()).reset(seed=0)
    assert info == {
        "task_id": "corridor",
        "success": False,
        "format_valid": True,
        "action": "",
        "env_reward": 0.0,
        "format_penalty": 0.0,
    }


def test_a_good_response_costs_nothing():
    env = FormatPenalty(Corridor(), penalty=0.1)
    env.reset(seed=0)
    obs, reward, terminated, truncated, info = env.step("<think>a</think><action> RIGHT </action>")
    assert (obs, reward, terminated, truncated) == ("cell 1", 0.25, False, False)
    assert (info["action"], info["format_valid"]) == ("right", True)
    assert (info["env_reward"], info["format_penalty"]) == (0.25, 0.0)
    assert "action_valid" not in info


def test_a_broken_format_with_an_action_is_executed_and_punished():
    env = FormatPenalty(Corridor(), penalty=0.1)
    env.reset(seed=0)
    obs, reward, _, _, info = env.step("I go <action>right</action>")
    assert obs == "cell 1"
    assert reward == pytest.approx(0.15)
    assert (info["action"], info["format_valid"]) == ("right", False)
    assert (info["env_reward"], info["format_penalty"]) == (0.25, 0.1)


def test_without_an_action_block_the_env_gets_the_empty_string_marked_invalid():
    corridor = Corridor()
    env = FormatPenalty(corridor, penalty=0.5)
    env.reset(seed=0)
    obs, reward, _, _, info = env.step("right right right right right")
    assert corridor.got == [""]
    assert (obs, reward) == ("cell 0", -0.25)
    assert (info["action"], info["format_valid"], info["action_valid"]) == ("", False, False)


@pytest.mark.parametrize(
    ("penalise", "response", "penalty"),
    [
        ("format", "<think>a</think><action>fly</action>", 0.0),
        ("format", "<action>right</action>", 0.2),
        ("action", "<think>a</think><action>fly</action>", 0.2),
        ("action", "<action>right</action>", 0.0),
        ("action", "nothing", 0.2),
    ],
)
def test_penalise_chooses_between_form_and_admissibility(penalise, response, penalty):
    env = FormatPenalty(FullCorridor(), penalty=0.2, penalise=penalise)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(response)
    assert info["format_penalty"] == penalty
    assert info["env_reward"] == -0.5
    assert reward == pytest.approx(-0.5 - penalty)


def test_an_env_that_does_not_judge_actions_has_only_valid_ones():
    env = FormatPenalty(Corridor(), penalise="action")
    env.reset(seed=0)
    assert env.step("<think>a</think><action>fly</action>")[4]["format_penalty"] == 0.0


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"format": "strcit"}, "did you mean 'strict'"),
        ({"penalise": "formats"}, "did you mean 'format'"),
        ({"penalty": -0.1}, "at least 0, got -0.1"),
        ({"penalty": float("nan")}, "at least 0, got nan"),
    ],
)
def test_bad_settings_are_named(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        FormatPenalty(Corridor(), **kwargs)


def test_an_unknown_format_is_refused_by_the_pure_functions():
    for call in (lambda: parse_response("x", "strcit"), lambda: format_instructions("strcit")):
        with pytest.raises(UnknownNameError, match="strict"):
            call()


def test_an_env_with_numeric_actions_is_refused():
    env = Corridor()
    env.action_space = spaces.Discrete(4)
    with pytest.raises(ConfigError, match="Discrete"):
        FormatPenalty(env)


def test_a_response_that_is_no_string_is_refused():
    env = FormatPenalty(Corridor())
    env.reset(seed=0)
    with pytest.raises(ActionError, match="int"):
        env.step(3)  # type: ignore[arg-type]
