"""`aclog spark`: metadata logs and access logs of any size, on Spark."""

from pathlib import Path
from typing import Annotated

from click.exceptions import Exit

from aclog.cli.flags.accesses import AccessesFlags, WindowFlags
from aclog.cli.flags.commands import SuggestFlags
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.many_requests import AskedFlags, SecondStateFlags, WhoFlags
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Argument, Group, Option
from aclog.cli.spark.flags import (
    AppendFlags,
    AppendMode,
    ByDay,
    DecidedFlags,
    IngestFlags,
    LogPlace,
    Out,
    OutFormatFlag,
    OutMode,
    ReportFlags,
    RequestFlags,
    SessionFlags,
    UsageFlags,
    check_mode,
)
from aclog.cli.spark.streams import FollowFlags, StreamFlags
from aclog.metalog.errors import ConfigError
from aclog.pipeline.output_directory import Mode, OutFormat

PUBLISHED = "each batch is published by a rename in a store, and by a log that its driver reads"
"""Why a stream is no job of Spark Connect."""

# Each command imports PySpark only once its session starts: --help and refusals must not wait for it, and must work
# where PySpark is not installed (extras.need_spark_extra).

app = Group(
    name="spark",
    help="Metadata logs and access logs of any size, on Spark: history, when, decisions, usage, what-if. Requires "
    "the extra `spark` and Java 17.",
    no_args_is_help=True,
)


@app.command()
def history(
    log: LogPlace,
    out: Out,
    session: SessionFlags,
    mode: OutMode = Mode.ERROR,
    out_format: OutFormatFlag = OutFormat.PARQUET,
) -> None:
    """Write every ACL in the history of a log, with the interval in which it was in force.

    One row per ACL and interval: the columns of `acls list`, added_offset,
    added_at, removed_offset, removed_at (null while in force). If the log begins
    at a checkpoint, the ACLs in it have the checkpoint's end as
    first_seen_offset, and added_* are null.

    [bold]Example[/]

      aclog spark history --log DIR --out history.parquet
    """
    from aclog.ops.extras import need_spark_extra

    need_spark_extra()
    from aclog.cli.spark.spark_session import check_local_log, checked_log, spark_session

    check_mode(mode, "a history is that of the whole log")
    place = session.output(out, mode, out_format)
    check_local_log(log)
    with spark_session(session) as spark:
        from aclog.cli.spark.commands import history_command
        from aclog.pipeline.outputs import PARQUET, check_absent, in_format

        check_absent(spark, place, mode, in_format(PARQUET, out_format))
        with checked_log(spark, log) as directory:
            history_command(spark, directory, place, mode, out_format)


@app.command()
def when(
    log: LogPlace,
    action: AskedFlags,
    who: WhoFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    session: SessionFlags,
) -> None:
    """List the intervals of a log in which a request was allowed, and the changes at which each began and ended.

    The flags and the result are those of `aclog when`. Spark reads the log and
    selects the ACLs that affect the requests; the driver evaluates only these.

    [bold]Example[/]

      aclog spark when --log DIR --operation READ --topic 'pii-*' \
--except-principal User:audit
    """
    from aclog.ops.extras import need_spark_extra

    need_spark_extra()
    from aclog.analysis.timeline import question_of
    from aclog.cli.spark.spark_session import check_local_log, checked_log, spark_session
    from aclog.ops.policies import settings_of

    action.check()
    how = output.choose()
    settings = settings_of(authorizer)
    question = question_of(action.query(who.principals(), who.host), action.needs())
    check_local_log(log)
    with spark_session(session) as spark:
        from aclog.cli.spark.commands import when_command

        with checked_log(spark, log) as directory:
            when_command(spark, directory, question, settings, how)


@app.command()
def authorize(
    requests: RequestFlags,
    out: Out,
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    decided: DecidedFlags,
    session: SessionFlags,
    mode: AppendMode = Mode.ERROR,
    out_format: OutFormatFlag = OutFormat.PARQUET,
    by_day: ByDay = False,
) -> None:
    """Decide every row of an access log or a file of requests, as of one state or of each row's own time.

    The input's columns are written with decision (ALLOWED, DENIED or ERROR),
    rule (as in Kafka's audit log; for ERROR, the reason) and rule_id. Exit
    code 2 if a row could not be decided. With --as, decided rows are also
    written as events for other systems.

    [bold]Examples[/]

      aclog spark authorize --requests requests.jsonl.gz --log DIR --out decided
      aclog spark authorize --requests accesses --log DIR --own-time --out decided
      aclog spark authorize --requests accesses --log DIR --as ocsf --only denied --out x
    """
    from aclog.ops.extras import need_spark_extra

    need_spark_extra()
    from aclog.cli.spark.spark_session import spark_session

    decided.check()
    if decided.as_ is not None:
        check_mode(mode, "not with --as, whose events are another table")
    requests.check(session)
    moment = requests.moment()
    place = session.output(out, mode, out_format)
    with spark_session(session) as spark:
        from aclog.cli.spark.commands import WITH_EVENTS, Policy, authorize_command, rules_of
        from aclog.ops.policies import settings_of
        from aclog.pipeline.outputs import PARQUET, check_absent, in_format

        check_absent(spark, place, mode, in_format(PARQUET if decided.as_ is None else WITH_EVENTS, out_format))
        configs = authorizer.configs()
        rules, settings = rules_of(spark, source, settings_of(authorizer), own_time=decided.own_time, configs=configs)
        policy = Policy(rules=rules, settings=settings, own_time=decided.own_time)
        code = authorize_command(
            spark,
            requests.source(spark),
            place,
            policy,
            decided,
            moment=moment,
            mode=mode,
            out_format=out_format,
            by_day=by_day,
        )
    raise Exit(code)


@app.command()
def follow(
    stream: StreamFlags,
    log: LogPlace,
    out: Out,
    how: FollowFlags,
    authorizer: AuthorizerFlags,
    session: SessionFlags,
    out_format: OutFormatFlag = OutFormat.PARQUET,
    by_day: ByDay = False,
) -> None:
    """Decide accesses as they arrive, in files or in a topic of Kafka, each by the ACLs of its own time, once.

    Runs until SIGTERM or SIGINT. DIR gets one Parquet file per batch, with the
    columns of `spark authorize`; a kill at any time loses and repeats no access.
    The log may grow meanwhile. With --lost-within, each batch also lists the
    principals that lost access in so many seconds and still try.

    [bold]Examples[/]

      aclog spark follow --requests accesses --log DIR --out decided
      aclog spark follow --requests kafka://HOST:9092/access-log --kind kafka-log \
--log DIR --lost-within 60 --out decided --packages GROUP:NAME:VERSION
    """
    from aclog.ops.extras import need_spark_extra

    need_spark_extra()
    from aclog.cli.spark.spark_session import check_local_log, followed_log, spark_session
    from aclog.ops.policies import settings_of
    from aclog.pipeline.output_directory import out_place

    session.refuse_connect("follow", PUBLISHED)
    stream.check()
    how.check()
    place, settings = out_place(out), settings_of(authorizer)
    check_local_log(log)
    with spark_session(session) as spark, followed_log(spark, log) as followed:
        from aclog.cli.spark.streams import follow_command

        configs = authorizer.configs()
        follow_command(spark, place, stream, how, followed, settings, configs, form=out_format, by_day=by_day)


@app.command()
def ingest(
    paths: Annotated[
        list[str],
        Argument(metavar="PATH...", help="Files, directories and globs; gzip is decompressed.", show_default=False),
    ],
    out: Out,
    layout: IngestFlags,
    appending: AppendFlags,
    report: ReportFlags,
    session: SessionFlags,
    mode: OutMode = Mode.ERROR,
    out_format: OutFormatFlag = OutFormat.PARQUET,
    by_day: ByDay = False,
) -> None:
    """Write a table of accesses from access logs, and a table of rejected lines with the reasons.

    DIR/accesses is the input of the other commands; DIR/rejects has file, line,
    reason, detail, broker, and the earliest and latest time of the line. The
    printed counts add up to the lines read. With --append, DIR grows by the new
    lines of the files, even if they were rotated or compressed since: each line
    is read once.

    [bold]Examples[/]

      aclog spark ingest /var/log/kafka/kafka-authorizer.log* --out accesses
      aclog spark ingest /var/log/kafka --append --out accesses --summary -
      aclog spark ingest t.csv --kind csv --column principal=user --out accesses
    """
    from aclog.ops.extras import need_spark_extra

    need_spark_extra()
    from aclog.cli.spark.flags import check_report, column_pairs
    from aclog.cli.spark.spark_session import spark_session
    from aclog.pipeline.output_directory import out_place, place_of

    check_report(report, appending)
    if appending.appends:
        session.refuse_connect("--append and --follow", PUBLISHED)
    session.check_read("PATH", *paths)
    column_pairs(layout.column or ())
    check_mode(mode, "expected --append, which adds each line once")
    if appending.appends and mode is not Mode.ERROR:
        raise ConfigError(f"--mode {mode}: not with --append and --follow, which add to a table")
    place = out_place(out) if appending.appends else session.output(out, mode, out_format)
    elsewhere = appending.appends and (
        out_format.is_table or any(isinstance(place_of(name), str) for name in (out, *paths))
    )
    if appending.appends and out_format is OutFormat.JSON:
        raise ConfigError("--out-format json: not with --append and --follow: expected parquet, delta or iceberg")
    if by_day and not (elsewhere and out_format.is_table):
        raise ConfigError(
            "--by-day: expected --append or --follow with --out-format delta or iceberg; --append on this "
            "machine is by day already"
        )
    if appending.checkpoint is not None and not elsewhere:
        raise ConfigError("--checkpoint: the ledger in DIR is the record of --append: expected another store or format")
    with spark_session(session) as spark:
        from aclog.cli.spark.commands import append_command, ingest_command
        from aclog.cli.spark.streams import ingest_stream_command

        if elsewhere:
            code = ingest_stream_command(spark, paths, place, layout, appending, report, form=out_format, by_day=by_day)
        elif isinstance(place, Path) and appending.appends:
            code = append_command(spark, paths, place, layout, appending=appending, report=report)
        else:
            code = ingest_command(spark, paths, place, layout, report, mode=mode, out_format=out_format)
    raise Exit(code)


@app.command()
def usage(
    requests: RequestFlags,
    out: Out,
    window: UsageFlags,
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    session: SessionFlags,
    mode: OutMode = Mode.ERROR,
    out_format: OutFormatFlag = OutFormat.PARQUET,
) -> None:
    """Report which ACLs the accesses of a log need, and which could be removed.

    With --log, each access is decided by the ACLs of its own time, and an ACL
    is assessed only if it was in force in the whole window. DIR/rules has a
    row per ACL: NEVER_MATCHED, NEVER_NEEDED (every access is decided the same
    without it), NEEDED (by whom and when last) or NOT_JUDGED. DIR/denied has
    the most denied accesses, DIR/holes the days without any access.

    [bold]Example[/]

      aclog spark usage --requests accesses --log DIR --days 90 --out usage
    """
    from aclog.ops.extras import need_spark_extra

    need_spark_extra()
    from aclog.cli.spark.spark_session import spark_session

    check_mode(mode, "a report is that of a whole window")
    place = session.output(out, mode, out_format)
    requests.check(session)
    moment = requests.moment()
    with spark_session(session) as spark:
        from aclog.cli.flags.accesses import window_end
        from aclog.cli.spark.commands import REPORTED, Policy, rules_of, usage_command
        from aclog.ops.policies import settings_of
        from aclog.pipeline.outputs import check_absent, in_format

        check_absent(spark, place, mode, in_format(REPORTED, out_format))
        own_time = source.log is not None and source.as_of is None
        # a bad flag is reported before the source is read, which can take minutes
        settings, until = settings_of(authorizer), window_end(window.until)
        what, configs = "which ACLs are needed cannot be judged", authorizer.configs()
        rules, settings = rules_of(spark, source, settings, own_time=own_time, configs=configs, proves=what)
        policy = Policy(rules=rules, settings=settings, own_time=own_time)
        usage_command(
            spark,
            requests.source(spark),
            place,
            policy,
            flags=window,
            until=until,
            moment=moment,
            mode=mode,
            out_format=out_format,
        )


@app.command()
def simulate(
    requests: RequestFlags,
    out: Out,
    source: SourceFlags,
    after: SecondStateFlags,
    authorizer: AuthorizerFlags,
    session: SessionFlags,
    mode: OutMode = Mode.ERROR,
    out_format: OutFormatFlag = OutFormat.PARQUET,
) -> None:
    """Report which accesses of a log a change of the ACLs would gain or lose.

    The ACLs before the change are a state source; those after it are the same
    with a change, or another source or moment. One row is written for each
    distinct access whose decision changes, with the number of occurrences and the
    ACLs that decide it before and after. An access that could not be read or
    decided, and may be decided differently, is NOT_JUDGED. Exit code 0 if all are
    the same, 1 if not, 2 for bad input.

    [bold]Examples[/]

      aclog spark simulate --requests accesses --log DIR --remove old.jsonl --out x
      aclog spark simulate --requests accesses --log DIR --to-acls new.jsonl --out x
    """
    from aclog.ops.extras import need_spark_extra

    need_spark_extra()
    from aclog.cli.spark.spark_session import spark_session

    check_mode(mode, "a simulation is that of all its requests")
    place = session.output(out, mode, out_format)
    after.check(source)
    requests.check(session)
    moment = requests.moment()
    with spark_session(session) as spark:
        from aclog.cli.spark.commands import TwoPolicies, simulate_command
        from aclog.ops.policies import settings_of
        from aclog.pipeline.outputs import PARQUET, check_absent, in_format

        after_flags, what = after.authorizer(authorizer), "which decisions change cannot be judged"
        settings = settings_of(authorizer), settings_of(after_flags)
        configs = authorizer.configs(), after_flags.configs()
        check_absent(spark, place, mode, in_format(PARQUET, out_format))
        both = TwoPolicies.of(spark, source, after, settings, configs=configs, proves=what)
        changes = simulate_command(
            spark,
            requests.source(spark),
            place,
            both.before,
            both.after,
            moment=moment,
            mode=mode,
            out_format=out_format,
        )
    raise Exit(int(changes))


@app.command(name="usage-index")
def usage_index(
    source: SourceFlags,
    accesses: AccessesFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    index: Annotated[
        str,
        Option(
            "--index",
            metavar="DIR",
            help="The index; a new or empty directory becomes one. Or s3://BUCKET/PREFIX or abfss://...",
            show_default=False,
        ),
    ],
    session: SessionFlags,
) -> None:
    """Add new access-log entries to the index of last use, on Spark.

    The index is the same as that of `aclog accesses index`, and either command can
    continue it. Spark's workers read the files, which must exist under the same
    paths on every worker; the driver writes the index. The files of a URI (s3://,
    hdfs://, ...) are copied first, for workers on this machine.

    [bold]Example[/]

      aclog spark usage-index --accesses /mnt/logs --log DIR --index usage
    """
    from aclog.ops.extras import need_spark_extra, need_usage_extra

    need_spark_extra()
    need_usage_extra()
    from aclog.cli.index_update import update_index
    from aclog.cli.spark.spark_session import local_source, spark_log, spark_session
    from aclog.ops.policies import settings_of
    from aclog.usage.index.stored import index_place

    settings, how = settings_of(authorizer), output.choose()
    index_place(index)
    with spark_session(session) as spark:
        log = spark_log(spark, accesses)
        with local_source(spark, source) as here:
            update_index(here, accesses, settings, index, how, log, configs=authorizer.configs())


@app.command()
def suggest(
    source: SourceFlags,
    accesses: AccessesFlags,
    window: WindowFlags,
    authorizer: AuthorizerFlags,
    flags: SuggestFlags,
    output: AnswerFlags,
    session: SessionFlags,
) -> None:
    """Suggest the minimal rules that keep every access of a log, as `aclog accesses suggest` does; Spark reads the log.

    Spark's workers read and count the files, which must exist under the same
    paths on every worker, and judge the distinct accesses. The files of a URI
    (s3://, hdfs://, ...) are copied first, for workers on this machine.

    [bold]Example[/]

      aclog spark suggest --accesses /mnt/logs --log DIR --out want.jsonl
    """
    from aclog.ops.extras import need_spark_extra, need_usage_extra

    need_spark_extra()
    need_usage_extra()
    from aclog.cli.spark.spark_session import local_source, spark_log, spark_session
    from aclog.cli.usage_report import print_suggestion
    from aclog.ops.policies import settings_of
    from aclog.ops.usage import suggest_least

    settings, how, topics = settings_of(authorizer), output.choose(), source.topics()
    options = flags.options(window, topics)
    with spark_session(session) as spark:
        log = spark_log(spark, accesses)
        with local_source(spark, source) as here:
            choice, configs = here.choose(topics=topics), authorizer.configs()
            print_suggestion(suggest_least(log, choice, settings, options, configs, each=log.each), flags, how)
