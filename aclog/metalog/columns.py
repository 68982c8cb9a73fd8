"""ACL records in columns, for bulk replay.

The vectorized reads of varints and slices that they and the index are made with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

from attrs import fields

from aclog.metalog.native import np
from aclog.metalog.primitives import MAX_STRING, Buffer
from aclog.metalog.records import RecordType
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Vectorized reads of many varints and slices with numpy: the counterpart of aclog.metalog.primitives for bulk replay.
#
# A position past the end of the data reads the last byte instead of failing, so a caller must check that what it read
# ends where it should before it relies on any value.


if TYPE_CHECKING:
    Int64s: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Bytes: TypeAlias = NDArray[np.uint8]
else:
    Int64s = Bools = Bytes = Any

BLOCK = 1 << 16
"""Records processed per numpy call: intermediate arrays then fit the CPU cache, and peak memory stays small."""


def bytes_at(data: Bytes, at: Int64s) -> Bytes:
    """Return the byte at each position."""
    return data.take(at, mode="clip")


def slices_at(data: Bytes, at: Int64s, width: int) -> Bytes:
    """Return the `width` bytes from each position, as the rows of a new (n, width) array."""
    if len(data) < width:
        return np.zeros((len(at), width), np.uint8)
    return np.lib.stride_tricks.sliding_window_view(data, width)[np.minimum(at, len(data) - width)]


def unsigned_varints(data: Bytes, at: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Read the unsigned 32-bit varint at each position: (values, positions after them, mask of valid ones).

    Valid means what `primitives.read_unsigned_varint` accepts: the shortest form, at most 32 bits.
    """
    byte = bytes_at(data, at)
    value = (byte & 0x7F).astype(np.int64)
    after = at + 1
    valid = np.ones(len(at), np.bool_)
    # Nearly all varints here have one byte: only the rows with a continuation bit go through the loop.
    rows = np.flatnonzero(byte >= 0x80)
    for shift in (7, 14, 21, 28):
        if not len(rows):
            break
        byte = bytes_at(data, after[rows])
        value[rows] |= (byte & 0x7F).astype(np.int64) << shift
        after[rows] += 1
        valid[rows[byte == 0]] = False
        rows = rows[byte >= 0x80]
    valid[rows] = False
    return value, after, valid & (value <= 0xFFFFFFFF)


def lengths(data: Bytes, at: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Read the zigzag varint of a length at each position, like `unsigned_varints`; a negative length is not valid."""
    value, after, valid = unsigned_varints(data, at)
    return value >> 1, after, valid & (value & 1 == 0)


# ACL records in columns, for bulk replay: the positions of their fields in the buffer, without an object per record.
#
# Nothing is assumed: what the vectorized code cannot prove to be plain and valid is left to the scalar decoder
# (aclog.metalog.codec), which accepts it or raises its own error.


_FRAME = 3
"""Size in bytes of frame version, apiKey 18 and version 0."""

_UUID = 16


@frozen(kw_only=True, eq=False, repr=False)
class AclColumns:
    """n AccessControlEntryRecord values (version 0, no tagged fields), as int64 positions in `buffer`.

    All slices have an inclusive start and an exclusive end; the strings are valid UTF-8. Adjacent fields form keys that
    are compared as raw bytes: the resource key is [resource_start, resource_end) = type byte, compact name, pattern
    type byte; the pair key is [pair_start, pair_end) = compact principal, compact host. The name alone is [name_start,
    resource_end - 1), the principal [principal_start, principal_end), the host [host_start, pair_end).
    """

    buffer: Buffer
    value_start: Int64s
    value_end: Int64s
    name_start: Int64s
    resource_end: Int64s
    principal_start: Int64s
    principal_end: Int64s
    host_start: Int64s
    pair_end: Int64s
    ids: NDArray[np.uint8]
    """(n, 16): the big-endian bytes of the uuids."""
    resource_type: NDArray[np.int8]
    pattern_type: NDArray[np.int8]
    operation: NDArray[np.int8]
    permission_type: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.value_start)

    @property
    def resource_start(self) -> Int64s:
        """Start of the resource key: after frame and uuid."""
        return self.value_start + _FRAME + _UUID

    @property
    def pair_start(self) -> Int64s:
        """Start of the pair key: the end of the resource key."""
        return self.resource_end

    def take(self, rows: Int64s | Bools | slice) -> Self:
        """Return the records of these rows (indices, a mask or a slice), in the given order, over the same buffer."""
        return type(self)(buffer=self.buffer, **{name: getattr(self, name)[rows] for name in _column_names()})


def _column_names() -> list[str]:
    return [field.name for field in fields(AclColumns) if field.name != "buffer"]


_PLAIN_REMOVE_SIZE = 20
"""A removal's value: frame, uuid, and an empty tag section."""


def acl_records(buffer: Buffer, start: Int64s, end: Int64s) -> tuple[Bools, Bools]:
    """Return the masks of ACL additions, plain or not, and of plain removals, all of version 0, among these values."""
    data, size = np.frombuffer(buffer, np.uint8), end - start
    framed = (size >= _FRAME) & (bytes_at(data, start) == 1) & (bytes_at(data, start + 2) == 0)
    kind = bytes_at(data, start + 1)
    no_tags = bytes_at(data, end - 1) == 0
    adds = framed & (kind == RecordType.ACCESS_CONTROL_ENTRY_RECORD)
    removes = framed & (kind == RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD)
    return adds, removes & (size == _PLAIN_REMOVE_SIZE) & no_tags


def read_acls(buffer: Buffer, value_start: Int64s, value_end: Int64s) -> tuple[AclColumns, Int64s]:
    """Return the record values in these slices as columns, and the rows left out, ascending.

    Every value must begin with frame version 1, apiKey 18, version 0, and lie inside the buffer. A row that is left out
    is not proven to be plain and valid (it may have tagged fields, or be damaged): decode it with
    `codec.decode_record`.
    """
    data = np.frombuffer(buffer, np.uint8)
    blocks, remaining = [], []
    for first in range(0, max(len(value_start), 1), BLOCK):
        block = slice(first, first + BLOCK)
        acls, plain = _read_block(buffer, data, value_start[block], value_end[block])
        blocks.append(acls if plain.all() else acls.take(plain))
        remaining.append(np.flatnonzero(~plain) + first)
    columns = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in _column_names()}
    return AclColumns(buffer=buffer, **columns), np.concatenate(remaining)


def _read_block(buffer: Buffer, data: Bytes, start: Int64s, end: Int64s) -> tuple[AclColumns, Bools]:
    resource_start = start + _FRAME + _UUID
    name_start, name_end, plain = _strings(data, resource_start + 1)
    resource_end = name_end + 1
    principal_start, principal_end, principal_ok = _strings(data, resource_end)
    host_start, pair_end, host_ok = _strings(data, principal_end)
    # The record must end exactly where its value ends, after operation, permission type and an empty tag section (0).
    # Reads past the end are clamped, so this is also what proves that every length above was real.
    plain &= principal_ok & host_ok & (pair_end + 3 == end) & (bytes_at(data, pair_end + 2) == 0)
    acls = AclColumns(
        buffer=buffer,
        value_start=start,
        value_end=end,
        name_start=name_start,
        resource_end=resource_end,
        principal_start=principal_start,
        principal_end=principal_end,
        host_start=host_start,
        pair_end=pair_end,
        ids=slices_at(data, start + _FRAME, _UUID),
        resource_type=bytes_at(data, resource_start).view(np.int8),
        pattern_type=bytes_at(data, name_end).view(np.int8),
        operation=bytes_at(data, pair_end).view(np.int8),
        permission_type=bytes_at(data, pair_end + 1).view(np.int8),
    )
    rows = np.flatnonzero(plain)
    plain[rows[_not_utf8(data, acls if len(rows) == len(plain) else acls.take(rows))]] = False
    return acls, plain


def _strings(data: Bytes, at: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Read compact strings: (starts, ends, mask of valid lengths); callers check that they lie inside the value."""
    length, start, valid = unsigned_varints(data, at)
    return start, start + length - 1, valid & (length >= 1) & (length <= MAX_STRING + 1)


def _not_utf8(data: Bytes, acls: AclColumns) -> list[int]:
    """Return the rows with a string that is not UTF-8; only rows with a byte above 0x7f are decoded one by one."""
    if not len(acls):
        return []
    edges = np.stack((acls.resource_start, acls.pair_end), axis=1).ravel()
    # Bytes up to 0x7f are always valid UTF-8: one pass over all records finds the few that need decoding.
    highest = np.maximum.reduceat(data[: np.max(edges) + 1], edges)[::2]
    bad = []
    for row in np.flatnonzero(highest > 0x7F).tolist():
        strings = (
            data[acls.name_start[row] : acls.resource_end[row] - 1],
            data[acls.principal_start[row] : acls.principal_end[row]],
            data[acls.host_start[row] : acls.pair_end[row]],
        )
        if not all(map(_is_utf8, strings)):
            bad.append(row)
    return bad


def _is_utf8(data: Bytes) -> bool:
    try:
        data.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True
