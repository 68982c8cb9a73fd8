"""Replays many ACL records at once without creating objects: the resulting ACLs, or the first invalid record."""

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.byte_strings import numbered
from aclog.metalog.acl_columns import AclColumns, read_acls
from aclog.metalog.codec import decode_record
from aclog.metalog.errors import ReplayError
from aclog.metalog.primitives import Buffer
from aclog.metalog.vectors import Bools, Bytes, Int64s, slices_at
from aclog.snapshots.delta import AclChange

_FRAME_AND_ID = 19
"""Bytes of an ACL record before its content: frame version, apiKey, version, uuid."""

_REBUILD_FROM = 8
"""The base is rebuilt if there is more than one change per this many ACLs; fewer are cheaper one by one."""


class ViolationError(Exception):
    """The record in this row cannot be replayed; all before it can."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


@frozen(kw_only=True, eq=False)
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
