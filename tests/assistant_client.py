"""A client of the Model Context Protocol that asks the server of this package in one process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mcp import Client
from mcp.server import MCPServer
from mcp_types import CallToolResult, Tool

__all__ = ["answer", "called", "error", "listed", "texts"]


def listed(server: MCPServer[Any]) -> dict[str, Tool]:
    """The tools that a server has, by name."""

    async def scenario() -> dict[str, Tool]:
        async with Client(server) as client:
            return {one.name: one for one in (await client.list_tools()).tools}

    return asyncio.run(scenario())


def called(server: MCPServer[Any], tool: str, **arguments: Any) -> CallToolResult:
    """What a tool answers."""

    async def scenario() -> CallToolResult:
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(scenario())


def answer(server: MCPServer[Any], tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool, which its text repeats; the client checks it against the schema."""
    done = called(server, tool, **arguments)
    assert not done.is_error, done.content
    found: dict[str, Any] = done.structured_content
    assert json.loads(done.content[0].text) == found
    return found


def error(server: MCPServer[Any], tool: str, **arguments: Any) -> str:
    """What a tool says of a call that fails."""
    done = called(server, tool, **arguments)
    assert done.is_error, done.structured_content
    text: str = done.content[0].text
    return text.removeprefix(f"Error executing tool {tool}: ")


def texts(value: Any) -> list[str]:
    """Every text in an answer."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in texts(one)]
