"""Many varints and slices at once, with numpy: the vectorised twin of aclog.metalog.primitives, for bulk replay.

A position past the end of the data reads the last byte instead, so a caller must check that what it read ends where
it should before it believes any of it.
"""

from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]

BLOCK = 1 << 16
"""Records looked at together: what is computed on the way stays in the processor's cache, and memory small."""


def bytes_at(data: Bytes, at: Int64s) -> Bytes:
    """The byte at each position."""
    return data.take(at, mode="clip")


def slices_at(data: Bytes, at: Int64s, width: int) -> Bytes:
    """The `width` bytes from each position on, as rows of a (n, width) array of their own."""
    if len(data) < width:
        return np.zeros((len(at), width), np.uint8)
    return sliding_window_view(data, width)[np.minimum(at, len(data) - width)]


def unsigned_varints(data: Bytes, at: Int64s) -> tuple[Int64s, Int64s, Bools]:
    """The unsigned 32-bit varint at each position: (values, positions after them, which are valid).

    Valid is what `primitives.read_unsigned_varint` accepts: the shortest form, at most 32 bits.
    """
    byte = bytes_at(data, at)
    value = (byte & 0x7F).astype(np.int64)
    after = at + 1
    valid = np.ones(len(at), np.bool_)
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
    """The zigzag varint of a length at each position, as `unsigned_varints`; a negative one is not valid."""
    value, after, valid = unsigned_varints(data, at)
    return value >> 1, after, valid & (value & 1 == 0)
