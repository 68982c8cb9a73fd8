"""Arrow batches of ACLs and slices."""

from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aclog.authorizer.acl import code_name
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index.layout import INT32_BYTES
from aclog.metalog.columns import AclColumns, Int64s
from aclog.metalog.primitives import Buffer

# Larger Arrow batches for workers: Spark passes on as few rows at a time as its file reader returns.


def regrouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of at least `rows` rows, except for the last one."""
    buffer: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        buffer.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(buffer)
            buffer, count = [], 0
    if buffer:
        yield pa.Table.from_batches(buffer)


# Slices of a buffer as a binary Arrow array, without an object for each.


Binary: TypeAlias = "pa.Array[Any]"
"""A binary or large_binary array without nulls."""


def slices(source: Buffer, starts: Int64s, ends: Int64s) -> Binary:
    """Return the bytes [start, end) of each row as a binary array; the bytes are copied."""
    buffer = pa.py_buffer(source)
    # Arrow wants non-decreasing offsets, so the buffer is viewed as an array of alternating slots
    # [start0, end0), [end0, start1), [start1, end1), ... and `take` picks the even ones: no Python object per row.
    ascending = bool((starts[1:] >= ends[:-1]).all())
    order = None if ascending else np.argsort(starts, kind="stable")
    wide = buffer.size >= INT32_BYTES
    positions = np.empty(2 * len(starts) + 1, np.int64 if wide else np.int32)
    positions[0:-1:2] = starts if order is None else starts[order]
    positions[1::2] = ends if order is None else ends[order]
    positions[-1] = positions[-2] if len(starts) else 0
    kind = pa.large_binary() if wide else pa.binary()
    interleaved = pa.Array.from_buffers(kind, 2 * len(starts), [None, pa.py_buffer(positions.data), buffer])
    slot = np.arange(0, 2 * len(starts), 2)
    if order is not None:
        slot[order] = slot.copy()  # back to the caller's row order
    # pa.array would import pandas
    return interleaved.take(pa.Array.from_buffers(pa.int64(), len(slot), [None, pa.py_buffer(slot.data)]))


# ACLs as Arrow structs of text, made from positions in the bytes of their records.


Array: TypeAlias = "pa.Array[Any]"

ACL_FIELDS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
"""The fields of an ACL without its id, in the order of Kafka's StandardAcl."""

ACL_TYPE = pa.struct([(name, pa.string()) for name in ("id", *ACL_FIELDS)])
"""An ACL: enum names in upper case, the id as Kafka's 22 characters. A removal only has the id."""

ACL_CODES = ("resourceType", "patternType", "operation", "permissionType")
"""The fields of an ACL that are codes in the log and names in a table."""

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BASE64_PAIRS = np.frombuffer(bytes(each for high in _BASE64 for low in _BASE64 for each in (high, low)), np.uint16)
"""The two characters for each value of 12 bits, as a uint16 in memory order."""

_ID_TEXT = 22


def acl_structs(buffer: bytes, acls: AclColumns) -> "pa.StructArray":
    """Return ACLs, given as columns over `buffer`, as structs of text (ACL_TYPE)."""
    columns = [
        id_texts(acls.ids),
        _names(ResourceType, acls.resource_type),
        _texts(buffer, acls.name_start, acls.resource_end - 1),
        _names(PatternType, acls.pattern_type),
        _texts(buffer, acls.principal_start, acls.principal_end),
        _texts(buffer, acls.host_start, acls.pair_end),
        _names(AclOperation, acls.operation),
        _names(AclPermissionType, acls.permission_type),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(ACL_TYPE))


def has_unnamed_code(acls: AclColumns) -> NDArray[np.bool_]:
    """Return which ACLs have a code without a name, whose text is UNKNOWN."""
    unnamed: NDArray[np.bool_] = np.zeros(len(acls), np.bool_)
    for kind, codes in (
        (ResourceType, acls.resource_type),
        (PatternType, acls.pattern_type),
        (AclOperation, acls.operation),
        (AclPermissionType, acls.permission_type),
    ):
        unnamed |= _unnamed(kind)[codes.astype(np.int16) + 128]
    return unnamed


@cache
def _unnamed(kind: type[IntEnum]) -> NDArray[np.bool_]:
    """Return which int8 codes have no name, from -128 on."""
    return np.array([code_name(kind, code) == AclOperation.UNKNOWN.name for code in range(-128, 128)])


def id_texts(ids: NDArray[np.uint8]) -> Array:
    """Return the 22-character texts of uuids, given as (n, 16) bytes (aclog.metalog.primitives.uuid_text for many)."""
    # base64 of 18 padded bytes by look-ups of 12 bits: done one by one, ids would cost more than the rest of a row
    count = len(ids)
    padded = np.zeros((count, 18), np.uint16)
    padded[:, :16] = ids
    first, second, third = (padded[:, part::3] for part in range(3))
    pairs = np.empty((count, 6, 2), np.uint16)
    pairs[:, :, 0] = first << 4 | second >> 4
    pairs[:, :, 1] = (second & 15) << 8 | third
    text = np.ascontiguousarray(_BASE64_PAIRS[pairs].view(np.uint8).reshape(count, 24)[:, :_ID_TEXT])
    offsets = np.arange(count + 1, dtype=np.int32) * _ID_TEXT
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets.data), pa.py_buffer(text.data)])


def _texts(buffer: bytes, starts: Int64s, ends: Int64s) -> Array:
    """Return slices that are known to be UTF-8 as strings."""
    return slices(buffer, starts, ends).view(pa.string())


def _names(kind: type[IntEnum], codes: NDArray[np.int8]) -> Array:
    return _all_names(kind).take(codes.astype(np.int16) + 128)


@cache
def _all_names(kind: type[IntEnum]) -> Array:
    """Return the names of all int8 codes, from -128 on."""
    return pa.array([code_name(kind, code) for code in range(-128, 128)], pa.string())
