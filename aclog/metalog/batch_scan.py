"""Vectorized scan of a buffer: finds and checks all of its batches and records at once.

The counterpart of `batches.iter_batches`, `check_crc` and `read_records`: it accepts what they would accept, and
leaves to them what it cannot prove valid. A Python loop finds the batch starts, one length at a time; everything else
is numpy.
"""

import struct
from array import array

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.metalog.batches import CONTROL, CRC_START, HEADER_SIZE, LENGTH_END, MAGIC
from aclog.metalog.checksum import crc32c
from aclog.metalog.errors import DecodeError
from aclog.metalog.native import native
from aclog.metalog.primitives import Buffer, read_varint
from aclog.metalog.vectors import BLOCK, Bools, Bytes, Int64s, bytes_at, lengths, slices_at, unsigned_varints

_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)

_LEAST_RECORD = 8
"""Size of the smallest record that a metadata log can hold: an upper bound for the record count of a batch."""

_LOCKSTEP_MIN = 512
"""From this many batches on, advancing all of them by one numpy call is faster than walking each in Python."""

_MAX_INT64 = (1 << 63) - 1

_LENGTH = struct.Struct(">i")


@frozen(kw_only=True, eq=False)
class BatchColumns:
    """The whole batches of a buffer, headers and CRCs checked; int64 columns except for `is_control`.

    `position` and `end` are the slice of a batch in the buffer, `max_timestamp` its time in ms since 1970.
    """

    position: Int64s
    end: Int64s
    base_offset: Int64s
    leader_epoch: Int64s
    max_timestamp: Int64s
    record_count: Int64s
    is_control: Bools

    def __len__(self) -> int:
        return len(self.position)


@frozen(kw_only=True, eq=False)
class ValueColumns:
    """The record values of the data batches in int64 columns: batch number, offset, slice of the value."""

    batch: Int64s
    offset: Int64s
    value_start: Int64s
    value_end: Int64s

    def __len__(self) -> int:
        return len(self.batch)


def scan_batches(buffer: Buffer, position: int = 0) -> tuple[BatchColumns, int | None]:
    """Return the whole batches from `position` on, and the position of the first damaged one, if any.

    A batch truncated by the end of the buffer also ends the scan, but does not count as damage.
    """
    at = _batch_positions(buffer, position)
    headers = _headers(buffer, at)
    end = at + headers["batch_length"] + LENGTH_END
    good = _first(~_valid(headers))
    damage = int(at[good]) if good < len(at) else None
    # Only the last batch can reach past the end: the next start is the end of the batch before.
    good -= bool(good and end[good - 1] > len(buffer))
    wrong_crc = _first_wrong_crc(buffer, at[:good], end[:good], headers["crc"][:good])
    if wrong_crc < good:
        good, damage = wrong_crc, int(at[wrong_crc])
    headers = headers[:good]
    return BatchColumns(
        position=at[:good],
        end=end[:good],
        base_offset=headers["base_offset"].astype(np.int64),
        leader_epoch=headers["leader_epoch"].astype(np.int64),
        max_timestamp=headers["max_timestamp"].astype(np.int64),
        record_count=headers["count"].astype(np.int64),
        is_control=headers["attributes"] == CONTROL,
    ), damage


def _batch_positions(buffer: Buffer, position: int) -> Int64s:
    """Return the starts of headers, found by lengths alone; the last batch may be truncated, lengths may be bogus."""
    found = array("q")
    while position + HEADER_SIZE <= len(buffer):
        found.append(position)
        # A bogus length still moves forward by a header; its batch fails the validity check or the CRC.
        position += max(_LENGTH.unpack_from(buffer, position + 8)[0] + LENGTH_END, HEADER_SIZE)
    return np.frombuffer(found, np.int64)


def _headers(buffer: Buffer, at: Int64s) -> NDArray[np.void]:
    if not len(at):
        return np.zeros(0, _HEADER)
    return slices_at(np.frombuffer(buffer, np.uint8), at, HEADER_SIZE).view(_HEADER)[:, 0]


def _valid(headers: NDArray[np.void]) -> Bools:
    """Return the mask of headers that `batches.read_header` accepts."""
    base, last, count = headers["base_offset"], headers["last_offset_delta"], headers["count"]
    valid: Bools = (headers["magic"] == MAGIC) & (headers["batch_length"] >= HEADER_SIZE - LENGTH_END)
    valid &= (headers["attributes"] & ~CONTROL == 0) & (count >= 1) & (last == count - 1)
    valid &= (base >= 0) & (headers["leader_epoch"] >= 0) & (base <= _MAX_INT64 - last.astype(np.int64))
    return valid


def _first(found: Bools) -> int:
    """Return the first row that is true, or the number of rows if none is."""
    return int(np.argmax(found)) if found.any() else len(found)


def _first_wrong_crc(buffer: Buffer, at: Int64s, end: Int64s, crc: NDArray[np.uint32]) -> int:
    view = memoryview(buffer)
    rows = zip(at.tolist(), end.tolist(), crc.tolist(), strict=True)
    for row, (start, stop, expected) in enumerate(rows):
        if crc32c(view[start + CRC_START : stop]) != expected:
            return row
    return len(at)


def scan_values(buffer: Buffer, batches: BatchColumns) -> tuple[ValueColumns, int | None]:
    """Return the values in all data batches, and the number of the first batch that is not proven valid, if any.

    Values of that batch and of later ones are not returned.
    """
    numbers = np.flatnonzero(~batches.is_control)
    starts, whole = _record_starts(buffer, batches, numbers)
    batch = np.repeat(numbers[:whole], batches.record_count[numbers[:whole]])
    first = np.cumsum(batches.record_count[numbers[:whole]]) - batches.record_count[numbers[:whole]]
    delta = np.arange(len(starts)) - np.repeat(first, batches.record_count[numbers[:whole]])
    value_start, value_end, valid = _values(buffer, starts, delta)
    rows = _first(~valid)
    bad = int(batch[rows]) if rows < len(batch) else None
    if bad is None and whole < len(numbers):
        bad = int(numbers[whole])
    rows = int(np.searchsorted(batch, len(batches) if bad is None else bad))
    return ValueColumns(
        batch=batch[:rows],
        offset=(batches.base_offset[batch] + delta)[:rows],
        value_start=value_start[:rows],
        value_end=value_end[:rows],
    ), bad


def _record_starts(buffer: Buffer, batches: BatchColumns, numbers: Int64s) -> tuple[Int64s, int]:
    """Return the record starts up to the first batch whose lengths do not add up, and that batch's number."""
    counts, ends = batches.record_count[numbers], batches.end[numbers]
    at = batches.position[numbers] + HEADER_SIZE
    # Bounds the allocation below: the CRC only proves that the count was written so, not that it is sane.
    whole = _first(counts * _LEAST_RECORD > ends - at)
    counts, ends, at = counts[:whole], ends[:whole], at[:whole]
    first = np.cumsum(counts) - counts
    starts = np.empty(int(counts.sum()), np.int64)
    step = _walk_in_lockstep(buffer, counts, at, first=first, starts=starts)
    for row in np.flatnonzero(counts > step).tolist():
        rest = array("q")
        at[row] = _walk(buffer, int(at[row]), int(counts[row]) - step, rest)
        starts[first[row] + step : first[row] + step + len(rest)] = rest
    whole = _first(at != ends)
    return starts[: int(counts[:whole].sum())], whole


def _walk_in_lockstep(buffer: Buffer, counts: Int64s, at: Int64s, first: Int64s, starts: Int64s) -> int:
    """Walk the records of all batches in lockstep while enough batches remain; return the number of steps made.

    `at` advances to the next record of each batch, or past the end of the data if a length is bogus.
    """
    data, step = np.frombuffer(buffer, np.uint8), 0
    rows = np.flatnonzero(counts > step)
    while len(rows) >= _LOCKSTEP_MIN:
        starts[first[rows] + step] = at[rows]
        length, body, valid = lengths(data, at[rows])
        at[rows] = np.where(valid, np.minimum(body + length, len(data) + 1), len(data) + 1)
        step += 1
        rows = rows[counts[rows] > step]
    return step


def _walk(buffer: Buffer, at: int, count: int, starts: "array[int]") -> int:
    """Record the starts of `count` records from `at` on; return the end of the last one, or -1 if one is malformed."""
    if native is not None:
        found, end = native.walk(buffer, at, count)
        starts.frombytes(found)
        return int(end)
    note = starts.append
    try:
        for _ in range(count):
            note(at)
            low = buffer[at]
            if low < 0x80:
                at += 1 + (low >> 1)
            elif (high := buffer[at + 1]) < 0x80:
                at += 2 + ((low & 0x7F | high << 7) >> 1)
            else:
                length, at = read_varint(buffer, at)
                at += max(length, 0)
    except (IndexError, DecodeError):
        return -1
    return at


def _values(buffer: Buffer, starts: Int64s, deltas: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Return (starts, ends, mask of valid ones) of the values of the data records at `starts`, block by block."""
    data = np.frombuffer(buffer, np.uint8)
    value_start, value_end = np.empty_like(starts), np.empty_like(starts)
    valid = np.empty(len(starts), np.bool_)
    for first in range(0, len(starts), BLOCK):
        rows = slice(first, first + BLOCK)
        value_start[rows], value_end[rows], valid[rows] = _block_values(data, starts[rows], deltas[rows])
    return value_start, value_end, valid


def _block_values(data: Bytes, starts: Int64s, deltas: Int64s) -> tuple[Int64s, Int64s, Bools]:
    length, body, valid = lengths(data, starts)
    offset_delta, key, offset_ok = unsigned_varints(data, body + 2)
    size, value_start, size_ok = lengths(data, key + 1)
    value_end = value_start + size
    # The same conditions as batch_records.read_record: offset delta in sequence, null key (a varint of -1 is the byte
    # 1), a value, timestamp delta 0, no headers, and lengths that agree with each other.
    valid &= offset_ok & size_ok & (offset_delta == deltas << 1) & (size > 0) & (value_end + 1 == body + length)
    valid &= (bytes_at(data, body + 1) == 0) & (bytes_at(data, key) == 1) & (bytes_at(data, value_end) == 0)
    return value_start, value_end, valid
