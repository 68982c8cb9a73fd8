"""Which stretches of a log its transaction markers hold back, drop, or leave open; from the markers alone.

By the rules of snapshots.metadata_transactions: the visible state moves from the end of one whole batch to the end
of a later
one, and never while a transaction is open.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from attrs import define, field, frozen

from aclog.metalog.errors import ReplayError
from aclog.metalog.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    RecordType,
)
from aclog.snapshots.metadata_transactions import Transactions

_RECORDS: MappingProxyType[str, MetadataRecord] = MappingProxyType(
    {
        RecordType.BEGIN_TRANSACTION_RECORD.name: BeginTransactionRecord(),
        RecordType.END_TRANSACTION_RECORD.name: EndTransactionRecord(),
        RecordType.ABORT_TRANSACTION_RECORD.name: AbortTransactionRecord(),
    }
)

MARKERS = tuple(_RECORDS)
"""The record types that begin and end transactions."""

RANGE_BITS = 16
"""Offsets are looked at in ranges of so many bits: 65,536 of them share all but the low bits."""


class Marker(NamedTuple):
    """A transaction marker: its offset, the base offset of its batch, its record type."""

    offset: int
    batch_offset: int
    record_type: str


class Span(NamedTuple):
    """From one offset to another, both included."""

    first: int
    last: int


@frozen(kw_only=True)
class Spans:
    """What the markers of a log say; all spans ascend and do not overlap.

    `held`: base offsets of batches whose records become visible together, at the end of the last of them. `aborted`:
    the offsets of a Begin and its Abort, between which all is dropped. `hidden_from`: the base offset from which on no
    batch becomes visible: a transaction is open at the log's end, or a marker out of place, which is the `failure`.
    """

    held: tuple[Span, ...] = ()
    aborted: tuple[Span, ...] = ()
    hidden_from: int | None = None
    failure: ReplayError | None = None


def spans_of(markers: Iterable[Marker]) -> Spans:
    """What these markers, in the order of their offsets, make of the log that they stand in."""
    found = _Found()
    for batch_offset, batch in groupby(markers, key=lambda marker: marker.batch_offset):
        try:
            found.read(batch_offset, batch)
        except ReplayError as e:
            found.failure = e
            found.held_from = batch_offset if found.held_from is None else found.held_from
            break
    return Spans(
        held=tuple(found.held), aborted=tuple(found.aborted), hidden_from=found.held_from, failure=found.failure
    )


@define(kw_only=True)
class _Found:
    """Markers under way; `held_from` is the batch since which a transaction is open at the end of every batch."""

    held: list[Span] = field(factory=list)
    aborted: list[Span] = field(factory=list)
    held_from: int | None = None
    failure: ReplayError | None = None
    _transactions: Transactions = field(factory=Transactions)
    _begun_at: int = -1

    def read(self, batch_offset: int, markers: Iterable[Marker]) -> None:
        """Take in the markers of one batch; raises ReplayError at one that is out of place."""
        for marker in markers:
            self._transactions.add(marker.offset, _RECORDS[marker.record_type])
            if self._transactions.is_open:
                self._begun_at = marker.offset
            elif marker.record_type == RecordType.ABORT_TRANSACTION_RECORD.name:
                self.aborted.append(Span(self._begun_at, marker.offset))
        if not self._transactions.is_open and self.held_from is not None:
            self.held.append(Span(self.held_from, batch_offset))
            self.held_from = None
        elif self._transactions.is_open and self.held_from is None:
            self.held_from = batch_offset


def range_of(offset: int) -> int:
    """The number of the range that an offset is in."""
    return offset >> RANGE_BITS


def by_range(spans: Iterable[Span]) -> Iterator[tuple[int, Span]]:
    """(Range, span) for every range of offsets that a span touches: to join by equal ranges, not by comparing all."""
    for span in spans:
        for number in range(range_of(span.first), range_of(span.last) + 1):
            yield number, span
