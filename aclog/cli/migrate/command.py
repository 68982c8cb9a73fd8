"""`aclog migrate`: the way out of ZooKeeper, and back."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()

_FROM = "ZooKeeper (exactly one)"
_TO = "Metadata log (exactly one)"


@app.command()
def migrate(
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "--zookeeper",
            metavar="HOST:PORT",
            help="Migrate out of this ZooKeeper; several servers and a chroot as zookeeper.connect has them.",
            rich_help_panel=_FROM,
        ),
    ] = None,
    to_zookeeper: Annotated[
        str | None,
        typer.Option(
            "--to-zookeeper",
            metavar="HOST:PORT",
            help="The way back: what --log holds into this ZooKeeper.",
            rich_help_panel=_FROM,
        ),
    ] = None,
    zk_tls_config_file: Annotated[
        Path | None,
        typer.Option(
            "--zk-tls-config-file",
            metavar="FILE",
            help="zookeeper.* properties: TLS, time-outs, zookeeper.set.acl.",
            rich_help_panel=_FROM,
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="DIR", help="A log of aclog's, made if it is missing.", rich_help_panel=_TO),
    ] = None,
    bootstrap_checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--bootstrap-checkpoint",
            metavar="FILE",
            help="The [cyan]bootstrap.checkpoint[/] of a Kafka that is formatted and was never started; made if it is "
            "missing.",
            rich_help_panel=_TO,
        ),
    ] = None,
    bootstrap_controller: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-controller",
            metavar="HOST:PORT",
            help="A running quorum, ours or Kafka's: ACLs only, in batches.",
            rich_help_panel=_TO,
        ),
    ] = None,
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Client properties for the quorum: security.protocol, sasl.*, ssl.*.",
            rich_help_panel=_TO,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show what would be done, and write nothing.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", metavar="", help="Only compare contents and decisions; exit 1 if they differ.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", metavar="", help="Follow changes until [cyan]switch[/] is typed, and switch then."),
    ] = False,
    until_quiet: Annotated[
        float | None,
        typer.Option(
            "--until-quiet",
            metavar="SECONDS",
            help="Follow changes until there was none for so long, and switch then.",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", metavar="", help="Remove what only the target holds, rather than refuse.")
    ] = False,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable", metavar="", help="Leave out entries that cannot be read, rather than refuse."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write, even though the log belongs to a Kafka.")
    ] = False,
) -> int:
    """Carry ACLs, SCRAM credentials and delegation tokens from ZooKeeper into a metadata log, or back.

    Into a log all becomes visible at once, at the switch, or nothing. Afterwards
    contents and decisions of both sides are compared. Entries that cannot be
    carried over are listed. Tokens keep their HMACs only where
    delegation.token.secret.key stays the same.

    [bold]Examples[/]

      aclog migrate --zookeeper HOST:2181/kafka --log DIR --dry-run
      aclog migrate --zookeeper HOST:2181/kafka --log DIR --follow
      aclog migrate --zookeeper HOST:2181 --bootstrap-checkpoint FILE
      aclog migrate --log DIR --to-zookeeper HOST:2181/kafka
    """
    from aclog.cli.migrate.flags import MigrateFlags, run

    return run(
        MigrateFlags(
            zookeeper=zookeeper,
            to_zookeeper=to_zookeeper,
            tls_config=zk_tls_config_file,
            log=log,
            bootstrap_checkpoint=bootstrap_checkpoint,
            bootstrap_controller=bootstrap_controller,
            command_config=command_config,
            dry_run=dry_run,
            compare=compare,
            follow=follow,
            until_quiet=until_quiet,
            replace=replace,
            skip_unreadable=skip_unreadable,
            force=force,
        )
    )
