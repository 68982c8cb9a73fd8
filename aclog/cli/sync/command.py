"""`aclog sync`: the history of a cluster whose log is out of reach."""

from pathlib import Path
from typing import Annotated

import typer

from aclog.cli.sync.format import SyncFormat

app = typer.Typer()


@app.command()
def sync(
    bootstrap_server: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            help="A running broker, ours or Kafka's; several with commas between them.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="DIR", help="The log to record in; made by the first poll if missing.", show_default=False
        ),
    ],
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Client properties, as Kafka's tools take them: security.protocol, sasl.*, ssl.*.",
            show_default="nobody logs in",
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="How long to wait between two polls.")
    ] = 30.0,
    once: Annotated[bool, typer.Option("--once", metavar="", help="Poll once, and leave.")] = False,
    format_: Annotated[
        SyncFormat,
        typer.Option(
            "--format", help="A line for people, or the JSON object of [cyan]export --history[/], for each change."
        ),
    ] = SyncFormat.TABLE,
) -> None:
    """Ask a cluster for its rules again and again, and record what changed in a log, each poll in one piece.

    DIR is then a --log like any other: time travel, shell and history work on it.
    A poll that fails records nothing and is tried again. Ends at SIGTERM or Ctrl-C.
    Needs DESCRIBE on the cluster.

    [bold]Examples[/]

      aclog sync --bootstrap-server HOST:9092 --command-config FILE --to DIR
      aclog sync --bootstrap-server HOST:9092 --to DIR --once --format jsonl
    """
    from aclog.cli.sync.sync import SyncOptions, run_sync
    from aclog.sources.bootstrap import client_security, parse_servers

    run_sync(
        SyncOptions(
            servers=parse_servers("--bootstrap-server", bootstrap_server),
            security=client_security(command_config),
            directory=to,
            interval=interval,
            once=once,
            format=format_,
        )
    )
