"""`aclog serve`: run a node."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


class LogFormat(StrEnum):
    """How a node logs."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """How much is logged; TRACE is of use for audit lines only."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@app.command()
def serve(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A server.properties, as a Kafka has it.", show_default=False)
    ],
    strict: Annotated[
        bool, typer.Option("--strict", metavar="", help="Refuse to start where a key of CONFIG is unknown.")
    ] = False,
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="How events are logged, on stderr.")] = (
        LogFormat.CONSOLE
    ),
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="The least that is logged.")] = LogLevel.INFO,
    audit_level: Annotated[
        LogLevel,
        typer.Option(
            "--audit-level",
            help="Of the authorizer's decisions: info logs what was denied, debug what was allowed too.",
        ),
    ] = LogLevel.INFO,
) -> None:
    """Run a node: a controller, a broker, or both, as process.roles in CONFIG says.

    Kafka's own clients and tools manage it. An empty log.dirs is formatted first.
    SIGTERM and Ctrl-C stop it, a second one at once.

    Metrics, /healthz and /readyz are served where CONFIG has
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
    )
