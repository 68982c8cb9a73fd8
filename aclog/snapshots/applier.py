"""The applier.

Replays committed batches, in order, into the next image; also the changes of batches to an image
(org.apache.kafka.image.MetadataDelta).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from attrs import field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.layout import numbered
from aclog.credentials.scram import ScramChange
from aclog.credentials.tokens import TokenChange
from aclog.metalog.batches import (
    CONTROL,
    LENGTH_END,
    BatchColumns,
    ValueColumns,
    check_crc,
    read_header,
    scan_batches,
    scan_values,
)
from aclog.metalog.codec import decode_record, decode_values
from aclog.metalog.columns import AclColumns, Bools, Bytes, Int64s, acl_records, read_acls, slices_at
from aclog.metalog.errors import DecodeError, MetadataError, ReplayError
from aclog.metalog.native import np
from aclog.metalog.primitives import Buffer
from aclog.metalog.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRecord,
    BrokerRegistrationChangeRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from aclog.metalog.values import define, frozen
from aclog.snapshots.image import (
    Image,
    NewerKafka,
    OpaqueChange,
    Provenance,
    after_control,
    after_data,
    check_follows,
    effect_of,
    error_in_value,
    removed_controller,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The changes of one or more whole batches to an image (org.apache.kafka.image.MetadataDelta).


AclChange: TypeAlias = AccessControlEntryRecord | RemoveAccessControlEntryRecord

_ACL_CHANGES = frozenset((AccessControlEntryRecord, RemoveAccessControlEntryRecord))


@define(kw_only=True)
class Delta:
    """Changes in offset order, grouped by what they change; owned by the applier that makes the next image."""

    newer: NewerKafka
    acls: list[AclChange] = field(factory=list)
    _acl_offsets: list[int] = field(factory=list, init=False)
    _scram: list[ScramChange] = field(factory=list, init=False)
    _tokens: list[TokenChange] = field(factory=list, init=False)
    _features: list[FeatureLevelRecord] = field(factory=list, init=False)
    _cluster: list[tuple[int, BrokerRecord]] = field(factory=list, init=False)
    _opaque: list[OpaqueChange] = field(factory=list, init=False)

    def replay(self, record: MetadataRecord, offset: int) -> None:
        """Add a record that is not a transaction marker; records must be added in offset order.

        Raises:
            ReplayError: a newer Kafka wrote it, and the policy is to stop.
            DecodeError: an uninterpreted record whose subject cannot be read.

        """
        match record:
            case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
                self.acls.append(record)
                self._acl_offsets.append(offset)
            # Kafka's idle heartbeat (KIP-835) changes nothing but the offset.
            case NoOpRecord():
                pass
            case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
                self._scram.append(record)
            case DelegationTokenRecord() | RemoveDelegationTokenRecord():
                self._tokens.append(record)
            case FeatureLevelRecord():
                self.newer.check_feature(record, offset)
                self._features.append(record)
            case (
                RegisterBrokerRecord()
                | UnregisterBrokerRecord()
                | FenceBrokerRecord()
                | UnfenceBrokerRecord()
                | BrokerRegistrationChangeRecord()
            ):
                self._cluster.append((offset, record))
            case UnregisterControllerRecord():
                # Registrations of controllers are not interpreted; what was undone is not kept.
                self._opaque.append(OpaqueChange(effect=removed_controller(record.controller_id), value=b""))
            case OpaqueRecord():
                self.newer.check_opaque(record, offset)
                self._opaque.append(_opaque_change(record, offset))
            case _:
                raise ReplayError(f"{type(record).__name__} does not change state", offset=offset)

    def apply(self, image: Image, provenance: Provenance) -> Image:
        """Return the image after these changes; `provenance` states how far it reaches.

        Raises:
            ReplayError: an ACL is added that exists, or removed that does not exist, or a broker's registration is
                changed that does not exist, with its offset.

        """
        try:
            acls = apply_acls(image.acls, self.acls, self._acl_offsets) if self.acls else image.acls
        except ReplayError as error:
            # Of two wrong records, the first one is reported.
            image.cluster.apply(change for change in self._cluster if change[0] < (error.offset or 0))
            raise
        return self.apply_all_but_acls(image, acls, provenance)

    def apply_all_but_acls(self, image: Image, acls: AclsImage, provenance: Provenance) -> Image:
        """Do the same, with `acls` instead of the result of the ACL changes. Raises as `apply`, but not for ACLs."""
        return Image(
            acls=acls,
            scram=image.scram.apply(self._scram) if self._scram else image.scram,
            tokens=image.tokens.apply(self._tokens) if self._tokens else image.tokens,
            features=image.features.apply(self._features) if self._features else image.features,
            cluster=image.cluster.apply(self._cluster) if self._cluster else image.cluster,
            opaque=image.opaque.apply(self._opaque) if self._opaque else image.opaque,
            provenance=provenance,
        )


def apply_acls(acls: AclsImage, changes: Sequence[AclChange], offsets: Sequence[int]) -> AclsImage:
    """Return the ACLs after these changes, which have these offsets.

    Raises:
        ReplayError: an ACL is added that exists, or removed that does not exist, with its offset.

    """
    try:
        return acls.apply(changes)
    except ReplayError:
        # Applying all at once is faster but does not identify the change that failed; applying them one by one does.
        for change, offset in zip(changes, offsets, strict=True):
            try:
                acls = acls.apply((change,))
            except ReplayError as e:
                raise e.at(offset=offset) from None
        raise


def only_acls(records: list[MetadataRecord]) -> TypeGuard[list[AclChange]]:
    """Return whether all of these records are ACL changes."""
    return _ACL_CHANGES.issuperset(map(type, records))


def _opaque_change(record: OpaqueRecord, offset: int) -> OpaqueChange:
    try:
        return OpaqueChange(effect=effect_of(record), value=record.value)
    except DecodeError as e:
        raise error_in_value(e, offset) from None


# Replays many ACL records at once without creating objects: the resulting ACLs, or the first invalid record.


_FRAME_AND_ID = 19
"""Bytes of an ACL record before its content: frame version, apiKey, version, uuid."""

_REBUILD_FROM = 8
"""The base is rebuilt if there is more than one change per this many ACLs; fewer are cheaper one by one."""


class ViolationError(Exception):
    """The record in this row cannot be replayed; all before it can."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


@frozen(kw_only=True, eq=False, repr=False)
class AclEvents:
    """ACL records of one buffer: additions in columns and the slices of removals, each in log order.

    Rows are ascending numbers that order additions and removals relative to each other.
    """

    buffer: Buffer
    added: AclColumns
    added_rows: Int64s
    removed_start: Int64s
    removed_end: Int64s
    removed_rows: Int64s

    def __len__(self) -> int:
        return len(self.added_rows) + len(self.removed_rows)

    def removed_ids(self) -> Bytes:
        """(m, 16): the uuids of the removed ACLs."""
        data = np.frombuffer(self.buffer, np.uint8)
        return slices_at(data, self.removed_start + 3, 16)


def replay_acls(acls: AclsImage, events: AclEvents) -> tuple[AclsImage, list[AclChange] | None]:
    """Return the ACLs after these records, and the changes as objects if the base was kept (None if it was rebuilt).

    Raises:
        ViolationError: an id that already exists, one content under two ids, a removal of an unknown id.

    """
    if not len(events):
        return acls, []
    if len(events) * _REBUILD_FROM > len(acls):
        rebuilt = _rebuild(acls, events)
        if rebuilt is not None:
            return rebuilt, None
    # Few changes on a large base, or records that columns cannot hold: apply them to the overlay one by one.
    changes = changes_of(events)
    try:
        return acls.apply(changes), changes
    except ReplayError:
        raise ViolationError(_first_invalid_row(acls, changes, events)) from None


def _first_invalid_row(acls: AclsImage, changes: list[AclChange], events: AclEvents) -> int:
    """Return the row of the first change that cannot be applied after those before it."""
    rows = np.sort(np.concatenate((events.added_rows, events.removed_rows)))
    for number, change in enumerate(changes):
        try:
            acls = acls.apply([change])
        except ReplayError:
            return int(rows[number])
    raise AssertionError("all changes apply one by one, but not together")


def _rebuild(acls: AclsImage, events: AclEvents) -> AclsImage | None:
    """Return the ACLs after these records in a new base; None if existing records have tagged fields."""
    if not len(acls):
        if not len(events.removed_rows):
            try:
                return AclsImage.from_columns(events.added)
            except ReplayError:
                pass  # duplicates: `_surviving` below finds out which record is invalid
        return AclsImage.from_columns(events.added.take(_surviving(events.added, events.added_rows, events)))
    values = [*acls.records(), *_values(events.added)]
    columns, odd = _columns_of(values)
    if len(odd):
        return None
    rows = np.concatenate((np.arange(len(events.added) - len(values), 0), events.added_rows))
    return AclsImage.from_columns(columns.take(_surviving(columns, rows, events)))


def changes_of(events: AclEvents) -> list[AclChange]:
    """Return the same records as objects, in log order."""
    start = np.concatenate((events.added.value_start, events.removed_start))
    end = np.concatenate((events.added.value_end, events.removed_end))
    order = np.argsort(np.concatenate((events.added_rows, events.removed_rows)))
    view = memoryview(events.buffer)
    slots = zip(start[order].tolist(), end[order].tolist(), strict=True)
    return [decode_record(bytes(view[a:b])) for a, b in slots]  # type: ignore[misc]  # their apiKeys are 18 and 19


def _columns_of(values: list[bytes]) -> tuple[AclColumns, Int64s]:
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    starts = np.concatenate((np.zeros(min(len(values), 1), np.int64), ends[:-1]))
    return read_acls(b"".join(values), starts, ends)


def _values(columns: AclColumns) -> list[bytes]:
    view = memoryview(columns.buffer)
    slots = zip(columns.value_start.tolist(), columns.value_end.tolist(), strict=True)
    return [bytes(view[a:b]) for a, b in slots]


def _surviving(additions: AclColumns, rows: Int64s, events: AclEvents) -> Bools:
    """Return the mask of those additions, in these rows, that still exist after all records.

    Ids are checked first: in log order, each id must be added, removed, added, and so on. Then contents are checked in
    the same way; a removal applies to the content that was added under its id.
    """
    added, removed = len(rows), len(events.removed_rows)
    ids = np.concatenate((additions.ids, events.removed_ids()))
    row = np.concatenate((rows, events.removed_rows))
    adds = np.arange(added + removed) < added
    order = _by_id(ids, row)
    group = _starts(ids[order])
    wrong = _not_alternating(group, adds[order])
    violation = _least(row[order][wrong])
    content = np.full(added + removed, -1, np.int64)
    content[:added] = _contents(additions)
    removals = np.flatnonzero(~adds[order] & ~group)
    # In this order the row before a removal is the addition it undoes (otherwise it is already a violation).
    content[order[removals]] = content[order[removals - 1]]
    by_content = np.lexsort((row, content))
    starts = _starts(content[by_content][:, None])
    # A content of -1 belongs to a removal of an unknown id, which has been reported above.
    wrong = _not_alternating(starts, adds[by_content]) & (content[by_content] >= 0)
    violation = min(violation, _least(row[by_content][wrong]))
    if violation < np.iinfo(np.int64).max:
        raise ViolationError(violation)
    last = np.append(group[1:], True) if len(group) else group
    survives = np.zeros(added + removed, np.bool_)
    survives[order[last & adds[order]]] = True
    return survives[:added]


def _by_id(ids: Bytes, rows: Int64s) -> NDArray[np.intp]:
    """Return the order by id, then row."""
    halves = np.ascontiguousarray(ids).view(">u8").astype(np.uint64).reshape(-1, 2)
    return np.lexsort((rows, halves[:, 1], halves[:, 0]))


def _starts(keys: NDArray[np.generic]) -> Bools:
    """Return where a sorted column of (n, width) keys differs from the row before; the first row always does."""
    differs = np.ones(len(keys), np.bool_)
    differs[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return differs


def _not_alternating(group: Bools, adds: Bools) -> Bools:
    """Return where something is added that exists, or removed that does not; every group begins empty."""
    exists = np.zeros(len(adds), np.bool_)
    exists[1:] = adds[:-1]
    exists &= ~group
    return np.equal(adds, exists)


def _least(rows: Int64s) -> int:
    return int(np.min(rows)) if len(rows) else int(np.iinfo(np.int64).max)


def _contents(acls: AclColumns) -> Int64s:
    """Return a number for the content of each ACL, equal for equal contents."""
    return numbered(acls.buffer, acls.value_start + _FRAME_AND_ID, acls.value_end - 1)[1].astype(np.int64)


# Bulk replay: thousands of batches at once, vectorized, with the same result as the applier has batch by batch.
#
# Only what is proven valid is replayed here. At the first batch that is not plain and valid, or leaves a transaction
# open, bulk replay stops (`_StopError`) and falls back to the applier, which accepts that batch or reports what is
# wrong.


BULK_BYTES = 1 << 16
"""Smaller chunks are faster batch by batch: the vectorized code has a fixed cost."""


@frozen(kw_only=True, eq=False, repr=False)
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


@frozen(kw_only=True, eq=False, repr=False)
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
    batches = batches.first(int(np.searchsorted(batches.end, end, "right"))).in_order(before.end_offset, before.epoch)
    values, bad = scan_values(buffer, batches)
    adds, removes = acl_records(buffer, values.value_start, values.value_end)
    good = len(batches) if bad is None else bad
    return _Scan(buffer=buffer, good=good, batches=batches, values=values, adds=adds, removes=removes)


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
    committed = ~dropped[added]
    removed = np.flatnonzero(scan.removes[:rows] & ~dropped)
    return AclEvents(
        buffer=scan.buffer,
        added=columns if committed.all() else columns.take(committed),
        added_rows=added[committed],
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
    records: list[tuple[int, MetadataRecord]] = []
    begun, records_before = -1, 0
    for row, record in _other_records(scan, rows):
        match record:
            case BeginTransactionRecord() if begun < 0:
                begun, records_before = row, len(records)
            case EndTransactionRecord() if begun >= 0:
                begun = -1
            case AbortTransactionRecord() if begun >= 0:
                # KIP-868: all between Begin and Abort is dropped, ACL rows by the mask, others from the list.
                dropped[begun:row] = True
                del records[records_before:]
                begun = -1
            case BeginTransactionRecord() | EndTransactionRecord() | AbortTransactionRecord():
                raise _StopError(int(scan.values.batch[row]))
            case _:
                records.append((row, record))
    if begun >= 0:
        # Still open at the end: the applier holds its records back until a later chunk ends it.
        raise _StopError(int(scan.values.batch[begun]))
    return records, dropped


# Metadata transactions (KIP-868): which records are visible, which are held back, and which are dropped by an abort.
#
# The visible state advances from the end of one whole batch to the end of a later one, and never while a transaction
# is open. Records before a Begin in its batch, or after an End, become visible with that batch as a whole; see
# docs/decisions/0004-transactions.md.


OffsetAndRecord: TypeAlias = tuple[int, MetadataRecord]
"""An offset and the record at it."""

_MARKERS = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


@define(kw_only=True)
class Transactions:
    """The records since the last visible state, without those of aborted transactions."""

    _pending: list[OffsetAndRecord] = field(factory=list, init=False)
    _begun_at: int | None = field(default=None, init=False)
    _pending_before: int = field(default=0, init=False)

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended, so that records are held back."""
        return self._begun_at is not None

    def add(self, offset: int, record: MetadataRecord) -> None:
        """Add the record at `offset`; records must be added in log order.

        Raises:
            ReplayError: a Begin inside a transaction, or an End or Abort outside of one.

        """
        if type(record) not in _MARKERS:
            self._pending.append((offset, record))
        elif isinstance(record, BeginTransactionRecord):
            self._begin(offset)
        else:
            self._finish(offset, record)

    def take(self) -> list[OffsetAndRecord]:
        """Return what has become visible, in order; call it after a batch that leaves no transaction open."""
        pending, self._pending = self._pending, []
        return pending

    def _begin(self, offset: int) -> None:
        if self._begun_at is not None:
            raise ReplayError(
                f"a BeginTransactionRecord inside the transaction begun at offset {self._begun_at}", offset=offset
            )
        self._begun_at, self._pending_before = offset, len(self._pending)

    def _finish(self, offset: int, record: MetadataRecord) -> None:
        aborts = isinstance(record, AbortTransactionRecord)
        if self._begun_at is None:
            raise ReplayError(f"{type(record).__name__} outside of a transaction", offset=offset)
        if aborts:
            # Only what came after the Begin is dropped: records before it in the same batch still count.
            del self._pending[self._pending_before :]
        self._begun_at = None


# The applier: replays committed batches, in order, into the next image (MetadataLoader, MetadataBatchLoader).


@define(kw_only=True)
class Applier:
    """Owned by the one thread that replays a log. `image` is always the state after a whole batch.

    `next_offset` is where the next chunk must begin: above `image.end_offset` only while a transaction is open. `newer`
    is the policy for records of a newer Kafka: by default, stop. `journal`, if set to a list, collects every ACL change
    that becomes visible; it is reset to None when the image is replaced or rebuilt. Chunks of at least `bulk_bytes` are
    replayed in bulk.
    """

    image: Image = Image.EMPTY
    newer: NewerKafka = field(factory=NewerKafka)
    bulk_bytes: int = BULK_BYTES
    next_offset: int = field(init=False)
    journal: list[AclChange] | None = field(default=None, init=False)
    _replayed_to: Provenance = field(init=False)
    _transactions: Transactions = field(factory=Transactions, init=False)
    _failure: MetadataError | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.load(self.image)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open at `next_offset`."""
        return self._transactions.is_open

    @property
    def failed(self) -> bool:
        """Whether replay has failed; it does not continue until an image is loaded."""
        return self._failure is not None

    def load(self, image: Image) -> None:
        """Continue from this image, such as a checkpoint's, discarding what was replayed before."""
        self.image, self._replayed_to, self.next_offset = image, image.provenance, image.end_offset
        self._transactions, self._failure, self.journal = Transactions(), None, None

    def put_acls(self, acls: AclsImage) -> Image:
        """Replace the ACLs by the same ACLs in another representation (merged), and continue from there."""
        self.image = self.image.with_acls(acls)
        return self.image

    def apply(self, chunk: bytes, position: int = 0, end: int | None = None) -> Image:
        """Replay a chunk of whole committed batches, as LogReader.read returns it, and return the new image.

        `position` and `end` limit the replayed part; by default the whole chunk is replayed.

        After an error the image is that after the last good batch, and every later call raises the same error: nothing
        is ever skipped. Positions in errors are byte positions in the chunk.

        Raises:
            DecodeError: damaged bytes, or an interpreted record type in an unknown version.
            ReplayError: an offset gap, a leader epoch that decreases, a misplaced transaction marker, an ACL that is
                added twice, removed while absent, or duplicates another one.

        """
        if self._failure is not None:
            raise self._failure
        try:
            self._apply(chunk, position, len(chunk) if end is None else end)
        except MetadataError as e:
            self._failure = e
            raise
        except BaseException as e:
            # An interrupt may have left a batch half applied: fail closed, rather than continue from an unknown state.
            what = f"replay was interrupted by a {type(e).__name__}: reload from a checkpoint"
            self._failure = ReplayError(what, offset=self.next_offset)
            raise
        return self.image

    def _apply(self, chunk: bytes, position: int, end: int) -> None:
        """Replay in bulk if possible; where that stops, replay twice as many batches one by one as the last time.

        So a chunk full of batches that bulk replay cannot handle is scanned a few times only, not once per batch.
        """
        if end - position < self.bulk_bytes:
            while position < end:
                position = self._apply_batch(chunk, position)
            return
        one_by_one, patience = 0, 1
        while position < end:
            # Bulk replay starts outside of transactions only: it does not carry held-back records from chunk to chunk.
            if one_by_one == 0 and end - position >= self.bulk_bytes and not self.in_transaction:
                position = self._apply_in_bulk(chunk, position, end)
                one_by_one, patience = patience, 2 * patience
            else:
                position = self._apply_batch(chunk, position)
                one_by_one = max(one_by_one - 1, 0)

    def _apply_in_bulk(self, chunk: bytes, position: int, end: int) -> int:
        done = replay_bulk(chunk, position, end, image=self.image, before=self._replayed_to, newer=self.newer)
        if done is None:
            return position
        self.image, self._replayed_to = done.image, done.image.provenance
        self.next_offset = self.image.end_offset
        if done.acl_changes is None:
            self.journal = None
        elif self.journal is not None:
            self.journal += done.acl_changes
        return done.position

    def _apply_batch(self, chunk: bytes, position: int) -> int:
        header = read_header(chunk, position)
        check_crc(chunk, position, header)
        # Base offset and leader epoch are outside of the CRC: a batch is only accepted in its place.
        check_follows(self._replayed_to, header, position)
        if header.attributes & CONTROL:
            self._replayed_to = after_control(self._replayed_to, header, chunk, position)
            # A control batch has no metadata records, but the image must advance past it to reach the high-water mark.
            self._replay_records(header.base_offset, [])
        else:
            records = decode_values(chunk, position, header)
            self._replayed_to = after_data(self._replayed_to, header)
            if not self._transactions.is_open and only_acls(records):
                self._make_acls_visible(header.base_offset, records)
            else:
                self._replay_records(header.base_offset, records)
        self.next_offset = header.base_offset + header.record_count
        return position + header.batch_length + LENGTH_END

    def _replay_records(self, offset: int, records: list[MetadataRecord]) -> None:
        """Hold records back while a transaction is open, else make them visible with what was held back."""
        for at, record in enumerate(records, offset):
            self._transactions.add(at, record)
        if not self._transactions.is_open:
            self._make_visible(self._transactions.take())

    def _make_visible(self, records: list[OffsetAndRecord]) -> None:
        """Make records visible, and with them everything up to the last batch."""
        delta = Delta(newer=self.newer)
        for offset, record in records:
            delta.replay(record, offset)
        self.image = delta.apply(self.image, self._replayed_to)
        if self.journal is not None:
            self.journal += delta.acls

    def _make_acls_visible(self, offset: int, changes: list[AclChange]) -> None:
        """Do the same for the most common batch, which has only ACL changes, without a Delta."""
        image = self.image
        try:
            acls = image.acls.apply(changes)
        except ReplayError:
            acls = apply_acls(image.acls, changes, range(offset, offset + len(changes)))  # identifies it
        # No evolve, and positional arguments (keywords double the cost of the call): this runs for every ACL change.
        self.image = Image(
            acls, image.scram, image.tokens, image.features, image.cluster, image.opaque, self._replayed_to
        )
        if self.journal is not None:
            self.journal += changes
