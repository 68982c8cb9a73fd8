"""The flags of `aclog migrate`, in groups."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import frozen

_FROM = "ZooKeeper (exactly one)"
_TO = "Metadata log (exactly one)"


@frozen(kw_only=True)
class ZooKeeperFlags:
    """The ZooKeeper, and whether it is read or written."""

    zookeeper: Annotated[
        str | None,
        typer.Option(
            "--zookeeper",
            metavar="HOST:PORT",
            help="Migrate from this ZooKeeper; several servers and a chroot as in zookeeper.connect.",
            rich_help_panel=_FROM,
        ),
    ] = None
    to_zookeeper: Annotated[
        str | None,
        typer.Option(
            "--to-zookeeper",
            metavar="HOST:PORT",
            help="Migrate back: write the state of --log to this ZooKeeper.",
            rich_help_panel=_FROM,
        ),
    ] = None
    zk_tls_config_file: Annotated[
        Path | None,
        typer.Option(
            "--zk-tls-config-file",
            metavar="FILE",
            help="zookeeper.* properties: TLS, timeouts, zookeeper.set.acl.",
            rich_help_panel=_FROM,
        ),
    ] = None


@frozen(kw_only=True)
class MetadataLogFlags:
    """The metadata log, directly or as part of a Kafka node."""

    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="DIR", help="A log directory of aclog; created if missing.", rich_help_panel=_TO),
    ] = None
    bootstrap_checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--bootstrap-checkpoint",
            metavar="FILE",
            help="What the first start of a formatted Kafka controller reads: its [cyan]bootstrap.checkpoint[/], from "
            "Kafka 4.4 on its 0-0 checkpoint, or the directory that has it. A bootstrap.checkpoint is created if "
            "missing, unless the directory is formatted.",
            rich_help_panel=_TO,
        ),
    ] = None
    bootstrap_controller: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-controller",
            metavar="HOST:PORT",
            help="A running quorum (aclog or Kafka): ACLs only, in batches.",
            rich_help_panel=_TO,
        ),
    ] = None
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Client properties for the quorum: security.protocol, sasl.*, ssl.*.",
            rich_help_panel=_TO,
        ),
    ] = None


@frozen(kw_only=True)
class ModeFlags:
    """What to do, when to switch over, and what not to refuse."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show what would be done, and write nothing.")
    ] = False
    compare: Annotated[
        bool, typer.Option("--compare", metavar="", help="Only compare contents and decisions; exit 1 if they differ.")
    ] = False
    follow: Annotated[
        bool,
        typer.Option("--follow", metavar="", help="Follow changes until [cyan]switch[/] is typed, then switch over."),
    ] = False
    until_quiet: Annotated[
        float | None,
        typer.Option(
            "--until-quiet",
            metavar="SECONDS",
            help="Follow changes until there is none for this long, then switch over.",
            show_default=False,
        ),
    ] = None
    replace: Annotated[
        bool, typer.Option("--replace", metavar="", help="Remove entries that only the target has, instead of failing.")
    ] = False
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable", metavar="", help="Leave out entries that cannot be read, instead of failing."
        ),
    ] = False
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")
    ] = False
