"""The flat form of a base: one buffer of little-endian columns that is mapped, not built (docs/format.md).

A header says where each column is; nothing else has to be read before the first decision. Only the bounds of columns
are checked here, and that their sizes fit together: whoever stores a base guards its bytes with a checksum.
"""

import struct
import sys
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from aclog.metalog.errors import DecodeError

MAGIC = b"aclogbas"
VERSION = 1
"""Raised whenever a column changes its meaning: a base of another version is not read."""

_HEADER = struct.Struct("<8sIIQ")
_PLACE = struct.Struct("<QQ")
_ALIGNMENT = 64
"""Columns begin at cache lines (the widest item has 8 bytes)."""

Allocate: TypeAlias = Callable[[int], Any]
"""Return a writable buffer of this many zero bytes."""


class Column(IntEnum):
    """The columns in the order of the header; docs/format.md tells their items."""

    COUNTS = 0
    RESOURCE_DATA = 1
    RESOURCE_OFFSETS = 2
    RESOURCE_BUCKETS = 3
    PAIR_DATA = 4
    PAIR_OFFSETS = 5
    PAIR_BUCKETS = 6
    CELL_STARTS = 7
    CELL_PAIRS = 8
    CELL_MASKS = 9
    CELL_ROWS = 10
    OPERATIONS = 11
    PERMISSIONS = 12
    IDS = 13
    ID_ORDER = 14
    ID_STARTS = 15
    PREFIX_RESOURCES = 16
    PREFIX_PARENTS = 17
    PREFIX_JUMPS = 18
    TYPE_NODES = 19
    PREFIX_LENGTHS = 20
    PREFIX_FILTER = 21
    WILDCARDS = 22
    UNITS = 23
    COLONLESS = 24
    RANGE_PAIRS = 25
    RAW_CODES = 26
    TAGS = 27


_FORMATS = {
    Column.COUNTS: "q",
    Column.CELL_MASKS: "I",
    Column.PREFIX_FILTER: "Q",
    **dict.fromkeys(
        (Column.RESOURCE_DATA, Column.PAIR_DATA, Column.OPERATIONS, Column.PERMISSIONS, Column.IDS, Column.TAGS), "B"
    ),
}
"""Items that are not int32, by the codes of `struct`; offsets are "I", or "q" from 4 GiB of data on."""

_OFFSETS = {Column.RESOURCE_OFFSETS: Column.RESOURCE_DATA, Column.PAIR_OFFSETS: Column.PAIR_DATA}
WIDE_BYTES = 1 << 32
"""From this many bytes of data on, its offsets have 64 bits."""


def pack(columns: Mapping[Column, Any], allocate: Allocate = bytearray) -> memoryview:
    """Return the flat form of these columns, given as contiguous buffers of their items, in what `allocate` returns."""
    at = _aligned(_HEADER.size + _PLACE.size * len(Column))
    places = []
    for column in Column:
        size = memoryview(columns[column]).nbytes
        places.append((at, size))
        at = _aligned(at + size)
    flat = memoryview(allocate(at)).cast("B")
    _HEADER.pack_into(flat, 0, MAGIC, VERSION, len(Column), at)
    for column, (start, size) in zip(Column, places, strict=True):
        _PLACE.pack_into(flat, _HEADER.size + _PLACE.size * column, start, size)
        if size:
            flat[start : start + size] = memoryview(columns[column]).cast("B")
    return flat.toreadonly()


def unpack(flat: memoryview) -> dict[Column, memoryview]:
    """Return the columns of a flat base, as views of their items.

    Raises:
        DecodeError: it is none, of another version, cut off, or its columns do not lie within it.

    """
    if sys.byteorder != "little":
        raise DecodeError("flat bases are little-endian, and this machine is not: build the base from its records")
    if len(flat) < _HEADER.size + _PLACE.size * len(Column):
        raise DecodeError(f"{len(flat)} bytes are too few for a flat base")
    magic, version, count, size = _HEADER.unpack_from(flat, 0)
    if magic != MAGIC:
        raise DecodeError("not a flat base: it does not begin with its magic")
    if (version, count) != (VERSION, len(Column)):
        raise DecodeError(f"flat base of version {version} with {count} columns: expected version {VERSION}")
    if size != len(flat):
        raise DecodeError(f"flat base of {size} bytes: {len(flat)} are here")
    columns: dict[Column, memoryview] = {}
    for column in Column:
        start, length = _PLACE.unpack_from(flat, _HEADER.size + _PLACE.size * column)
        if start % _ALIGNMENT or start > len(flat) or length > len(flat) - start:
            raise DecodeError(f"column {column.name} of the flat base is out of bounds")
        columns[column] = _typed(column, flat[start : start + length], columns)
    return columns


def _typed(column: Column, data: memoryview, columns: Mapping[Column, memoryview]) -> memoryview:
    kind = _FORMATS.get(column, "i")
    if column in _OFFSETS:
        kind = "q" if len(columns[_OFFSETS[column]]) >= WIDE_BYTES else "I"
    if len(data) % struct.calcsize(kind):
        raise DecodeError(f"column {column.name} of the flat base is no whole number of items")
    return data.cast(kind)  # type: ignore[call-overload, no-any-return]  # one of the codes above


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT
