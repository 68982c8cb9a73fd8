import mmap
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aclog.metalog import batches as batches_module
from aclog.metalog.batches import (
    build_batch,
    check_crc,
    iter_batches,
    read_header,
    read_records,
    read_values,
    scan_batches,
    scan_values,
)
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import varint
from tests.support.builders.logs import BAD_HEADERS, BAD_RECORDS, HEADERS, LOGS, fitted, one_record, recrc
from tests.support.builders.records import mutations
from tests.support.kafka.dump_log import METADATA_FILES
from tests.support.runs.profiles import examples

NO_OP = b"\x01\x14\x00\x00"


def whole_batches(data):
    """Return [(position, header)] as the scalar reader finds them, and the position of the first damaged batch."""
    found = []
    try:
        for position, header in iter_batches(data):
            check_crc(data, position, header)
            found.append((position, header))
    except DecodeError:
        return found, found[-1][0] + found[-1][1].size if found else 0
    return found, None


def check_scan(data):
    """Check that a scan gives what reading batch by batch gives, up to the same batch: natively, and in Python."""
    *_, scanned = (_check_scan(data, core) for core in dict.fromkeys((batches_module.native, None)))
    return scanned


def _check_scan(data, core):
    before, batches_module.native = batches_module.native, core
    try:
        return _checked_scan(data)
    finally:
        batches_module.native = before


def _checked_scan(data):
    expected, damaged = whole_batches(data)
    batches, found_damage = scan_batches(data)
    assert found_damage == damaged
    assert batches.position.tolist() == [position for position, _ in expected]
    assert batches.end.tolist() == [position + header.size for position, header in expected]
    for name in ("base_offset", "leader_epoch", "max_timestamp", "record_count", "is_control"):
        assert getattr(batches, name).tolist() == [getattr(header, name) for _, header in expected]
    values, bad = scan_values(data, batches)
    rows = []
    for number, (position, header) in enumerate(expected):
        if number == bad:
            with pytest.raises(DecodeError):
                list(read_records(data, position, header))
            break
        if not header.is_control:
            for delta, (start, value) in enumerate(read_values(data, position, header)):
                rows.append((number, header.base_offset + delta, start, start + len(value)))
    columns = (values.batch, values.offset, values.value_start, values.value_end)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows
    return batches, values, damaged, bad


@pytest.mark.parametrize("path", METADATA_FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_real_logs(path):
    data = path.read_bytes()
    batches, _, damaged, bad = check_scan(data)
    assert (batches.end[-1], damaged, bad) == (len(data), None, None)


@given(LOGS)
@example([])
def test_generated_logs(parts):
    batches, values, damaged, bad = check_scan(b"".join(parts))
    assert (len(batches), damaged, bad) == (len(parts), None, None)
    assert len(values) == batches.record_count[~batches.is_control].sum()


@settings(max_examples=examples(60))
@given(LOGS, st.integers(0, 1 << 40))
def test_damaged_logs(parts, seed):
    for number in range(len(parts)):
        for damaged in mutations(parts[number], seed, 6):
            for part in (damaged, fitted(damaged)):
                check_scan(b"".join((*parts[:number], part, *parts[number + 1 :])))


@pytest.mark.parametrize("seed", range(5))
def test_two_thousand_damaged_batches(seed, sample):
    batch = build_batch([NO_OP, b"v" * 70, NO_OP], base_offset=5, **HEADERS)
    for damaged in sample(list(mutations(batch, seed, 1000)), 100):
        check_scan(damaged + batch)
        check_scan(batch + fitted(damaged))


@given(LOGS, st.data())
def test_a_truncated_tail_is_no_damage(parts, data):
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    batches, _, damaged, bad = check_scan(whole[:cut])
    assert (damaged, bad) == (None, None)
    assert batches.end.tolist() == [end for end in np.cumsum([len(part) for part in parts]).tolist() if end <= cut]


@pytest.mark.parametrize(("at", "patch", "_what", "_position"), BAD_HEADERS)
def test_bad_headers_end_the_scan(at, patch, _what, _position):
    batch = build_batch([NO_OP, NO_OP], base_offset=7, **HEADERS)
    bad = batch[:at] + patch + batch[at + len(patch) :]
    batches, _, damaged, _ = check_scan(batch + recrc(bad) + batch)
    assert (len(batches), damaged) == (1, len(batch))


@pytest.mark.parametrize(("record", "_what", "_position"), BAD_RECORDS)
def test_bad_records_end_the_values(record, _what, _position):
    batch = build_batch([NO_OP], base_offset=7, **HEADERS)
    _, values, _, bad = check_scan(batch + one_record(bytes.fromhex(record)) + batch)
    assert (len(values), bad) == (1, 1)


def test_an_empty_value_after_a_long_one_ends_the_values():
    batch = build_batch([b"v" * 20, NO_OP], base_offset=7, **HEADERS)
    empty = fitted(batch[:-11] + bytes.fromhex("0c 00 00 02 01 00 00"))
    assert check_scan(empty)[3] == 0


def test_scanning_begins_at_the_given_position():
    parts = [build_batch([NO_OP], base_offset=offset, **HEADERS) for offset in range(3)]
    batches, _ = scan_batches(b"junk" + b"".join(parts), 4 + len(parts[0]))
    assert batches.base_offset.tolist() == [1, 2]
    assert scan_values(b"junk" + b"".join(parts), batches)[0].offset.tolist() == [1, 2]


def test_many_blocks_of_records():
    data = build_batch([NO_OP, b"x" * 9000] * 35_000, base_offset=0, **HEADERS)
    values, bad = scan_values(data, scan_batches(data)[0])
    assert bad is None
    assert values.offset.tolist() == list(range(70_000))
    assert set((values.value_end - values.value_start).tolist()) == {4, 9000}
    assert (data[values.value_start[-2] : values.value_end[-2]], data[values.value_end[-1] - 1]) == (NO_OP, ord("x"))


def test_a_mapped_file_is_read_like_bytes():
    path = METADATA_FILES[0]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        batches, _ = scan_batches(mapped)
        starts = scan_values(mapped, batches)[0].value_start.tolist()
        position = batches.position.tolist()
    data = path.read_bytes()
    assert position == [at for at, _ in iter_batches(data)]
    assert starts == scan_values(data, scan_batches(data)[0])[0].value_start.tolist()


def test_a_hostile_count_allocates_nothing():
    batch, count = build_batch([NO_OP], base_offset=0, **HEADERS), (1 << 31) - 1
    hostile = recrc(batch[:23] + struct.pack(">i", count - 1) + batch[27:57] + struct.pack(">i", count) + batch[61:])
    empty_records = fitted(batch[:61] + varint(0) * 100_000)
    longer_than_all = fitted(batch[:61] + varint(count) + batch[62:])
    tracemalloc.start()
    try:
        for data in (hostile, recrc(empty_records), longer_than_all):
            assert scan_values(data, scan_batches(data)[0])[1] == 0
            with pytest.raises(DecodeError):
                list(read_records(data, 0, read_header(data)))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
