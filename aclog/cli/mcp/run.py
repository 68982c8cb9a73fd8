"""Serves the tools over stdin and stdout."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import anyio
from mcp.server.stdio import stdio_server

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
            await server.run(received, sent, server.create_initialization_options())

    if sys.stdin.isatty():
        note("an assistant speaks on stdin, in JSON: this is for its settings, not for a terminal (docs/mcp.md)")
    with _ending(commands):
        try:
            anyio.run(serve)
        except* BrokenPipeError:
            pass  # the assistant is gone, with an answer on its way


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
