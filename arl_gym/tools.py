"""Tools: what a model may call instead of writing an action as text.

A tool is a plain function from its arguments to the environment's action. Its name, signature and docstring
are what the model is told: there is nothing else to keep in step with them.

>>> def move(direction: Literal["up", "down"]) -> str:
...     '''Go one cell.
...
...     Args:
...         direction: Where to.
...     '''
...     return direction
>>> schema(move)["parameters"]["properties"]
{'direction': {'type': 'string', 'enum': ['up', 'down'], 'description': 'Where to.'}}
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

from arl_gym.errors import ActionError, UnknownNameError

Tool = Callable[..., str]
"""From arguments to an action. Parameters are `str`, `int`, `float`, `bool` or a `Literal` of strings."""

_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def act(action: str) -> str:
    """Carry out one action.

    Args:
        action: The action as text.
    """
    return action


def schema(tool: Tool) -> dict[str, Any]:
    """Return name, description and parameters (JSON Schema) of a tool.

    Raises:
        TypeError: If a parameter has another type than a tool may have, or no description.
    """
    summary, descriptions = _docstring(tool)
    hints = get_type_hints(tool)
    properties: dict[str, Any] = {}
    for name in inspect.signature(tool).parameters:
        if name not in descriptions:
            raise TypeError(f"the docstring of tool {tool.__name__} does not describe its argument {name!r}")
        properties[name] = {**_json_type(tool, name, hints[name]), "description": descriptions[name]}
    required = [n for n, p in inspect.signature(tool).parameters.items() if p.default is p.empty]
    parameters = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return {"name": tool.__name__, "description": summary, "parameters": parameters}


def openai_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as an entry of `tools` of OpenAI's chat interface."""
    return {"type": "function", "function": schema(tool)}


def mcp_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as an entry of the answer to `tools/list` of the Model Context Protocol."""
    told = schema(tool)
    return {"name": told["name"], "description": told["description"], "inputSchema": told["parameters"]}


def call_tool(tools: Sequence[Tool], name: str, arguments: Mapping[str, Any]) -> str:
    """Return the action that a call of one of the tools stands for.

    Raises:
        UnknownNameError: If there is no tool of that name.
        ActionError: If an argument is missing, unknown or of another type.
    """
    by_name = {tool.__name__: tool for tool in tools}
    if name not in by_name:
        raise UnknownNameError("tool", name, by_name)
    tool = by_name[name]
    told = schema(tool)["parameters"]
    for key in told["required"]:
        if key not in arguments:
            raise ActionError(f"tool {name} needs the argument {key!r}, got {sorted(arguments)}")
    for key, value in arguments.items():
        if key not in told["properties"]:
            raise ActionError(f"tool {name} has no argument {key!r}: it takes {sorted(told['properties'])}")
        _check_value(name, key, value, told["properties"][key])
    return tool(**arguments)


def _check_value(name: str, key: str, value: Any, told: Mapping[str, Any]) -> None:
    if "enum" in told:
        if value not in told["enum"]:
            raise ActionError(f"{key} of tool {name} must be one of {told['enum']}, got {value!r}")
        return
    kinds = tuple(kind for kind, json_type in _TYPES.items() if json_type == told["type"])
    if told["type"] == "number":
        kinds = (int, float)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ActionError(f"{key} of tool {name} must be of type {told['type']}, got {value!r}")


def _json_type(tool: Tool, name: str, hint: Any) -> dict[str, Any]:
    if get_origin(hint) is Literal and all(isinstance(value, str) for value in get_args(hint)):
        return {"type": "string", "enum": list(get_args(hint))}
    if hint not in _TYPES:
        raise TypeError(
            f"argument {name!r} of tool {tool.__name__} has the type {hint}, a tool takes none such"
        )
    return {"type": _TYPES[hint]}


def _docstring(tool: Tool) -> tuple[str, dict[str, str]]:
    """Return what comes before "Args:", and each argument's description."""
    summary, _, rest = (inspect.getdoc(tool) or "").partition("\n\nArgs:\n")
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", rest, re.MULTILINE)
    return " ".join(summary.split()), {name: " ".join(text.split()) for name, text in entries}
