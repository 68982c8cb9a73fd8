"""Flags of `aclog spark`, and their groups."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from attrs import frozen

from aclog.cli.flags.source import PANEL, SourceFlags

_AFTER = "After (a change, or another source)"

Requests: TypeAlias = Annotated[
    str,
    typer.Option(
        "--requests",
        metavar="PATH",
        help="Parquet or JSON lines with principal, host, operation, resourceType, resourceName and any other columns, "
        "or the output of `ingest`.",
        show_default=False,
    ),
]
Out: TypeAlias = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="The directory to create, of Parquet files.", show_default=False),
]
Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="The Spark master, such as [cyan]spark://HOST:7077[/]; under spark-submit, the master given to it.",
        show_default="local[*]",
    ),
]
OwnTime: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--own-time",
        metavar="",
        help="With --log: decide each row by the ACLs in force at its own [cyan]timestamp[/].",
        rich_help_panel=PANEL,
    ),
]


@frozen(kw_only=True)
class AfterFlags:
    """The ACLs after a change: those before with some added and removed, or those of another source."""

    add: Annotated[
        str | None,
        typer.Option("--add", metavar="FILE", help="ACLs to add, as JSON lines.", rich_help_panel=_AFTER),
    ] = None
    remove: Annotated[
        str | None,
        typer.Option("--remove", metavar="FILE", help="ACLs to remove, as JSON lines.", rich_help_panel=_AFTER),
    ] = None
    to_log: Annotated[
        Path | None,
        typer.Option("--to-log", metavar="DIR", help="The ACLs of this log.", rich_help_panel=_AFTER),
    ] = None
    to_snapshot: Annotated[
        Path | None,
        typer.Option("--to-snapshot", metavar="FILE", help="The ACLs of this checkpoint.", rich_help_panel=_AFTER),
    ] = None
    to_acls: Annotated[
        str | None,
        typer.Option("--to-acls", metavar="FILE", help="These ACLs, as JSON lines.", rich_help_panel=_AFTER),
    ] = None
    to_as_of: Annotated[
        str | None,
        typer.Option(
            "--to-as-of", metavar="N|TIME", help="With --to-log: its state at this point.", rich_help_panel=_AFTER
        ),
    ] = None

    @property
    def target(self) -> SourceFlags:
        """The other source."""
        return SourceFlags(log=self.to_log, snapshot=self.to_snapshot, acls=self.to_acls, as_of=self.to_as_of)


@frozen(kw_only=True)
class UsageFlags:
    """The window of time to report on, and the limit on reported denials."""

    days: Annotated[
        int,
        typer.Option("--days", metavar="N", min=1, help="The length of the window: an ACL unused in it is reported."),
    ] = 90
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="The end of the window.", show_default="the latest access"),
    ] = None
    top: Annotated[
        int, typer.Option("--top", metavar="K", min=1, help="The number of most denied accesses to write.")
    ] = 100


@frozen(kw_only=True)
class IngestFlags:
    """The format of access logs."""

    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="[cyan]kafka-log[/] (kafka-authorizer.log of any Kafka), [cyan]events[/] (aclog's audit events "
            "in Avro), [cyan]events-jsonl[/], or a table: [cyan]parquet[/], [cyan]csv[/], [cyan]jsonl[/].",
        ),
    ] = "kafka-log"
    timezone: Annotated[
        str,
        typer.Option(
            "--timezone",
            metavar="ZONE",
            help="The zone of times that name none: a broker logs its local time.",
        ),
    ] = "UTC"
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="OURS=THEIRS", help="The table's name for one of aclog's columns; can be repeated."
        ),
    ] = None
