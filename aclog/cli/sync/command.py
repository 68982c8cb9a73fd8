"""`aclog sync`: ACL history of a cluster whose metadata log is not accessible."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import frozen

from aclog.cli.flags.follower import FollowerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.removal import RemovalFlags
from aclog.cli.sync.format import SyncFormat

app = typer.Typer()


@frozen(kw_only=True)
class RecordFlags:
    """The cluster that is recorded, and the log."""

    bootstrap_server: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            help="The brokers, comma-separated, of a running cluster (aclog or Kafka).",
            show_default=False,
        ),
    ]
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="DIR",
            help="The log to record in; created by the first poll if missing.",
            show_default=False,
        ),
    ]
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Client properties, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
            show_default="no authentication",
        ),
    ] = None


@frozen(kw_only=True)
class PollFlags:
    """When to poll."""

    interval: Annotated[float, typer.Option("--interval", metavar="SECONDS", help="Time between two polls.")] = 30.0
    once: Annotated[bool, typer.Option("--once", metavar="", help="Poll once, then exit.")] = False


@app.command()
@with_flags
def sync(
    record: RecordFlags,
    polls: PollFlags,
    removal: RemovalFlags,
    follower: FollowerFlags,
    format_: Annotated[
        SyncFormat,
        typer.Option(
            "--format", help="A readable line for each change, or the JSON object of [cyan]export --history[/]."
        ),
    ] = SyncFormat.TABLE,
) -> None:
    """Poll the ACLs of a cluster, and record changes in a log, those of each poll atomically.

    DIR can be used like any other --log, with --as-of, shell and history.
    A failed poll records nothing and is retried. One that would remove too much
    is asked again, of other brokers too, then refused: every reader of DIR is
    warned until a later poll is good. SIGTERM or Ctrl-C stops it.
    Needs DESCRIBE on the cluster.

    [bold]Examples[/]

      aclog sync --bootstrap-server HOST:9092 --command-config FILE --to DIR
      aclog sync --bootstrap-server HOST:9092 --to DIR --once --format jsonl
    """
    from aclog.cli.sync.sync import SyncOptions, run_sync
    from aclog.sources.server_flags import client_security, parse_servers

    run_sync(
        SyncOptions(
            servers=parse_servers("--bootstrap-server", record.bootstrap_server),
            security=client_security(record.command_config),
            directory=record.to,
            interval=polls.interval,
            once=polls.once,
            format=format_,
            limit=removal.limit(),
            http=follower.address(),
            give_up_after=follower.patience(),
        )
    )
