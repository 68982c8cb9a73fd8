"""What `aclog simulate` prints: how many accesses change, and which."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from aclog.authorizer.premises import ALL_KNOWN
from aclog.cli.access_log import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.output import Output
from aclog.cli.policies import SideFlags
from aclog.cli.usage_summary import time_text
from aclog.metalog.printable import printable
from aclog.terminal.columns import Column, Row
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.terminal.table import aligned
from aclog.usage.answer import Answer
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.rules import Rules
from aclog.usage.simulation import Change, Simulation, simulate

_SHOWN: Final = 10

FLIP_COLUMNS: Final = (
    Column(key="change"),
    Column(key="principal", cut=True),
    Column(key="host", cut=True),
    Column(key="operation"),
    Column(key="resourceType", title="TYPE"),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="count"),
    Column(key="firstAt", title="FIRST", spare=True),
    Column(key="lastAt", title="LAST"),
    Column(key="decisionBefore", spare=True),
    Column(key="ruleBefore", cut=True),
    Column(key="ruleIdBefore", spare=True),
    Column(key="decisionAfter", spare=True),
    Column(key="ruleAfter", cut=True),
    Column(key="ruleIdAfter", spare=True),
)


def report_simulation(flags: SideFlags, accesses: AccessesFlags, output: Output) -> int:
    """Print the accesses that two policies decide differently, and return the exit code: 1 if there are any, or may be.

    Raises:
        MetadataError, OSError: the log or a source cannot be read.

    """
    flags.check({})
    log = AccessLog.of(accesses)
    sides = flags.read()
    before, after = (Rules.of_image(policy.acls) for policy in (sides.old, sides.new))
    judging = Judging(rules=before, settings=sides.old.settings, own_time=False)
    counted = log.count(judging.how(None, timeless=True))
    both = (before, sides.old.settings), (after, sides.new.settings)
    found = simulate(counted.accesses, *both, counted.unread)

    def differs_when_open() -> bool:
        """Decide the accesses once more."""
        old, new = (evolve(policy.settings, allow_everyone=True) for policy in (sides.old, sides.new))
        return len(simulate(counted.accesses, (before, old), (after, new)).flips) > 0

    turning = ALL_KNOWN if len(found.flips) else sides.premises.turning(None, differs_when_open)
    ordered = found.flips.sort_by([("count", "descending"), *((name, "ascending") for name in REQUEST_COLUMNS)])
    if output.is_rows:
        output.print_rows(FLIP_COLUMNS, map(_row, ordered.to_pylist()))
    else:
        for line in _summary(found, ordered, is_sure=not turning):
            say(printable(line))
    warn_of_rejects(counted.rejects)
    warn_of_unread(found.unread, "rules change that they may need, so that they may be decided differently")
    if turning:
        warn(turning.decided("every access is decided the same"))
    return int(bool(len(found.flips) or found.unread or turning))


def _row(flip: dict[str, Any]) -> Row:
    row = {name: flip[name] for name in ("change", *REQUEST_COLUMNS, "count")}
    for key, name in (("firstAt", "first_at"), ("lastAt", "last_at")):
        row[key] = None if flip[name] is None else time_text(flip[name])
    for side in ("Before", "After"):
        for key, name in (("decision", "decision"), ("rule", "rule"), ("ruleId", "rule_id")):
            row[f"{key}{side}"] = flip[f"{name}_{side.lower()}"]
    return row


def _summary(found: Simulation, ordered: Any, *, is_sure: bool) -> Iterator[str]:
    """Yield the lines; `is_sure`: whether nothing that is unknown could change an access that is the same."""
    changes = ordered.column("change")
    rows = []
    for change in Change:
        chosen = ordered.filter(pc.equal(changes, pa.scalar(change.value)))
        if len(chosen) or change in {Change.GAINED, Change.LOST}:
            rows.append((f"{pc.sum(chosen.column('count')).as_py() or 0:,}", f"{len(chosen):,}", change.value))
    rows.append((f"{found.same if is_sure else 0:,}", "", "SAME"))
    unjudged = found.unread.total + (0 if is_sure else found.same)
    if found.unread or not is_sure:
        rows.append((f"{unjudged:,}", "", Answer.NOT_JUDGED.value))
    yield from aligned(("accesses", "distinct", "change"), rows)
    for change in Change:
        chosen = ordered.filter(pc.equal(changes, pa.scalar(change.value)))
        if len(chosen):
            yield ""
            yield from _most(chosen, change)


def _most(chosen: Any, change: Change) -> Iterator[str]:
    header = (change.value.lower(), "principal", "host", "operation", "resource", "before", "after")
    rows = (
        (
            f"{row['count']:,}",
            *(str(row[name]) for name in ("principal", "host", "operation")),
            f"{row['resourceType']}:{row['resourceName']}",
            row["rule_id_before"] or row["rule_before"],
            row["rule_id_after"] or row["rule_after"],
        )
        for row in chosen.slice(0, _SHOWN).to_pylist()
    )
    yield from aligned(header, rows)
    if len(chosen) > _SHOWN:
        yield f"... and {len(chosen) - _SHOWN:,} more"
