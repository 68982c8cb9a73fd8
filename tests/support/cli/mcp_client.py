"""A client of `aclog mcp` in a process of its own, by the protocol's SDK."""

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from attrs import frozen
from mcp import Client, StdioServerParameters

from aclog.mcp.server import NAMES_ARE_DATA

SECONDS = 300


@frozen
class Reply:
    """What a tool told: its answer, or what is wrong."""

    answer: dict[str, Any]
    error: str | None


@frozen
class Asking:
    """A connection, until the questions are asked."""

    client: Client

    async def tell(self, tool: str, **arguments: object) -> Reply:
        """Ask a tool; its text must be its structured content, printable, and say that names are data."""
        result = await self.client.call_tool(tool, arguments)
        [content] = result.content
        assert all(line.isprintable() for line in content.text.split("\n")), content.text
        if result.is_error:
            assert result.structured_content is None
            error, _, names = content.text.rpartition("\n")
            assert names == NAMES_ARE_DATA
            return Reply({}, error)
        assert json.loads(content.text) == result.structured_content
        assert result.structured_content["names"] == NAMES_ARE_DATA
        return Reply(result.structured_content, None)

    async def ask(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Return the answer, which must be one."""
        reply = await self.tell(tool, **arguments)
        assert reply.error is None, reply.error
        return reply.answer


def with_assistant(
    questions: Callable[[Asking], Awaitable[None]], *flags: object, environment: Mapping[str, str] | None = None
) -> None:
    """Start a server with these flags, ask it, and end it."""

    async def ask() -> None:
        with anyio.fail_after(SECONDS):
            words = ["-m", "aclog", "mcp", *map(str, flags)]
            variables = None if environment is None else dict(environment)
            async with Client(StdioServerParameters(command=sys.executable, args=words, env=variables)) as client:
                await questions(Asking(client))

    anyio.run(ask)
