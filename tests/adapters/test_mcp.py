"""Episodes as a server of tools, message by message, and the example that serves one."""

import io
import json
import subprocess
import sys

import pytest

from arl_gym.adapters.episode import EPISODE_OVER, TextEpisode
from arl_gym.adapters.mcp import META, answer_to, serve
from arl_gym.errors import ConfigError
from tests.agents.counting import ID
from tests.conftest import ROOT

SOKOBAN = "ARL/Sokoban-v0"


def request(method, params=None, id=1):
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return json.dumps(message if params is None else {**message, "params": params})


def call(name, **arguments):
    return request("tools/call", {"name": name, "arguments": arguments})


def ask(episode, line):
    """Return the result of a request."""
    answer = answer_to(episode, line)
    assert answer is not None
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == 1
    return answer["result"]


@pytest.fixture
def counting():
    """An episode with two "up" to go."""
    with TextEpisode(ID, task_id="train/1", tools=True) as episode:
        yield episode


def test_the_greeting_has_the_task_and_the_version_asked_for(counting):
    result = ask(counting, request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}}))
    assert result["protocolVersion"] == "2025-06-18"
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"]["name"] == ID
    assert "0 of 2" in result["instructions"]


def test_a_client_of_an_unknown_version_is_offered_the_newest(counting):
    assert (
        ask(counting, request("initialize", {"protocolVersion": "1999-01-01"}))["protocolVersion"]
        == "2025-11-25"
    )


def test_the_tools_are_those_of_the_environment(counting):
    (tool,) = ask(counting, request("tools/list"))["tools"]
    assert tool == {
        "name": "act",
        "description": "Carry out one action.",
        "inputSchema": {
            "type": "object",
            "properties": {"action": {"type": "string", "description": "The action as text."}},
            "required": ["action"],
            "additionalProperties": False,
        },
    }


def test_a_call_is_a_turn_whose_reward_the_model_does_not_see(counting):
    result = ask(counting, call("act", action="up"))
    (content,) = result["content"]
    assert content["type"] == "text"
    assert "1 of 2" in content["text"]
    assert "-0.25" not in content["text"]
    assert result["isError"] is False
    assert result["_meta"] == {META: {"reward": -0.25, "terminated": False, "truncated": False}}


def test_the_last_turn_has_the_record_and_later_calls_change_nothing(counting):
    ask(counting, call("act", action="up"))
    turn = ask(counting, call("act", action="up"))["_meta"][META]
    assert (turn["reward"], turn["terminated"]) == (1.0, True)
    assert turn["record"]["anchors"] == ["0 of 2", "1 of 2"]
    late = ask(counting, call("act", action="up"))
    assert late == {"content": [{"type": "text", "text": EPISODE_OVER}], "isError": True}
    assert counting.record() == turn["record"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (call("act", action="sideways"), "0 of 2"),
        (call("act", action=3), "action of tool act must be of type string, got 3."),
        (call("act"), "tool act needs the argument 'action', got []."),
        (call("fly", to="the moon"), "unknown tool 'fly'"),
        (request("tools/call", {"name": "act"}), "tool act needs the argument 'action'"),
    ],
)
def test_a_call_that_makes_no_sense_costs_a_turn_and_says_why(counting, line, told):
    result = ask(counting, line)
    assert told in result["content"][0]["text"]
    assert result["isError"] is True
    assert result["_meta"][META]["reward"] == -0.25
    assert len(counting.record()["rewards"]) == 1


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        ("{", -32700, None),
        ("[]", -32600, None),
        ('{"id": 1}', -32600, None),
        (request("resources/list"), -32601, 1),
        (request("initialize", ["2025-06-18"]), -32602, 1),
        (request("tools/call"), -32602, 1),
        (request("tools/call", ["act"]), -32602, 1),
        (request("tools/call", {"name": 7}), -32602, 1),
        (request("tools/call", {"name": "act", "arguments": "up"}), -32602, 1),
    ],
)
def test_a_broken_request_is_an_error_of_the_protocol_and_no_turn(counting, line, code, id):
    answer = answer_to(counting, line)
    assert answer is not None
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert counting.record()["rewards"] == []


def test_lines_are_answered_one_by_one_and_notifications_are_not(counting):
    lines = [
        request("ping", id="a"),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request("tools/list", id=2),
    ]
    answers = io.StringIO()
    serve(counting, [line + "\n" for line in lines], answers)
    assert [json.loads(line)["id"] for line in answers.getvalue().splitlines()] == ["a", 2]


def test_pictures_are_refused_in_one_line():
    with (
        TextEpisode(SOKOBAN, {"obs_mode": "image"}, seed=1, tools=True) as episode,
        pytest.raises(ConfigError, match="choose an obs_mode of text"),
    ):
        answer_to(episode, request("initialize", {}))


def test_the_example_serves_an_episode():
    with TextEpisode(SOKOBAN, {"expert": True}, task_id="train-000007", tools=True) as episode:
        moves = []
        while not episode.done:
            moves.append(episode.info["expert_action"])
            episode.call("move", {"direction": moves[-1]})
    lines = [request("initialize", {}), request("tools/list"), *(call("move", direction=m) for m in moves)]
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "adapters" / "mcp_tools.py"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    answers = [json.loads(line)["result"] for line in result.stdout.splitlines()]
    assert len(answers) == len(lines)
    assert answers[1]["tools"][0]["name"] == "move"
    assert answers[-1]["_meta"][META]["record"] == episode.record()
    assert episode.record()["success"] is True
    assert f"{len(moves)} turns" in result.stderr
