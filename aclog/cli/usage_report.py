"""The report of `aclog usage`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from itertools import compress, groupby
from typing import Any, Final

import pyarrow as pa

from aclog.authorizer.settings import SUPER_USERS_CONFIG, Settings
from aclog.cli.acl_columns import RULE_COLUMNS
from aclog.cli.flags.common import AccessesFlags, Output, WindowFlags
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import printable
from aclog.ops.policies import read_premises
from aclog.ops.usage import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import note, say, shown_zone, warn
from aclog.terminal.tables import aligned
from aclog.usage.report import UsageReport, report
from aclog.usage.unused import Answer
from aclog.usage.window import Counts, unread_text

# The summary of a usage report, as `aclog usage` and `aclog spark usage` print it.


SHOWN_DENIED: Final = 10
_SHOWN_HOLES: Final = 5


def summary_lines(usage_report: UsageReport, after: Iterable[str]) -> Iterator[str]:
    """Yield the summary for people: what was read, how many ACLs have which answer, `after`, and what was denied."""
    days = (usage_report.window.until - usage_report.window.start).days
    yield f"window of {days} days: {time_text(usage_report.window.start)} to {time_text(usage_report.window.until)}"
    yield ""
    yield from aligned(("accesses", "status"), _counted(usage_report.counts))
    yield ""
    yield from aligned(("ACLs", "removable", "verdict", "meaning"), _answers(usage_report.rules))
    yield ""
    if usage_report.unread:
        yield f"{unread_text(usage_report.unread)}: {unjudged_text(usage_report)}"
        yield ""
    yield from after
    denied = usage_report.denied.slice(0, SHOWN_DENIED).to_pylist()
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


def unjudged_text(usage_report: UsageReport) -> str:
    """Return how many ACLs are not judged for accesses that could not be read or decided."""
    rows = zip(
        usage_report.rules.column("unread").to_pylist(), usage_report.rules.column("answer").to_pylist(), strict=True
    )
    unjudged = sum(bool(unread) and answer == Answer.NOT_JUDGED for unread, answer in rows)
    return f"{unjudged:,} ACLs that they may need are {Answer.NOT_JUDGED}"


def _counted(counts: Counts) -> list[tuple[str, str]]:
    rows = [
        (counts.decided, "evaluated against the ACLs, for the verdicts below"),
        (counts.super_users, "by super users"),
        *((count, f"not decided: {text}") for text, count in counts.errors.items()),
        (counts.before_log, "not judged: the log does not reach back to the time of the access"),
        (counts.outside, "outside the window"),
        (counts.without_time, "without a timestamp"),
    ]
    first, *others = [(f"{count:,}", what) for count, what in rows if count or what.startswith("decided")]
    return [first, *others, (f"{counts.total:,}", "total")]


_MEANINGS: Final = {
    Answer.NEVER_MATCHED: "no access matched the ACL",
    Answer.NEVER_NEEDED: "every access would be decided the same without it",
    Answer.NEEDED: "an access would be decided differently without it",
    Answer.NOT_JUDGED: "in force for only a part of the window, or an unreadable access may need it",
}


def _answers(rules: pa.Table) -> list[tuple[str, str, str, str]]:
    answers = rules.column("answer").to_pylist()
    rows, removable = Counter(answers), Counter(compress(answers, rules.column("removable").to_pylist()))
    return [(f"{rows[each]:,}", f"{removable[each]:,}", each.value, _MEANINGS[each]) for each in Answer]


def warn_of_gaps(usage_report: UsageReport) -> None:
    """Warn of what the report does not know: when the ACLs were in force, and days without any access."""
    if not usage_report.has_times:
        note("the source has no times: all of its ACLs are assumed to be in force in the whole window")
    holes = [day for day in usage_report.holes.column("day").to_pylist() if day is not None]
    if holes:
        ranges = list(_ranges(holes))
        more = f" and {len(ranges) - _SHOWN_HOLES:,} more ranges" if len(ranges) > _SHOWN_HOLES else ""
        text = ", ".join(ranges[:_SHOWN_HOLES]) + more
        warn(
            f"no accesses on {len(holes):,} of {len(usage_report.window.days):,} calendar days ({text}): "
            "the cluster was idle, or the log is incomplete"
        )


def _ranges(days: list[date]) -> Iterator[str]:
    # consecutive days minus their place in the list are all the same day
    for _, together in groupby(enumerate(days), lambda pair: pair[1] - timedelta(days=pair[0])):
        run = [day for _, day in together]
        yield str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"


def time_text(time: datetime) -> str:
    """Return a time in the form that --as-of accepts, in the zone that is shown."""
    local = time.astimezone(shown_zone())
    return local.isoformat(timespec="seconds").replace("+00:00", "Z")


# What `aclog usage` prints: a summary for people, or a row for each ACL.


_SHOWN_RULES: Final = 20

USAGE_COLUMNS: Final = (
    *RULE_COLUMNS,
    Column(key="answer"),
    Column(key="matched"),
    Column(key="needed"),
    Column(key="removable"),
)
UNREAD_COLUMN: Final = Column(key="unread", spare=True)
"""If there is anything that could not be read or decided."""


def report_usage(
    source: SourceFlags,
    flags: AccessesFlags,
    window: WindowFlags,
    settings: Settings,
    output: Output,
    *,
    configs: AbstractSet[str] = frozenset(),
) -> None:
    """Print the usage of the ACLs of a source.

    `configs`: the properties of brokers whose values `settings` has.

    Raises:
        MetadataError, OSError: the log or the source cannot be read.

    """
    until = window.end()
    log = AccessLog.of(flags)
    choice = source.choose()
    judging = Judging.of(choice, settings)
    unknown = read_premises(choice, configs).without({SUPER_USERS_CONFIG})
    counted, judged = log.count_window(judging, window.days, until)
    usage_report = report(counted.accesses, judged, counted.rows, counted.days, top=SHOWN_DENIED, unread=counted.unread)
    if unknown:
        usage_report = usage_report.without_proof()
    if output.is_rows:
        columns = (*USAGE_COLUMNS, UNREAD_COLUMN) if usage_report.unread else USAGE_COLUMNS
        output.print_rows(columns, _rows(usage_report, [column.key for column in columns]))
        warn_of_unread(usage_report.unread, unjudged_text(usage_report))
    else:
        for line in summary_lines(usage_report, _removable(usage_report)):
            say(printable(line))
    warn_of_gaps(usage_report)
    warn_of_rejects(counted.rejects)


def _removable(usage_report: UsageReport) -> Iterator[str]:
    """Yield the ACLs that can be removed, at most the first few."""
    rules = usage_report.rules.filter(usage_report.rules.column("removable"))
    if len(rules):
        yield f"{len(rules):,} ACLs can be removed together:"
        for row in rules.slice(0, _SHOWN_RULES).to_pylist():
            yield f"  {row['answer']:<14}  {_rule_text(row)}"
        if len(rules) > _SHOWN_RULES:
            yield f"  ... and {len(rules) - _SHOWN_RULES:,} more (--format table or jsonl)"
    else:
        yield "no ACL is known to be removable"


def _rule_text(row: dict[str, Any]) -> str:
    what = f"{row['permissionType']} {row['principal']} {row['operation']}"
    return f"{what} on {row['resourceType']} {row['patternType']} '{row['resourceName']}' from {row['host']}"


def _rows(usage_report: UsageReport, keys: list[str]) -> Iterator[Row]:
    for batch in usage_report.rules.select(keys).to_batches(max_chunksize=1 << 14):
        yield from batch.to_pylist()
