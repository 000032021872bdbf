"""Every environment's tools: what a model is told of them, and that they can say what text can say."""

import re
from typing import Any

import pytest

from arl_gym.adapters.episode import TextEpisode
from arl_gym.agents.policies import respond_in
from arl_gym.envs import ENVS
from arl_gym.make import tools_of
from arl_gym.tools import schema

PARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    "ARL/ALFWorld-v0": {"do": {"command": {"type": "string"}}},
    "ARL/Sokoban-v0": {"move": {"direction": {"type": "string", "enum": ["up", "down", "left", "right"]}}},
    "ARL/TIRMath-v0": {"run_python": {"code": {"type": "string"}}, "answer": {"value": {"type": "string"}}},
    "ARL/WebShop-v0": {"search": {"words": {"type": "string"}}, "click": {"name": {"type": "string"}}},
}

SPOKEN = {
    "ARL/ALFWorld-v0": [("do", "command", r"(.*)")],
    "ARL/Sokoban-v0": [("move", "direction", r"(.*)")],
    "ARL/TIRMath-v0": [
        ("run_python", "code", r"```python\n(.*)\n```"),
        ("answer", "value", r"\\boxed\{(.*)\}"),
    ],
    "ARL/WebShop-v0": [("search", "words", r"search\[(.*)\]"), ("click", "name", r"click\[(.*)\]")],
}
"""By environment: tool, argument, and the action of which it says the part in brackets."""

MORE_TASKS = {"ARL/Sokoban-v0": 6, "ARL/TIRMath-v0": 8}


def as_call(env_id, action):
    """Return name and arguments of the tool call that means a native action."""
    for name, argument, pattern in SPOKEN[env_id]:
        found = re.fullmatch(pattern, action, re.DOTALL)
        if found:
            return name, {argument: found[1]}
    raise AssertionError(f"no tool of {env_id} says {action!r}")


def test_every_environment_is_here():
    assert set(PARAMETERS) == set(SPOKEN) == set(ENVS)


@pytest.mark.parametrize("env_id", sorted(ENVS))
def test_a_model_is_told_names_types_and_what_everything_is_for(env_id):
    told = {tool["name"]: tool for tool in map(schema, tools_of(env_id))}
    assert list(told) == list(PARAMETERS[env_id])
    for name, tool in told.items():
        assert set(tool) == {"name", "description", "parameters"}
        assert re.fullmatch(r"[a-z_]{1,64}", name)  # what chat interfaces take as a name
        parameters = tool["parameters"]
        assert parameters["type"] == "object"
        assert parameters["additionalProperties"] is False
        assert parameters["required"] == list(PARAMETERS[env_id][name])
        assert {
            argument: {key: value for key, value in property.items() if key != "description"}
            for argument, property in parameters["properties"].items()
        } == PARAMETERS[env_id][name]
        texts = [tool["description"], *(p["description"] for p in parameters["properties"].values())]
        assert all(re.fullmatch(r"[A-Z][^\n]{10,}\.", text) for text in texts)


@pytest.mark.parametrize("env_id", sorted(ENVS))
def test_the_expert_plays_the_same_episodes_by_tools_and_by_text(env_id):
    say = respond_in("default", env_id)
    used = set()
    for seed in range(MORE_TASKS.get(env_id, 3)):
        with (
            TextEpisode(env_id, {"expert": True}, seed=seed) as text,
            TextEpisode(env_id, {"expert": True}, seed=seed, tools=True) as tools,
        ):
            while not text.done:
                action = text.info["expert_action"]
                name, arguments = as_call(env_id, action)
                by_text, by_tool = text.act(say("", action)), tools.call(name, arguments)
                assert by_tool[1:4] == by_text[1:4]
                assert tools.info["state_key"] == text.info["state_key"]
                used.add(name)
            assert tools.record() == text.record()
            assert text.record()["success"] is True
    assert used == set(PARAMETERS[env_id])


@pytest.mark.parametrize("env_id", sorted(ENVS))
def test_the_prompt_for_tools_asks_for_no_tags(env_id):
    with TextEpisode(env_id, seed=1, tools=True) as episode:
        assert "<action>" not in str(episode.messages)
        assert "```" not in str(episode.messages)


@pytest.mark.parametrize("env_id", sorted(ENVS))
@pytest.mark.parametrize(
    "call", [("no_tool", {}), ("FIRST", {}), ("FIRST", {"x": 1}), ("FIRST", {"*": None})]
)
def test_a_call_that_makes_no_sense_is_one_turn_without_effect(env_id, call):
    name, arguments = call
    first, parameters = next(iter(PARAMETERS[env_id].items()))
    name = name.replace("FIRST", first)
    arguments = {key.replace("*", next(iter(parameters))): value for key, value in arguments.items()}
    with TextEpisode(env_id, seed=1, tools=True) as episode:
        before = episode.info["anchor"]
        step = episode.call(name, arguments)
        record = episode.record()
        assert (len(record["rewards"]), record["success"]) == (1, False)
        assert record["action_valid"] == [False]
        assert name in step.messages[0]["content"]
        assert record["anchors"] == [before]


@pytest.mark.parametrize("env_id", sorted(ENVS))
@pytest.mark.parametrize("text", ["", " ", "\x00", "]] [", "up\nup", "```", "}{\\", "√ é 好 🙂", "a" * 5000])
def test_any_text_is_an_argument(env_id, text):
    for name, parameters in PARAMETERS[env_id].items():
        with TextEpisode(env_id, seed=1, tools=True) as episode:
            episode.call(name, dict.fromkeys(parameters, text))
            assert len(episode.record()["rewards"]) == 1
            assert episode.record()["success"] is False
