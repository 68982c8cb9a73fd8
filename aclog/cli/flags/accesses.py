"""The flags of an access log, and of the window of it that counts."""

from typing import TYPE_CHECKING, Annotated, Protocol, TypeAlias

import typer
from attrs import field, frozen

if TYPE_CHECKING:
    from datetime import datetime

PANEL = "Accesses"


AccessPaths: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--accesses",
        metavar="PATH",
        help="The access log: a file, a directory or a glob, of kafka-authorizer.log (rotated and gzipped files "
        "too), Parquet, JSON lines, or events of aclog, Confluent and Redpanda; can be repeated.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
AccessesFormat: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--accesses-format",
        metavar="FORMAT",
        help="[cyan]kafka-log[/], [cyan]parquet[/], [cyan]jsonl[/], [cyan]events[/] (aclog's audit events in Avro), "
        "[cyan]events-jsonl[/], [cyan]ocsf[/] or [cyan]cloudevents[/]. [dim]Default: recognised by content[/]",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
AccessesTimezone: TypeAlias = Annotated[
    str,
    typer.Option(
        "--accesses-timezone",
        metavar="ZONE",
        help="The zone of times that name none: a broker logs its local time.",
        rich_help_panel=PANEL,
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="The number of processes that read it.",
        show_default="one a core, and one for a small log",
        rich_help_panel=PANEL,
    ),
]


@frozen(kw_only=True)
class AccessesFlags:
    """An access log, and how it is read."""

    accesses: AccessPaths
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = "UTC"
    workers: Workers = None


class HasAccesses(Protocol):
    """Flags among which an access log may be given, and how it is read."""

    @property
    def accesses(self) -> list[str]:
        """Its paths; empty if none is given."""

    @property
    def accesses_format(self) -> str | None:
        """As AccessesFormat."""

    @property
    def accesses_timezone(self) -> str:
        """As AccessesTimezone."""

    @property
    def workers(self) -> int | None:
        """As Workers."""


def given_accesses(flags: HasAccesses) -> AccessesFlags | None:
    """Return the access log that is given; None if none is."""
    if not flags.accesses:
        return None
    return AccessesFlags(
        accesses=flags.accesses,
        accesses_format=flags.accesses_format,
        accesses_timezone=flags.accesses_timezone,
        workers=flags.workers,
    )


@frozen(kw_only=True)
class ReplayFlags:
    """An access log over which what was found is proved, if there is one."""

    accesses: Annotated[
        list[str],
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="Prove it: decide the accesses of this log again without all that can go; can be repeated.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = "UTC"
    workers: Workers = None


@frozen(kw_only=True)
class WindowFlags:
    """The part of an access log that counts."""

    days: Annotated[
        int,
        typer.Option(
            "--days",
            metavar="N",
            min=1,
            help="The length of the window: what is older is left out.",
            rich_help_panel=PANEL,
        ),
    ] = 90
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="The end of the window.",
            show_default="the latest access",
            rich_help_panel=PANEL,
        ),
    ] = None

    def end(self) -> "datetime | None":
        """Return the time in --until; None for the latest access. Raises ConfigError: it is not a time."""
        return window_end(self.until)


def window_end(text: str | None) -> "datetime | None":
    """Return the time in --until, None if it is not given. Raises ConfigError: it is not a time."""
    from aclog.metalog.errors import ConfigError
    from aclog.terminal.moment import take_moment

    if text is None:
        return None
    moment = take_moment(text)
    if isinstance(moment, int):
        raise ConfigError(f"--until {text}: expected a time, such as 2026-11-20T10:00:00Z")
    return moment
