"""What `aclog coverage` prints: for each broker its stretches of lines, and the holes between them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from aclog.authorizer.access_reject import Reason
from aclog.cli.coverage.flags import CoverageFlags
from aclog.cli.coverage.stretches import Stretch, stretches
from aclog.cli.flags.gap import gap_us
from aclog.cli.flags.output import Output
from aclog.cli.unused_wording import unread_text
from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import say
from aclog.terminal.table import aligned
from aclog.terminal.timestamps import time_text
from aclog.usage.coverage import Coverage
from aclog.usage.unread import EARLIEST, LATEST, UnreadAccesses

NONE, FOUND = 0, 1
"""Exit codes."""
_SHOWN_HOLES: Final = 20


def _time_text(timestamp: int | None) -> str:
    return "" if timestamp is None else time_text(timestamp)


COVERAGE_COLUMNS: Final = (
    Column(key="broker"),
    Column(key="kind"),
    Column(key="from", text=_time_text),
    Column(key="to", text=_time_text),
    Column(key="hours"),
    Column(key="lines"),
)
"""Of a stretch."""
PRINCIPAL_COLUMN: Final = Column(key="principal", cut=True, spare=True)
"""Of what could not be read or decided, if there is any."""


def print_coverage(flags: CoverageFlags, output: Output) -> int:
    """Print what a log or an index holds; return the exit code: 1 if it has holes.

    Raises:
        MetadataError, OSError: it cannot be read, or holds nothing.

    """
    gap = gap_us(flags.gap)
    if bool(flags.accesses) == (flags.index is not None):
        raise ConfigError("--accesses or --index: expected one of them")
    covered, unread = _of_log(flags) if flags.index is None else _of_index(flags)
    found = stretches(covered, gap=gap)
    if output.is_rows:
        more = (PRINCIPAL_COLUMN,) if unread else ()
        output.print_rows((*COVERAGE_COLUMNS, *more), (*map(_row, found), *_unread_rows(unread)))
    else:
        for line in (*_lines(covered, found), *_unread_lines(unread)):
            say(printable(line))
    return FOUND if unread or any(each.is_hole for each in found) else NONE


def _of_index(flags: CoverageFlags) -> tuple[Coverage, UnreadAccesses]:
    from aclog.usage.index.usage_index import UsageIndex

    assert flags.index is not None  # noqa: S101 - the caller has looked
    with UsageIndex.open(flags.index) as index:
        covered, unread = index.coverage(), index.unread(EARLIEST, LATEST)
    if not len(covered):
        raise ConfigError(f"{flags.index}: holds no access yet: expected some, by aclog usage-index")
    return covered, unread


def _of_log(flags: CoverageFlags) -> tuple[Coverage, UnreadAccesses]:
    from aclog.cli.usage_extra import need_usage_extra

    need_usage_extra()
    from aclog.cli.access_log import AccessLog, warn_of_rejects
    from aclog.terminal.progress import progress
    from aclog.usage.judging.covering import cover_log

    log = AccessLog.of(flags.log())
    parts, lines, rejects, unread = list[Coverage](), 0, Counter[Reason](), list[UnreadAccesses]()
    with progress("reading the accesses", "rows") as advance:
        for part in cover_log(log.found.parts, log.each):
            parts.append(part.coverage)
            lines += part.lines
            rejects += part.rejects
            unread.append(part.unread)
            advance(lines, None)
    covered = Coverage.sum(parts)
    warn_of_rejects(rejects)
    if not len(covered):
        raise ConfigError(f"{', '.join(flags.accesses)}: no access has a timestamp: nobody knows what time it covers")
    return covered, UnreadAccesses.sum_of(unread)


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
    for principal, span in unread.by_principal().items():
        yield {
            "broker": None,
            "kind": "UNREAD",
            "from": None if span.first is None else span.first // 1000,
            "to": None if span.last is None else span.last // 1000,
            "hours": 0,
            "lines": span.accesses,
            "principal": principal,
        }


def _unread_lines(unread: UnreadAccesses) -> Iterator[str]:
    if not unread:
        return
    yield ""
    yield f"{unread_text(unread)}:"
    of_principals = list(unread.by_principal().items())
    for principal, span in of_principals[:_SHOWN_HOLES]:
        first, last = ("unknown" if time is None else time_text(time // 1000) for time in (span.first, span.last))
        yield f"  {principal or 'anybody'}: {span.accesses:,}, {first} to {last}"
    if len(of_principals) > _SHOWN_HOLES:
        yield f"  ... and {len(of_principals) - _SHOWN_HOLES:,} more principals: --format jsonl"


def _lines(covered: Coverage, found: Sequence[Stretch]) -> Iterator[str]:
    head = ("broker", "lines", "hours", "first", "last", "holes")
    yield from aligned(head, (_broker_line(covered, found, broker) for broker in covered.brokers))
    holes = [each for each in found if each.is_hole]
    if not holes:
        return
    yield ""
    yield "holes:"
    for hole in holes[:_SHOWN_HOLES]:
        length = f"{(hole.end - hole.start) / 3_600_000_000:,.1f} h"
        yield f"  {_name(hole.broker)}: {time_text(hole.start // 1000)} to {time_text(hole.end // 1000)} ({length})"
    if len(holes) > _SHOWN_HOLES:
        yield f"  ... and {len(holes) - _SHOWN_HOLES:,} more: --format jsonl"


def _broker_line(covered: Coverage, found: Sequence[Stretch], broker: str | None) -> tuple[str, ...]:
    mine = covered.of_broker(broker)
    holes = sum(each.is_hole and each.broker == broker for each in found)
    first, last = (time_text(int(time) // 1000) for time in (mine.first[0], mine.last[-1]))
    return _name(broker), f"{int(mine.rows.sum()):,}", f"{len(mine):,}", first, last, f"{holes:,}"


def _name(broker: str | None) -> str:
    return "(not named)" if broker is None else broker
