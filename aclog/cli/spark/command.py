"""`aclog spark`: the log and access logs at any size, on Spark."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from attrs import frozen

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.common import TargetLog
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.source import PANEL, SourceFlags

app = typer.Typer(
    name="spark",
    help="The log and access logs at any size, on Spark: history, decisions, usage, what-if. Wants `aclog\\[spark]` "
    "and Java 17.",
    no_args_is_help=True,
)

_AFTER = "After (a change, or another source)"

Requests: TypeAlias = Annotated[
    str,
    typer.Option(
        "--requests",
        metavar="PATH",
        help="Parquet or JSON lines: principal, host, operation, resourceType, resourceName, and what else there is; "
        "or what `ingest` wrote.",
        show_default=False,
    ),
]
Out: TypeAlias = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="A directory to make, of Parquet files.", show_default=False),
]
Master: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs, such as [cyan]spark://HOST:7077[/]; under spark-submit what that says.",
        show_default="local[*]",
    ),
]
OwnTime: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--own-time",
        metavar="",
        help="With --log: judge each row by the rules that were in force at its own [cyan]timestamp[/].",
        rich_help_panel=PANEL,
    ),
]


@frozen(kw_only=True)
class AfterFlags:
    """The rules after a change: the same with some added and removed, or those of another source."""

    add: Annotated[
        str | None,
        typer.Option("--add", metavar="FILE", help="Rules to be added, as JSON lines.", rich_help_panel=_AFTER),
    ] = None
    remove: Annotated[
        str | None,
        typer.Option("--remove", metavar="FILE", help="Rules to be removed, as JSON lines.", rich_help_panel=_AFTER),
    ] = None
    to_log: Annotated[
        Path | None,
        typer.Option("--to-log", metavar="DIR", help="The rules of this log.", rich_help_panel=_AFTER),
    ] = None
    to_snapshot: Annotated[
        Path | None,
        typer.Option("--to-snapshot", metavar="FILE", help="The rules of this checkpoint.", rich_help_panel=_AFTER),
    ] = None
    to_acls: Annotated[
        str | None,
        typer.Option("--to-acls", metavar="FILE", help="These rules, as JSON lines.", rich_help_panel=_AFTER),
    ] = None
    to_as_of: Annotated[
        str | None,
        typer.Option("--to-as-of", metavar="N|TIME", help="With --to-log: its state then.", rich_help_panel=_AFTER),
    ] = None

    @property
    def target(self) -> SourceFlags:
        """The source of the rules after, if they are not those before with a change."""
        return SourceFlags(log=self.to_log, snapshot=self.to_snapshot, acls=self.to_acls, as_of=self.to_as_of)


@frozen(kw_only=True)
class UsageFlags:
    """The window of time in which rules must have been of use, and how much is written."""

    days: Annotated[
        int,
        typer.Option("--days", metavar="N", min=1, help="How long a rule must have been of no use to be called so."),
    ] = 90
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="The end of the window.", show_default="the latest access"),
    ] = None
    top: Annotated[
        int, typer.Option("--top", metavar="K", min=1, help="How many of the accesses denied most are written.")
    ] = 100


@app.command()
def history(log: TargetLog, out: Out, master: Master = None) -> None:
    """Write every rule that ever was, with the time for which it was in force.

    One row a rule and interval: the columns of `acls list`, added_offset,
    added_at, removed_offset, removed_at (null while in force). Where the log
    begins at a checkpoint, first_seen_offset is its end for the rules in it,
    and added_* are null.

    [bold]Example[/]

      aclog spark history --log DIR --out history.parquet
    """
    from aclog.cli.spark.jobs import spark_session
    from aclog.cli.spark.log import check_log
    from aclog.pipeline.output_directory import check_new

    check_new(out)
    check_log(log)
    with spark_session(master) as spark:
        from aclog.cli.spark.history import history_command

        history_command(spark, log.absolute(), out)


@app.command()
@with_flags
def authorize(
    requests: Requests,
    out: Out,
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    own_time: OwnTime = False,
    master: Master = None,
) -> None:
    """Decide every row of an access log or a file of requests, as of one state or of each row's own time.

    The input's columns come out with decision (ALLOWED, DENIED or ERROR),
    rule (as Kafka's audit log names it; with ERROR, what is wrong) and
    rule_id. Exit code 2 if a row could not be decided.

    [bold]Examples[/]

      aclog spark authorize --requests asked.jsonl.gz --log DIR --out decided
      aclog spark authorize --requests accesses --log DIR --own-time --out decided
    """
    from aclog.cli.spark.jobs import spark_session
    from aclog.pipeline.output_directory import check_new

    check_new(out)
    with spark_session(master) as spark:
        from aclog.cli.spark.authorize import authorize_command
        from aclog.cli.spark.rules import rules_of, settings_of

        settings, rules = settings_of(authorizer), rules_of(spark, source, own_time=own_time)
        code = authorize_command(spark, requests, out, rules, settings, own_time=own_time)
    raise typer.Exit(code)


@app.command()
def ingest(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Files, directories and globs; gzip is read as it is.", show_default=False
        ),
    ],
    out: Out,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="[cyan]kafka-log[/] (kafka-authorizer.log of any Kafka), [cyan]events[/] (our audit events in Avro), "
            "[cyan]events-jsonl[/], or a table: [cyan]parquet[/], [cyan]csv[/], [cyan]jsonl[/].",
        ),
    ] = "kafka-log",
    timezone: Annotated[
        str,
        typer.Option(
            "--timezone", metavar="ZONE", help="That of times without one: a broker's log has its local time."
        ),
    ] = "UTC",
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="OURS=THEIRS", help="What a table calls a column of ours; may come often."),
    ] = None,
    master: Master = None,
) -> None:
    """Make a table of accesses from access logs, and one of what could not be read, with the reasons.

    DIR/accesses has what the other commands read; DIR/rejects has file, line,
    reason and detail. The counts that are printed add up to the lines read.

    [bold]Examples[/]

      aclog spark ingest /var/log/kafka/kafka-authorizer.log* --out accesses
      aclog spark ingest t.csv --kind csv --column principal=user --out accesses
    """
    from aclog.cli.spark.jobs import spark_session
    from aclog.pipeline.output_directory import check_new

    check_new(out)
    with spark_session(master) as spark:
        from aclog.cli.spark.ingest import ingest_command

        ingest_command(spark, paths, kind=kind, out=out, timezone=timezone, columns=column or ())


@app.command()
@with_flags
def usage(
    requests: Requests,
    out: Out,
    window: UsageFlags,
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    master: Master = None,
) -> None:
    """Tell which rules an access log needs, and which could go.

    With --log each access is judged by the rules of its own time, and a rule
    only if it was in force in the whole window. DIR/rules has a row a rule:
    NEVER_MATCHED, NEVER_NEEDED (every access is decided the same without
    it), NEEDED (by whom and when last) or NOT_JUDGED. DIR/denied has the
    accesses denied most, DIR/holes the days without any access.

    [bold]Example[/]

      aclog spark usage --requests accesses --log DIR --days 90 --out usage
    """
    from aclog.cli.spark.jobs import spark_session
    from aclog.pipeline.output_directory import check_new

    check_new(out)
    with spark_session(master) as spark:
        from aclog.cli.spark.rules import rules_of, settings_of, window_end
        from aclog.cli.spark.usage import usage_command

        own_time = source.log is not None and source.as_of is None
        settings, end, rules = (
            settings_of(authorizer),
            window_end(window.until),
            rules_of(spark, source, own_time=own_time),
        )
        usage_command(
            spark, requests, out, rules, settings, own_time=own_time, window_days=window.days, until=end, top=window.top
        )


@app.command()
@with_flags
def simulate(
    requests: Requests,
    out: Out,
    source: SourceFlags,
    change: AfterFlags,
    authorizer: AuthorizerFlags,
    master: Master = None,
) -> None:
    """Tell which accesses of a log a change of the rules would gain or lose.

    The rules before are a state source; those after are the same with --add
    and --remove, or another source. A row comes out for each distinct access
    whose decision changes, with how often it came, and the rules that decide
    it before and after.

    [bold]Examples[/]

      aclog spark simulate --requests accesses --log DIR --remove old.jsonl --out x
      aclog spark simulate --requests accesses --log DIR --to-acls new.jsonl --out x
    """
    from aclog.cli.spark.jobs import spark_session
    from aclog.pipeline.output_directory import check_new

    check_new(out)
    with spark_session(master) as spark:
        from aclog.cli.spark.rules import rules_after, rules_of, settings_of
        from aclog.cli.spark.simulate import simulate_command

        settings, before = settings_of(authorizer), rules_of(spark, source, own_time=False)
        after = rules_after(spark, before, change.target, add=change.add, remove=change.remove)
        simulate_command(spark, requests, out, (before, settings), (after, settings), own_time=False)
