"""`aclog import`: what was exported, or rules as JSON lines, into a log."""

from typing import Annotated

import typer

from aclog.cli.flags.common import TargetLog

app = typer.Typer()


@app.command(name="import")
def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="An export (Avro or JSON lines), or rules as JSON lines; - is stdin, gzip is read as it is.",
            show_default=False,
        ),
    ],
    log: TargetLog,
    history: Annotated[
        bool, typer.Option("--history", metavar="", help="FILE is a history: replay its changes, with their times.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write, even though the log belongs to a Kafka.")
    ] = False,
) -> None:
    """Write rules, credentials, tokens and features into a log, all or nothing; a new directory becomes a new log.

    Ids are kept. Rules that the log holds already stay as they are; rules
    without an id get one.

    [bold]Examples[/]

      aclog import state.avro --log new-log
      aclog acls list --log OLD --format jsonl | aclog import - --log NEW
    """
    from aclog.cli.transfer.history import import_history
    from aclog.cli.transfer.importer import import_state

    (import_history if history else import_state)(file, log, force=force)
