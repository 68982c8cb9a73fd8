"""Flags of `aclog spark`, and their groups."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from attrs import frozen

from aclog.cli.flags.source import PANEL

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
