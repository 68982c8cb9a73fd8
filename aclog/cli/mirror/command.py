"""`aclog mirror`: what a quorum commits, kept in a log of one's own."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def mirror(
    bootstrap_controller: Annotated[
        str,
        typer.Option(
            "--bootstrap-controller",
            metavar="HOST:PORT",
            help="The controllers of a running quorum, ours or Kafka's, with commas between them.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="DIR",
            help="The mirror: a directory that is empty or not there yet, or the mirror to go on with.",
            show_default=False,
        ),
    ],
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Client properties, as Kafka's tools take them: security.protocol, sasl.*, ssl.*.",
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", metavar="", help="Up to the high-water mark that is met at the start, then out."),
    ] = False,
) -> None:
    """Follow a quorum and keep all that it commits, byte for byte, in a directory of segments.

    DIR is then a --log of every command that reads, with all of its past, also
    of what the retention of the quorum has removed since. It runs until Ctrl-C
    or SIGTERM, and goes on where it ended when it is started again.

    [bold]Examples[/]

      aclog mirror --bootstrap-controller HOST:9093 --to DIR --once
      aclog acls list --log DIR --as-of 2026-11-20T10:00:00Z
    """
    from aclog.cli.mirror.run import mirror_quorum
    from aclog.sources.bootstrap import client_security, parse_servers

    controllers = parse_servers("--bootstrap-controller", bootstrap_controller)
    mirror_quorum(controllers, client_security(command_config), to, once=once)
