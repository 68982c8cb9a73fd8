"""All records of a buffer of many batches at once, for bulk replay: ACL changes in columns, the rest one by one.

A million ACL records take about half a second. The same bytes are accepted, and the same error is found first, as by
reading batch after batch with metalog.batches, metalog.codec and metalog.control.
"""

from typing import TypeVar

import numpy as np
from attrs import fields, frozen
from numpy.typing import NDArray

from metalog.batches import check_crc, read_header, read_records
from metalog.codec import SCHEMAS, decode_record
from metalog.columns import AclColumns, read_acls
from metalog.control import ControlRecord, decode_control_batch
from metalog.errors import DecodeError
from metalog.primitives import Buffer
from metalog.records import FRAME_VERSION, MetadataRecord, RecordType
from metalog.scan import BatchColumns, ValueColumns, scan_batches, scan_values
from metalog.vectors import BLOCK, Bools, Bytes, Int64s, bytes_at, slices_at, unsigned_varints

_NOT_PROVEN = -1
"""Instead of an apiKey, where the frame is not proven to be valid, or the version of an interpreted record not 0."""

_MAX_INT16 = 0x7FFF

_UUID_AT, _UUID_SIZE, _REMOVE_SIZE, _NO_OP_SIZE = 3, 16, 20, 4
"""A plain RemoveAccessControlEntryRecord is frame, uuid and no tagged fields; a NoOpRecord has no fields at all."""

_Columns = TypeVar("_Columns", BatchColumns, ValueColumns)


@frozen(kw_only=True, eq=False)
class RecordColumns:
    """The records of the whole batches of `buffer`, up to `damage`, the DecodeError where reading had to end.

    A row is the number of a data record, in log order; `values` and `api_key` have one entry a row. Every row whose
    apiKey is in codec.SCHEMAS stands in exactly one of `added_rows`, `removed_rows` and `others`, but for NoOpRecords
    without tagged fields, which stand in none. The other rows are of types that we do not interpret.
    """

    buffer: Buffer
    batches: BatchColumns
    values: ValueColumns
    api_key: NDArray[np.int16]
    added: AclColumns
    added_rows: Int64s
    """The row of each of `added`, ascending."""
    removed_ids: NDArray[np.uint8]
    """(n, 16): the uuids of RemoveAccessControlEntryRecords."""
    removed_rows: Int64s
    others: tuple[tuple[int, MetadataRecord], ...]
    """(row, record), ascending: what is interpreted and stands in no column, ACL records with tagged fields too."""
    control: tuple[tuple[int, ControlRecord], ...]
    """(number of the batch, record), ascending."""
    damage: DecodeError | None

    @property
    def end(self) -> int:
        """The position after the last batch: what follows is damaged, or cut."""
        return int(self.batches.end[-1]) if len(self.batches) else 0


def read_columns(buffer: Buffer) -> RecordColumns:
    """Read every whole batch of `buffer`; damage is not raised but told, with its position and offset."""
    data = np.frombuffer(buffer, np.uint8)
    batches, damaged = scan_batches(buffer)
    values, unproven = scan_values(buffer, batches)
    api_key = _api_keys(data, values)
    acl_rows = np.flatnonzero(api_key == RecordType.ACCESS_CONTROL_ENTRY_RECORD)
    added, left = read_acls(buffer, values.value_start[acl_rows], values.value_end[acl_rows])
    removed = _plain(data, values, api_key, RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD, _REMOVE_SIZE)
    no_op = _plain(data, values, api_key, RecordType.NO_OP_RECORD, _NO_OP_SIZE)
    odd = np.isin(api_key, [_NOT_PROVEN, *SCHEMAS]) & ~removed & ~no_op
    added_rows = np.delete(acl_rows, left)
    odd[added_rows] = False
    rest = _Rest.read(buffer, batches, values, np.flatnonzero(odd), len(batches) if unproven is None else unproven)
    damage = rest.damage
    if damage is None and unproven is not None:
        damage = _damage_at(buffer, int(batches.position[unproven]))
    elif damage is None and damaged is not None:
        damage = _damage_at(buffer, damaged)
    rows = int(np.searchsorted(values.batch, rest.whole))
    removed_rows = np.flatnonzero(removed[:rows])
    kept = int(np.searchsorted(added_rows, rows))
    return RecordColumns(
        buffer=buffer,
        batches=_head(batches, rest.whole),
        values=_head(values, rows),
        api_key=api_key[:rows],
        added=added if kept == len(added) else added.take(slice(kept)),
        added_rows=added_rows[:kept],
        removed_ids=slices_at(data, values.value_start[removed_rows] + _UUID_AT, _UUID_SIZE),
        removed_rows=removed_rows,
        others=rest.others,
        control=rest.control,
        damage=damage,
    )


def _api_keys(data: Bytes, values: ValueColumns) -> NDArray[np.int16]:
    found = np.empty(len(values), np.int16)
    for first in range(0, len(values), BLOCK):
        rows = slice(first, first + BLOCK)
        found[rows] = _block_api_keys(data, values.value_start[rows], values.value_end[rows])
    return found


def _block_api_keys(data: Bytes, start: Int64s, end: Int64s) -> Int64s:
    api_key, version_at, key_ok = unsigned_varints(data, start + 1)
    version, body, version_ok = unsigned_varints(data, version_at)
    proven = (bytes_at(data, start) == FRAME_VERSION) & key_ok & version_ok & (body <= end)
    proven &= (api_key <= _MAX_INT16) & (version <= _MAX_INT16)
    proven &= (version == 0) | ~np.isin(api_key, list(SCHEMAS))
    return np.where(proven, api_key, _NOT_PROVEN)


def _plain(data: Bytes, values: ValueColumns, api_key: NDArray[np.int16], kind: RecordType, size: int) -> Bools:
    """The rows of this type and size whose last byte, the number of tagged fields, is 0."""
    found: Bools = (api_key == kind) & (values.value_end - values.value_start == size)
    found &= bytes_at(data, values.value_end - 1) == 0
    return found


@frozen(kw_only=True)
class _Rest:
    """What is read one by one: odd rows and control batches; `whole` counts the batches before the damage."""

    others: tuple[tuple[int, MetadataRecord], ...]
    control: tuple[tuple[int, ControlRecord], ...]
    whole: int
    damage: DecodeError | None

    @classmethod
    def read(cls, buffer: Buffer, batches: BatchColumns, values: ValueColumns, odd: Int64s, whole: int) -> "_Rest":
        """Read the `odd` rows and the control batches among the first `whole` batches, in log order."""
        others: list[tuple[int, MetadataRecord]] = []
        control: list[tuple[int, ControlRecord]] = []
        damage = None
        todo = [(number, -1) for number in np.flatnonzero(batches.is_control[:whole]).tolist()]
        todo += zip(values.batch[odd].tolist(), odd.tolist(), strict=True)
        number = whole
        try:
            for number, row in sorted(todo):
                if row < 0:
                    control += ((number, record) for record in _control_records(buffer, int(batches.position[number])))
                else:
                    others.append((row, _record(buffer, values, row)))
        except DecodeError as e:
            damage, whole = e, number
        others = [(row, record) for row, record in others if values.batch[row] < whole]
        return cls(others=tuple(others), control=tuple(control), whole=whole, damage=damage)


def _control_records(buffer: Buffer, position: int) -> tuple[ControlRecord, ...]:
    return decode_control_batch(buffer, position, read_header(buffer, position))


def _record(buffer: Buffer, values: ValueColumns, row: int) -> MetadataRecord:
    start, end = int(values.value_start[row]), int(values.value_end[row])
    try:
        return decode_record(bytes(buffer[start:end]))
    except DecodeError as e:
        raise e.at(offset=int(values.offset[row]), base=start) from None


def _damage_at(buffer: Buffer, position: int) -> DecodeError:
    """What is wrong with the batch at `position`, as the reader of single batches tells it."""
    try:
        header = read_header(buffer, position)
        check_crc(buffer, position, header)
        for _ in read_records(buffer, position, header):
            pass
    except DecodeError as e:
        return e
    return DecodeError("a batch that reading in bulk cannot prove to be valid", position=position)


def _head(columns: _Columns, count: int) -> _Columns:
    return type(columns)(**{field.name: getattr(columns, field.name)[:count] for field in fields(type(columns))})
