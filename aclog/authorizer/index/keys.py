"""Keys of resource patterns and of (principal, host) pairs, their hashes, and the table that numbers them.

A key is a slice of the record. In an AccessControlEntryRecord resource type, name and pattern type are adjacent, and
so are principal and host: bulk loading cuts one slice for each and decodes nothing. A resource key is the type byte,
the name as a compact string and the byte of LITERAL or PREFIXED; a pair key is principal and host as compact strings.

A hash must not depend on the process, since tables are written to files: it is a CRC-32, mixed by a multiplication. Of
a resource it is the CRC of the name alone, so that one pass over a name gives the hashes of all its prefixes.
"""

from bisect import bisect_left
from typing import Final, Self
from zlib import crc32

from attrs import frozen

from aclog.authorizer.acl import PatternType
from aclog.authorizer.index.masks import TYPES

_LENGTHS = tuple(bytes([length]) for length in range(0x80))
_TYPE_BYTES = tuple(bytes([code]) for code in range(TYPES))
_SHORT = 0x7F
"""Compact strings that take no more bytes than this, length byte included, have a one-byte length."""
_HEADS = tuple(tuple(bytes((code, length + 1)) for length in range(_SHORT)) for code in range(TYPES))
"""By type and length of a short name: the first two bytes of the key."""
_PATTERN_BYTES = (bytes([PatternType.PREFIXED]), bytes([PatternType.LITERAL]))

SALT: Final = 0x85EBCA6B
"""Keeps apart resource patterns of one name: added once per LITERAL and twice per type to the CRC of the name."""
FIBONACCI: Final = 0x9E3779B1
"""2**32 divided by the golden ratio: multiplied by it, hashes of similar names differ in their leading bits."""
_SALTS = tuple(number * SALT for number in range(2 * TYPES))
CROWDED: Final = 8
"""A bucket with more keys is sorted and searched by bisection: names picked to collide gain nothing."""


def compact(text: str) -> bytes:
    """Return a text as a compact string. A lone surrogate, which a request may hold and a record cannot, is kept."""
    data = text.encode("utf-8", "surrogatepass")
    length = len(data) + 1
    if length < 0x80:
        return _LENGTHS[length] + data
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


def resource_hash(resource_type: int, name: bytes, *, literal: bool) -> int:
    """Return the hash of a resource pattern, 32 bits; the name is its UTF-8 bytes."""
    return (crc32(name) + _SALTS[2 * resource_type + literal]) * FIBONACCI & 0xFFFFFFFF


def pair_key(principal: str, host: str) -> bytes:
    """Return the key of a principal and a host."""
    return compact(principal) + compact(host)


def pair_hash(key: bytes) -> int:
    """Return the hash of a pair key, 32 bits."""
    return crc32(key) * FIBONACCI & 0xFFFFFFFF


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


def name_bytes(key: bytes) -> bytes:
    """Return the name in a resource key as UTF-8."""
    at = 1
    while key[at] >= 0x80:
        at += 1
    return key[at + 1 : -1]


def split_pair(key: bytes) -> tuple[str, str]:
    """Return the principal and the host of a pair key."""
    principal, end = _string(key, 0)
    return principal, _string(key, end)[0]


@frozen(eq=False)
class KeyTable:
    """Distinct keys, numbered 0..n-1 in the order of their buckets: bucket b has `buckets[b]` to `buckets[b + 1]` - 1.

    The leading bits of a key's hash say its bucket. Nothing is kept per key but its bytes and its offset.
    """

    data: memoryview
    offsets: memoryview
    """n + 1 positions in `data`."""
    buckets: memoryview
    shift: int
    """The hash shifted right by this many bits is the bucket."""

    @classmethod
    def of(cls, data: memoryview, offsets: memoryview, buckets: memoryview) -> Self:
        """Return the table in these columns; the number of buckets is a power of two."""
        return cls(data, offsets, buckets, 32 - (len(buckets) - 2).bit_length())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def key(self, number: int) -> bytes:
        """Return the key with this number."""
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes()

    def find(self, key: bytes, hashed: int) -> int:
        """Return the number of a key, given its hash; -1 if the table does not have it."""
        bucket, buckets, offsets = hashed >> self.shift, self.buckets, self.offsets
        low, high = buckets[bucket], buckets[bucket + 1]
        if high - low > CROWDED:  # only such buckets are sorted
            low = bisect_left(range(high), key, low, high, key=self.key)
            high = min(high, low + 1)
        for number in range(low, high):
            if self.data[offsets[number] : offsets[number + 1]] == key:
                return number
        return -1


def bucket_count(n: int) -> int:
    """Return the smallest power of two that is at least n and 1."""
    return 1 << max(n - 1, 0).bit_length()
