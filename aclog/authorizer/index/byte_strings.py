"""Byte strings of varying length in two columns, and what is done to many of them at once.

Each of the three functions that touch every string has a form in Python here and one in the native core, which is used
if it is installed; their results are equal.
"""

from collections.abc import Sequence
from typing import Self
from zlib import crc32

import numpy as np
from attrs import frozen

from aclog.authorizer.index.arrays import Int32s, Pause, UInt32s, no_pause
from aclog.metalog.primitives import Buffer
from aclog.metalog.vectors import Bytes, Int64s

_CHUNK = 2048
"""Strings made into objects at a time: a longer call would hold the GIL for too long."""

_BLOCK = 1 << 14
"""Strings gathered at a time: their positions, 8 bytes for each byte copied, then fit the CPU cache."""


@frozen(eq=False)
class ByteStrings:
    """n byte strings: string i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: Int64s
    data: Bytes

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Self:
        """Return these strings in columns."""
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(texts), np.uint8))

    @classmethod
    def cut(cls, data: Bytes, starts: Int64s, ends: Int64s, pause: Pause = no_pause) -> Self:
        """Return a copy of the slices [start, end) of `data`, in any order."""
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        copied = np.empty(int(offsets[-1]), np.uint8)
        shifts = starts - offsets[:-1]
        for first in range(0, len(starts), _BLOCK):
            last = min(first + _BLOCK, len(starts))
            begin, end = int(offsets[first]), int(offsets[last])
            source = np.repeat(shifts[first:last], np.diff(offsets[first : last + 1]))
            source += np.arange(begin, end)
            copied[begin:end] = data[source]
            pause()
        return cls(offsets, copied)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def starts(self) -> Int64s:
        """Where each string begins."""
        return self.offsets[:-1]

    @property
    def ends(self) -> Int64s:
        """Where each string ends."""
        return self.offsets[1:]

    def take(self, rows: Int64s | Int32s, pause: Pause = no_pause) -> Self:
        """Return the strings of these rows, in this order."""
        return self.cut(self.data, self.starts[rows], self.ends[rows], pause)

    def joined(self, others: Self) -> Self:
        """Return these strings and others after them."""
        offsets = np.concatenate((self.offsets, others.offsets[1:] + self.offsets[-1]))
        return type(self)(offsets, np.concatenate((self.data, others.data)))

    def values(self) -> list[bytes]:
        """Return the strings as objects."""
        return _values(self.data.tobytes(), self.starts, self.ends)


def _values(data: bytes | memoryview, starts: Int64s, ends: Int64s) -> list[bytes]:
    """Return slices as objects."""
    whole = data if isinstance(data, bytes) else bytes(data)
    return [whole[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def numbered(source: Buffer, starts: Int64s, ends: Int64s) -> tuple[ByteStrings, Int32s]:
    """Return the distinct slices of a buffer in the order in which they appear first, and the number of each slice."""
    texts = _values(source if isinstance(source, bytes) else memoryview(source).cast("B"), starts, ends)
    distinct = dict.fromkeys(texts)
    number_of = dict(zip(distinct, range(len(distinct)), strict=True))
    numbers = np.fromiter(map(number_of.__getitem__, texts), np.int32, len(texts))
    return ByteStrings.of(list(distinct)), numbers


def crc32s(data: Bytes, starts: Int64s, ends: Int64s, pause: Pause = no_pause) -> UInt32s:
    """Return the CRC-32 (zlib's) of each slice."""
    found = np.empty(len(starts), np.uint32)
    whole = data.tobytes()
    for first in range(0, len(starts), _CHUNK):
        rows = slice(first, first + _CHUNK)
        texts = _values(whole, starts[rows], ends[rows])
        found[rows] = np.fromiter(map(crc32, texts), np.uint32, len(texts))
        pause()
    return found


def sorted_rows(data: Bytes, starts: Int64s, ends: Int64s) -> Int32s:
    """Return the rows of slices in the order of their bytes; equal slices stay in their order."""
    texts = _values(data.tobytes(), starts, ends)
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int32)
