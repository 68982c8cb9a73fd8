"""What the answers of a usage report rest on: since when its ACLs are known, which are removed, which types are logged.

Apart from aclog.usage.judging, which workers import: only those that print a report need it.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa

from aclog.metalog.columns import Int64s
from aclog.metalog.errors import plural
from aclog.metalog.values import frozen
from aclog.usage.decisions.intervals import ALWAYS, FOREVER
from aclog.usage.judging import UsageReport
from aclog.usage.window import micros_of, of_micros

_DAY_MS: Final = 86_400_000


def totals_text(report: UsageReport) -> str:
    """Return how many ACLs of a log exist at its end, and how many were removed before; empty if none was."""
    present = report.rules.column("in_force_to").null_count
    removed = len(report.rules) - present
    if not removed:
        return ""
    exist, were = "exists" if present == 1 else "exist", "was" if removed == 1 else "were"
    return (
        f"{plural(len(report.rules), 'ACL')} in the metadata log: "
        f"{present:,} {exist} at its end, {removed:,} {were} removed before"
    )


@frozen(eq=False, kw_only=True)
class Youth:
    """Since when each ACL is known, if none is judged: those in force after the window are all younger than it."""

    since: Int64s
    """By ordinal, in ms since 1970."""
    days: Int64s
    """By ordinal: the longest window, in days, in which an ACL would be judged; 0 without one, or if it was removed."""
    present: int
    """The number of ACLs that were not removed before the end of the window, at least one."""
    oldest: int
    """The earliest of their times."""

    @classmethod
    def of(cls, report: UsageReport) -> "Youth | None":
        """Return it for a report; None if an ACL was in force, and known, in the whole window."""
        begins = report.rules.column("in_force_from").cast(pa.int64())
        is_always = np.asarray(begins.is_null())
        since = np.where(is_always, ALWAYS, np.asarray(begins.fill_null(pa.scalar(0, pa.int64()))) // 1000)
        since = np.maximum(since, report.known_from)
        start, until = micros_of(report.window.start) // 1000, micros_of(report.window.until) // 1000
        # An ACL that was removed after the window is judged as one that was not.
        ends = report.rules.column("in_force_to").cast(pa.int64()).fill_null(pa.scalar(FOREVER, pa.int64()))
        is_present = np.asarray(ends) > micros_of(report.window.until)
        if not is_present.any() or (since[is_present] <= start).any():
            return None
        days = np.where(is_present, np.maximum(until - since, 0) // _DAY_MS, 0)
        return cls(since=since, days=days, present=int(is_present.sum()), oldest=int(since[is_present].min()))

    def time(self, number: int) -> datetime | None:
        """Return since when an ACL is known, by its ordinal; None: always, as one removed before the window may be."""
        since = int(self.since[number])
        return None if since <= ALWAYS else of_micros(since * 1000)

    def text(self, time_text: str) -> str:
        """Return why no ACL is judged, and which window would judge some; `time_text` is the earliest time."""
        most = int(self.days.max())
        reason = f"each ACL was first seen after the window began (the oldest at {time_text})"
        if not most:
            return f"no ACL can be judged: {reason}. No window of whole days is short enough to judge one"
        number = int((self.days >= most).sum())
        judged = f"{number:,} of the {plural(self.present, 'ACL')} in force at the end of the window"
        return f"no ACL can be judged: {reason}. {judged} can be judged with --days {most}"


def _unlogged(report: UsageReport) -> Counter[str]:
    """Return how many removable ACLs are on each type of resource to which no access of the window is."""
    if report.logged_types is None:
        return Counter()
    removable = report.rules.filter(report.rules.column("removable")).column("resourceType").to_pylist()
    return Counter(str(each) for each in removable if each not in report.logged_types)


def unlogged_types(report: UsageReport) -> Sequence[str]:
    """Return the types of resources of removable ACLs to which no access of the window is: were they logged at all?"""
    return tuple(sorted(_unlogged(report)))


def unlogged_text(report: UsageReport) -> str:
    """Return which these types are, and how many removable ACLs are on them; empty without one."""
    unlogged = _unlogged(report)
    if not unlogged:
        return ""
    number, what = unlogged.total(), " or a ".join(sorted(unlogged))
    acls = f"{plural(number, 'removable ACL')} on {('such a resource', 'such resources')[number != 1]}"
    then = f"before you remove the {acls}, check that such requests are logged"
    return f"no request on a {what} is in the access log: {then}"
