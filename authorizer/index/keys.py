"""Keys: a resource or a pair (principal, host) as the bytes that stand in the record, numbered by a table.

A resource key is type byte, compact name, and LITERAL or PREFIXED; a pair key is compact principal, compact host.
"""

from typing import Self

import numpy as np
import pyarrow as pa
from attrs import frozen
from numpy.typing import NDArray

from authorizer.acl import PatternType
from authorizer.index.masks import TYPES

_CHUNK = 4096
"""Keys made into objects at a time: a longer call would keep other threads waiting for the interpreter."""

_TYPE_BYTES = tuple(bytes([code]) for code in range(TYPES))
_PATTERN_BYTES = (bytes([PatternType.PREFIXED]), bytes([PatternType.LITERAL]))


def compact(text: str) -> bytes:
    """A compact string; a lone surrogate is kept (a request may hold one, a record never does)."""
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
    """What sorts as String.compareTo does: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def resource_key(resource_type: int, name: str, *, literal: bool) -> bytes:
    """The key of a resource; `resource_type` is 0..7, and every pattern type but LITERAL acts as PREFIXED."""
    return _TYPE_BYTES[resource_type] + compact(name) + _PATTERN_BYTES[literal]


def pair_key(principal: str, host: str) -> bytes:
    """The key of who and from where."""
    return compact(principal) + compact(host)


def _string(key: bytes, start: int) -> tuple[str, int]:
    length, shift, at = 0, 0, start
    while True:
        byte = key[at]
        at += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    end = at + length - 1
    return key[at:end].decode("utf-8", "surrogatepass"), end


def resource_name(key: bytes) -> str:
    """The name in a resource key."""
    return _string(key, 1)[0]


def split_pair(key: bytes) -> tuple[str, str]:
    """Principal and host of a pair key."""
    principal, end = _string(key, 0)
    return principal, _string(key, end)[0]


@frozen(eq=False)
class KeyTable:
    """Distinct keys, numbered 0..n-1: `key(number)` and, by a hash in int32 columns, `find(key)`."""

    data: bytes
    offsets: memoryview
    """n + 1 positions in `data`."""
    _buckets: memoryview
    _entries: memoryview

    @classmethod
    def of(cls, array: pa.Array) -> Self:
        """A table of a binary array's values, which are distinct and not null."""
        offsets, data = binary_columns(array)
        hashes = np.empty(len(array), np.int64)
        for start in range(0, len(array), _CHUNK):
            chunk = array.slice(start, _CHUNK).to_pylist()
            hashes[start : start + len(chunk)] = np.fromiter(map(hash, chunk), np.int64, len(chunk))
        buckets, entries = bucketed(hashes & (bucket_count(len(array)) - 1), bucket_count(len(array)))
        return cls(data.tobytes(), memoryview(np.ascontiguousarray(offsets)), buckets, entries)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def key(self, number: int) -> bytes:
        """The key with this number."""
        return self.data[self.offsets[number] : self.offsets[number + 1]]

    def find(self, key: bytes) -> int:
        """The number of a key; -1 if it is not here."""
        bucket = hash(key) & (len(self._buckets) - 2)
        data, offsets, entries = self.data, self.offsets, self._entries
        for entry in range(self._buckets[bucket], self._buckets[bucket + 1]):
            number = entries[entry]
            if data[offsets[number] : offsets[number + 1]] == key:
                return int(number)
        return -1

    def array(self) -> pa.Array:
        """The keys as an Arrow array over the same memory."""
        kind = pa.large_binary() if self.offsets.itemsize == 8 else pa.binary()
        return pa.Array.from_buffers(kind, len(self), [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)])


def binary_columns(array: pa.Array) -> tuple[NDArray[np.int64] | NDArray[np.int32], NDArray[np.uint8]]:
    """A binary array's offsets, from 0, and its bytes; no copy where none is needed."""
    wide = pa.types.is_large_binary(array.type)
    _, positions, values = array.buffers()
    offsets = np.frombuffer(positions, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(values or b"", np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def bucket_count(n: int) -> int:
    """A power of two, at least n and 1."""
    return 1 << max(n - 1, 0).bit_length()


def bucketed(bucket_of: NDArray[np.int64], count: int) -> tuple[memoryview, memoryview]:
    """Which entries lie in each bucket: (count + 1 starts, entries ordered by bucket)."""
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(bucket_of, minlength=count), out=starts[1:])
    return memoryview(starts), memoryview(np.argsort(bucket_of.astype(np.uint32)).astype(np.int32))
