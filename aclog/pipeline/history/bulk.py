"""The history of ACLs in columns, by the driver alone: for a log that is small enough, at a fraction of the cost.

The same rules as in intervals.py, where Spark's windows apply them to a log of any size.
"""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.errors import ReplayError
from aclog.metalog.records import RecordType
from aclog.metalog.values import frozen
from aclog.pipeline.history.log_table import LogTable, Start
from aclog.pipeline.history.transaction_spans import MARKERS, Marker, Span, TransactionSpans, spans_of
from aclog.pipeline.source.rows import NO_TIME, TIME, UNKNOWN_CODES
from aclog.usage.arrow import ACL_CODES, ACL_FIELDS
from aclog.usage.decisions.intervals import RULE_COLUMNS

MOST_BYTES = 64 << 20
"""Of a log that the driver reads whole: about a million records, for which it needs less than 1 GB."""

_ADD = RecordType.ACCESS_CONTROL_ENTRY_RECORD.name
_REMOVE = RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD.name
_NONE = -1
"""A row that there is not."""

Array: TypeAlias = "pa.Array[Any]"


@frozen(kw_only=True, eq=False)
class BulkLog:
    """A log that was read whole, from the state with which its history begins."""

    name: str
    start: Start
    rules: Array
    """The ACLs of that state."""
    rows: pa.Table
    """By record, in the order of the log."""
    spans: TransactionSpans

    @classmethod
    def read(cls, log: LogTable, start: Start, rules: Array, *, name: str) -> "BulkLog":
        """Read a log. Raises LogError, DecodeError: a range is damaged, or cannot be read any more."""
        columns = ("offset", "batch_offset", "batch_end_offset", "leader_epoch", "timestamp", "record_type", "acl")
        rows = log.table(*columns, UNKNOWN_CODES)
        chosen = pc.and_(
            pc.is_in(rows.column("record_type"), pa.array(MARKERS)),
            pc.greater_equal(rows.column("offset"), pa.scalar(start.offset)),
        )
        found = rows.select(Marker._fields).filter(chosen)
        markers = [Marker(**row) for row in found.to_pylist()]
        return cls(name=name, start=start, rules=rules, rows=rows, spans=spans_of(markers))

    @property
    def first(self) -> tuple[int, int] | None:
        """The base offset and the leader epoch of the first batch to replay."""
        at = np.flatnonzero(self._numbers("offset") >= self.start.offset)[:1]
        if not len(at):
            return None
        row = int(at[0])
        return self.rows.column("batch_offset")[row].as_py(), self.rows.column("leader_epoch")[row].as_py()

    @property
    def end_offset(self) -> int:
        """The end of what became visible."""
        if self.spans.hidden_from is not None:
            return self.spans.hidden_from
        return int(self._numbers("offset")[-1]) + 1 if len(self.rows) else self.start.offset

    @property
    def unknown_codes(self) -> bool:
        """Whether some ACLs have codes without a name: names do not distinguish these ACLs."""
        of_log = bool(pc.any(self.rows.column(UNKNOWN_CODES)).as_py())
        return of_log or bool(np.any(_has_unknown_code(self.rules)))

    @property
    def failure(self) -> ReplayError | None:
        """The error of a transaction marker out of place."""
        return None if self.spans.failure is None else self.spans.failure.at(path=self.name)

    def _numbers(self, name: str) -> Int64s:
        return np.asarray(self.rows.column(name)).astype(np.int64, copy=False)

    def timed(self) -> pa.Table:
        """Return every ACL with its interval; `visible_from` and `visible_to` are times, as --as-of TIME has them.

        Raises:
            ReplayError: the first contradiction between records, or a transaction marker out of place.

        """
        column: Any = self.rows.column("timestamp").cast(pa.int64())
        micros = column.fill_null(NO_TIME * 1000)
        # a time of a batch is in whole ms, and -1 ms without one
        times = np.asarray(micros) // 1000
        return self._intervals(np.maximum.accumulate(np.maximum(times, self.start.timestamp)))

    def placed(self) -> pa.Table:
        """Do the same; `visible_from` and `visible_to` are the end offsets of the first states with a change."""
        return self._intervals(self._numbers("batch_end_offset"))

    def contradiction(self) -> ReplayError | None:
        """Return the error of the first contradiction between records, or None."""
        return self._contradiction(_Events.of(self, self._numbers("offset")))

    def _contradiction(self, events: "_Events") -> ReplayError | None:
        first = events.first_contradiction()
        return None if first is None else ReplayError(first[1], offset=first[0], path=self.name)

    def _intervals(self, visible: Int64s) -> pa.Table:
        events = _Events.of(self, self._deferred(visible))
        # a contradiction before a misplaced marker is where the applier stops first
        error = self._contradiction(events) or self.failure
        if error is not None:
            raise error
        return events.intervals()

    def _deferred(self, visible: Int64s) -> Int64s:
        """Return when each record became visible: what a transaction deferred, with the batch in which it ends."""
        batches, deferred = self._numbers("batch_offset"), visible.copy()
        for span in self.spans.deferred:
            first, last, end = np.searchsorted(batches, (span.first, span.last, span.last + 1))
            deferred[first:end] = visible[last]
        return deferred

    def changes(self) -> Int64s:
        """Return the rows of the additions and removals that became visible."""
        kinds, offsets = self.rows.column("record_type"), self._numbers("offset")
        chosen = np.array(pc.is_in(kinds, pa.array([_ADD, _REMOVE])))
        chosen &= (offsets >= self.start.offset) & (offsets < self.end_offset)
        for span in self.spans.aborted:
            chosen[_slice(offsets, span)] = False
        return np.flatnonzero(chosen)


def _slice(offsets: Int64s, span: Span) -> slice:
    first, end = np.searchsorted(offsets, (span.first, span.last + 1))
    return slice(int(first), int(end))


@frozen(kw_only=True, eq=False)
class _Events:
    """Additions and removals in the order of their offsets, the ACLs of the start first."""

    acls: Any
    """As structs."""
    started: int
    """How many of them are ACLs of the start."""
    start_offset: int
    offset: Int64s
    at: Array
    """The times of batches; null for the ACLs of the start."""
    visible: Int64s
    adds: Bools
    next: Int64s
    """The row of the next event of the same id, or _NONE."""
    previous: Int64s

    @classmethod
    def of(cls, log: BulkLog, visible: Int64s) -> "_Events":
        """Pair the events of a log, whose records became visible then."""
        rows, count = log.changes(), len(log.rules)
        taken = log.rows.select(["timestamp", "record_type", "acl"]).take(_places(rows)).combine_chunks()
        acls: Any = pa.concat_arrays([log.rules, *taken.column("acl").chunks])
        ids: Any = acls.field("id").dictionary_encode().indices
        following, previous = _neighbours(np.asarray(ids).astype(np.int64))
        starts = np.full(count, log.start.offset - 1)
        return cls(
            acls=acls,
            started=count,
            start_offset=log.start.offset,
            offset=np.concatenate((starts, np.asarray(log.rows.column("offset").take(_places(rows))))),
            at=pa.concat_arrays([pa.nulls(count, TIME), *taken.column("timestamp").chunks]),
            visible=np.concatenate((starts, visible[rows])),
            adds=np.concatenate(
                (np.ones(count, np.bool_), np.asarray(pc.equal(taken.column("record_type"), pa.scalar(_ADD))))
            ),
            next=following,
            previous=previous,
        )

    def first_contradiction(self) -> tuple[int, str] | None:
        """Return the offset and the text of the one at which the applier would stop, or None."""
        in_force = np.zeros(len(self.adds), np.bool_)
        known = self.previous != _NONE
        in_force[known] = self.adds[self.previous[known]]
        same, other = self._same_content()
        rows = [np.flatnonzero(self.adds & in_force)[:1], np.flatnonzero(~self.adds & ~in_force)[:1], same[:1]]
        texts = ("ACL {} is added, but exists already", "ACL {} is removed, but does not exist")
        found = [
            (int(self.offset[row[0]]), text.format(self._id(int(row[0]))))
            for row, text in zip(rows[:2], texts, strict=True)
            if len(row)
        ]
        if len(same):
            first, second = self._id(int(same[0])), self._id(int(other[0]))
            found.append(
                (int(self.offset[same[0]]), f"ACL {first} is the same as ACL {second}: expected every ACL once")
            )
        return min(found, default=None)

    def _id(self, row: int) -> str:
        return str(self.acls.field("id")[row])

    def _same_content(self) -> tuple[Int64s, Int64s]:
        """Return the additions of a content that is in force under another id, by offset, and those other ones."""
        added = np.flatnonzero(self.adds)
        acls = self.acls.take(_places(added))
        _, before = _neighbours(_contents(acls))
        at = np.flatnonzero((before != _NONE) & ~_has_unknown_code(acls))
        rows, others = added[at], added[before[at]]
        removed = self.next[others]
        ended = np.where(removed == _NONE, np.iinfo(np.int64).max, self.offset[removed])
        in_force = ended > self.offset[rows]
        return rows[in_force], others[in_force]

    def intervals(self) -> pa.Table:
        """Return each addition and the removal after it."""
        rows = np.flatnonzero(self.adds)
        seen, removed = rows < self.started, self.next[rows]
        acls = self.acls.take(_places(rows))
        columns: dict[str, Any] = {name: acls.field(name) for name in RULE_COLUMNS}
        gone, ends = removed == _NONE, _places(removed)
        columns |= {
            "first_seen_offset": pa.array(np.full(len(rows), self.start_offset), mask=~seen),
            "added_offset": pa.array(self.offset[rows], mask=seen),
            "added_at": self.at.take(_places(rows)),
            "removed_offset": pa.array(self.offset[removed], mask=gone),
            "removed_at": self.at.take(ends),
            "visible_from": pa.array(self.visible[rows], mask=seen),
            "visible_to": pa.array(self.visible[removed], mask=gone),
        }
        return pa.table(columns)


def _places(rows: Int64s) -> Any:
    """Return the rows to take; _NONE is null."""
    return pa.array(rows, mask=rows == _NONE)


def _has_unknown_code(acls: Any) -> Bools:
    unknown: NDArray[np.bool_] = np.zeros(len(acls), np.bool_)
    for name in ACL_CODES:
        unknown |= np.asarray(pc.equal(acls.field(name), pa.scalar("UNKNOWN")).fill_null(False))
    return unknown


def _neighbours(keys: Int64s) -> tuple[Int64s, Int64s]:
    """Return for each row the next and the previous one with the same key, or _NONE."""
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    following = np.full(len(keys), _NONE)
    previous = np.full(len(keys), _NONE)
    following[order[:-1][same]] = order[1:][same]
    previous[order[1:][same]] = order[:-1][same]
    return following, previous


def _contents(acls: Any) -> Int64s:
    """Return the number of each ACL's content."""
    codes = np.zeros(len(acls), np.int64)
    for name in ACL_FIELDS:
        column: Any = acls.field(name).dictionary_encode()
        codes = codes * max(len(column.dictionary), 1) + np.asarray(column.indices).astype(np.int64)
        _, codes = np.unique(codes, return_inverse=True)
    return codes
