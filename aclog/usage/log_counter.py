"""What one task counts in a part of an access log: distinct accesses in the window, and what was done with the rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, evolve, field, frozen

from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.access_counter import AccessCounter
from aclog.usage.coverage_counter import CoverageCounter
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.decision_codes import DecisionCode
from aclog.usage.unread import UnreadCounter, UnreadSpan
from aclog.usage.window import DAY, Window, micros_of

_NO_TIME = np.iinfo(np.int64).min


@frozen(kw_only=True)
class RowCounts:
    """The rows of a log, by what was done with them; the others were counted as accesses."""

    total: int = 0
    without_time: int = 0
    outside: int = 0
    """Outside the window."""
    before_log: int = 0
    """In the window, but before the ACLs are known."""


@define(eq=False, kw_only=True)
class LogCounter:
    """Counts the rows of one task."""

    accesses: AccessCounter
    window: Window | None = None
    """None: all rows with a time are counted."""
    known_from: int | None = None
    """The time from which the ACLs are known, in us since 1970; None for at all times."""
    coverage: CoverageCounter | None = None
    """Counts all lines with a time, in the window or not, by their column `broker`; None if nobody asks."""
    timeless: bool = False
    """Whether rows without a time are counted, too: then there is no window, and one version of the ACLs."""
    logged_denials: int = field(default=0, init=False)
    """With `coverage`: the rows that the log itself calls DENIED."""
    rows: RowCounts = field(factory=RowCounts, init=False)
    days: set[int] = field(factory=set, init=False)
    """The days (UTC, since 1970) with any access, in the window or not."""
    unread: UnreadCounter = field(factory=UnreadCounter, init=False)
    """Rows without a time, unless they are counted: they may be in the window."""
    earliest: int | None = field(default=None, init=False)
    latest: int | None = field(default=None, init=False)
    """The times of the first and the last of all rows, in us since 1970; None if none has a time."""

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Count rows with the columns REQUEST_COLUMNS and `timestamp`, a TIMESTAMP in us."""
        columns: list[Any] = [batch.column(name) for name in REQUEST_COLUMNS]
        times = _micros(batch.column("timestamp"))
        timed = times != _NO_TIME
        self._note_times(times[timed])
        if self.coverage is not None:
            self.coverage.add(times[timed], batch.column("broker").filter(pa.array(timed)))
            if "loggedDecision" in batch.schema.names:
                decisions: Any = batch.column("loggedDecision")
                denied: Any = pc.sum(pc.is_in(decisions, pa.array(["DENIED"])))
                self.logged_denials += denied.as_py() or 0
        inside = timed if self.window is None else timed & _is_in(self.window, times)
        known = inside if self.known_from is None else inside & (times >= self.known_from)
        total, with_time, in_window, counted = len(times), *(int(each.sum()) for each in (timed, inside, known))
        self.rows = evolve(
            self.rows,
            total=self.rows.total + total,
            without_time=self.rows.without_time + total - with_time,
            outside=self.rows.outside + with_time - in_window,
            before_log=self.rows.before_log + in_window - counted,
        )
        if with_time < total:
            mask = pa.array(~timed)
            if self.timeless:
                self.accesses.add_timeless([column.filter(mask) for column in columns])
            else:
                self._note_untimed(batch.filter(mask))
        if counted < total:
            mask = pa.array(known)
            columns, times = [column.filter(mask) for column in columns], times[known]
        if counted:
            self.accesses.add(columns, times)

    def _note_untimed(self, rows: pa.RecordBatch | pa.Table) -> None:
        names: list[str] = [name for name in ("principal", "loggedDecision") if name in rows.schema.names]
        table = pa.table([_decoded(rows.column(name)) for name in names], names)
        for row in table.group_by(names).aggregate([([], "count_all")]).to_pylist():
            decision: Any = row.get("loggedDecision")
            span = UnreadSpan(row["count_all"], None, None)
            self.unread.add(row["principal"], decision, DecisionCode.NO_TIME.name, span)

    def _note_times(self, times: Int64s) -> None:
        if not len(times):
            return
        self.days.update(np.asarray(pc.unique(pa.array(times // DAY))).tolist())
        first, last = int(times.min()), int(times.max())
        self.earliest = first if self.earliest is None else min(self.earliest, first)
        self.latest = last if self.latest is None else max(self.latest, last)


def _decoded(column: Any) -> Any:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _micros(timestamps: Any) -> Int64s:
    return np.asarray(timestamps.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).fill_null(_NO_TIME))


def _is_in(window: Window, times: Int64s) -> Bools:
    inside: Bools = (times >= micros_of(window.start)) & (times <= micros_of(window.until))
    return inside
