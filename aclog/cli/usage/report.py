"""What `aclog usage` prints: a summary for people, or a row for each ACL."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final

from aclog.authorizer.config import SUPER_USERS_CONFIG
from aclog.authorizer.settings import Settings
from aclog.cli.access_log import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.cli.flags.accesses import AccessesFlags, WindowFlags
from aclog.cli.flags.output import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.premises import read_premises
from aclog.cli.rule_columns import RULE_COLUMNS
from aclog.cli.usage_summary import SHOWN_DENIED, summary_lines, unjudged_text, warn_of_gaps
from aclog.metalog.printable import printable
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import say
from aclog.usage.report import UsageReport, report

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
    given: AbstractSet[str] = frozenset(),
) -> None:
    """Print the usage of the ACLs of a source.

    `given`: the properties of brokers whose values `settings` has.

    Raises:
        MetadataError, OSError: the log or the source cannot be read.

    """
    until = window.end()
    log = AccessLog.of(flags)
    chosen = source.choose()
    judging = Judging.of(chosen, settings)
    left = read_premises(chosen, given).without({SUPER_USERS_CONFIG})
    counted, judged = log.count_window(judging, window.days, until)
    found = report(counted.accesses, judged, counted.rows, counted.days, top=SHOWN_DENIED, unread=counted.unread)
    if left:
        found = found.without_proof()
    if output.is_rows:
        columns = (*USAGE_COLUMNS, UNREAD_COLUMN) if found.unread else USAGE_COLUMNS
        output.print_rows(columns, _rows(found, [column.key for column in columns]))
        warn_of_unread(found.unread, unjudged_text(found))
    else:
        for line in summary_lines(found, _removable(found)):
            say(printable(line))
    warn_of_gaps(found)
    warn_of_rejects(counted.rejects)


def _removable(found: UsageReport) -> Iterator[str]:
    """Yield the ACLs that can go, the first of them."""
    rules = found.rules.filter(found.rules.column("removable"))
    if len(rules):
        yield f"{len(rules):,} ACLs can be removed together:"
        for row in rules.slice(0, _SHOWN_RULES).to_pylist():
            yield f"  {row['answer']:<14}  {_rule_text(row)}"
        if len(rules) > _SHOWN_RULES:
            yield f"  ... and {len(rules) - _SHOWN_RULES:,} more (--format table or jsonl)"
    else:
        yield "no ACL can be removed"


def _rule_text(row: dict[str, Any]) -> str:
    what = f"{row['permissionType']} {row['principal']} {row['operation']}"
    return f"{what} on {row['resourceType']} {row['patternType']} '{row['resourceName']}' from {row['host']}"


def _rows(found: UsageReport, keys: list[str]) -> Iterator[Row]:
    for batch in found.rules.select(keys).to_batches(max_chunksize=1 << 14):
        yield from batch.to_pylist()
