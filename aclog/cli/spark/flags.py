"""The flags of `aclog spark`."""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from aclog.cli.flags.accesses import TimestampAsOf, VersionAsOf, table_moment
from aclog.cli.flags.source import SOURCE_PANEL as PANEL
from aclog.cli.flags.source import log_place
from aclog.cli.options import Option
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.event_form import EventForm
from aclog.pipeline.output_directory import (
    TABLE_NAME,
    Mode,
    OutFormat,
    Place,
    check_new,
    connect_address,
    file_uri,
    server_place,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aclog.pipeline.accesses.catalogs import CatalogRows
    from aclog.usage.accesses.table_formats import TableMoment

# Flags of `aclog spark`, and their groups.


SESSION_PANEL: Final = "Spark"


@frozen(kw_only=True)
class RequestFlags:
    """The requests to decide, and of a table its version."""

    requests: Annotated[
        str | None,
        Option(
            "--requests",
            metavar="PATH|TABLE",
            help="Parquet, ORC or JSON lines with principal, host, operation, resourceType, resourceName and any other "
            "columns; the output of `ingest`; or a Delta or Iceberg table. A path, a glob, a URI of Hadoop, or "
            "CATALOG.DATABASE.TABLE of a catalog of the session.",
            show_default=False,
        ),
    ] = None
    query: Annotated[
        str | None,
        Option("--query", metavar="SQL", help="Instead: a query that returns these columns.", show_default=False),
    ] = None
    version_as_of: VersionAsOf = None
    timestamp_as_of: TimestampAsOf = None

    def moment(self) -> "TableMoment":
        """Return the version of a table. Raises ConfigError: as table_moment."""
        return table_moment(self.version_as_of, self.timestamp_as_of)

    def check(self, session: "SessionFlags") -> None:
        """Raise ConfigError without exactly one source, or for a relative path of a server of Spark Connect."""
        if (self.requests is None) is (self.query is None):
            raise ConfigError("the requests: expected --requests PATH|TABLE or --query SQL")
        if self.requests is not None and not TABLE_NAME.fullmatch(self.requests):
            session.check_read("--requests", self.requests)

    def source(self, spark: "SparkSession") -> "str | CatalogRows":
        """Return the path, the table or the query. Raises ConfigError: with Spark Connect, no such table."""
        from aclog.pipeline.accesses.catalogs import SqlQuery, table_named
        from aclog.pipeline.session import is_connect

        if self.query is not None:
            return SqlQuery(self.query)
        name = file_uri(self.requests or "")
        on_server = is_connect(spark)
        table = table_named(spark, name, is_path=False if on_server else None)
        if table is None and on_server and TABLE_NAME.fullmatch(name):
            raise ConfigError(
                f"--requests {name}: no table of a catalog of the server, and a relative path: expected "
                "CATALOG.DATABASE.TABLE, a URI, or an absolute path of the server's store"
            )
        return name if table is None else table


LogPlace: TypeAlias = Annotated[
    Place, Option("--log", metavar="DIR", help="The log directory.", parser=log_place, show_default=False)
]
Out: TypeAlias = Annotated[
    str,
    Option(
        "--out",
        metavar="DIR",
        help="The directory to create, of Parquet files: a path, or a URI of Hadoop such as s3a://BUCKET/KEY.",
        show_default=False,
    ),
]


OutMode: TypeAlias = Annotated[
    Mode,
    Option(
        "--mode",
        metavar="MODE",
        help="If DIR exists: [cyan]error[/], or [cyan]overwrite[/] the output that the command wrote there before.",
    ),
]
AppendMode: TypeAlias = Annotated[
    Mode,
    Option(
        "--mode",
        metavar="MODE",
        help="If DIR exists: [cyan]error[/], [cyan]overwrite[/] the output that the command wrote there before, or "
        "[cyan]append[/] rows to it, with the same columns.",
    ),
]


OutFormatFlag: TypeAlias = Annotated[
    OutFormat,
    Option(
        "--out-format",
        metavar="FORMAT",
        help="[cyan]parquet[/], [cyan]json[/] (lines), [cyan]delta[/], or [cyan]iceberg[/], whose --out is "
        "CATALOG.DATABASE.TABLE; the last two need a package (--packages).",
    ),
]
ByDay: TypeAlias = Annotated[
    bool,
    Option("--by-day", metavar="", help="Partition accesses by the day (UTC) of their time, in the column day."),
]


def check_mode(mode: Mode, why: str) -> None:
    """Raise ConfigError, with the reason, for a command that does not append."""
    if mode is Mode.APPEND:
        raise ConfigError(f"--mode append: {why}: expected error or overwrite")


@frozen(kw_only=True)
class SessionFlags:
    """The session of Spark: where it runs, its settings and its packages."""

    master: Annotated[
        str | None,
        Option(
            "--master",
            metavar="URL",
            help="The Spark master, such as [cyan]spark://HOST:7077[/], or [cyan]sc://HOST:15002[/], a server of Spark "
            "Connect; under spark-submit, the master given to it.",
            show_default="local[*]",
            rich_help_panel=SESSION_PANEL,
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        Option(
            "--conf",
            metavar="KEY=VALUE",
            help="A setting of Spark, such as [cyan]spark.executor.memory=4g[/]; can be repeated. It overrides aclog's "
            "own settings, and spark-defaults.conf.",
            rich_help_panel=SESSION_PANEL,
        ),
    ] = None
    packages: Annotated[
        list[str] | None,
        Option(
            "--packages",
            metavar="GROUP:NAME:VERSION",
            help="A Maven package for the driver and the executors, such as Delta's; can be repeated, or a list with "
            "commas.",
            rich_help_panel=SESSION_PANEL,
        ),
    ] = None

    def settings(self) -> dict[str, str]:
        """Return the settings of Spark that the flags name; Delta's package adds those that it requires.

        Raises:
            ConfigError: not KEY=VALUE with a key of Spark, or a zone other than UTC.

        """
        settings = dict(_setting(text) for text in self.conf or ())
        packages = [name for text in self.packages or () for name in text.split(",") if name]
        if packages:
            settings[_PACKAGES] = ",".join(filter(None, (settings.get(_PACKAGES), *packages)))
        if any(name.split(":")[1:2] and name.split(":")[1].startswith("delta-spark") for name in packages):
            local = self.master is None or self.master.startswith("local")
            settings = {**DELTA_CONFIGURATION, **(_DELTA_LOCALLY if local else {}), **settings}
        return settings

    @property
    def is_connect(self) -> bool:
        """Whether the jobs run on a server of Spark Connect, whose paths are those of its stores."""
        return connect_address(self.master) is not None

    def output(self, out: str, mode: Mode, form: OutFormat = OutFormat.PARQUET) -> Place:
        """Return where an output goes; on this machine, refuse one that exists (`check_new`). Raises ConfigError."""
        if self.is_connect and form is OutFormat.ICEBERG:  # a name in a catalog
            return out
        return server_place(out, "--out") if self.is_connect else check_new(out, mode)

    def check_read(self, flag: str, *paths: str) -> None:
        """Raise ConfigError for a relative path of a server of Spark Connect."""
        for path in paths if self.is_connect else ():
            server_place(path, flag)

    def refuse_connect(self, what: str, why: str) -> None:
        """Raise ConfigError if the jobs run on a server of Spark Connect."""
        if self.is_connect:
            raise ConfigError(
                f"{what} with Spark Connect (sc://...): {why}: expected another --master, or spark-submit"
            )


DELTA_CONFIGURATION: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""The settings of a session that Delta requires."""
_DELTA_LOCALLY: Final = {"spark.databricks.delta.snapshotPartitions": "2"}
"""For few cores: by default Delta reads its log in 50 tasks, which takes minutes on two."""
_PACKAGES: Final = "spark.jars.packages"
_ZONE: Final = "spark.sql.session.timeZone"


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key.startswith("spark."):
        raise ConfigError(f"--conf {text!r}: expected KEY=VALUE with a key of Spark, such as spark.executor.memory=4g")
    if key == _ZONE and value != "UTC":
        raise ConfigError(f"--conf {text!r}: expected UTC: the times of logs and of --as-of are in UTC")
    return key, value


class Decided(StrEnum):
    """A decision."""

    ALLOWED = "allowed"
    DENIED = "denied"


@frozen(kw_only=True)
class DecidedFlags:
    """By which time requests are decided, and as what they are written."""

    own_time: Annotated[
        bool,
        Option(
            "--own-time",
            metavar="",
            help="With --log: decide each row by the ACLs in force at its own [cyan]timestamp[/].",
            rich_help_panel=PANEL,
        ),
    ] = False
    as_: Annotated[
        EventForm | None,
        Option(
            "--as",
            metavar="FORM",
            help="Also write DIR/events, JSON lines: [cyan]ocsf[/] (API Activity, 6003) or [cyan]cloudevents[/]; the "
            "table is then DIR/decided.",
            show_default=False,
        ),
    ] = None
    only: Annotated[
        Decided | None,
        Option(
            "--only",
            metavar="DECISION",
            help="Events of requests that are [cyan]allowed[/], or [cyan]denied[/].",
            show_default=False,
        ),
    ] = None
    event_source: Annotated[
        str,
        Option("--event-source", metavar="URI", help="Where events are from, such as the cluster's id."),
    ] = "/aclog"

    def check(self) -> None:
        """Raise ConfigError for a flag about events without --as, or a source that is no URI reference."""
        if self.as_ is None and self.only is not None:
            raise ConfigError("--only chooses among events: expected --as ocsf or --as cloudevents")
        if not re.fullmatch(r"[!#-;=?-\[\]_a-z~]+", self.event_source):
            raise ConfigError(f"--event-source {self.event_source!r}: expected a URI reference, such as //HOST/CLUSTER")


@frozen(kw_only=True)
class UsageFlags:
    """The window of time to report on, and the limit on reported denials."""

    days: Annotated[
        int,
        Option("--days", metavar="N", min=1, help="The length of the window: an ACL unused in it is reported."),
    ] = 90
    until: Annotated[
        str | None,
        Option("--until", metavar="TIME", help="The end of the window.", show_default="the latest access"),
    ] = None
    top: Annotated[int, Option("--top", metavar="K", min=1, help="The number of most denied accesses to write.")] = 100


@frozen(kw_only=True)
class IngestFlags:
    """The format of access logs."""

    kind: Annotated[
        str,
        Option(
            "--kind",
            metavar="KIND",
            help="[cyan]kafka-log[/] (kafka-authorizer.log of any Kafka), [cyan]events[/] (aclog's audit events "
            "in Avro), [cyan]events-jsonl[/], or a table: [cyan]parquet[/], [cyan]csv[/], [cyan]jsonl[/].",
        ),
    ] = "kafka-log"
    timezone: Annotated[
        str,
        Option(
            "--timezone",
            metavar="ZONE",
            help="The time zone of timestamps that state none; brokers log their local time.",
        ),
    ] = "UTC"
    column: Annotated[
        list[str] | None,
        Option("--column", metavar="OURS=THEIRS", help="The table's name for one of aclog's columns; can be repeated."),
    ] = None


@frozen(kw_only=True)
class AppendFlags:
    """Whether a table is made once, or grows."""

    append: Annotated[
        bool,
        Option(
            "--append",
            metavar="",
            help="Add new lines to DIR, by day; a ledger in it identifies files by content, under any name.",
        ),
    ] = False
    follow: Annotated[
        bool,
        Option("--follow", metavar="", help="Append again and again, until SIGTERM or SIGINT."),
    ] = False
    interval: Annotated[
        float, Option("--interval", metavar="SECONDS", help="With --follow: the time between two checks.")
    ] = 10.0
    checkpoint: Annotated[
        str | None,
        Option(
            "--checkpoint",
            metavar="DIR",
            help="With --append or --follow in another store or a table format: Spark's record of what is done.",
            show_default="DIR/_checkpoint",
        ),
    ] = None

    @property
    def appends(self) -> bool:
        """Whether DIR may exist, with a ledger."""
        return self.append or self.follow


@frozen(kw_only=True)
class ReportFlags:
    """The report on the lines, and how many rejects are too many."""

    summary: Annotated[
        str | None,
        Option(
            "--summary",
            metavar="FILE|-",
            help="Write the counts as JSON to a file, or to stdout in place of the table.",
            show_default=False,
        ),
    ] = None
    max_reject_rate: Annotated[
        float | None,
        Option(
            "--max-reject-rate",
            metavar="SHARE",
            help="Write nothing, and exit with 1, if more than this share of the lines is rejected: 0.01 is 1 %.",
            show_default=False,
        ),
    ] = None


# Checks of the flags of `aclog spark ingest` that need no Spark.


_MAX_INTERVAL_S = 86_400.0


def check_report(report: ReportFlags, appending: AppendFlags) -> None:
    """Refuse values out of range, and a summary that could not be written.

    Raises:
        ConfigError: one of these.

    """
    rate = report.max_reject_rate
    if rate is not None and not 0 <= rate <= 1:
        raise ConfigError(f"--max-reject-rate {rate:g}: expected a share from 0 to 1, such as 0.01 for 1 %")
    if not 0 < appending.interval <= _MAX_INTERVAL_S:
        raise ConfigError(
            f"--interval {appending.interval:g}: expected seconds above 0, and at most {_MAX_INTERVAL_S:g}"
        )
    if report.summary is not None and report.summary != "-":
        path = Path(report.summary)
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise ConfigError(f"--summary {path}: expected the name of a file in a directory that exists, or -")


def column_pairs(texts: Sequence[str]) -> dict[str, str]:
    """Return the names in `OURS=THEIRS` by OURS; THEIRS may contain `=`.

    Raises:
        ConfigError: not a pair, or OURS is given twice.

    """
    pairs: dict[str, str] = {}
    for text in texts:
        ours, equals, theirs = text.partition("=")
        if not equals or not ours or not theirs:
            raise ConfigError(f"--column {text!r}: expected OURS=THEIRS, such as principal=user")
        if ours in pairs:
            raise ConfigError(f"--column {text!r}: {ours} is given twice")
        pairs[ours] = theirs
    return pairs
