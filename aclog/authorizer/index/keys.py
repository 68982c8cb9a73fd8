"""Keys of resource patterns and of (principal, host) pairs, and the table that numbers them.

A key is a slice of the record. In an AccessControlEntryRecord resource type, name and pattern type are adjacent, and
so are principal and host: bulk loading cuts one slice for each and decodes nothing. A resource key is the type byte,
the name as a compact string and the byte of LITERAL or PREFIXED; a pair key is principal and host as compact strings.
"""

from typing import Self

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.authorizer.acl import PatternType
from aclog.authorizer.index.arrays import INT32_BYTES, Binary, Pause, binary_columns, copy_bytes, no_pause, values
from aclog.authorizer.index.masks import TYPES
from aclog.metalog.vectors import Int64s

_CHUNK = 2048
"""Keys made into objects at a time: a longer call would hold the GIL for too long."""

_TYPE_BYTES = tuple(bytes([code]) for code in range(TYPES))
_SHORT = 0x7F
"""Compact strings that take no more bytes than this, length byte included, have a one-byte length."""
_HEADS = tuple(tuple(bytes((code, length + 1)) for length in range(_SHORT)) for code in range(TYPES))
"""By type and length of a short name: the first two bytes of the key."""
_PATTERN_BYTES = (bytes([PatternType.PREFIXED]), bytes([PatternType.LITERAL]))


def compact(text: str) -> bytes:
    """Return a text as a compact string. A lone surrogate, which a request may hold and a record cannot, is kept."""
    data = text.encode("utf-8", "surrogatepass")
    length = len(data) + 1
    if length < 0x80:
        return bytes((length,)) + data
    head = bytearray()
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + data


def utf16(text: str) -> bytes:
    """Return a sort key with the order of Java's String.compareTo, which compares UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def resource_key(resource_type: int, name: str, *, literal: bool) -> bytes:
    """Return the key of a resource pattern, LITERAL or else PREFIXED; `resource_type` is 0..7."""
    if name.isascii() and len(name) < _SHORT:
        return _HEADS[resource_type][len(name)] + name.encode() + _PATTERN_BYTES[literal]
    return _TYPE_BYTES[resource_type] + compact(name) + _PATTERN_BYTES[literal]


def pair_key(principal: str, host: str) -> bytes:
    """Return the key of a principal and a host."""
    return compact(principal) + compact(host)


def _string(key: bytes, start: int) -> tuple[str, int]:
    end = start + key[start]
    if end - start <= _SHORT:
        return key[start + 1 : end].decode(), end
    length, shift, at = 0, 0, start
    while True:
        byte = key[at]
        at += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    end = at + length - 1
    return key[at:end].decode(), end


def resource_name(key: bytes) -> str:
    """Return the name in a resource key."""
    return _string(key, 1)[0]


def split_pair(key: bytes) -> tuple[str, str]:
    """Return the principal and the host of a pair key."""
    principal, end = _string(key, 0)
    return principal, _string(key, end)[0]


@frozen(eq=False)
class KeyTable:
    """Distinct keys, numbered 0..n-1.

    `find` goes through a hash table in int32 columns, which takes a tenth of the memory and a third of the build time
    of a dict of a million bytes objects.
    """

    data: bytes
    offsets: memoryview
    """n + 1 positions in `data`."""
    _buckets: memoryview
    """By bucket: where its entries begin."""
    _entries: memoryview
    """Numbers of keys, sorted by bucket."""

    @classmethod
    def of(cls, array: Binary, pause: Pause = no_pause) -> Self:
        """Number the values of a binary array, which are distinct and not null."""
        offsets, data = binary_columns(array)
        hashes = np.empty(len(array), np.int64)
        for start in range(0, len(array), _CHUNK):
            chunk = values(array.slice(start, _CHUNK))
            hashes[start : start + len(chunk)] = np.fromiter(map(hash, chunk), np.int64, len(chunk))
            pause()
        buckets, entries = bucketed(hashes & (bucket_count(len(array)) - 1), bucket_count(len(array)))
        narrow = offsets.astype(np.int32) if len(data) < INT32_BYTES else offsets
        return cls(copy_bytes(data, pause), narrow.data, buckets, entries)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def key(self, number: int) -> bytes:
        """Return the key with this number."""
        return self.data[self.offsets[number] : self.offsets[number + 1]]

    def find(self, key: bytes) -> int:
        """Return the number of a key; -1 if the table does not have it."""
        # There are n + 1 starts for n buckets, a power of two: n - 1 is the bit mask.
        bucket = hash(key) & (len(self._buckets) - 2)
        buckets, entries, offsets = self._buckets, self._entries, self.offsets
        for entry in range(buckets[bucket], buckets[bucket + 1]):
            number: int = entries[entry]
            # `data` is bytes and not an Arrow buffer: comparing a memoryview with bytes goes element by element.
            if self.data[offsets[number] : offsets[number + 1]] == key:
                return number
        return -1

    def array(self) -> Binary:
        """Return the keys as an Arrow array that shares the memory."""
        kind = pa.large_binary() if self.offsets.itemsize == 8 else pa.binary()
        return pa.Array.from_buffers(kind, len(self), [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)])


def bucket_count(n: int) -> int:
    """Return the smallest power of two that is at least n and 1."""
    return 1 << max(n - 1, 0).bit_length()


def bucketed(bucket_of: Int64s, count: int) -> tuple[memoryview, memoryview]:
    """Return the entries of each bucket: count + 1 starts, and the entries sorted by bucket."""
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(bucket_of, minlength=count), out=starts[1:])
    return starts.data, np.argsort(bucket_of.astype(np.uint32)).astype(np.int32).data
