import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog import batches as b
from aclog.metalog.batches import Record, plain_value, read_record, record_bytes
from aclog.metalog.errors import DecodeError, EncodeError, LogError
from aclog.metalog.primitives import varint
from tests.support.builders.logs import BAD_HEADERS, BAD_RECORDS, one_record, recrc
from tests.support.builders.records import check_error, mutations
from tests.support.kafka.dump_log import METADATA_FILES, dumped
from tests.support.runs.profiles import examples

VALUES = st.lists(
    st.binary(min_size=1, max_size=12) | st.binary(min_size=60, max_size=70) | st.just(b"v" * 9000),
    min_size=1,
    max_size=70,
)
SMALL = b.build_batch(
    [b"\x01\x14\x00\x00", b"\x01\x18\x00\x00"], base_offset=7, leader_epoch=3, timestamp=1795227830153
)


@pytest.mark.parametrize("path", METADATA_FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_every_batch_of_a_real_kafka_decodes_as_its_own_tool_prints_it(path):
    data, expected, end = path.read_bytes(), dumped(path), 0
    for number, (position, header) in enumerate(b.iter_batches(data)):
        assert position == end
        batch = b.decode_batch(data, position)
        assert batch.header == header
        end = position + header.size
        assert b.encode_batch(batch) == data[position:end]
        if expected is not None:
            found = {name: getattr(header, name, position) for name in expected[number].fields}
            assert found == expected[number].fields
            assert [
                (header.base_offset + record.offset_delta, header.max_timestamp, key_size(record), len(record.value))
                for record in batch.records
            ] == [(r.offset, r.timestamp, r.key_size, r.value_size) for r in expected[number].records]
    assert end == len(data)
    assert expected is None or number + 1 == len(expected)


def key_size(record: Record) -> int:
    return -1 if record.key is None else len(record.key)


@pytest.mark.parametrize("path", METADATA_FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_what_we_build_is_what_kafka_wrote(path):
    data = path.read_bytes()
    for position, header in b.iter_batches(data):
        records = b.decode_batch(data, position).records
        where = {
            "base_offset": header.base_offset,
            "leader_epoch": header.leader_epoch,
            "timestamp": header.max_timestamp,
        }
        if header.is_control:
            built = b.build_control_batch([(record.key, record.value) for record in records], **where)
        else:
            built = b.build_batch([record.value for record in records], **where)
        assert built == data[position : position + header.size]


@given(VALUES, st.integers(0, 1 << 62), st.integers(0, 2**31 - 1), st.integers(-1, 1 << 62))
def test_built_batches_read_back(values, base_offset, leader_epoch, timestamp):
    data = b.build_batch(values, base_offset=base_offset, leader_epoch=leader_epoch, timestamp=timestamp)
    batch = b.decode_batch(b"junk" + data + b"more", 4)
    assert [record.value for record in batch.records] == values
    assert (batch.header.base_offset, batch.header.end_offset) == (base_offset, base_offset + len(values))
    assert (batch.header.leader_epoch, batch.header.max_timestamp) == (leader_epoch, timestamp)
    assert batch.header.size == len(data)
    assert b.encode_batch(batch) == data
    found = list(b.read_values(data, 0, batch.header))
    assert [value for _, value in found] == values
    assert all(data[start : start + len(value)] == value for start, value in found)


@given(st.lists(VALUES.map(tuple), min_size=1, max_size=4), st.data())
def test_a_truncated_tail_ends_the_iteration(batches, data):
    whole, ends, offset = b"", [0], 0
    for values in batches:
        whole += b.build_batch(values, base_offset=offset, leader_epoch=1, timestamp=1)
        offset += len(values)
        ends.append(len(whole))
    cut = data.draw(st.integers(0, len(whole)))
    found = [(position, position + header.size) for position, header in b.iter_batches(whole[:cut])]
    assert found == [pair for pair in pairwise(ends) if pair[1] <= cut]


@pytest.mark.parametrize("values", [[], [b""], [b"x", b""]])
def test_a_batch_has_values_and_none_is_empty(values):
    with pytest.raises(LogError):
        b.build_batch(values, base_offset=0, leader_epoch=0, timestamp=0)


@pytest.mark.parametrize("bad", [{"base_offset": 1 << 63}, {"leader_epoch": 1 << 31}, {"timestamp": 1 << 63}])
def test_numbers_that_do_not_fit_are_refused(bad):
    with pytest.raises(EncodeError):
        b.build_batch([b"x"], **({"base_offset": 0, "leader_epoch": 0, "timestamp": 0} | bad))


def test_a_control_batch_has_records():
    with pytest.raises(EncodeError):
        b.build_control_batch([], base_offset=0, leader_epoch=0, timestamp=0)


@pytest.mark.parametrize(("at", "patch", "what", "position"), BAD_HEADERS)
def test_bad_headers_are_refused_with_the_position(at, patch, what, position):
    damaged = SMALL[:at] + patch + SMALL[at + len(patch) :]
    with pytest.raises(DecodeError, match=what) as caught:
        b.read_header(b"***" + damaged, 3)
    assert caught.value.position == position + 3
    with pytest.raises(DecodeError, match=what):
        list(b.iter_batches(damaged))


def test_a_truncated_batch_is_refused():
    with pytest.raises(DecodeError, match="truncated batch header"):
        b.read_header(SMALL[:60])
    with pytest.raises(DecodeError, match=r"offset 7, byte 0: truncated batch: expected 83 bytes, found 82"):
        b.decode_batch(SMALL[:-1])


def test_a_bad_crc_is_refused():
    with pytest.raises(DecodeError, match="offset 7, byte 0: CRC mismatch: stored"):
        b.decode_batch(SMALL[:-1] + b"\x01")


RECORD = bytes.fromhex("0e 00 00 00 01 02 aa 00")


@pytest.mark.parametrize(("record", "what", "position"), BAD_RECORDS)
def test_bad_records_are_refused_with_position_and_offset(record, what, position):
    data = one_record(bytes.fromhex(record))
    header = b.read_header(data)
    for read in (b.read_records, b.read_values):
        with pytest.raises(DecodeError, match=what) as caught:
            list(read(data, 0, header))
        assert (caught.value.position, caught.value.offset) == (position, 0)


def test_the_record_that_those_are_derived_from_is_valid():
    assert b.decode_batch(one_record(RECORD)).records == (Record(offset_delta=0, value=b"\xaa"),)


def test_a_records_attributes_are_kept():
    data = one_record(b"\x0e\x55" + RECORD[2:])
    assert b.decode_batch(data).records[0].attributes == 0x55
    assert b.encode_batch(b.decode_batch(data)) == data


def test_a_control_record_needs_a_key():
    with pytest.raises(DecodeError, match="without a key"):
        b.decode_batch(one_record(RECORD, attributes=b.CONTROL))


@pytest.mark.parametrize("count", [1, 3])
def test_a_count_that_does_not_agree_with_the_content_is_refused(count):
    data = SMALL[:23] + struct.pack(">i", count - 1) + SMALL[27:57] + struct.pack(">i", count) + SMALL[61:]
    with pytest.raises(DecodeError, match="trailing bytes after 1 records" if count == 1 else "truncated varint"):
        b.decode_batch(recrc(data))


NOT_COVERED = {
    **dict.fromkeys(range(8), "base_offset"),
    **dict.fromkeys(range(12, 16), "leader_epoch"),
}
"""The only bytes whose change gives another valid batch: the CRC does not cover them; length, magic, CRC are seen."""


def test_every_single_bit_flip_is_detected_or_seen_in_what_continuity_checks():
    original = b.read_header(SMALL)
    for bit in range(len(SMALL) * 8):
        flipped = bytearray(SMALL)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            header = b.decode_batch(bytes(flipped)).header
        except DecodeError:
            continue
        field = NOT_COVERED[bit // 8]
        assert getattr(header, field) != getattr(original, field)


@settings(max_examples=examples(60))
@given(st.integers(0, 1 << 40))
def test_hostile_bytes_raise_only_our_errors(seed):
    for damaged in mutations(SMALL, seed, 100):
        for data in (damaged, recrc(damaged) if len(damaged) > 21 else damaged):
            try:
                batch = b.decode_batch(data)
            except DecodeError as e:
                check_error(e)
            else:
                assert b.encode_batch(batch) == data[: batch.header.size]
                assert [v for _, v in b.read_values(data, 0, batch.header)] == [r.value for r in batch.records]


def test_a_big_batch_of_big_records_is_read_like_any_other():
    values = [b"x" * size for size in (1, 63, 64, 8191, 8192, 70_000, 1_100_000)]
    data = b.build_batch(values, base_offset=0, leader_epoch=0, timestamp=0)
    assert [record.value for record in b.decode_batch(data).records] == values
    assert data.count(varint(1_100_000)) == 1


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6), base=st.integers(0, 2**40))
def test_where_batches_end(sizes, base):
    data, offset = b"", base
    for size in sizes:
        data += b.build_batch([b"\1\x14\0\0"] * size, base_offset=offset, leader_epoch=1, timestamp=1)
        offset += size
    assert b.end_offset(data) == offset


@given(st.integers(60, 300), st.integers(0, 1 << 40))
@settings(max_examples=examples(20), deadline=None)
def test_values_of_a_batch_of_many_records(count, seed):
    """Offset deltas take two bytes from the 64th record on."""
    data = b.build_batch([b"%d" % n for n in range(count)], base_offset=0, leader_epoch=1, timestamp=5)
    header = b.read_header(data)
    assert [value for _, value in b.read_values(data, 0, header)] == [b"%d" % n for n in range(count)]
    for damaged in mutations(data[b.HEADER_SIZE :], seed, 40):
        both = data[: b.HEADER_SIZE] + damaged
        if len(damaged) != len(data) - b.HEADER_SIZE:
            continue
        assert outcome(values, both, header) == outcome(record_values, both, header)


def values(data, header):
    return [value for _, value in b.read_values(data, 0, header)]


def record_values(data, header):
    return [record.value for record in b.read_records(data, 0, header)]


def outcome(read, data, header):
    """What it returns, or the error's text."""
    try:
        return read(data, header)
    except DecodeError as error:
        return str(error)


@pytest.mark.parametrize("delta", [63, 64, 8191, 8192, 16383, 16384, 123_456, (1 << 20) - 1, 1 << 20, 1 << 21])
def test_a_plain_value_is_found_only_where_the_record_is_that_one(delta):
    """Deltas take two bytes from 64 on, three from 8,192 on, four from 2**20 on; those are read as any record is."""
    good = record_bytes(Record(value=b"value", offset_delta=delta))
    start, end = plain_value(good, 0, delta)
    assert (good[start : end - 1], end) == (b"value", len(good)) if delta < 1 << 20 else (start, end) == (0, 0)
    for at in range(len(good)):
        for byte in range(256):
            data = good[:at] + bytes([byte]) + good[at + 1 :]
            start, end = plain_value(data, 0, delta)
            try:
                record, after = read_record(memoryview(data), 0, delta, control=False)
            except DecodeError:
                assert (start, end) == (0, 0)
            else:
                assert (start, end) == (0, 0) or (data[start : end - 1], end) == (record.value, after)
