"""`aclog export`: a state, or the history of its rules, for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from aclog.cli.options import (
    AclsFile,
    AsOf,
    BootstrapController,
    BootstrapServer,
    CommandConfig,
    ExportFormat,
    LogDir,
    ShowSecrets,
    SnapshotFile,
)

app = typer.Typer()


@app.command()
def export(
    format_: Annotated[
        ExportFormat,
        typer.Option("--format", help="Avro (the schemas stand in docs), or JSON lines with the same fields."),
    ],
    log: LogDir = None,
    snapshot: SnapshotFile = None,
    acls: AclsFile = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    as_of: AsOf = None,
    history: Annotated[
        bool, typer.Option("--history", metavar="", help="With --log: every change of a rule instead of the state.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write.", show_default="standard output"),
    ] = None,
    show_secrets: ShowSecrets = False,
) -> None:
    """Write a state (rules, credentials, tokens, features, and the rest as bytes), or the history of its rules.

    What is exported with --show-secrets can be imported without loss; without
    it, SCRAM credentials have no keys.

    [bold]Examples[/]

      aclog export --log DIR --format avro --out state.avro
      aclog export --log DIR --format jsonl --history | grep REMOVED
    """
    from aclog.cli.transfer.exporter import export_image
    from aclog.cli.transfer.history import export_history
    from aclog.sources.choice import LiveFlags, choose_source

    live = LiveFlags(bootstrap_controller, bootstrap_server, command_config)
    source = choose_source(log, snapshot, acls, as_of, live=live)
    if history:
        export_history(source.source, source.moment, format_, out)
    else:
        export_image(source.image(), format_, out, show_secrets=show_secrets)
