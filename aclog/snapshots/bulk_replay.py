"""Bulk replay: thousands of batches at once, vectorized, with the same result as the applier has batch by batch.

Only what is proven valid is replayed here. At the first batch that is not plain and valid, or leaves a transaction
open, bulk replay stops (`_StopError`) and falls back to the applier, which accepts that batch or reports what is wrong.
"""

from collections.abc import Iterator

import numpy as np
from attrs import evolve, fields, frozen

from aclog.metalog.acl_columns import read_acls
from aclog.metalog.batch_scan import BatchColumns, ValueColumns, scan_batches, scan_values
from aclog.metalog.batches import read_header
from aclog.metalog.codec import decode_record
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    RecordType,
    RemoveAccessControlEntryRecord,
)
from aclog.metalog.vectors import Bools, Bytes, bytes_at
from aclog.snapshots.acl_replay import AclEvents, ViolationError, replay_acls
from aclog.snapshots.delta import AclChange, Delta
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.provenance import Provenance, after_control, after_data

BULK_BYTES = 1 << 16
"""Smaller chunks are faster batch by batch: the vectorized code has a fixed cost."""

_PLAIN_REMOVE_SIZE = 20


@frozen(kw_only=True, eq=False)
class Replayed:
    """How far bulk replay got: the image, and the position in the buffer.

    `acl_changes` are the ACL records that went into the image, None if its ACLs were rebuilt.
    """

    image: Image
    position: int
    acl_changes: list[AclChange] | None


class _StopError(Exception):
    """This batch must be left to the applier; all before it may be replayed here."""

    def __init__(self, batch: int) -> None:
        super().__init__(batch)
        self.batch = batch


def replay_bulk(
    buffer: bytes, position: int, end: int, image: Image, before: Provenance, newer: NewerKafka
) -> Replayed | None:
    """Replay the batches of `buffer` between two positions onto `image`, as far as possible; None if not even one.

    `before` is the provenance at `position`, outside of a transaction.
    """
    scan = _scan(buffer, position, end, before)
    good = scan.good
    while good:
        try:
            return _replay(scan, good, image, before=before, newer=newer)
        except _StopError as stop:
            # The fallback: try again with only the batches before it. The number falls each time, so this ends.
            good = stop.batch
    return None


@frozen(kw_only=True, eq=False)
class _Scan:
    """The content of a buffer: batches, of which the first `good` are whole and in order, and their values."""

    buffer: bytes
    good: int
    batches: BatchColumns
    values: ValueColumns
    adds: Bools
    removes: Bools


def _scan(buffer: bytes, position: int, end: int, before: Provenance) -> _Scan:
    batches, _ = scan_batches(buffer, position)
    batches = _first_batches(batches, min(int(np.searchsorted(batches.end, end, "right")), _in_order(batches, before)))
    values, bad = scan_values(buffer, batches)
    adds, removes = _acl_records(np.frombuffer(buffer, np.uint8), values)
    good = len(batches) if bad is None else bad
    return _Scan(buffer=buffer, good=good, batches=batches, values=values, adds=adds, removes=removes)


def _first_batches(batches: BatchColumns, count: int) -> BatchColumns:
    columns = [column.name for column in fields(BatchColumns)]
    return evolve(batches, **{name: getattr(batches, name)[:count] for name in columns})


def _in_order(batches: BatchColumns, before: Provenance) -> int:
    """Return how many batches follow one another: contiguous offsets, leader epochs that never decrease."""
    expected = np.concatenate(([before.end_offset], (batches.base_offset + batches.record_count)[:-1]))
    epochs = np.concatenate(([before.epoch], batches.leader_epoch[:-1]))
    wrong = (batches.base_offset != expected[: len(batches)]) | (batches.leader_epoch < epochs[: len(batches)])
    return int(wrong.argmax()) if wrong.any() else len(batches)


def _acl_records(data: Bytes, values: ValueColumns) -> tuple[Bools, Bools]:
    """Return the masks of ACL additions, plain or not, and of plain removals, all of version 0."""
    start, size = values.value_start, values.value_end - values.value_start
    framed = (size >= 3) & (bytes_at(data, start) == 1) & (bytes_at(data, start + 2) == 0)
    kind = bytes_at(data, start + 1)
    no_tags = bytes_at(data, values.value_end - 1) == 0
    adds = framed & (kind == RecordType.ACCESS_CONTROL_ENTRY_RECORD)
    removes = framed & (kind == RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD)
    return adds, removes & (size == _PLAIN_REMOVE_SIZE) & no_tags


def _replay(scan: _Scan, good: int, image: Image, before: Provenance, newer: NewerKafka) -> Replayed:
    rows = int(np.searchsorted(scan.values.batch, good))
    provenance = _provenance(scan, good, before)
    others, dropped = _committed(scan, rows)
    # Warnings count only if this attempt succeeds; otherwise the same records are replayed again.
    tried = newer.copy()
    delta = Delta(newer=tried)
    for row, record in others:
        try:
            delta.replay(record, int(scan.values.offset[row]))
        except DecodeError:
            raise _StopError(int(scan.values.batch[row])) from None
    try:
        acls, acl_changes = replay_acls(image.acls, _acl_events(scan, rows, dropped))
    except ViolationError as e:
        raise _StopError(int(scan.values.batch[e.row])) from None
    try:
        replayed = delta.apply_all_but_acls(image, acls, provenance)
    except ReplayError as e:
        row = int(np.searchsorted(scan.values.offset[:rows], e.offset or 0))
        raise _StopError(int(scan.values.batch[row])) from None
    newer.adopt(tried)
    return Replayed(
        image=replayed,
        position=int(scan.batches.end[good - 1]),
        acl_changes=acl_changes,
    )


def _provenance(scan: _Scan, good: int, before: Provenance) -> Provenance:
    """Return the provenance after the first `good` batches; only control batches and the last one are decoded."""
    batches = scan.batches
    for number in np.flatnonzero(batches.is_control[:good]).tolist():
        position = int(batches.position[number])
        try:
            before = after_control(before, read_header(scan.buffer, position), scan.buffer, position)
        except DecodeError:
            raise _StopError(number) from None
    return after_data(before, read_header(scan.buffer, int(batches.position[good - 1])))


def _acl_events(scan: _Scan, rows: int, dropped: Bools) -> AclEvents:
    values = scan.values
    added = np.flatnonzero(scan.adds[:rows])
    columns, odd = read_acls(scan.buffer, values.value_start[added], values.value_end[added])
    if len(odd):
        raise _StopError(int(values.batch[added[odd[0]]]))
    kept = ~dropped[added]
    removed = np.flatnonzero(scan.removes[:rows] & ~dropped)
    return AclEvents(
        buffer=scan.buffer,
        added=columns if kept.all() else columns.take(kept),
        added_rows=added[kept],
        removed_start=values.value_start[removed],
        removed_end=values.value_end[removed],
        removed_rows=removed,
    )


def _other_records(scan: _Scan, rows: int) -> Iterator[tuple[int, MetadataRecord]]:
    """Yield (row, record) for all values that are not plain ACL records."""
    values, view = scan.values, memoryview(scan.buffer)
    for row in np.flatnonzero(~(scan.adds[:rows] | scan.removes[:rows])).tolist():
        try:
            record = decode_record(bytes(view[int(values.value_start[row]) : int(values.value_end[row])]))
        except DecodeError:
            raise _StopError(int(values.batch[row])) from None
        # An ACL record in an unusual form (tagged fields, long varints): the vectorized path must not reorder it.
        if isinstance(record, AccessControlEntryRecord | RemoveAccessControlEntryRecord):
            raise _StopError(int(values.batch[row]))
        yield row, record


def _committed(scan: _Scan, rows: int) -> tuple[list[tuple[int, MetadataRecord]], Bools]:
    """Return the other records without those of aborted transactions, and the mask of all rows that are dropped."""
    dropped = np.zeros(rows, np.bool_)
    kept: list[tuple[int, MetadataRecord]] = []
    begun, kept_before = -1, 0
    for row, record in _other_records(scan, rows):
        match record:
            case BeginTransactionRecord() if begun < 0:
                begun, kept_before = row, len(kept)
            case EndTransactionRecord() if begun >= 0:
                begun = -1
            case AbortTransactionRecord() if begun >= 0:
                # KIP-868: all between Begin and Abort is dropped, ACL rows by the mask, others from the list.
                dropped[begun:row] = True
                del kept[kept_before:]
                begun = -1
            case BeginTransactionRecord() | EndTransactionRecord() | AbortTransactionRecord():
                raise _StopError(int(scan.values.batch[row]))
            case _:
                kept.append((row, record))
    if begun >= 0:
        # Still open at the end: the applier holds its records back until a later chunk ends it.
        raise _StopError(int(scan.values.batch[begun]))
    return kept, dropped
