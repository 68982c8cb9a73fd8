"""Serves the tools over stdin and stdout."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from attrs import define
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.mcp.child_commands import ChildCommands
from aclog.cli.mcp.command_line import Fixed
from aclog.cli.mcp.flags import McpFlags
from aclog.cli.mcp.server import make_server
from aclog.metalog.errors import ConfigError
from aclog.sources.text_lines import STDIN
from aclog.terminal.moment import take_moment
from aclog.terminal.notices import note

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_mcp(source: SourceFlags, flags: McpFlags, authorizer: AuthorizerFlags) -> None:
    """Serve until stdin is closed, or a signal.

    Raises:
        ConfigError: flags that do not go together, or a file that would be stdin.

    """
    for flag, path in source.files().items():
        if path == STDIN:
            raise ConfigError(f"{flag} -: the assistant speaks on stdin: expected a file")
    chosen = source.choose()  # what is wrong with the flags is said now, to a person
    chosen.source.close()
    if chosen.as_of is not None:
        take_moment(chosen.as_of)
    authorizer.warn_of_super_users()
    commands = ChildCommands(flags.time_limit)
    server = make_server(Fixed(source=source, authorizer=authorizer, flags=flags), commands)

    async def serve() -> None:
        async with stdio_server() as (received, sent):
            messages = _Messages(received, sent)
            await server.run(messages, sent, server.create_initialization_options())

    if sys.stdin.isatty():
        note("an assistant speaks on stdin, in JSON: this is for its settings, not for a terminal (docs/mcp.md)")
    with _ending(commands):
        try:
            anyio.run(serve)
        except* BrokenPipeError:
            pass  # the assistant is gone, with an answer on its way


@define(eq=False)
class _Messages:
    """The messages that arrive: a line that is none is answered at once, since the SDK passes it over."""

    received: "ReadStream[SessionMessage | Exception]"
    sent: "WriteStream[SessionMessage]"

    @property
    def last_context(self) -> Context | None:
        """That of the newest message, which the SDK asks for."""
        return getattr(self.received, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        while isinstance(item := await self.received.receive(), Exception):
            if (error := _no_message(item)) is not None:
                response = JSONRPCError(jsonrpc="2.0", id=None, error=error)
                await self.sent.send(SessionMessage(response))
        return item

    async def aclose(self) -> None:
        """End."""
        await self.received.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self.received.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self.received.__aexit__(kind, error, trace)


def _no_message(error: Exception) -> ErrorData | None:
    """Return what is wrong with a line (JSON-RPC 2.0, 5.1), which is not repeated; None of an empty one."""
    if not isinstance(error, ValidationError):
        return ErrorData(code=INTERNAL_ERROR, message="the line cannot be read")
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] != "json_invalid":
        return ErrorData(code=INVALID_REQUEST, message="not a request, a notification or a response of JSON-RPC 2.0")
    line = first["input"]
    if isinstance(line, str | bytes) and not line.strip():
        return None
    return ErrorData(code=PARSE_ERROR, message="not JSON: expected one message of JSON-RPC 2.0 a line")


@contextmanager
def _ending(commands: ChildCommands) -> Iterator[None]:
    """Let a signal end this process and all that it runs: the thread that reads stdin cannot be told to stop."""

    def end(number: int, _frame: object) -> None:
        """End as the signal would."""
        commands.end(partial(_end_by, number))

    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield
    finally:
        commands.kill()
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_by(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
