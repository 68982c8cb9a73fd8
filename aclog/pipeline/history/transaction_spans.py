"""The spans of a log that metadata transactions (KIP-868) hold back, abort or leave open, from their markers alone.

As in snapshots.applier: the visible state only ever moves to the end of a batch at which no transaction is open.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from attrs import field

from aclog.metalog.errors import ReplayError
from aclog.metalog.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    RecordType,
)
from aclog.metalog.values import define, frozen
from aclog.snapshots.applier import Transactions

_RECORDS: MappingProxyType[str, MetadataRecord] = MappingProxyType(
    {
        RecordType.BEGIN_TRANSACTION_RECORD.name: BeginTransactionRecord(),
        RecordType.END_TRANSACTION_RECORD.name: EndTransactionRecord(),
        RecordType.ABORT_TRANSACTION_RECORD.name: AbortTransactionRecord(),
    }
)

MARKERS = tuple(_RECORDS)
"""The record types that begin, end and abort transactions."""

RANGE_BITS = 16
"""A range is the 65,536 offsets that share all but these low bits."""


class Marker(NamedTuple):
    """A transaction marker: its offset, the base offset of its batch, its record type."""

    offset: int
    batch_offset: int
    record_type: str


class Span(NamedTuple):
    """From one offset to another, both inclusive."""

    first: int
    last: int


@frozen(kw_only=True)
class TransactionSpans:
    """The spans of a log's transactions; those of one kind ascend and do not overlap.

    `deferred`: base offsets of batches whose records become visible together, at the end of the last one. `aborted`:
    the offsets of a Begin and its Abort, between which every record is dropped. `hidden_from`: the base offset of the
    first batch that never becomes visible, because a transaction is open at the end of the log, or because of a marker
    out of place, which is the `failure`.
    """

    deferred: tuple[Span, ...] = ()
    aborted: tuple[Span, ...] = ()
    hidden_from: int | None = None
    failure: ReplayError | None = None


def spans_of(markers: Iterable[Marker]) -> TransactionSpans:
    """Return the spans of a log with these markers, which must be in the order of their offsets."""
    scan = _MarkerScan()
    for batch_offset, batch in groupby(markers, key=lambda marker: marker.batch_offset):
        try:
            scan.read(batch_offset, batch)
        except ReplayError as e:
            scan.failure = e
            scan.deferred_from = batch_offset if scan.deferred_from is None else scan.deferred_from
            break
    return TransactionSpans(
        deferred=tuple(scan.deferred), aborted=tuple(scan.aborted), hidden_from=scan.deferred_from, failure=scan.failure
    )


@define(kw_only=True)
class _MarkerScan:
    """The spans so far; `held_from` is the batch since which a transaction is open at the end of every batch."""

    deferred: list[Span] = field(factory=list)
    aborted: list[Span] = field(factory=list)
    deferred_from: int | None = None
    failure: ReplayError | None = None
    _transactions: Transactions = field(factory=Transactions)
    _begun_at: int = -1

    def read(self, batch_offset: int, markers: Iterable[Marker]) -> None:
        """Process the markers of one batch. Raises ReplayError at a marker out of place."""
        for marker in markers:
            self._transactions.add(marker.offset, _RECORDS[marker.record_type])
            if self._transactions.is_open:
                self._begun_at = marker.offset
            elif marker.record_type == RecordType.ABORT_TRANSACTION_RECORD.name:
                self.aborted.append(Span(self._begun_at, marker.offset))
        # only the state at the end of a batch counts: a transaction within one batch holds nothing back
        if not self._transactions.is_open and self.deferred_from is not None:
            self.deferred.append(Span(self.deferred_from, batch_offset))
            self.deferred_from = None
        elif self._transactions.is_open and self.deferred_from is None:
            self.deferred_from = batch_offset


def range_of(offset: int) -> int:
    """Return the number of the range that an offset is in."""
    return offset >> RANGE_BITS


def range_start(offset: int) -> int:
    """Return the first offset of the range that an offset is in."""
    return range_of(offset) << RANGE_BITS


def by_range(spans: Iterable[Span]) -> Iterator[tuple[int, Span]]:
    """Yield (range, span) for every range of offsets that a span touches: the key of an equi-join."""
    for span in spans:
        for number in range(range_of(span.first), range_of(span.last) + 1):
            yield number, span
