"""The flags of access logs, and of the window of them that counts."""

import re
from typing import TYPE_CHECKING, Annotated, TypeAlias

from attrs import field

from aclog.cli.options import Option
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aclog.ops.usage import AccessLog, ReadAccesses
    from aclog.usage.accesses.objects import ObjectCopies
    from aclog.usage.accesses.table_formats import TableMoment
    from aclog.usage.judging import Each


# The flags of an access log, and of the window of it that counts.


ACCESSES_PANEL = "Accesses"


AccessPaths: TypeAlias = Annotated[
    list[str],
    Option(
        "--accesses",
        metavar="PATH",
        help="The access log: a file, a directory, a glob, an object store (s3://BUCKET/PREFIX, gs://..., "
        "abfss://...), or stdin (-). Content: "
        "kafka-authorizer.log in any layout, rotated or compressed; Parquet; JSON lines; or events of aclog, Confluent "
        "or Redpanda. Can be repeated.",
        show_default=False,
        rich_help_panel=ACCESSES_PANEL,
    ),
]
AccessesFormat: TypeAlias = Annotated[
    str | None,
    Option(
        "--accesses-format",
        metavar="FORMAT",
        help="[cyan]kafka-log[/], [cyan]kafka-json[/] (messages of kafka-authorizer.log in JSON lines), "
        "[cyan]parquet[/], [cyan]jsonl[/], [cyan]events[/] (aclog's audit events in Avro), [cyan]events-jsonl[/], "
        "[cyan]ocsf[/] or [cyan]cloudevents[/]; or the layout of the log, as a pattern of log4j: "
        "'%d %p %m (%c)%n'. [dim]Default: recognised by content[/]",
        show_default=False,
        rich_help_panel=ACCESSES_PANEL,
    ),
]
AccessesTimezone: TypeAlias = Annotated[
    str | None,
    Option(
        "--accesses-timezone",
        metavar="ZONE",
        help="The time zone of timestamps that state none; brokers log their local time.",
        show_default="UTC",
        rich_help_panel=ACCESSES_PANEL,
    ),
]
ExplainUnread: TypeAlias = Annotated[
    int,
    Option(
        "--explain-unread",
        metavar="N",
        min=0,
        help="Show the first N lines whose access could not be read, each with the column from which it does not "
        "fit the layout.",
        show_default=False,
        rich_help_panel=ACCESSES_PANEL,
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    Option(
        "--workers",
        metavar="N",
        min=1,
        help="The number of processes that read the access log.",
        show_default="one per core, and one for a small log",
        rich_help_panel=ACCESSES_PANEL,
    ),
]


VersionAsOf: TypeAlias = Annotated[
    int | None,
    Option(
        "--version-as-of",
        metavar="N",
        help="Of a Delta table, read version N; of an Iceberg table, the snapshot with this id.",
        show_default="the newest",
        rich_help_panel=ACCESSES_PANEL,
    ),
]
TimestampAsOf: TypeAlias = Annotated[
    str | None,
    Option(
        "--timestamp-as-of",
        metavar="TIME",
        help="Read a Delta or Iceberg table as it was at this time.",
        show_default="now",
        rich_help_panel=ACCESSES_PANEL,
    ),
]


def table_moment(version: int | None, timestamp: str | None) -> "TableMoment":
    """Return the version of a table that two flags name. Raises ConfigError: both do, or it is not a time."""
    from aclog.usage.accesses.table_formats import TableMoment

    return TableMoment(version=version, timestamp=time_of(timestamp, "--timestamp-as-of"))


@frozen(kw_only=True, eq=False, repr=False)
class AccessesFlags:
    """An access log, and how it is read."""

    accesses: AccessPaths
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    version_as_of: VersionAsOf = None
    timestamp_as_of: TimestampAsOf = None
    workers: Workers = None
    explain_unread: ExplainUnread = 0

    def moment(self) -> "TableMoment":
        """Return the version of a table. Raises ConfigError: as table_moment."""
        return table_moment(self.version_as_of, self.timestamp_as_of)

    def open(
        self,
        each: "Each | None" = None,
        *,
        copies: bool = True,
        uri_copies: "Mapping[str, ObjectCopies] | None" = None,
    ) -> "AccessLog":
        """Find the files; `each` reads them, by default processes of this machine. The rest: AccessLog.of."""
        from aclog.ops.usage import AccessLog  # here: needs the extra `usage`

        return AccessLog.of(
            self, each, explain=self.explain_unread, moment=self.moment(), copies=copies, uri_copies=uri_copies or {}
        )


def given_accesses(flags: "ReadAccesses") -> AccessesFlags | None:
    """Return the access log that is given; None if none is."""
    if not flags.accesses:
        return None
    return AccessesFlags(
        accesses=flags.accesses,
        accesses_format=flags.accesses_format,
        accesses_timezone=flags.accesses_timezone,
        workers=flags.workers,
    )


@frozen(kw_only=True, eq=False, repr=False)
class ReplayFlags:
    """An access log over which what was found is proved, if there is one."""

    accesses: Annotated[
        list[str],
        Option(
            "--accesses",
            metavar="PATH",
            help="Prove the result: decide the accesses of this log again without the removable rules; can be "
            "repeated.",
            show_default=False,
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    workers: Workers = None


Until: TypeAlias = Annotated[
    str | None,
    Option(
        "--until",
        metavar="TIME",
        help="The end of the window.",
        show_default="the latest access",
        rich_help_panel=ACCESSES_PANEL,
    ),
]


@frozen(kw_only=True, eq=False, repr=False)
class JudgedWindowFlags:
    """The part of an access log that counts; without --days, a window in which ACLs can be judged."""

    days: Annotated[
        int | None,
        Option(
            "--days",
            metavar="N",
            min=1,
            help="The length of the window; older accesses are ignored.",
            show_default="90, or fewer if all ACLs are younger",
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = None
    until: Until = None


@frozen(kw_only=True, eq=False, repr=False)
class WindowFlags:
    """The part of an access log that counts."""

    days: Annotated[
        int,
        Option(
            "--days",
            metavar="N",
            min=1,
            help="The length of the window; older accesses are ignored.",
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = 90
    until: Until = None

    def end(self) -> "datetime | None":
        """Return the time in --until; None for the latest access. Raises ConfigError: it is not a time."""
        return window_end(self.until)


def window_end(text: str | None) -> "datetime | None":
    """Return the time in --until, None if it is not given. Raises ConfigError: it is not a time."""
    return time_of(text, "--until")


def time_of(text: str | None, flag: str) -> "datetime | None":
    """Return the time in a flag, None if it is not given. Raises ConfigError: it is not a time."""
    from aclog.metalog.errors import ConfigError
    from aclog.terminal.moment import take_moment

    if text is None:
        return None
    moment = take_moment(text)
    if isinstance(moment, int):
        raise ConfigError(f"{flag} {text}: expected a time, such as 2026-11-20T10:00:00Z")
    return moment


# How long a broker must be silent for it to count as a gap.


_UNITS = {"h": 1, "d": 24, "w": 7 * 24}
_HOUR = 3_600_000_000

Gap: TypeAlias = Annotated[
    str,
    Option(
        "--gap",
        metavar="TIME",
        help="The time without log lines of a broker ([cyan]6h[/], [cyan]1d[/], [cyan]2w[/]) that counts as a gap.",
    ),
]


def gap_us(text: str) -> int:
    """Return --gap in us. Raises ConfigError: it is no time, or under an hour."""
    match = re.fullmatch(r"([0-9]{1,6})([hdw])", text.strip())
    if match is None or not int(match[1]):
        raise ConfigError(f"--gap {text[:40]!r}: expected hours, days or weeks, such as 6h, 1d or 2w")
    return int(match[1]) * _UNITS[match[2]] * _HOUR
