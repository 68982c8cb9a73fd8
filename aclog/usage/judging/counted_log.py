"""What was counted in an access log: distinct accesses, rows, and days."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

import pyarrow as pa
from attrs import field, fields, frozen

from aclog.authorizer.access_reject import Reason
from aclog.usage.coverage import Coverage
from aclog.usage.log_counter import RowCounts
from aclog.usage.unread import UnreadAccesses


@frozen(eq=False, kw_only=True)
class CountedLog:
    """What one worker has counted, or all of them."""

    accesses: pa.Table
    """COUNTED or COUNTED_BY_DAY. In the sum of several, one row per access and version, and day."""
    rows: RowCounts
    days: frozenset[int]
    """The days (UTC, since 1970) with any access, in the window or not."""
    earliest: int | None = None
    latest: int | None = None
    """The times of the first and the last of all rows, in us since 1970; None if none has a time."""
    rejects: Counter[Reason] = field(factory=Counter)
    """How many lines were no accesses, by the reason."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Those of them that tell of an access all the same, and rows without a time that were not counted."""
    coverage: Coverage = field(factory=Coverage.nothing)
    """If asked for: all lines with a time, by broker and hour."""
    logged_denials: int = 0
    """If asked for coverage: the lines that the log itself calls DENIED."""

    @classmethod
    def sum_of(cls, parts: Iterable[Self]) -> Self:
        """Return the sum of at least one."""
        found = list(parts)
        return cls(
            accesses=_added_up(pa.concat_tables([part.accesses for part in found])),
            rows=_sum([part.rows for part in found]),
            days=frozenset[int]().union(*(part.days for part in found)),
            earliest=min((part.earliest for part in found if part.earliest is not None), default=None),
            latest=max((part.latest for part in found if part.latest is not None), default=None),
            rejects=sum((part.rejects for part in found), Counter[Reason]()),
            unread=UnreadAccesses.sum_of(part.unread for part in found),
            coverage=Coverage.sum(part.coverage for part in found),
            logged_denials=sum(part.logged_denials for part in found),
        )


def _added_up(accesses: pa.Table) -> pa.Table:
    sums = {"count": "sum", "first": "min", "last": "max"}
    keys = [name for name in accesses.schema.names if name not in sums]
    how: Any = list(sums.items())
    added = accesses.group_by(keys).aggregate(how)
    named = added.rename_columns({f"{name}_{how}": name for name, how in sums.items()})
    return named.select(accesses.schema.names).cast(accesses.schema)


def _sum(counts: list[RowCounts]) -> RowCounts:
    names = [each.name for each in fields(RowCounts)]
    return RowCounts(**{name: sum(getattr(each, name) for each in counts) for name in names})
