"""`aclog accesses coverage`: which brokers and hours an access log holds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import numpy as np
from attrs import field
from click.exceptions import Exit

from aclog.authorizer.audit import Reason
from aclog.cli.flags.accesses import (
    AccessesFlags,
    AccessesFormat,
    AccessesTimezone,
    AccessPaths,
    ExplainUnread,
    Gap,
    Workers,
    gap_us,
)
from aclog.cli.flags.common import Output
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.options import Group, Option
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.metalog.values import frozen
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import note, optional_time_text, say, time_text
from aclog.terminal.tables import aligned
from aclog.usage.unused import HeardHours, silences
from aclog.usage.window import EARLIEST, HOUR, LATEST, Coverage, UnreadAccesses, unread_text

# The flags of `aclog accesses coverage`.


@frozen(kw_only=True)
class CoverageFlags:
    """An access log or an index, and what counts as a gap."""

    accesses: AccessPaths = field(factory=list)
    index: Annotated[
        str | None,
        Option(
            "--index",
            metavar="DIR",
            help="An index that the command [cyan]aclog accesses index[/] writes; or s3://BUCKET/PREFIX or abfss://...",
            show_default=False,
        ),
    ] = None
    gap: Gap = "1d"
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    workers: Workers = None
    explain_unread: ExplainUnread = 0

    def log(self) -> AccessesFlags:
        """Return the flags of the log."""
        return AccessesFlags(
            accesses=self.accesses,
            accesses_format=self.accesses_format,
            accesses_timezone=self.accesses_timezone,
            workers=self.workers,
            explain_unread=self.explain_unread,
        )


# `aclog accesses coverage`: which brokers and hours an access log covers, and its gaps.


app = Group()


@app.command()
def coverage(flags: CoverageFlags, output: AnswerFlags) -> None:
    """Show the periods in which each broker logged accesses, and the gaps between them.

    The accesses in a gap are unknown: no rule is reported as unused for a window
    with a gap. Each broker is expected to log throughout, from the earliest line
    in the log to the latest. Accesses that could not be read or decided are
    counted by principal: the rules that they may need are not reported as unused.
    Exit code 1 if there are gaps or such accesses.

    [bold]Examples[/]

      aclog accesses coverage --accesses /var/log/kafka
      aclog accesses coverage --index usage --gap 6h --format jsonl
    """
    raise Exit(print_coverage(flags, output.choose()))


# Stretches of time in which a broker logged lines, and the gaps between them.


@frozen(kw_only=True)
class Stretch:
    """Lines of a broker without a gap, or a gap."""

    broker: str | None
    is_hole: bool
    start: int
    """In us since 1970: of lines the first and the last."""
    end: int
    hours: int = 0
    """The hours with any line."""
    lines: int = 0


def stretches(covered: Coverage, *, gap: int) -> list[Stretch]:
    """Return all of them, by broker and time; each is expected to log from the first line of all to the last."""
    start, until = int(covered.first.min()), int(covered.last.max())
    return [each for broker in covered.brokers for each in _of_broker(covered.of_broker(broker), start, until, gap)]


def _of_broker(mine: Coverage, start: int, until: int, gap: int) -> Iterator[Stretch]:
    (broker,) = mine.brokers
    hours = {broker: HeardHours(first=mine.first, last=mine.last)}
    at = 0
    for hole in silences(hours, start, until, gap=gap):
        since, to = start if hole.since is None else hole.since, until if hole.to is None else hole.to
        end = int(np.searchsorted(mine.first, since, "right")) if hole.since is not None else 0
        yield from _lines(mine, at, end)
        yield Stretch(broker=broker, is_hole=True, start=since, end=to)
        at = end
    yield from _lines(mine, at, len(mine))


def _lines(mine: Coverage, at: int, end: int) -> Iterator[Stretch]:
    if end > at:
        yield Stretch(
            broker=mine.brokers[0],
            is_hole=False,
            start=int(mine.first[at]),
            end=int(mine.last[end - 1]),
            hours=end - at,
            lines=int(mine.rows[at:end].sum()),
        )


# What `aclog accesses coverage` prints: for each broker its stretches of lines, and the gaps between them.


NONE, HOLES = 0, 1
"""Exit codes."""
_SHOWN_HOLES: Final = 20


COVERAGE_COLUMNS: Final = (
    Column(key="broker"),
    Column(key="kind"),
    Column(key="from", text=optional_time_text),
    Column(key="to", text=optional_time_text),
    Column(key="hours"),
    Column(key="lines"),
)
"""Of a stretch."""
PRINCIPAL_COLUMN: Final = Column(key="principal", cut=True, spare=True)
"""Of what could not be read or decided, if there is any."""


def print_coverage(flags: CoverageFlags, output: Output) -> int:
    """Print what a log or an index holds; return the exit code: 1 if it has gaps.

    Raises:
        MetadataError, OSError: it cannot be read, or holds nothing.

    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    gap = gap_us(flags.gap)
    if bool(flags.accesses) == (flags.index is not None):
        raise ConfigError("--accesses or --index: expected one of them")
    covered, unread, zone = _of_log(flags) if flags.index is None else (*_of_index(flags), "")
    spans = stretches(covered, gap=gap)
    if output.is_rows:
        more = (PRINCIPAL_COLUMN,) if unread else ()
        output.print_rows((*COVERAGE_COLUMNS, *more), (*map(_row, spans), *_unread_rows(unread)))
    else:
        for line in (*_report_lines(covered, spans), *_unread_lines(unread)):
            say(printable(line))
    if zone:
        note(zone)
    return HOLES if unread or any(each.is_hole for each in spans) else NONE


def _of_index(flags: CoverageFlags) -> tuple[Coverage, UnreadAccesses]:
    from aclog.usage.index.stored import reading_index

    assert flags.index is not None  # noqa: S101 - the caller has looked
    with reading_index(flags.index) as index:
        covered, unread = index.coverage(), index.unread(EARLIEST, LATEST)
    if not len(covered):
        raise ConfigError(f"{index.database.name}: holds no access yet: expected some, by aclog accesses index")
    return covered, unread


def _of_log(flags: CoverageFlags) -> tuple[Coverage, UnreadAccesses, str]:
    """Return what a log covers, what could not be read, and whether its times were read as UTC."""
    from aclog.ops.extras import need_usage_extra
    from aclog.terminal.notices import progress

    need_usage_extra()
    from aclog.ops.usage import warn_of_long_lines, warn_of_rejects
    from aclog.usage.accesses.lines import LongLine
    from aclog.usage.judging import cover_log

    log = flags.log().open()
    parts, lines, rejects, unread = list[Coverage](), 0, Counter[Reason](), list[UnreadAccesses]()
    long_lines = list[LongLine]()
    with progress("reading the accesses", "rows") as advance:
        for part in cover_log(log.accesses.parts, log.each):
            parts.append(part.coverage)
            lines += part.lines
            rejects += part.rejects
            unread.append(part.unread)
            long_lines += part.long_lines
            advance(lines, None)
    covered = Coverage.sum(parts)
    warn_of_rejects(rejects)
    warn_of_long_lines(long_lines)
    if not len(covered):
        raise log.error("no access has a timestamp: the period that it covers is unknown")
    return covered, UnreadAccesses.sum_of(unread), log.assumed_zone()


def _row(stretch: Stretch) -> Row:
    return {
        "broker": stretch.broker,
        "kind": "HOLE" if stretch.is_hole else "LINES",
        "from": stretch.start // 1000,
        "to": stretch.end // 1000,
        "hours": stretch.hours,
        "lines": stretch.lines,
    }


def _unread_rows(unread: UnreadAccesses) -> Iterator[Row]:
    for principal, broker, hours, span in unread.stretches():
        yield {
            "broker": broker,
            "kind": "UNREAD",
            "from": None if span.first is None else span.first // 1000,
            "to": None if span.last is None else span.last // 1000,
            "hours": hours,
            "lines": span.accesses,
            "principal": principal,
        }


def _unread_lines(unread: UnreadAccesses) -> Iterator[str]:
    if not unread:
        return
    yield ""
    yield f"{unread_text(unread)}:"
    stretches = unread.stretches()
    for principal, broker, _, span in stretches[:_SHOWN_HOLES]:
        first, last = ("unknown" if time is None else time_text(time // 1000) for time in (span.first, span.last))
        where = broker or "unknown broker"
        yield f"  {principal or 'any principal'} on {where}: {span.accesses:,}, {first} to {last}"
    if len(stretches) > _SHOWN_HOLES:
        yield f"  ... and {len(stretches) - _SHOWN_HOLES:,} more: --format jsonl"


def _report_lines(covered: Coverage, spans: Sequence[Stretch]) -> Iterator[str]:
    head = ("broker", "lines", "hours", "first", "last", "gaps", "longest silence")
    yield from aligned(head, (_broker_line(covered, spans, broker) for broker in covered.brokers))
    if None in covered.brokers:
        yield ""
        yield _unnamed_text(covered)
    holes = [each for each in spans if each.is_hole]
    if not holes:
        return
    yield ""
    yield "gaps:"
    for hole in holes[:_SHOWN_HOLES]:
        length = f"{(hole.end - hole.start) / 3_600_000_000:,.1f} h"
        yield f"  {_name(hole.broker)}: {time_text(hole.start // 1000)} to {time_text(hole.end // 1000)} ({length})"
    if len(holes) > _SHOWN_HOLES:
        yield f"  ... and {len(holes) - _SHOWN_HOLES:,} more: --format jsonl"


def _broker_line(covered: Coverage, spans: Sequence[Stretch], broker: str | None) -> tuple[str, ...]:
    mine = covered.of_broker(broker)
    holes = sum(each.is_hole and each.broker == broker for each in spans)
    first, last = (time_text(int(time) // 1000) for time in (mine.first[0], mine.last[-1]))
    silence = _silence_text(mine, int(covered.first.min()), int(covered.last.max()))
    return _name(broker), f"{int(mine.rows.sum()):,}", f"{len(mine):,}", first, last, f"{holes:,}", silence


def _silence_text(mine: Coverage, start: int, until: int) -> str:
    """Return the longest time without a line of a broker, from the first line of all to the last, and its beginning.

    A time below an hour may be within the hours of the coverage, where it is not known.
    """
    ends = np.concatenate(([start], mine.last))
    silent = np.concatenate((mine.first, [until])) - ends
    at = int(silent.argmax())
    if silent[at] < HOUR:
        return "under 1 h"
    return f"{silent[at] / HOUR:,.1f} h from {time_text(int(ends[at]) // 1000)}"


def _unnamed_text(covered: Coverage) -> str:
    lines = int(covered.of_broker(None).rows.sum())
    which = "the lines do not name their brokers"
    if covered.brokers != (None,):
        which = f"{plural(lines, 'line')} {'names' if lines == 1 else 'name'} no broker"
    return f"{which}: a gap of a single broker among them cannot be seen"


def _name(broker: str | None) -> str:
    return "(not named)" if broker is None else broker
