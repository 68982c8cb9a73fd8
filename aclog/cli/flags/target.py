"""The flags of a place that a command changes: a log, a running cluster, or a ZooKeeper."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags import cluster as target

ZOOKEEPER_HELP = (
    "The ZooKeeper of a Kafka up to 3.9: [cyan]zookeeper.connect=HOST:PORT[/], and other properties of its authorizer; "
    "repeat the flag for each."
)


@frozen(kw_only=True)
class TargetFlags:
    """What a command changes: exactly one of a log, a running cluster and a ZooKeeper."""

    log: Annotated[
        Path | None,
        typer.Option(
            "--log", metavar="DIR", help="A log directory that no process writes to.", rich_help_panel=target.PANEL
        ),
    ] = None
    bootstrap_server: target.TargetServer = None
    bootstrap_controller: target.TargetController = None
    command_config: target.TargetConfig = None
    authorizer_properties: Annotated[
        list[str],
        typer.Option(
            "--authorizer-properties",
            metavar="KEY=VALUE",
            help=ZOOKEEPER_HELP,
            rich_help_panel=target.PANEL,
        ),
    ] = field(factory=list)
