"""The records of many batches as columns of numbers: position, record type and version of each.

Whatever the vectorized code does not recognize as plain is left to the scalar decoders, which accept it or raise.
"""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Self

import numpy as np
from attrs import fields, frozen

from aclog.metalog.batch_scan import BatchColumns, ValueColumns, scan_values
from aclog.metalog.batches import read_header, read_values
from aclog.metalog.codec import decode_record, read_frame
from aclog.metalog.control_records import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    OpaqueControlRecord,
    SnapshotFooter,
    SnapshotHeader,
    decode_control_batch,
)
from aclog.metalog.errors import DecodeError
from aclog.metalog.json_form import type_name
from aclog.metalog.record_schemas import SCHEMAS
from aclog.metalog.records import FRAME_VERSION
from aclog.metalog.vectors import Bools, Int64s, bytes_at

CONTROL_KIND = 1 << 16
"""Added to the type of a control record, to distinguish it from an apiKey."""

_OPAQUE_CONTROL_KIND = 1 << 18
"""Added to the type of a control record that is not interpreted: any int16."""

_INTERPRETED = np.array(sorted(SCHEMAS), np.int64)
_CONTROL_NAMES = MappingProxyType(
    {
        int(each.control_type): each.__name__
        for each in (LeaderChange, SnapshotHeader, SnapshotFooter, KRaftVersion, KRaftVoters)
    }
)


@frozen(kw_only=True, eq=False)
class Rows:
    """n records in the order of the log, as int64 columns: batch number, offset, slice of the value, type, version.

    `kind` is the record's apiKey, or CONTROL_KIND or more for a control record, whose slice is empty.
    """

    batch: Int64s
    offset: Int64s
    value_start: Int64s
    value_end: Int64s
    kind: Int64s
    version: Int64s

    def __len__(self) -> int:
        return len(self.offset)

    def take(self, rows: Int64s | Bools | slice) -> Self:
        """Return some of these rows, by indices, a mask or a slice."""
        return type(self)(**{each.name: getattr(self, each.name)[rows] for each in fields(Rows)})


def kind_name(kind: int) -> str:
    """Return the name of a row's type, as printed by `aclog log dump`."""
    if kind < CONTROL_KIND:
        return type_name(kind)
    if kind in range(CONTROL_KIND, CONTROL_KIND + len(_CONTROL_NAMES) + 2):
        return _CONTROL_NAMES[kind - CONTROL_KIND]
    return f"UNKNOWN_{kind - _OPAQUE_CONTROL_KIND}"


def read_rows(buffer: bytes, batches: BatchColumns) -> Rows:
    """Return every record of these batches, whose headers and CRCs have been checked.

    Raises:
        DecodeError: damage in the structure of a batch, a control record or a frame, or an interpreted record of a
            version above 0; with the position in the buffer and the offset.

    """
    values, first_odd = scan_values(buffer, batches)
    data = _data_rows(buffer, values)
    others = [] if first_odd is None else [_data_rows(buffer, _scalar_values(buffer, batches, first_odd))]
    if batches.is_control.any():
        others.append(_control_rows(buffer, batches))
    if not others:
        return data
    parts = (data, *others)
    together = Rows(
        **{each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Rows)}
    )
    # stable: records of one batch are in order already
    return together.take(np.argsort(together.batch, kind="stable"))


def _scalar_values(buffer: bytes, batches: BatchColumns, first: int) -> ValueColumns:
    """Return the values of all data batches from number `first` on, by the scalar decoder."""
    found: list[tuple[int, int, int, int]] = []
    for number in range(first, len(batches)):
        if not batches.is_control[number]:
            position = int(batches.position[number])
            header = read_header(buffer, position)
            for offset, (start, value) in enumerate(read_values(buffer, position, header), header.base_offset):
                found.append((number, offset, start, start + len(value)))
    columns = np.array(found, np.int64).reshape(-1, 4).T
    return ValueColumns(batch=columns[0], offset=columns[1], value_start=columns[2], value_end=columns[3])


def _data_rows(buffer: bytes, values: ValueColumns) -> Rows:
    data = np.frombuffer(buffer, np.uint8)
    start, end = values.value_start, values.value_end
    kind = bytes_at(data, start + 1).astype(np.int64)
    version = bytes_at(data, start + 2).astype(np.int64)
    # type and version are varints, of one byte in all plain records
    plain = (bytes_at(data, start) == FRAME_VERSION) & (kind < 0x80) & (version < 0x80) & (end - start >= 3)
    plain &= (version == 0) | ~np.isin(kind, _INTERPRETED)
    for row in np.flatnonzero(~plain).tolist():
        value = buffer[start[row] : end[row]]
        try:
            kind[row], version[row], _ = read_frame(value)
            if version[row] and kind[row] in SCHEMAS:
                decode_record(value)  # raises: from a newer Kafka version
        except DecodeError as e:
            raise e.at(offset=int(values.offset[row]), base=int(start[row])) from None
    return Rows(batch=values.batch, offset=values.offset, value_start=start, value_end=end, kind=kind, version=version)


def _control_rows(buffer: bytes, batches: BatchColumns) -> Rows:
    columns = np.array(list(_controls(buffer, batches)), np.int64).reshape(-1, 4).T
    nowhere = np.zeros(columns.shape[1], np.int64)
    return Rows(
        batch=columns[0],
        offset=columns[1],
        value_start=nowhere,
        value_end=nowhere,
        kind=columns[2],
        version=columns[3],
    )


def _controls(buffer: bytes, batches: BatchColumns) -> Iterator[tuple[int, int, int, int]]:
    for number in np.flatnonzero(batches.is_control).tolist():
        position = int(batches.position[number])
        header = read_header(buffer, position)
        for offset, record in enumerate(decode_control_batch(buffer, position, header), header.base_offset):
            yield number, offset, *_control_kind(record)


def _control_kind(record: ControlRecord) -> tuple[int, int]:
    if isinstance(record, OpaqueControlRecord):
        return _OPAQUE_CONTROL_KIND + record.control_type, int.from_bytes(record.key[:2], signed=True)
    return CONTROL_KIND + record.control_type, record.version
