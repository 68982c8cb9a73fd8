import struct
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.batches import iter_batches, read_values
from aclog.metalog.codec import decode_record, encode_record
from aclog.metalog.columns import AclColumns, read_acls
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import MAX_STRING, compact_bytes, unsigned_varint
from aclog.metalog.records import AccessControlEntryRecord
from tests.support.builders.records import ACL_ADDS, mutations
from tests.support.kafka.dump_log import METADATA_FILES
from tests.support.runs.profiles import examples

FRAME = b"\x01\x12\x00"


def slices_of(values):
    """Return a buffer with the values, some bytes between them, and their starts and ends."""
    parts = [b"\xff\xfe", *(part for value in values for part in (value, b"\xc3"))]
    ends = np.cumsum([len(part) for part in parts])[1::2]
    return b"".join(parts), ends - np.array([len(value) for value in values], np.int64), ends


def acls_of(columns: AclColumns):
    """Return the records, each decoded from its slices; the keys are checked as well."""
    data = columns.buffer
    for row in range(len(columns)):
        name = data[columns.name_start[row] : columns.resource_end[row] - 1]
        principal = data[columns.principal_start[row] : columns.principal_end[row]]
        host = data[columns.host_start[row] : columns.pair_end[row]]
        key = data[columns.resource_start[row] : columns.resource_end[row]]
        pair = data[columns.pair_start[row] : columns.pair_end[row]]
        codes = struct.pack("bb", columns.resource_type[row], columns.pattern_type[row])
        assert key == codes[:1] + unsigned_varint(len(name) + 1) + name + codes[1:]
        assert pair == unsigned_varint(len(principal) + 1) + principal + unsigned_varint(len(host) + 1) + host
        yield AccessControlEntryRecord(
            id=UUID(bytes=columns.ids[row].tobytes()),
            resource_type=int(columns.resource_type[row]),
            resource_name=name.decode(),
            pattern_type=int(columns.pattern_type[row]),
            principal=principal.decode(),
            host=host.decode(),
            operation=int(columns.operation[row]),
            permission_type=int(columns.permission_type[row]),
        )


def check_columns(values):
    """Check that columns equal what the codec decodes, and that only what it refuses or tagged fields are left out."""
    columns, left = read_acls(*slices_of(values))
    plain, odd = [], []
    for row, value in enumerate(values):
        try:
            record = decode_record(value)
        except DecodeError:
            odd.append(row)
        else:
            (odd if record.tagged_fields else plain).append(row)
    assert left.tolist() == odd
    assert list(acls_of(columns)) == [decode_record(values[row]) for row in plain]
    starts = zip(columns.value_start.tolist(), columns.value_end.tolist(), strict=True)
    assert [columns.buffer[start:end] for start, end in starts] == [values[row] for row in plain]


@pytest.mark.parametrize("path", METADATA_FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_the_acls_of_real_logs(path):
    data = path.read_bytes()
    headers = [pair for pair in iter_batches(data) if not pair[1].is_control]
    values = [value for at, header in headers for _, value in read_values(data, at, header)]
    check_columns([value for value in values if value.startswith(FRAME)])


@given(st.lists(ACL_ADDS, max_size=12))
def test_generated_acls(records):
    check_columns([encode_record(record) for record in records])


@settings(max_examples=examples(80))
@given(st.lists(ACL_ADDS, min_size=1, max_size=4), st.integers(0, 1 << 40))
def test_damaged_acls(records, seed):
    values = [encode_record(record) for record in records]
    damaged = [FRAME + found for value in values for found in mutations(value[3:], seed, 40)]
    check_columns([*values, *damaged, *values])


@given(ACL_ADDS, st.integers(0, 40))
def test_acls_truncated_by_the_end_of_the_buffer(record, cut):
    value = encode_record(record)[:-1]
    data = value[: max(len(value) - cut, 3)]
    columns, left = read_acls(data, np.array([0]), np.array([len(data)]))
    assert (len(columns), left.tolist()) == (0, [0])


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", "é".encode(), "\U0001f600".encode()]
)
@pytest.mark.parametrize("field", range(3))
def test_strings_are_utf8_or_left_out(text, field):
    strings = [b"orders", b"User:a", b"*"]
    strings[field] += text
    name, principal, host = (bytes((len(string) + 1,)) + string for string in strings)
    check_columns([FRAME + bytes(16) + b"\x02" + name + b"\x03" + principal + host + b"\x03\x03\x00"])


@pytest.mark.parametrize("bad", ["", "8200 2a", "00 00", "8080808010"])
@pytest.mark.parametrize("field", range(3))
def test_strings_with_a_bad_length_are_left_out(bad, field):
    fields = [b"\x02n", b"\x02p", b"\x02*"]
    fields[field] = bytes.fromhex(bad)
    name, principal, host = fields
    for head, tail in ((b"\x02", b"\x03\x03\x00"), (b"\x02", b"\x00\x03\x00"), (b"\x02\x00", b"\x03\x00")):
        check_columns([FRAME + bytes(16) + head + name + b"\x03" + principal + host + tail])


def test_null_strings_are_left_out():
    start = FRAME + bytes(16) + b"\x02"
    for value in (b"\x00\x02p\x02*\x03\x03\x00", b"\x02n\x03\x00\x02*\x03\x03\x00", b"\x02n\x03\x02p\x00\x03\x00"):
        check_columns([start + value])
        assert read_acls(*slices_of([start + value]))[1].tolist() == [0]


@pytest.mark.parametrize("size", [MAX_STRING, MAX_STRING + 1])
def test_the_longest_string_and_one_byte_more(size):
    name = compact_bytes(b"n" * size)
    check_columns([FRAME + bytes(16) + b"\x02" + name + b"\x03\x02p\x02*\x03\x03\x00"])


def test_strings_split_within_a_character_are_left_out():
    name, principal = b"\x02\xc3", b"\x02\xa9"
    value = FRAME + bytes(16) + b"\x02" + name + b"\x03" + principal + b"\x02*" + b"\x03\x03\x00"
    check_columns([value])
    assert read_acls(*slices_of([value]))[1].tolist() == [0]


def numbered(count):
    return [
        AccessControlEntryRecord(
            id=UUID(int=number),
            resource_type=-1,
            resource_name="n" * (number % 300),
            pattern_type=-128,
            principal="User:a",
            host="",
            operation=127,
            permission_type=number % 100,
        )
        for number in range(count)
    ]


def test_rows_are_taken_in_the_order_asked_for():
    records = numbered(4)
    columns, _ = read_acls(*slices_of([encode_record(record) for record in records]))
    assert list(acls_of(columns.take(np.array([2, 0])))) == [records[2], records[0]]
    assert list(acls_of(columns.take(slice(1, 3)))) == records[1:3]
    assert list(acls_of(columns.take(columns.ids[:, 15] > 2))) == [records[3]]


def test_values_in_any_order_and_more_than_a_block_of_them():
    values = [encode_record(record) for record in numbered(600)]
    data, starts, ends = slices_of(values)
    order = np.resize(np.arange(len(values))[::-1], 70_000)
    columns, left = read_acls(data, starts[order], ends[order])
    assert (len(columns), len(left)) == (70_000, 0)
    assert columns.permission_type.tolist() == (order % 100).tolist()
    assert (columns.ids[:, 14].astype(int) * 256 + columns.ids[:, 15]).tolist() == order.tolist()


def test_no_values_are_no_rows():
    columns, left = read_acls(b"", np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert (len(columns), len(left), columns.ids.shape) == (0, 0, (0, 16))
