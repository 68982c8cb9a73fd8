"""Byte strings of varying length in two columns, and what is done to many of them at once.

Each of the three functions that touch every string has a form in Python here and one in the native core, which is used
if it is installed; their results are equal.
"""

from collections.abc import Iterator, Sequence
from typing import Self
from zlib import crc32

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.index.arrays import Int32s, Pause, UInt32s, no_pause
from aclog.metalog.native import native
from aclog.metalog.primitives import Buffer
from aclog.metalog.vectors import Bytes, Int64s

_CHUNK = 2048
"""Strings made into objects at a time: a longer call would hold the GIL for too long."""

_BLOCK = 1 << 14
"""Strings gathered at a time: their positions, 8 bytes for each byte copied, then fit the CPU cache."""


_MANY = 1 << 12
"""From this many slices on, they are compared as words of eight bytes and no objects are made of them."""

_WORD = 8
_LOW_BYTES = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
"""By a number of bytes: the mask of that many."""
_MULTIPLIER, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


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
        if native is not None:
            return cls(offsets, np.frombuffer(native.cut(data, starts, ends), np.uint8))
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
    """Return the distinct slices of a buffer, in any order, and the number of each slice among them."""
    if native is not None:
        of_rows, of_numbers = (np.frombuffer(found, np.int32) for found in native.number(source, starts, ends))
        firsts = starts[of_numbers], ends[of_numbers]
        return ByteStrings.cut(np.frombuffer(source, np.uint8), *firsts), of_rows
    if len(starts) >= _MANY:
        found = _numbered_by_words(source, starts, ends)
        if found is not None:
            return found
    texts = _values(source if isinstance(source, bytes) else memoryview(source).cast("B"), starts, ends)
    distinct = dict.fromkeys(texts)
    number_of = dict(zip(distinct, range(len(distinct)), strict=True))
    numbers = np.fromiter(map(number_of.__getitem__, texts), np.int32, len(texts))
    return ByteStrings.of(list(distinct)), numbers


def _numbered_by_words(source: Buffer, starts: Int64s, ends: Int64s) -> tuple[ByteStrings, Int32s] | None:
    """Return the same from hashes of 64 bits, made of eight bytes at a time; None if different slices share a hash."""
    data = np.frombuffer(source, np.uint8)
    padded = np.concatenate((data, np.zeros(_WORD, np.uint8)))
    # Every position is the start of a word: an unaligned view of the same bytes.
    words = np.ndarray(len(data) + 1, np.dtype("<u8"), padded, strides=(1,))
    hashes = np.empty(len(starts), np.uint64)
    for first in range(0, len(starts), _BLOCK):
        rows = slice(first, first + _BLOCK)
        hashes[rows] = _hashes(words, starts[rows], ends[rows])
    _, first_rows, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    firsts: Int64s = first_rows.astype(np.int64)
    numbers: Int32s = inverse.astype(np.int32)
    for first in range(0, len(starts), _BLOCK):
        rows = slice(first, first + _BLOCK)
        same = firsts[numbers[rows]]
        # No hash is trusted: whoever writes rules could make two of them collide.
        if not _are_equal(words, (starts[rows], ends[rows]), (starts[same], ends[same])):
            return None
    return ByteStrings.cut(data, starts[firsts], ends[firsts]), numbers


def _hashes(words: NDArray[np.uint64], starts: Int64s, ends: Int64s) -> NDArray[np.uint64]:
    left = ends - starts
    hashes = left.astype(np.uint64)
    for rows, at, size in _steps(starts, left):
        mixed = (hashes[rows] ^ words[at] & _LOW_BYTES[size]) * _MULTIPLIER
        hashes[rows] = mixed ^ mixed >> _HALF
    return hashes


def _are_equal(words: NDArray[np.uint64], some: tuple[Int64s, Int64s], others: tuple[Int64s, Int64s]) -> bool:
    """Return whether each slice, given by starts and ends, equals the one in the same place of the others."""
    left = some[1] - some[0]
    if not np.array_equal(left, others[1] - others[0]):
        return False
    shift = others[0] - some[0]
    return not any(
        ((words[at] ^ words[at + shift[rows]]) & _LOW_BYTES[size]).any() for rows, at, size in _steps(some[0], left)
    )


def _steps(starts: Int64s, left: Int64s) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """Yield, word by word, the rows of slices that have such a word, where it is and how many of its bytes count."""
    rows, at = np.flatnonzero(left > 0), starts
    at, left = at[rows], left[rows]
    while len(rows):
        yield rows, at, np.minimum(left, _WORD)
        longer = left > _WORD
        rows, at, left = rows[longer], at[longer] + _WORD, left[longer] - _WORD


def crc32s(data: Bytes, starts: Int64s, ends: Int64s, pause: Pause = no_pause) -> UInt32s:
    """Return the CRC-32 (zlib's) of each slice."""
    if native is not None:
        return np.frombuffer(native.crc32(data, starts, ends), np.uint32)
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
    if native is not None:
        return np.frombuffer(native.order(data, starts, ends), np.int32)
    texts = _values(data.tobytes(), starts, ends)
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int32)
