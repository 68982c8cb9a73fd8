"""A base as one flat buffer: packed from columns once, and opened wherever it is mapped."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from aclog.authorizer.index.arrays import Int32s, UInt32s
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.byte_strings import ByteStrings
from aclog.authorizer.index.core import core_of
from aclog.authorizer.index.first_units import UnitCounts
from aclog.authorizer.index.ids import IdIndex
from aclog.authorizer.index.keys import KeyTable
from aclog.authorizer.index.layout import WIDE_BYTES, Allocate, Column, pack, unpack
from aclog.authorizer.index.masks import TYPES
from aclog.authorizer.index.prefixes import Prefixes
from aclog.metalog.errors import DecodeError
from aclog.metalog.fields import read_tagged_fields, write_tagged_fields
from aclog.metalog.records import TaggedFields
from aclog.metalog.vectors import Bytes

_HAS_IDS, _ONE_ROW_EACH = 1, 2
_COUNTS = 8
_TAG_HEAD = struct.Struct("<iI")
"""Row, and the size of its tagged fields, which follow as in the record."""


@frozen(eq=False, kw_only=True)
class BaseColumns:
    """What `pack_base` puts into one buffer: the columns of a Base, and of its tables."""

    resources: ByteStrings
    resource_buckets: Int32s
    pairs: ByteStrings
    pair_buckets: Int32s
    cell_starts: Int32s
    cell_pairs: Int32s
    cell_masks: UInt32s
    cell_rows: Int32s | None
    """None if every cell has one row."""
    operations: Bytes
    permissions: Bytes
    ids: Bytes
    id_order: Int32s
    id_starts: Int32s
    has_ids: bool
    prefix_resources: Int32s
    prefix_parents: Int32s
    prefix_jumps: Int32s
    type_nodes: Int32s
    prefix_lengths: Int32s
    prefix_filter: "np.ndarray[Any, np.dtype[np.uint64]]"
    wildcards: Int32s
    units: UnitCounts
    colonless: Int32s
    range_pairs: Int32s
    raw_codes: Mapping[int, tuple[int, int]]
    tags: Mapping[int, TaggedFields]
    unbindable: int
    irregular: int


def pack_base(columns: BaseColumns, allocate: Allocate = bytearray) -> Base:
    """Return the base in one flat buffer, which `allocate` returns."""
    c = columns
    flags = _HAS_IDS * c.has_ids | _ONE_ROW_EACH * (c.cell_rows is None)
    counts = (
        len(c.operations),
        len(c.resources),
        len(c.pairs),
        len(c.cell_pairs),
        len(c.prefix_resources),
        flags,
        c.unbindable,
        c.irregular,
    )
    packed = {
        Column.COUNTS: np.array(counts, np.int64),
        Column.RESOURCE_DATA: c.resources.data,
        Column.RESOURCE_OFFSETS: _offsets(c.resources),
        Column.RESOURCE_BUCKETS: c.resource_buckets,
        Column.PAIR_DATA: c.pairs.data,
        Column.PAIR_OFFSETS: _offsets(c.pairs),
        Column.PAIR_BUCKETS: c.pair_buckets,
        Column.CELL_STARTS: c.cell_starts,
        Column.CELL_PAIRS: c.cell_pairs,
        Column.CELL_MASKS: c.cell_masks,
        Column.CELL_ROWS: np.zeros(0, np.int32) if c.cell_rows is None else c.cell_rows,
        Column.OPERATIONS: c.operations,
        Column.PERMISSIONS: c.permissions,
        Column.IDS: np.ascontiguousarray(c.ids).reshape(-1),
        Column.ID_ORDER: c.id_order,
        Column.ID_STARTS: c.id_starts,
        Column.PREFIX_RESOURCES: c.prefix_resources,
        Column.PREFIX_PARENTS: c.prefix_parents,
        Column.PREFIX_JUMPS: c.prefix_jumps,
        Column.TYPE_NODES: c.type_nodes,
        Column.PREFIX_LENGTHS: c.prefix_lengths,
        Column.PREFIX_FILTER: c.prefix_filter,
        Column.WILDCARDS: c.wildcards,
        Column.UNITS: _triples((kind, unit, count) for (kind, unit), count in sorted(c.units.items())),
        Column.COLONLESS: c.colonless,
        Column.RANGE_PAIRS: c.range_pairs,
        Column.RAW_CODES: _triples((row, *codes) for row, codes in sorted(c.raw_codes.items())),
        Column.TAGS: b"".join(_tagged(row, c.tags[row]) for row in sorted(c.tags)),
    }
    return base_of(pack(packed, allocate))


def base_of(flat: memoryview) -> Base:
    """Return the base in a flat buffer; nothing of it is copied, and the buffer must not change afterwards.

    Raises:
        DecodeError: it is not a flat base of this version, or its columns do not fit together.

    """
    view = unpack(memoryview(flat).cast("B"))
    if len(view[Column.COUNTS]) != _COUNTS:
        raise DecodeError("column COUNTS of the flat base has the wrong size")
    rows, resources, pairs, cells, nodes, flags, unbindable, irregular = view[Column.COUNTS]
    one_row_each = bool(flags & _ONE_ROW_EACH)
    _check_sizes(view, (rows, resources, pairs, cells, nodes), one_row_each=one_row_each)
    keys = _table(view, Column.RESOURCE_DATA)
    return Base(
        buffer=flat,
        resources=keys,
        pairs=_table(view, Column.PAIR_DATA),
        cell_starts=view[Column.CELL_STARTS],
        cell_pairs=view[Column.CELL_PAIRS],
        cell_masks=view[Column.CELL_MASKS],
        cell_rows=range(cells + 1) if one_row_each else view[Column.CELL_ROWS],
        operations=view[Column.OPERATIONS],
        permissions=view[Column.PERMISSIONS],
        ids=IdIndex.of(view[Column.IDS], view[Column.ID_ORDER], view[Column.ID_STARTS]),
        has_ids=bool(flags & _HAS_IDS),
        raw_codes={row: (kind, pattern) for row, kind, pattern in _rows_of(view[Column.RAW_CODES], rows)},
        tags=_tags(view[Column.TAGS]),
        prefixes=Prefixes(
            keys,
            view[Column.PREFIX_RESOURCES],
            view[Column.PREFIX_PARENTS],
            view[Column.PREFIX_JUMPS],
            view[Column.TYPE_NODES],
        ),
        wildcard_resources=tuple(view[Column.WILDCARDS]),
        colonless_resources=frozenset(view[Column.COLONLESS]),
        unbindable=unbindable,
        irregular=irregular,
        units={(kind, unit): count for kind, unit, count in _rows_of(view[Column.UNITS], None)},
        range_pairs=view[Column.RANGE_PAIRS],
        core=core_of(flat),
    )


def _check_sizes(view: Mapping[Column, memoryview], counts: tuple[int, ...], *, one_row_each: bool) -> None:
    """Check that every column has as many items as the others say, and that the last offsets point to the ends."""
    rows, resources, pairs, cells, nodes = counts
    expected = {
        Column.RESOURCE_OFFSETS: resources + 1,
        Column.PAIR_OFFSETS: pairs + 1,
        Column.CELL_STARTS: resources + 1,
        Column.CELL_PAIRS: cells,
        Column.CELL_MASKS: cells,
        Column.CELL_ROWS: 0 if one_row_each else cells + 1,
        Column.OPERATIONS: rows,
        Column.PERMISSIONS: rows,
        Column.IDS: 16 * rows,
        Column.ID_ORDER: rows,
        Column.PREFIX_RESOURCES: nodes,
        Column.PREFIX_PARENTS: nodes,
        Column.PREFIX_JUMPS: nodes,
        Column.TYPE_NODES: TYPES + 1,
        Column.WILDCARDS: TYPES,
    }
    wrong = [column for column, size in expected.items() if len(view[column]) != size]
    powers = (Column.RESOURCE_BUCKETS, Column.PAIR_BUCKETS, Column.ID_STARTS)
    wrong += [column for column in powers if (len(view[column]) - 1).bit_count() != 1]
    words = len(view[Column.PREFIX_FILTER])
    if words.bit_count() != 1:
        wrong.append(Column.PREFIX_FILTER)
    if not wrong:
        ends = {
            Column.RESOURCE_OFFSETS: len(view[Column.RESOURCE_DATA]),
            Column.PAIR_OFFSETS: len(view[Column.PAIR_DATA]),
            Column.RESOURCE_BUCKETS: resources,
            Column.PAIR_BUCKETS: pairs,
            Column.CELL_STARTS: cells,
            Column.ID_STARTS: rows,
            Column.TYPE_NODES: nodes,
        }
        wrong = [column for column, end in ends.items() if view[column][-1] != end]
    if wrong or (one_row_each and cells != rows):
        names = ", ".join(column.name for column in wrong) or "CELL_ROWS"
        raise DecodeError(f"columns of the flat base do not fit together: {names}")


def _table(view: Mapping[Column, memoryview], data: Column) -> KeyTable:
    """Return the table whose data is this column; its offsets and buckets are the next two."""
    return KeyTable.of(view[data], view[Column(data + 1)], view[Column(data + 2)])


def _offsets(strings: ByteStrings) -> "np.ndarray[Any, Any]":
    wide = len(strings.data) >= WIDE_BYTES
    return strings.offsets if wide else strings.offsets.astype(np.uint32)


def _triples(rows: Any) -> Int32s:
    return np.array([item for row in rows for item in row], np.int32)


def _rows_of(column: memoryview, rows: int | None) -> "zip[tuple[int, int, int]]":
    items = column.tolist()
    if len(items) % 3 or (rows is not None and any(not 0 <= row < rows for row in items[::3])):
        raise DecodeError("a sparse column of the flat base is out of bounds")
    return zip(items[::3], items[1::3], items[2::3], strict=True)


def _tagged(row: int, fields: TaggedFields) -> bytes:
    data = write_tagged_fields(fields)
    return _TAG_HEAD.pack(row, len(data)) + data


def _tags(column: memoryview) -> dict[int, TaggedFields]:
    found: dict[int, TaggedFields] = {}
    at, data = 0, column.tobytes()
    while at < len(data):
        if len(data) - at < _TAG_HEAD.size:
            raise DecodeError("column TAGS of the flat base is cut off")
        row, size = _TAG_HEAD.unpack_from(data, at)
        found[row], end = read_tagged_fields(data, at + _TAG_HEAD.size)
        at += _TAG_HEAD.size + size
        if end != at:
            raise DecodeError("column TAGS of the flat base is damaged")
    return found
