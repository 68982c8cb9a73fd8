"""The `aclog serve` command."""

import signal
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from aclog.cli.options import Argument, Group, Option

# The `aclog serve` command.


app = Group()


class LogFormat(StrEnum):
    """Format of a node's log events."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """Lowest level that is logged; TRACE only occurs in audit lines."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@app.command()
def serve(
    config: Annotated[Path, Argument(metavar="CONFIG", help="A server.properties, as for Kafka.", show_default=False)],
    strict: Annotated[
        bool, Option("--strict", metavar="", help="Refuse to start if CONFIG has an unknown key.")
    ] = False,
    log_format: Annotated[LogFormat, Option("--log-format", help="The format of log events, on stderr.")] = (
        LogFormat.CONSOLE
    ),
    log_level: Annotated[LogLevel, Option("--log-level", help="The lowest level that is logged.")] = LogLevel.INFO,
    audit_level: Annotated[
        LogLevel,
        Option(
            "--audit-level",
            help="The lowest level of audit lines that is logged: info has denied requests, debug also allowed ones.",
        ),
    ] = LogLevel.INFO,
    format_if_empty: Annotated[
        bool,
        Option(
            "--format-if-empty", metavar="", help="Format log.dirs first if all of them are empty, as a new cluster."
        ),
    ] = False,
) -> None:
    """Run a node: a controller, a broker, or both, as defined by process.roles in CONFIG.

    Kafka's clients and tools work with it. It starts on formatted directories
    only: see `aclog format`. SIGTERM or Ctrl-C shuts it down, a second one
    immediately.

    Metrics, /healthz and /readyz are served if CONFIG has
    aclog.http.listener=HOST:PORT.

    docs/configuration.md has a CONFIG of 14 lines ("A small example").

    [bold]Examples[/]

      aclog serve config/server.properties
      aclog serve controller.properties --format-if-empty
    """
    # Until the event loop handles signals: a node is imported for a second, and has done nothing until then.
    with suppress(ValueError):  # another thread than the main one handles no signals
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    from aclog.cli.serve_run import run_node

    run_node(
        config,
        strict=strict,
        json=log_format is LogFormat.JSON,
        level=log_level.value.upper(),
        audit_level=audit_level.value.upper(),
        format_if_empty=format_if_empty,
    )
