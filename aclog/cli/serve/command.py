"""The `aclog serve` command."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


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
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A server.properties, as for Kafka.", show_default=False)
    ],
    strict: Annotated[
        bool, typer.Option("--strict", metavar="", help="Refuse to start if CONFIG has an unknown key.")
    ] = False,
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="The format of log events, on stderr.")] = (
        LogFormat.CONSOLE
    ),
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="The lowest level that is logged.")
    ] = LogLevel.INFO,
    audit_level: Annotated[
        LogLevel,
        typer.Option(
            "--audit-level",
            help="The lowest level of audit lines that is logged: info has denied requests, debug also allowed ones.",
        ),
    ] = LogLevel.INFO,
    format_if_empty: Annotated[
        bool,
        typer.Option(
            "--format-if-empty", metavar="", help="Format log.dirs first if all of them are empty, as a new cluster."
        ),
    ] = False,
) -> None:
    """Run a node: a controller, a broker, or both, as process.roles in CONFIG says.

    Kafka's clients and tools work with it. It starts on formatted directories
    only: see `aclog format`. SIGTERM or Ctrl-C shuts it down, a second one
    immediately.

    Metrics, /healthz and /readyz are served if CONFIG has
    aclog.http.listener=HOST:PORT.

    [bold]Example[/]

      aclog serve config/server.properties
    """
    from aclog.cli.serve.run import run_node

    run_node(
        config,
        strict=strict,
        json=log_format is LogFormat.JSON,
        level=log_level.value.upper(),
        audit_level=audit_level.value.upper(),
        format_if_empty=format_if_empty,
    )
