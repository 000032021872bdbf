"""Tools: what a model is told of them, and what becomes of its calls."""

from typing import Literal

import pytest

from arl_gym.core import PromptView
from arl_gym.envs import ENVS
from arl_gym.errors import ActionError, UnknownNameError
from arl_gym.make import tools_of
from arl_gym.tools import act, call_tool, mcp_tool, openai_tool, schema


def pour(drink: Literal["tea", "coffee"], cups: int = 1, hot: bool = True, sugar: float = 0.5) -> str:
    """Pour something to drink.

    Wait until it is ready.

    Args:
        drink: What to pour,
            of two kinds.
        cups: How many.
        hot: Whether it is hot.
        sugar: Spoons of sugar.

    Raises:
        ActionError: Never.
    """
    return f"{cups} {drink} {'hot' if hot else 'cold'} {sugar}"


POUR = {
    "type": "object",
    "properties": {
        "drink": {"type": "string", "enum": ["tea", "coffee"], "description": "What to pour, of two kinds."},
        "cups": {"type": "integer", "description": "How many."},
        "hot": {"type": "boolean", "description": "Whether it is hot."},
        "sugar": {"type": "number", "description": "Spoons of sugar."},
    },
    "required": ["drink"],
    "additionalProperties": False,
}


def test_signature_and_docstring_are_the_schema():
    assert schema(pour) == {
        "name": "pour",
        "description": "Pour something to drink. Wait until it is ready.",
        "parameters": POUR,
    }


def test_a_tool_is_shown_as_openai_and_mcp_want_it():
    assert openai_tool(pour) == {"type": "function", "function": schema(pour)}
    assert mcp_tool(pour) == {
        "name": "pour",
        "description": "Pour something to drink. Wait until it is ready.",
        "inputSchema": POUR,
    }


def test_an_argument_that_is_not_described_is_refused():
    def silent(word: str) -> str:
        """Say it."""
        return word

    with pytest.raises(TypeError, match="tool silent does not describe its argument 'word'"):
        schema(silent)


def test_an_argument_of_another_type_is_refused():
    def listing(words: list[str]) -> str:
        """Say them.

        Args:
            words: What to say.
        """
        return " ".join(words)

    with pytest.raises(TypeError, match=r"'words' of tool listing has the type list\[str\]"):
        schema(listing)


def test_a_call_is_the_action_it_stands_for():
    assert call_tool([act, pour], "pour", {"drink": "tea", "cups": 2}) == "2 tea hot 0.5"
    assert call_tool([act, pour], "pour", {"drink": "tea", "sugar": 1}) == "1 tea hot 1"
    assert call_tool([act, pour], "act", {"action": "wait"}) == "wait"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "tool pour needs the argument 'drink', got []"),
        ({"drink": "tea", "milk": 1}, "tool pour has no argument 'milk'"),
        ({"drink": "milk"}, r"drink of tool pour must be one of ['tea', 'coffee'], got 'milk'"),
        ({"drink": ["tea"]}, r"drink of tool pour must be one of"),
        ({"drink": "tea", "cups": "two"}, "cups of tool pour must be of type integer, got 'two'"),
        ({"drink": "tea", "cups": True}, "cups of tool pour must be of type integer, got True"),
        ({"drink": "tea", "hot": 1}, "hot of tool pour must be of type boolean, got 1"),
        ({"drink": "tea", "sugar": None}, "sugar of tool pour must be of type number, got None"),
    ],
)
def test_a_call_that_does_not_fit_says_what_was_expected(arguments, message):
    with pytest.raises(ActionError) as caught:
        call_tool([pour], "pour", arguments)
    assert message in str(caught.value)


def test_an_unknown_tool_is_named():
    with pytest.raises(UnknownNameError, match="unknown tool 'por': did you mean 'pour'"):
        call_tool([pour], "por", {})


def test_every_environment_has_its_tools():
    names = {env_id: [tool.__name__ for tool in tools_of(env_id)] for env_id in ENVS}
    assert names == {
        "ARL/ALFWorld-v0": ["do"],
        "ARL/Sokoban-v0": ["move"],
        "ARL/TIRMath-v0": ["run_python", "answer"],
        "ARL/WebShop-v0": ["search", "click"],
    }
    for env_id in ENVS:
        for tool in tools_of(env_id):
            assert schema(tool)["parameters"]["required"]


@pytest.mark.parametrize(
    ("env_id", "name", "arguments", "action"),
    [
        ("ARL/ALFWorld-v0", "do", {"command": "go to fridge 1"}, "go to fridge 1"),
        ("ARL/Sokoban-v0", "move", {"direction": "left"}, "left"),
        ("ARL/TIRMath-v0", "run_python", {"code": "print(1)"}, "```python\nprint(1)\n```"),
        ("ARL/TIRMath-v0", "answer", {"value": r"\frac{1}{3}"}, r"\boxed{\frac{1}{3}}"),
        ("ARL/WebShop-v0", "search", {"words": "red shoes"}, "search[red shoes]"),
        ("ARL/WebShop-v0", "click", {"name": "buy now"}, "click[buy now]"),
    ],
)
def test_a_call_becomes_the_native_action(env_id, name, arguments, action):
    assert call_tool(tools_of(env_id), name, arguments) == action


def test_a_program_that_would_end_itself_is_refused():
    with pytest.raises(ActionError, match="three backticks"):
        call_tool(tools_of("ARL/TIRMath-v0"), "run_python", {"code": "text = '''\n  ```\n'''"})


def test_the_shop_is_explained_in_calls_to_a_model_that_calls():
    from arl_gym.envs.webshop.prompts import PROMPTS

    seen = PromptView(
        task="find me a red bag",
        observation="WebShop [SEP] Search",
        step=0,
        history=(),
        admissible=("search[find me a red bag]", "click[4821]"),
        instructions="",
        append=True,
    )
    (message,) = PROMPTS["tools"](seen)
    assert str(message["content"]).endswith("Possible actions:\n- search(words)\n- click(4821)")
    assert "click(buy now)" in message["content"]
    assert "[" not in str(message["content"]).replace("[SEP]", "")
