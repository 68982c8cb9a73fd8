"""ACLs as Arrow structs of text, made from positions in the bytes of their records."""

from enum import IntEnum
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, code_name
from aclog.metalog.acl_columns import AclColumns
from aclog.metalog.vectors import Int64s
from aclog.usage.arrow.slices import slices

Array: TypeAlias = "pa.Array[Any]"

ACL_FIELDS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
"""The fields of an ACL without its id, in the order of Kafka's StandardAcl."""

ACL_TYPE = pa.struct([(name, pa.string()) for name in ("id", *ACL_FIELDS)])
"""An ACL: enum names in upper case, the id as Kafka's 22 characters. A removal only has the id."""

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


def id_texts(ids: NDArray[np.uint8]) -> Array:
    """Return the 22-character texts of uuids, given as (n, 16) bytes (aclog.metalog.uuids.uuid_text for many)."""
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
