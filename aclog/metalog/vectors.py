"""Vectorized reads of many varints and slices with numpy: the counterpart of aclog.metalog.primitives for bulk replay.

A position past the end of the data reads the last byte instead of failing, so a caller must check that what it read
ends where it should before it relies on any value.
"""

from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]

BLOCK = 1 << 16
"""Records processed per numpy call: intermediate arrays then fit the CPU cache, and peak memory stays small."""


def bytes_at(data: Bytes, at: Int64s) -> Bytes:
    """Return the byte at each position."""
    return data.take(at, mode="clip")


def slices_at(data: Bytes, at: Int64s, width: int) -> Bytes:
    """Return the `width` bytes from each position, as the rows of a new (n, width) array."""
    if len(data) < width:
        return np.zeros((len(at), width), np.uint8)
    return sliding_window_view(data, width)[np.minimum(at, len(data) - width)]


def unsigned_varints(data: Bytes, at: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Read the unsigned 32-bit varint at each position: (values, positions after them, mask of valid ones).

    Valid means what `primitives.read_unsigned_varint` accepts: the shortest form, at most 32 bits.
    """
    byte = bytes_at(data, at)
    value = (byte & 0x7F).astype(np.int64)
    after = at + 1
    valid = np.ones(len(at), np.bool_)
    # Nearly all varints here have one byte: only the rows with a continuation bit go through the loop.
    rows = np.flatnonzero(byte >= 0x80)
    for shift in (7, 14, 21, 28):
        byte = bytes_at(data, after[rows])
        value[rows] |= (byte & 0x7F).astype(np.int64) << shift
        after[rows] += 1
        valid[rows[byte == 0]] = False
        rows = rows[byte >= 0x80]
    valid[rows] = False
    return value, after, valid & (value <= 0xFFFFFFFF)


def lengths(data: Bytes, at: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """Read the zigzag varint of a length at each position, like `unsigned_varints`; a negative length is not valid."""
    value, after, valid = unsigned_varints(data, at)
    return value >> 1, after, valid & (value & 1 == 0)
