"""The Model Context Protocol: one episode as a server whose tools are the environment's.

Speaks the protocol's stdio transport, JSON-RPC with one message a line, with the standard library alone;
tools and nothing else. The task is in the `instructions` of the answer to `initialize`. A turn's reward and
flags, and the record at the end, are not for the model: they are in `_meta` of the answer to `tools/call`.

    serve(TextEpisode("ARL/Sokoban-v0", task_id="train-000007", tools=True), sys.stdin, sys.stdout)
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from arl_gym import __version__
from arl_gym.adapters.episode import EPISODE_OVER, TextEpisode, text_of
from arl_gym.make import tools_of
from arl_gym.tools import mcp_tool

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol in which the messages used here are alike, the newest first."""

META = "arl_gym/turn"
"""Where in `_meta` a turn's reward is."""

Json = dict[str, Any]


def serve(episode: TextEpisode, requests: Iterable[str], answers: TextIO) -> None:
    """Answer requests, one a line, until there are no more.

    Args:
        episode: Made with `tools=True`. It goes on after its end: calls then change nothing.
        requests: Lines as a client writes them.
        answers: Gets one line for each request, none for notifications.

    Raises:
        ConfigError: If there are images in the observations, or the episode takes no tool calls.
    """
    for line in requests:
        answer = answer_to(episode, line)
        if answer is not None:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def answer_to(episode: TextEpisode, line: str) -> Json | None:
    """Return the answer to one request; None for a notification. Raises as `serve`."""
    try:
        request = json.loads(line)
    except ValueError as err:
        return _error(None, -32700, f"expected one line of JSON: {err}")
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        return _error(None, -32600, "expected a request with a method")
    if "id" not in request:
        return None
    method, params = request["method"], request.get("params", {})
    if method not in _METHODS:
        return _error(request["id"], -32601, f"unknown method {method!r}, known: {sorted(_METHODS)}")
    if not isinstance(params, dict) or (method == "tools/call" and not _is_call(params)):
        return _error(request["id"], -32602, f"expected other parameters of {method}, got {params!r}")
    return {"jsonrpc": "2.0", "id": request["id"], "result": _METHODS[method](episode, params)}


def _error(id: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def _is_call(params: Mapping[str, Any]) -> bool:
    return isinstance(params.get("name"), str) and isinstance(params.get("arguments", {}), dict)


def _initialize(episode: TextEpisode, params: Mapping[str, Any]) -> Json:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": episode.env_id, "version": __version__},
        "instructions": text_of(episode.messages),
    }


def _list(episode: TextEpisode, params: Mapping[str, Any]) -> Json:
    return {"tools": [mcp_tool(tool) for tool in tools_of(episode.env_id)]}


def _call(episode: TextEpisode, params: Mapping[str, Any]) -> Json:
    if episode.done:
        return {"content": [{"type": "text", "text": EPISODE_OVER}], "isError": True}
    step = episode.call(params["name"], params.get("arguments", {}))
    turn = {"reward": step.reward, "terminated": step.terminated, "truncated": step.truncated}
    return {
        "content": [{"type": "text", "text": text_of(step.messages)}],
        "isError": not step.info.get("action_valid", True),
        "_meta": {META: turn | ({"record": episode.record()} if episode.done else {})},
    }


_METHODS: dict[str, Callable[[TextEpisode, Mapping[str, Any]], Json]] = {
    "initialize": _initialize,
    "ping": lambda episode, params: {},
    "tools/call": _call,
    "tools/list": _list,
}
