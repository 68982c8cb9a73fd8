import mmap
import struct
import tracemalloc
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metalog import records as r
from metalog.batches import build_batch, check_crc, iter_batches
from metalog.codec import SCHEMAS, decode_values, encode_record, read_frame
from metalog.control import SnapshotFooter, control_batch, decode_control_batch
from metalog.errors import DecodeError
from metalog.primitives import unsigned_varint, varint
from metalog.record_columns import RecordColumns, read_columns
from tests.metalog.test_batches import recrc
from tests.support.dump_log import METADATA_FILES
from tests.support.records import ACL_ADDS, ACL_REMOVES, CONTROL_RECORDS, RECORDS, mutations

HEADERS = {"leader_epoch": 1, "timestamp": 1795227830153}


def read_one_by_one(data):
    """[(offset, record)] of all whole batches, and the first DecodeError, by the scalar decoders."""
    found = []
    try:
        for position, header in iter_batches(data):
            check_crc(data, position, header)
            decode = decode_control_batch if header.is_control else decode_values
            found += enumerate(list(decode(data, position, header)), header.base_offset)
    except DecodeError as e:
        return found, e
    return found, None


def records_of(columns: RecordColumns):
    """The same from columns; records of types that are not interpreted from their slices."""
    rows = {int(row): record for row, record in zip(columns.added_rows, acls(columns.added), strict=True)}
    ids = (r.UUID(bytes=row.tobytes()) for row in columns.removed_ids)
    removed = zip(columns.removed_rows.tolist(), ids, strict=True)
    rows |= {row: r.RemoveAccessControlEntryRecord(id=id_) for row, id_ in removed}
    assert len(rows) == len(columns.added_rows) + len(columns.removed_rows)
    assert not rows.keys() & {row for row, _ in columns.others}
    rows |= dict(columns.others)
    found = [[] for _ in range(len(columns.batches))]
    for row, (batch, offset, start, end) in enumerate(value_rows(columns)):
        value = bytes(columns.buffer[start:end])
        record = rows.get(row)
        if record is None and columns.api_key[row] == r.RecordType.NO_OP_RECORD:
            assert value == encode_record(r.NoOpRecord())
            record = r.NoOpRecord()
        elif record is None:
            assert columns.api_key[row] not in SCHEMAS
            record = r.OpaqueRecord(api_key=int(columns.api_key[row]), version=read_frame(value)[1], value=value)
        assert not columns.batches.is_control[batch]
        found[batch].append((offset, record))
    for number, record in columns.control:
        found[number].append((int(columns.batches.base_offset[number]) + len(found[number]), record))
    return list(chain.from_iterable(found))


def value_rows(columns):
    names = ("batch", "offset", "value_start", "value_end")
    return zip(*(getattr(columns.values, name).tolist() for name in names), strict=True)


def acls(columns):
    """The records of AclColumns, each from its slices."""
    for row in range(len(columns)):
        start, end = int(columns.resource_start[row]), int(columns.resource_end[row])
        name = bytes(columns.buffer[int(columns.name_start[row]) : end - 1])
        principal = bytes(columns.buffer[int(columns.principal_start[row]) : int(columns.principal_end[row])])
        host = bytes(columns.buffer[int(columns.host_start[row]) : int(columns.pair_end[row])])
        key = bytes(columns.buffer[start:end])
        assert key[1:-1] == unsigned_varint(len(name) + 1) + name
        assert key[:1] + key[-1:] == struct.pack("bb", columns.resource_type[row], columns.pattern_type[row])
        pair = bytes(columns.buffer[int(columns.pair_start[row]) : int(columns.pair_end[row])])
        assert pair == unsigned_varint(len(principal) + 1) + principal + unsigned_varint(len(host) + 1) + host
        yield r.AccessControlEntryRecord(
            id=r.UUID(bytes=columns.ids[row].tobytes()),
            resource_type=int(columns.resource_type[row]),
            resource_name=name.decode(),
            pattern_type=int(columns.pattern_type[row]),
            principal=principal.decode(),
            host=host.decode(),
            operation=int(columns.operation[row]),
            permission_type=int(columns.permission_type[row]),
        )


def check_alike(data):
    """Both ways read the same records and find the same damage."""
    expected, error = read_one_by_one(data)
    columns = read_columns(data)
    assert records_of(columns) == expected
    assert str(columns.damage) == str(error)
    return columns


def log_of(batches, *, first=0):
    """A log of these batches: each a list of records, or a control record."""
    parts, offset = [], first
    for batch in batches:
        if isinstance(batch, list):
            parts.append(build_batch([encode_record(record) for record in batch], base_offset=offset, **HEADERS))
            offset += len(batch)
        else:
            parts.append(control_batch(batch, base_offset=offset, **HEADERS))
            offset += 1
    return parts


LOGS = st.lists(
    st.lists(ACL_ADDS | ACL_REMOVES | RECORDS, min_size=1, max_size=6) | CONTROL_RECORDS, min_size=1, max_size=6
).map(log_of)


@pytest.mark.parametrize("path", METADATA_FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_real_logs_are_read_alike(path):
    data = path.read_bytes()
    columns = check_alike(data)
    headers = [header for _, header in iter_batches(data)]
    assert columns.end == len(data)
    for name in ("base_offset", "leader_epoch", "max_timestamp", "count", "is_control"):
        assert getattr(columns.batches, name).tolist() == [getattr(header, name) for header in headers]


@given(LOGS)
def test_generated_logs_are_read_alike(parts):
    data = b"".join(parts)
    columns = check_alike(data)
    assert columns.damage is None
    assert columns.end == len(data)
    ends = np.cumsum([len(part) for part in parts]).tolist()
    assert columns.batches.end.tolist() == ends
    assert columns.batches.position.tolist() == [0, *ends[:-1]]


@settings(max_examples=40)
@given(LOGS, st.integers(0, 1 << 40))
def test_damaged_logs_are_read_alike(parts, seed):
    for number in range(len(parts)):
        for damaged in mutations(parts[number], seed, 4):
            again = recrc(damaged) if len(damaged) > 61 else damaged
            for part in (damaged, again, fitted(damaged)):
                check_alike(b"".join((*parts[:number], part, *parts[number + 1 :])))


def fitted(batch: bytes) -> bytes:
    """The bytes with a batch length and a CRC that fit them, so that what is inside is looked at."""
    if len(batch) < 61:
        return batch
    return recrc(batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:])


@settings(max_examples=40)
@given(st.lists(RECORDS | ACL_ADDS, min_size=1, max_size=4), st.integers(0, 1 << 40))
def test_damaged_values_in_whole_batches_are_read_alike(records, seed):
    values = [encode_record(record) for record in records]
    first = build_batch(values, base_offset=0, **HEADERS)
    for row in range(len(values)):
        for damaged in mutations(values[row], seed, 8):
            if damaged:
                changed = [*values[:row], damaged, *values[row + 1 :]]
                check_alike(first + build_batch(changed, base_offset=len(values), **HEADERS) + first)


@given(LOGS, st.data())
def test_a_cut_tail_is_no_damage(parts, data):
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    columns = check_alike(whole[:cut])
    assert columns.damage is None
    ends = [0, *np.cumsum([len(part) for part in parts]).tolist()]
    assert columns.end == max(end for end in ends if end <= cut)


def test_damage_in_several_places_is_told_of_the_first():
    parts = log_of([[r.NoOpRecord()] for _ in range(5)])
    bad_record = recrc(parts[1][:-5] + b"\x02" + parts[1][-4:])
    bad_crc = parts[2][:-1] + b"\x01"
    bad_header = parts[3][:16] + b"\x01" + parts[3][17:]
    columns = check_alike(parts[0] + bad_record + bad_crc + bad_header + parts[4])
    assert columns.damage.offset == 1
    columns = check_alike(parts[0] + parts[1] + bad_crc + bad_header + parts[4])
    assert columns.damage.offset == 2
    columns = check_alike(parts[0] + parts[1] + parts[2] + bad_header + parts[4])
    assert columns.damage.position == 3 * len(parts[0]) + 16
    assert len(columns.values) == 3


def test_many_blocks_of_records_and_multibyte_deltas():
    acl = encode_record(
        r.AccessControlEntryRecord(
            id=r.UUID(int=1),
            resource_type=2,
            resource_name="é",
            pattern_type=3,
            principal="User:ü",
            host="*",
            operation=3,
            permission_type=3,
        )
    )
    remove = encode_record(r.RemoveAccessControlEntryRecord(id=r.UUID(int=1)))
    data = build_batch([acl, remove] * 70_000, base_offset=0, **HEADERS) + build_batch(
        [acl], base_offset=140_000, **HEADERS
    )
    columns = read_columns(data)
    assert (len(columns.added), len(columns.removed_rows), columns.damage) == (70_001, 70_000, None)
    assert columns.values.offset.tolist() == list(range(140_001))
    assert (np.diff(columns.added_rows) == 2).sum() == 70_000
    starts, ends = columns.values.value_start, columns.values.value_end
    assert {bytes(data[start:end]) for start, end in zip(starts, ends, strict=True)} == {acl, remove}
    assert all(start > end for end, start in zip(ends.tolist(), starts.tolist()[1:], strict=False))


def test_rows_of_acls_are_taken_in_the_order_asked_for():
    records = [r.FeatureLevelRecord(name="f", feature_level=1)]
    records += [
        r.AccessControlEntryRecord(
            id=r.UUID(int=number),
            resource_type=-1,
            resource_name="n" * number,
            pattern_type=-128,
            principal="User:a",
            host="",
            operation=127,
            permission_type=0,
        )
        for number in range(4)
    ]
    columns = read_columns(b"".join(log_of([records])))
    assert list(acls(columns.added)) == records[1:]
    assert list(acls(columns.added.take(np.array([2, 0])))) == [records[3], records[1]]
    assert list(acls(columns.added.take(slice(1, 3)))) == records[2:4]
    assert list(acls(columns.added.take(columns.added.ids[:, 15] > 2))) == [records[4]]


def test_an_empty_buffer_has_no_records():
    columns = read_columns(b"")
    assert (len(columns.batches), len(columns.values), len(columns.added), columns.end) == (0, 0, 0, 0)
    assert columns.damage is None


@pytest.mark.parametrize("path", METADATA_FILES[:1], ids=str)
def test_a_mapped_file_is_read_like_bytes(path):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        columns = read_columns(mapped)
        found = records_of(columns)
        del columns
    assert found == read_one_by_one(path.read_bytes())[0]


def test_a_hostile_count_takes_no_memory():
    batch = build_batch([b"\x01\x14\x00\x00"], base_offset=0, **HEADERS)
    count = (1 << 31) - 1
    hostile = recrc(batch[:23] + struct.pack(">i", count - 1) + batch[27:57] + struct.pack(">i", count) + batch[61:])
    lengths = varint(0) * 100_000
    walked = batch[:8] + struct.pack(">i", 49 + len(lengths)) + batch[12:57] + batch[57:61] + lengths
    tracemalloc.start()
    try:
        for data in (hostile, recrc(walked)):
            assert read_columns(data).damage is not None
            check_alike(data)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_a_footer_after_records_is_in_its_place():
    parts = log_of([[r.NoOpRecord()], SnapshotFooter(), [r.EndTransactionRecord()]])
    columns = check_alike(b"".join(parts))
    assert columns.control == ((1, SnapshotFooter()),)
    assert columns.others == ((1, r.EndTransactionRecord()),)
    assert [second - first for first, second in pairwise(columns.values.batch.tolist())] == [2]
