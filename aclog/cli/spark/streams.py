"""`aclog spark follow`: the flags of streams, and the command that decides accesses as they arrive."""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Final

from aclog.cli.explain import ALLOWED, DENIED
from aclog.cli.options import FilePath, Option
from aclog.cli.signals import Stop, on_signals
from aclog.cli.spark.flags import AppendFlags, IngestFlags, ReportFlags, column_pairs
from aclog.metalog.errors import ConfigError, MetadataError, plural
from aclog.metalog.values import frozen
from aclog.pipeline.output_directory import OutFormat
from aclog.terminal.output import complain, note, say, utc_text, warn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from aclog.authorizer.settings import Settings
    from aclog.pipeline.log_copies import GrowingLog
    from aclog.pipeline.output_directory import Place
    from aclog.pipeline.streams.decisions import DecidedBatch
    from aclog.pipeline.streams.taken_files import TakenFiles

_MAX_SECONDS: Final = 86_400.0
_LEAST_SECONDS: Final = 0.001
PANEL: Final = "Stream"


@frozen(kw_only=True)
class StreamFlags:
    """A stream of accesses: where it comes from, how it is read, and when it ends."""

    requests: Annotated[
        str,
        Option(
            "--requests",
            metavar="PATH|TOPIC",
            help="A directory, a glob or a URI of Hadoop to which complete files are added; or "
            "[cyan]kafka://HOST:PORT/TOPIC[/], one access per record.",
            show_default=False,
        ),
    ]
    kind: Annotated[
        str | None,
        Option(
            "--kind",
            metavar="KIND",
            help="The lines: [cyan]kafka-log[/] (kafka-authorizer.log of any Kafka), [cyan]events-jsonl[/] (aclog's "
            "audit events) or [cyan]jsonl[/]. [dim]Default: Parquet and ORC are detected; other files, and records, "
            "are JSON lines[/]",
            show_default=False,
        ),
    ] = None
    timezone: Annotated[
        str, Option("--timezone", metavar="ZONE", help="The time zone of timestamps that state none.")
    ] = "UTC"
    column: Annotated[
        list[str] | None,
        Option("--column", metavar="OURS=THEIRS", help="The key of JSON lines for a column; can be repeated."),
    ] = None
    requests_command_config: Annotated[
        Path | None,
        Option(
            "--requests-command-config",
            metavar="FILE",
            help="A client properties file for the topic, such as its security settings.",
            parser=FilePath(),
            show_default=False,
        ),
    ] = None
    source_option: Annotated[
        list[str] | None,
        Option(
            "--source-option",
            metavar="KEY=VALUE",
            help="An option of Spark's source, such as [cyan]maxOffsetsPerTrigger=100000[/]; can be repeated.",
            rich_help_panel=PANEL,
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        Option(
            "--checkpoint",
            metavar="DIR",
            help="Spark's record of what is done: a path or URI.",
            show_default="DIR/_checkpoint",
            rich_help_panel=PANEL,
        ),
    ] = None
    interval: Annotated[
        float,
        Option("--interval", metavar="SECONDS", help="The time between two batches.", rich_help_panel=PANEL),
    ] = 10.0
    to_end: Annotated[
        bool,
        Option(
            "--to-end",
            metavar="",
            help="Stop once all accesses are decided that are present now; the next run continues.",
            rich_help_panel=PANEL,
        ),
    ] = False

    def check(self) -> None:
        """Raise ConfigError for an interval out of range, or the settings of a topic without one."""
        check_seconds("--interval", self.interval, least=_LEAST_SECONDS)
        if self.requests_command_config is not None and not self.requests.startswith("kafka://"):
            raise ConfigError("--requests-command-config: expected --requests kafka://HOST:PORT/TOPIC")
        self.options()
        column_pairs(self.column or ())

    def options(self) -> dict[str, str]:
        """Return the options of Spark's source. Raises ConfigError: not KEY=VALUE, or a bad properties file."""
        from aclog.config.properties import read_properties

        options: dict[str, str] = {}
        if self.requests_command_config is not None:
            properties, _ = read_properties(self.requests_command_config)
            options = {f"kafka.{key}": value for key, value in properties.items()}
        for text in self.source_option or ():
            key, equals, value = text.partition("=")
            if not equals or not key:
                raise ConfigError(f"--source-option {text!r}: expected KEY=VALUE, such as maxFilesPerTrigger=100")
            options[key] = value
        return options


def check_seconds(flag: str, seconds: float, *, least: float = 0.0) -> None:
    """Raise ConfigError if a number of seconds is out of range."""
    if not least <= seconds <= _MAX_SECONDS:
        raise ConfigError(f"{flag} {seconds:g}: expected seconds from {least:g} to {_MAX_SECONDS:g}")


@frozen(kw_only=True)
class FollowFlags:
    """How accesses that arrive are decided."""

    log_delay: Annotated[
        float,
        Option(
            "--log-delay",
            metavar="SECONDS",
            help="By how much the log may be behind the accesses: each batch waits so long before the log is read.",
        ),
    ] = 0.0
    lost_within: Annotated[
        float | None,
        Option(
            "--lost-within",
            metavar="SECONDS",
            help="Report denied accesses that were allowed at some moment of so much time before; adds the column "
            "lost_at.",
            show_default=False,
        ),
    ] = None

    def check(self) -> None:
        """Raise ConfigError for seconds out of range."""
        check_seconds("--log-delay", self.log_delay)
        if self.lost_within is not None:
            check_seconds("--lost-within", self.lost_within, least=_LEAST_SECONDS)


def follow_command(
    spark: "SparkSession",
    out: "Place",
    flags: StreamFlags,
    how: FollowFlags,
    log: "GrowingLog",
    settings: "Settings",
    configs: frozenset[str],
    *,
    form: OutFormat = OutFormat.PARQUET,
    by_day: bool = False,
) -> None:
    """Decide accesses as they arrive until SIGTERM or SIGINT, and print a line per batch.

    Raises:
        ConfigError: the accesses or the log cannot be read, or `out` is the output of another stream.
        LogError, DecodeError: the log cannot be read, is damaged, or is another one than before.

    """
    from aclog.cli.flags.source import SourceFlags
    from aclog.ops.policies import read_premises
    from aclog.ops.usage import warn_of_unknown_kafka
    from aclog.pipeline.output_directory import place_of
    from aclog.pipeline.streams.batches import stream_output
    from aclog.pipeline.streams.decisions import DecidedStream
    from aclog.pipeline.streams.sources import AccessStream
    from aclog.pipeline.streams.taken_files import TakenFiles
    from aclog.usage.rules import FollowedRules

    accesses = AccessStream.of(
        spark,
        flags.requests,
        kind=flags.kind,
        timezone=flags.timezone,
        columns=column_pairs(flags.column or ()),
        options=flags.options(),
    )
    read_premises(SourceFlags(log=log.directory).choose(), configs)
    followed = FollowedRules.of(log.directory, settings)
    warn_of_unknown_kafka(followed.rules)
    stated = {"command": "follow", "requests": flags.requests}
    checkpoint = None if flags.checkpoint is None else place_of(flags.checkpoint)
    with stream_output(spark, out, checkpoint, stated, form, by_day=by_day) as output:
        stream = DecidedStream(
            spark=spark,
            accesses=accesses,
            followed=followed,
            read_log=log.update,
            output=output,
            report=_say_batch,
            lost_within=None if how.lost_within is None else round(how.lost_within * 1000),
            log_delay=how.log_delay,
        )
        if not flags.to_end:
            note(f"following {flags.requests} into {out}, every {flags.interval:g} s")
        run_until_stopped(
            lambda: stream.start(interval=flags.interval, to_end=flags.to_end),
            lambda: stream.error,
            TakenFiles(spark, output.checkpoint) if accesses.has_files else None,
            flags.interval,
        )


def ingest_stream_command(
    spark: "SparkSession",
    paths: Sequence[str],
    out: "Place",
    flags: IngestFlags,
    appending: AppendFlags,
    report: ReportFlags,
    *,
    form: OutFormat = OutFormat.PARQUET,
    by_day: bool = False,
) -> int:
    """Append the lines of new files of any store to `out`, once or until a signal comes; return the exit code.

    Raises:
        ConfigError: the files cannot be read or have no lines, or `out` is the output of another stream.

    """
    from aclog.cli.spark.commands import STDOUT, write_summary
    from aclog.pipeline.accesses import Counts, Layout, RejectRateError
    from aclog.pipeline.accesses.tables import SCHEMAS
    from aclog.pipeline.output_directory import place_of
    from aclog.pipeline.streams.batches import stream_output
    from aclog.pipeline.streams.ingestion import IngestedStream
    from aclog.pipeline.streams.taken_files import TakenFiles

    layout = Layout.of(spark, flags.kind, flags.timezone, column_pairs(flags.column or ()))

    def say_lines(number: int, counts: Counts) -> None:
        write_summary(report.summary, out, counts, None, committed=True)
        if report.summary != STDOUT:
            text = f"{plural(counts.accesses, 'access')}, {counts.rejected:,} rejected, {counts.blanks:,} blank"
            say(f"batch {number}: {text}", flush=True)

    stated = {"command": "ingest", "paths": " ".join(paths), "kind": layout.kind.value, "timezone": layout.zone}
    checkpoint = None if appending.checkpoint is None else place_of(appending.checkpoint)
    with stream_output(spark, out, checkpoint, stated, form, names=SCHEMAS, by_day=by_day) as output:
        stream = IngestedStream(
            spark=spark,
            paths=paths,
            layout=layout,
            output=output,
            report=say_lines,
            max_reject_rate=report.max_reject_rate,
        )
        if appending.follow:
            note(f"following {', '.join(paths)} into {out}, every {appending.interval:g} s")
        try:
            run_until_stopped(
                lambda: stream.start(interval=appending.interval, to_end=not appending.follow),
                lambda: stream.error,
                TakenFiles(spark, output.checkpoint),
                appending.interval,
            )
        except RejectRateError as error:
            write_summary(report.summary, out, error.counts, None, committed=False)
            complain(str(error))
            return DENIED
    return ALLOWED


def run_until_stopped(
    start: "Callable[[], StreamingQuery]",
    error: Callable[[], Exception | None],
    taken: "TakenFiles | None",
    interval: float,
) -> None:
    """Run a stream until its end, or until SIGTERM or SIGINT stops it; warn of files that change after their reading.

    Raises:
        MetadataError: the error of a batch, by `error`; StreamingQueryException for another one of Spark.

    """
    stop = Stop()
    with on_signals(stop.set):
        query = start()
        try:
            looked = monotonic()
            while query.isActive and not stop.wait(_LOOK):
                if taken is not None and monotonic() > looked + interval:
                    _warn_of_changed(taken)
                    looked = monotonic()
        finally:
            query.stop()
        if taken is not None:
            _warn_of_changed(taken)
    failed, own = query.exception(), error()
    if failed is not None:
        if isinstance(own, MetadataError):
            raise own
        raise failed


def _warn_of_changed(taken: "TakenFiles") -> None:
    for name in taken.changed():
        warn(
            f"{name}: has changed since it was listed, and is not read again: new lines are missing: expected files "
            "that do not change once they have their name"
        )


_LOOK: Final = 0.2
"""Seconds between two looks whether the stream has ended."""


def _say_batch(batch: "DecidedBatch") -> None:
    counts = ", ".join(f"{batch.decisions[name]:,} {name}" for name in ("ALLOWED", "DENIED", "ERROR"))
    ahead = f"; {batch.ahead:,} later than the log" if batch.ahead else ""
    span = "" if batch.earliest is None else f", {_time(batch.earliest)} to {_time(batch.latest)}"
    number = "1 access" if batch.total == 1 else f"{batch.total:,} accesses"
    say(f"batch {batch.number}: {number}{span}: {counts}{ahead}", flush=True)
    for principal, operation, kind, name, at, accesses in batch.lost:
        say(
            f"  {principal} lost {operation} on {kind} {name} at {_time(at)}: {accesses:,} denied since",
            flush=True,
        )
    for reason, count in sorted(batch.reasons.items()):
        warn(f"batch {batch.number}: {count:,} requests: {reason}")


def _time(at: object) -> str:
    """Return a time of Spark's, which is in the zone of this process without naming it."""
    timestamp = getattr(at, "timestamp")  # noqa: B009 - of a datetime
    return utc_text(round(timestamp() * 1000))
