"""The example server under the client of the protocol's own Python package (mcp)."""

import asyncio
import sys

import jsonschema
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from arl_gym.adapters.mcp import META, VERSIONS
from arl_gym.envs import ENVS
from arl_gym.make import tools_of
from arl_gym.tools import mcp_tool
from tests.conftest import ROOT

SERVER = StdioServerParameters(
    command=sys.executable,
    args=[str(ROOT / "examples" / "adapters" / "mcp_tools.py"), "ARL/WebShop-v0", "train-000003"],
    env={"PYTHONPATH": str(ROOT)},
)


async def visit_the_shop():
    async with stdio_client(SERVER) as (read, write), ClientSession(read, write) as session:
        greeting = await session.initialize()
        tools = await session.list_tools()
        found = await session.call_tool("search", {"words": "shirt"})
        lost = await session.call_tool("click", {"name": "no such button"})
        wrong = await session.call_tool("fly", {})
        return greeting, tools, found, lost, wrong


def test_a_client_finds_the_task_and_the_tools_and_plays():
    greeting, tools, found, lost, wrong = asyncio.run(visit_the_shop())
    assert greeting.protocolVersion in VERSIONS
    assert "Your task:" in greeting.instructions
    assert [tool.name for tool in tools.tools] == ["search", "click"]
    assert not found.isError
    assert "Page 1" in found.content[0].text
    assert found.meta[META] == {"reward": 0.0, "terminated": False, "truncated": False}
    assert lost.isError
    assert wrong.isError
    assert "unknown tool 'fly'" in wrong.content[0].text


@pytest.mark.parametrize("env_id", sorted(ENVS))
def test_the_schemas_of_tools_are_json_schemas(env_id):
    for tool in tools_of(env_id):
        jsonschema.Draft202012Validator.check_schema(mcp_tool(tool)["inputSchema"])
