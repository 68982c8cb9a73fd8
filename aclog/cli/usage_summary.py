"""The summary of a usage report, as `aclog usage` and `aclog spark usage` print it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from itertools import compress, groupby
from typing import Final

import pyarrow as pa

from aclog.cli.unused_wording import unread_text
from aclog.terminal.notices import note, warn
from aclog.terminal.table import aligned
from aclog.terminal.timezone import shown_zone
from aclog.usage.answer import Answer
from aclog.usage.counts import Counts
from aclog.usage.report import UsageReport

SHOWN_DENIED: Final = 10
_SHOWN_HOLES: Final = 5


def summary_lines(found: UsageReport, after: Iterable[str]) -> Iterator[str]:
    """Yield the summary for people: what was read, how many ACLs have which answer, `after`, and what was denied."""
    days = (found.window.until - found.window.start).days
    yield f"{days} days: {time_text(found.window.start)} to {time_text(found.window.until)}"
    yield ""
    yield from aligned(("accesses", "what"), _counted(found.counts))
    yield ""
    yield from aligned(("ACLs", "removable", "answer"), _answers(found.rules))
    yield ""
    if found.unread:
        yield f"{unread_text(found.unread)}: {unjudged_text(found)}"
        yield ""
    yield from after
    denied = found.denied.slice(0, SHOWN_DENIED).to_pylist()
    if denied:
        yield ""
        header = ("denied", "last", "principal", "host", "operation", "resource", "rule")
        yield from aligned(
            header,
            (
                (
                    f"{row['count']:,}",
                    time_text(row["last_at"]),
                    row["principal"],
                    row["host"],
                    row["operation"],
                    f"{row['resourceType']}:{row['resourceName']}",
                    row["rule_id"] or row["rule"],
                )
                for row in denied
            ),
        )


def unjudged_text(found: UsageReport) -> str:
    """Return how many ACLs are not judged for accesses that could not be read or decided."""
    rows = zip(found.rules.column("unread").to_pylist(), found.rules.column("answer").to_pylist(), strict=True)
    unjudged = sum(bool(unread) and answer == Answer.NOT_JUDGED for unread, answer in rows)
    return f"{unjudged:,} ACLs that they may need are {Answer.NOT_JUDGED}"


def _counted(counts: Counts) -> list[tuple[str, str]]:
    rows = [
        (counts.decided, "decided, and counted for ACLs"),
        (counts.super_users, "by super users"),
        *((count, f"not decided: {text}") for text, count in counts.errors.items()),
        (counts.before_log, "not judged: the log does not reach back to the time of the access"),
        (counts.outside, "outside the window"),
        (counts.without_time, "without a timestamp"),
    ]
    first, *others = [(f"{count:,}", what) for count, what in rows if count or what.startswith("decided")]
    return [first, *others, (f"{counts.total:,}", "read")]


def _answers(rules: pa.Table) -> list[tuple[str, str, str]]:
    answers = rules.column("answer").to_pylist()
    rows, removable = Counter(answers), Counter(compress(answers, rules.column("removable").to_pylist()))
    return [(f"{rows[answer]:,}", f"{removable[answer]:,}", answer.value) for answer in Answer]


def warn_of_gaps(found: UsageReport) -> None:
    """Say what the report does not know: when the ACLs were in force, and days without any access."""
    if not found.has_times:
        note("the source has no times: all of its ACLs are assumed to be in force in the whole window")
    holes = [day for day in found.holes.column("day").to_pylist() if day is not None]
    if holes:
        ranges = list(_ranges(holes))
        more = f" and {len(ranges) - _SHOWN_HOLES:,} more ranges" if len(ranges) > _SHOWN_HOLES else ""
        shown = ", ".join(ranges[:_SHOWN_HOLES]) + more
        warn(f"no access at all on {len(holes):,} of {len(found.window.days):,} days: {shown}: unused or not logged")


def _ranges(days: list[date]) -> Iterator[str]:
    # consecutive days minus their place in the list are all the same day
    for _, together in groupby(enumerate(days), lambda pair: pair[1] - timedelta(days=pair[0])):
        run = [day for _, day in together]
        yield str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"


def time_text(time: datetime) -> str:
    """Return a time in the form that --as-of accepts, in the zone that is shown."""
    shown = time.astimezone(shown_zone())
    return shown.isoformat(timespec="seconds").replace("+00:00", "Z")
