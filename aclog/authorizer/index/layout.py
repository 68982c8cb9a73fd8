"""The layout of an index's columns.

Arrays and their flat form, masks of operations, keys, and the native core that reads them.
"""

from __future__ import annotations

import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from enum import IntEnum
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar
from zlib import crc32

from attrs import Factory

from aclog.authorizer.acl import AddressNumber, cidr_range
from aclog.authorizer.codes import WILDCARD, AclOperation, AclPermissionType, PatternType
from aclog.metalog.columns import Bools, Bytes, Int64s, unsigned_varints
from aclog.metalog.errors import DecodeError
from aclog.metalog.native import native, np
from aclog.metalog.primitives import Buffer
from aclog.metalog.values import define, frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Types and helpers for columns.


if TYPE_CHECKING:
    Int32s: TypeAlias = NDArray[np.int32]
    UInt32s: TypeAlias = NDArray[np.uint32]
    Masks: TypeAlias = UInt32s
else:
    Int32s = UInt32s = Masks = Any
_Number = TypeVar("_Number", bound="np.integer")

Pause: TypeAlias = Callable[[], None]
"""Called between short steps of a long computation, so that other threads can take the GIL."""

INT32_BYTES = 1 << 31
"""From this many bytes on, signed offsets need 64 bits."""


def no_pause() -> None:
    """Return at once: for callers that share the interpreter with no other thread."""


def expanded(starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """Return (i, position) for each i and each position in [starts[i], ends[i])."""
    counts = ends - starts
    owner = np.repeat(np.arange(len(starts)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - first[owner] + starts[owner]


def changes(*columns: NDArray[np.generic]) -> Int64s:
    """Return the rows at which a value differs from the row before; these include the first row."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    differs = np.ones(len(columns[0]), np.bool_)
    differs[1:] = False
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def starts_of(numbers: NDArray[np.signedinteger], count: int) -> Int32s:
    """Return where each number 0..count-1 begins in a sorted column, and at the end the column's length."""
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(numbers, minlength=count), out=starts[1:])
    return starts


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return the distinct values, ascending. np.unique would import numpy.ma."""
    ordered = np.sort(values)
    unique: NDArray[_Number] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return unique


# The flat form of a base: one buffer of little-endian columns that is mapped, not built (docs/format.md).
#
# A header records where each column is; nothing else has to be read before the first decision. Only the bounds of
# columns are checked here, and that their sizes fit together: the storage of a base guards its bytes with a checksum.


MAGIC = b"aclogbas"
VERSION = 1
"""Raised whenever a column changes its meaning: a base of another version is not read."""

_HEADER = struct.Struct("<8sIIQ")
_PLACE = struct.Struct("<QQ")
_ALIGNMENT = 64
"""Columns begin at cache lines (the widest item has 8 bytes)."""

Allocate: TypeAlias = Callable[[int], Any]
"""Return a writable buffer of this many zero bytes."""


class Column(IntEnum):
    """The columns in the order of the header; docs/format.md has their items."""

    COUNTS = 0
    RESOURCE_DATA = 1
    RESOURCE_OFFSETS = 2
    RESOURCE_BUCKETS = 3
    PAIR_DATA = 4
    PAIR_OFFSETS = 5
    PAIR_BUCKETS = 6
    CELL_STARTS = 7
    CELL_PAIRS = 8
    CELL_MASKS = 9
    CELL_ROWS = 10
    OPERATIONS = 11
    PERMISSIONS = 12
    IDS = 13
    ID_ORDER = 14
    ID_STARTS = 15
    PREFIX_RESOURCES = 16
    PREFIX_PARENTS = 17
    PREFIX_JUMPS = 18
    TYPE_NODES = 19
    PREFIX_LENGTHS = 20
    PREFIX_FILTER = 21
    WILDCARDS = 22
    UNITS = 23
    COLONLESS = 24
    RANGE_PAIRS = 25
    RAW_CODES = 26
    TAGS = 27


_FORMATS = {
    Column.COUNTS: "q",
    Column.CELL_MASKS: "I",
    Column.PREFIX_FILTER: "Q",
    **dict.fromkeys(
        (Column.RESOURCE_DATA, Column.PAIR_DATA, Column.OPERATIONS, Column.PERMISSIONS, Column.IDS, Column.TAGS), "B"
    ),
}
"""Items that are not int32, by the codes of `struct`; offsets are "I", or "q" from 4 GiB of data on."""

_OFFSETS = {Column.RESOURCE_OFFSETS: Column.RESOURCE_DATA, Column.PAIR_OFFSETS: Column.PAIR_DATA}
WIDE_BYTES = 1 << 32
"""From this many bytes of data on, its offsets have 64 bits."""


def pack(columns: Mapping[Column, Any], allocate: Allocate = bytearray) -> memoryview:
    """Return the flat form of these columns, given as contiguous buffers of their items, in what `allocate` returns."""
    at = _aligned(_HEADER.size + _PLACE.size * len(Column))
    places = []
    for column in Column:
        size = memoryview(columns[column]).nbytes
        places.append((at, size))
        at = _aligned(at + size)
    flat = memoryview(allocate(at)).cast("B")
    _HEADER.pack_into(flat, 0, MAGIC, VERSION, len(Column), at)
    for column, (start, size) in zip(Column, places, strict=True):
        _PLACE.pack_into(flat, _HEADER.size + _PLACE.size * column, start, size)
        if size:
            flat[start : start + size] = memoryview(columns[column]).cast("B")
    return flat.toreadonly()


def unpack(flat: memoryview) -> dict[Column, memoryview]:
    """Return the columns of a flat base, as views of their items.

    Raises:
        DecodeError: it is not a flat base, is of another version or cut off, or its columns do not lie within it.

    """
    if sys.byteorder != "little":
        raise DecodeError("flat bases are little-endian, and this machine is not: build the base from its records")
    if len(flat) < _HEADER.size + _PLACE.size * len(Column):
        raise DecodeError(f"{len(flat)} bytes are too few for a flat base")
    magic, version, count, size = _HEADER.unpack_from(flat, 0)
    if magic != MAGIC:
        raise DecodeError("not a flat base: it does not begin with its magic")
    if (version, count) != (VERSION, len(Column)):
        raise DecodeError(f"flat base of version {version} with {count} columns: expected version {VERSION}")
    if size != len(flat):
        raise DecodeError(f"flat base of {size} bytes: {len(flat)} are here")
    columns: dict[Column, memoryview] = {}
    for column in Column:
        start, length = _PLACE.unpack_from(flat, _HEADER.size + _PLACE.size * column)
        if start % _ALIGNMENT or start > len(flat) or length > len(flat) - start:
            raise DecodeError(f"column {column.name} of the flat base is out of bounds")
        columns[column] = _typed(column, flat[start : start + length], columns)
    return columns


def _typed(column: Column, data: memoryview, columns: Mapping[Column, memoryview]) -> memoryview:
    kind = _FORMATS.get(column, "i")
    if column in _OFFSETS:
        kind = "q" if len(columns[_OFFSETS[column]]) >= WIDE_BYTES else "I"
    if len(data) % struct.calcsize(kind):
        raise DecodeError(f"column {column.name} of the flat base is no whole number of items")
    return data.cast(kind)  # type: ignore[call-overload, no-any-return]  # one of the codes above


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT


# The native core (aclog-native), if it is installed: the same decisions over the same flat base, in compiled code.
#
# A core decides first. It returns -1 or -2 to leave the request to the Python path, which is complete without it and
# is the reference for every result.


ASK_PYTHON = -1
"""A core's mask where it does not decide: a principal on which Kafka throws, a text that is not UTF-8, an IPv6 address
or range of a rare spelling, an address in more ranges than it has room for."""
NO_RULE, RULE_OF_PYTHON = -1, -2
"""A core's rule if none matches, and where it leaves the order of the scan to the Python path."""
NOT_TAKEN = -3
"""A core's number of a resource pattern whose name is not UTF-8."""

DOCUMENTED, IN_RANGES = 1, 2
"""Bits of a core's semantics: LITERAL `*` also covers names that begin with `*`; the host of an ACL may be a range."""


class NativeSession(Protocol):
    """The decisions of one client (aclog_native.Session)."""

    def allows(self, operation: int, resource_type: int, name: str, audited: int, /) -> bool | None:
        """Decide and count; None for what the whole call decides."""


class Core(Protocol):
    """A base, or a base and changes, in the native core. Immutable: `put` returns another one."""

    def mask(self, principal: str, host: str, resource_type: int, name: str, semantics: int, /) -> int:
        """Return the mask of all ACLs that cover the name and match the subject (AclIndex.mask), or ASK_PYTHON."""

    def has_candidate(self, resource_type: int, name: str, semantics: int, /) -> int:
        """Return 1 if a resource pattern with ACLs covers the name, 0 if none does, or ASK_PYTHON."""

    def rule(self, principal: str, host: str, operation: int, resource_type: int, name: str, semantics: int, /) -> int:
        """Return the row of the base that Kafka names, NO_RULE, or RULE_OF_PYTHON."""

    def session(
        self, principal: str, host: str, semantics: int, is_open: bool, counts: MutableSequence[int], /
    ) -> NativeSession:
        """Return the decisions of one client; `counts`: two uint64, to which allowed and denied ones are added."""

    def put(
        self, resource_type: int, name: str, literal: bool, principal: str, host: str, mask: int, rules: int, /
    ) -> Core:
        """Return the core after a change: the mask of the touched cell now, and the ACLs of its resource pattern.

        A mask of -1: nothing is left of the cell but what the base does not have either.
        """


class BaseCore(Core, Protocol):
    """A base without changes."""

    def resource(self, resource_type: int, name: str, literal: bool, /) -> int:
        """Return the number of a resource pattern, or -1 for an unknown one, or NOT_TAKEN."""

    def read_ranges(self) -> None:
        """Read the ranges that are hosts, which the first question in ranges does otherwise; without the GIL."""


def core_of(flat: memoryview) -> BaseCore | None:
    """Return the core of a flat base; None if the native core is not installed or does not read this base."""
    if native is None or native.LAYOUT != VERSION:
        return None
    try:
        core: BaseCore = native.Base(flat)
    except (AttributeError, ValueError):
        return None
    return core


# A dict of bounded size that forgets by generations.


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


@define(eq=False, repr=False)
class Generations(Generic[_Key, _Value]):
    """Holds up to twice `limit` entries: a young generation, which grows, and an old one.

    When the young one is full it becomes the old one, and the former old one is dropped, except for the entries that
    were read in the meantime: those are in the young one again. So entries are never lost all at once, and an entry
    that is in use is never lost.

    Threads need no lock: reading and setting one attribute or one key are atomic. Two threads that race lose an entry,
    or drop a generation early, which costs time and nothing else; values follow from their keys.
    """

    limit: int
    young: dict[_Key, _Value] = Factory(dict)
    old: dict[_Key, _Value] = Factory(dict)

    def get(self, key: _Key) -> _Value | None:
        """Return the value, which is now young, or None."""
        value = self.young.get(key)
        if value is None:
            value = self.old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: _Key, value: _Value) -> None:
        """Add an entry."""
        if len(self.young) >= self.limit:
            self.age()
        self.young[key] = value

    def age(self) -> None:
        """Make the young generation the old one, and drop the former old one."""
        # New dicts instead of clear(): another thread may be reading the old ones.
        self.old, self.young = self.young, {}


# Masks: the operations that ACLs allow (bits 0..15) and deny (bits 16..31), by the codes of AclOperation.
#
# Masks of several ACLs are or-ed. Kafka's rule that any DENY wins is then one test of two bits.


OPERATIONS = 16
TYPES = 8
"""Operation codes 0..15 and resource type codes 0..7 exist; Kafka reads any other as UNKNOWN (0)."""

ALL_OPERATIONS = 0xFFFF
ALLOWED = 1
DENIED = 1 << 16
"""The two bits to test after a mask is shifted right by an operation's code."""

# Allowing these operations implies the others (StandardAuthorizerData.IMPLIES_DESCRIBE and
# IMPLIES_DESCRIBE_CONFIGS). Denying an operation denies no other.
_IMPLIED = {
    AclOperation.READ: 1 << AclOperation.DESCRIBE,
    AclOperation.WRITE: 1 << AclOperation.DESCRIBE,
    AclOperation.DELETE: 1 << AclOperation.DESCRIBE,
    AclOperation.ALTER: 1 << AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS: 1 << AclOperation.DESCRIBE_CONFIGS,
}


def known_operation(code: int) -> int:
    """Return the operation that Kafka reads from a code (AclOperation.fromCode)."""
    return code if 0 <= code < OPERATIONS else 0


def signed(byte: int) -> int:
    """Return a byte as Java reads it: from -128 to 127."""
    return byte - (byte >> 7 << 8)


def known_type(code: int) -> int:
    """Return the resource type that Kafka reads from a code (ResourceType.fromCode)."""
    return code if 0 <= code < TYPES else 0


def known_pattern(code: int) -> int:
    """Return the pattern type that Kafka reads from a code (PatternType.fromCode)."""
    return code if 0 <= code <= 4 else 0


def known_permission(code: int) -> int:
    """Return the permission that Kafka reads from a code (AclPermissionType.fromCode)."""
    return code if 0 <= code <= 3 else 0


def _mask(operation: int, *, allow: bool) -> int:
    bits = ALL_OPERATIONS if operation == AclOperation.ALL else 1 << operation
    return bits | _IMPLIED.get(AclOperation(operation), 0) if allow else bits << 16


# Tables over all byte values: codes are read from columns of bytes, and an update should not look up enum members.
_ALLOWING = tuple(_mask(known_operation(byte), allow=True) for byte in range(256))
_DENYING = tuple(_mask(known_operation(byte), allow=False) for byte in range(256))


def rule_mask(operation: int, permission_type: int) -> int:
    """Return the mask of one ACL; every permission but ALLOW acts as DENY, and only ALLOW implies other operations."""
    return (_ALLOWING if permission_type == AclPermissionType.ALLOW else _DENYING)[operation & 0xFF]


def matched_operations(operation: int, permission_type: int) -> int:
    """Return the operations that an ACL matches, whether it allows or denies them, as the bits of their codes."""
    mask = rule_mask(operation, permission_type)
    return (mask | mask >> 16) & ALL_OPERATIONS


@cache
def mask_table() -> Masks:
    """Return the masks by [permission code as a byte, operation code as a byte]; never write to it."""
    table = np.empty((256, 256), np.uint32)
    table[:] = _DENYING
    table[AclPermissionType.ALLOW] = _ALLOWING
    return table


# Keys of resource patterns and of (principal, host) pairs, their hashes, and the table that numbers them.
#
# A key is a slice of the record. In an AccessControlEntryRecord resource type, name and pattern type are adjacent,
# and so are principal and host: bulk loading cuts one slice for each and decodes nothing. A resource key is the type
# byte, the name as a compact string and the byte of LITERAL or PREFIXED; a pair key is principal and host as compact
# strings.
#
# A hash must not depend on the process, since tables are written to files: it is a CRC-32, mixed by a multiplication.
# Of a resource it is the CRC of the name alone, so that one pass over a name gives the hashes of all its prefixes.


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
_ROW_BITS: Final = 31
"""For a row or the number of a key, which are int32."""
CROWDED: Final = 8
"""A bucket with more keys is sorted and searched by bisection: names picked to collide gain nothing."""


def compact(text: str) -> bytes:
    """Return a text as a compact string. A lone surrogate, which a request may hold and a record cannot, is kept."""
    return _compact(text.encode("utf-8", "surrogatepass"))


def _compact(data: bytes) -> bytes:
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
    return encoded_key(resource_type, name.encode("utf-8", "surrogatepass"), literal=literal)


def encoded_key(resource_type: int, name: bytes, *, literal: bool) -> bytes:
    """Return the same; the name is its UTF-8 bytes."""
    if len(name) < _SHORT:
        return _HEADS[resource_type][len(name)] + name + _PATTERN_BYTES[literal]
    return _TYPE_BYTES[resource_type] + _compact(name) + _PATTERN_BYTES[literal]


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


@frozen(eq=False, repr=False)
class KeyTable:
    """Distinct keys, numbered 0..n-1 in the order of their buckets: bucket b has `buckets[b]` to `buckets[b + 1]` - 1.

    The leading bits of a key's hash are its bucket. Only a key's bytes and its offset are kept.
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

    def strings(self) -> ByteStrings:
        """Return all keys in columns; the bytes are not copied."""
        return ByteStrings(np.asarray(self.offsets).astype(np.int64), np.frombuffer(self.data, np.uint8))

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
            # As bytes: a view is compared byte by byte.
            if self.data[offsets[number] : offsets[number + 1]].tobytes() == key:
                return number
        return -1


def bucket_count(n: int) -> int:
    """Return the smallest power of two that is at least n and 1."""
    return 1 << max(n - 1, 0).bit_length()


# Byte strings of varying length in two columns, and what is done to many of them at once.
#
# Each of the three functions that touch every string has a form in Python here and one in the native core, which is
# used if it is installed; their results are equal.


_CHUNK = 2048
"""Strings made into objects at a time: a longer call would hold the GIL for too long."""

_BLOCK = 1 << 14
"""Strings gathered at a time: their positions, 8 bytes for each byte copied, then fit the CPU cache."""


_MANY = 1 << 12
"""From this many slices on, they are compared as words of eight bytes, without an object per slice."""

_WORD = 8
_MULTIPLIER, _HALF = 0x9E3779B97F4A7C15, 32


@frozen(eq=False, repr=False)
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
        of_rows, of_numbers = (np.frombuffer(column, np.int32) for column in native.number(source, starts, ends))
        firsts = starts[of_numbers], ends[of_numbers]
        return ByteStrings.cut(np.frombuffer(source, np.uint8), *firsts), of_rows
    if len(starts) >= _MANY:
        column = _numbered_by_words(source, starts, ends)
        if column is not None:
            return column
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
        # Equal hashes are verified: an author of ACLs could make two texts collide.
        if not _are_equal(words, (starts[rows], ends[rows]), (starts[same], ends[same])):
            return None
    return ByteStrings.cut(data, starts[firsts], ends[firsts]), numbers


@cache
def low_bytes() -> NDArray[np.uint64]:
    """Return by a number of bytes, up to eight, the mask of that many."""
    return np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)


def _hashes(words: NDArray[np.uint64], starts: Int64s, ends: Int64s) -> NDArray[np.uint64]:
    remaining = ends - starts
    hashes = remaining.astype(np.uint64)
    for rows, at, size in _steps(starts, remaining):
        mixed = (hashes[rows] ^ words[at] & low_bytes()[size]) * _MULTIPLIER
        hashes[rows] = mixed ^ mixed >> _HALF
    return hashes


def _are_equal(words: NDArray[np.uint64], some: tuple[Int64s, Int64s], others: tuple[Int64s, Int64s]) -> bool:
    """Return whether each slice, given by starts and ends, equals the one in the same place of the others."""
    sizes = some[1] - some[0]
    if not np.array_equal(sizes, others[1] - others[0]):
        return False
    shift = others[0] - some[0]
    return not any(
        ((words[at] ^ words[at + shift[rows]]) & low_bytes()[size]).any() for rows, at, size in _steps(some[0], sizes)
    )


def _steps(starts: Int64s, remaining: Int64s) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """Yield, word by word, the rows of slices that have such a word, where it is and how many of its bytes count."""
    rows, at = np.flatnonzero(remaining > 0), starts
    at, remaining = at[rows], remaining[rows]
    while len(rows):
        yield rows, at, np.minimum(remaining, _WORD)
        longer = remaining > _WORD
        rows, at, remaining = rows[longer], at[longer] + _WORD, remaining[longer] - _WORD


def crc32s(data: Bytes, starts: Int64s, ends: Int64s, pause: Pause = no_pause) -> UInt32s:
    """Return the CRC-32 (zlib's) of each slice."""
    if native is not None:
        return np.frombuffer(native.crc32(data, starts, ends), np.uint32)
    checksums = np.empty(len(starts), np.uint32)
    whole = data.tobytes()
    for first in range(0, len(starts), _CHUNK):
        rows = slice(first, first + _CHUNK)
        texts = _values(whole, starts[rows], ends[rows])
        checksums[rows] = np.fromiter(map(crc32, texts), np.uint32, len(texts))
        pause()
    return checksums


def sorted_rows(data: Bytes, starts: Int64s, ends: Int64s) -> Int32s:
    """Return the rows of slices in the order of their bytes; equal slices stay in their order."""
    if native is not None:
        return np.frombuffer(native.order(data, starts, ends), np.int32)
    texts = _values(data.tobytes(), starts, ends)
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int32)


# The order of keys in a KeyTable: by the leading bits of their hashes; by their bytes where many share a bucket.


def resource_hashes(keys: ByteStrings, pause: Pause = no_pause) -> UInt32s:
    """Return aclog.authorizer.index.layout.resource_hash of each resource key."""
    _, starts, _ = unsigned_varints(keys.data, keys.starts + 1)
    kinds = keys.data[keys.starts].astype(np.uint32)
    literal = keys.data[keys.ends - 1] == PatternType.LITERAL
    salts = (2 * kinds + literal).astype(np.uint32) * np.uint32(SALT)
    hashes: UInt32s = (crc32s(keys.data, starts, keys.ends - 1, pause) + salts) * np.uint32(FIBONACCI)
    return hashes


def pair_hashes(keys: ByteStrings, pause: Pause = no_pause) -> UInt32s:
    """Return aclog.authorizer.index.layout.pair_hash of each pair key."""
    hashes: UInt32s = crc32s(keys.data, keys.starts, keys.ends, pause) * np.uint32(FIBONACCI)
    return hashes


def bucket_order(keys: ByteStrings, hashes: UInt32s) -> tuple[Int64s, Int32s]:
    """Return the order of keys in a table, and where each bucket begins in it."""
    count = bucket_count(len(keys))
    # numbers with their row below are sorted in a tenth of the time of rows by number
    packed = _buckets(hashes, count) << _ROW_BITS | np.arange(len(keys))
    packed.sort()
    order, ordered = packed & ((1 << _ROW_BITS) - 1), packed >> _ROW_BITS
    first = changes(ordered)
    sizes = np.diff(np.append(first, len(keys)))
    crowded = sizes > CROWDED
    for start, size in zip(first[crowded].tolist(), sizes[crowded].tolist(), strict=True):
        rows = order[start : start + size].tolist()
        rows.sort(key=lambda row: keys.data[keys.offsets[row] : keys.offsets[row + 1]].tobytes())
        order[start : start + size] = rows
    return order, starts_of(ordered, count)


def _buckets(hashes: UInt32s, count: int) -> Int64s:
    buckets: Int64s = (hashes.astype(np.int64) >> (33 - count.bit_length())).astype(np.int64)
    return buckets


# Columns beside the rows of a base: prefixed names, ranges of hosts, and ids.


# The first UTF-16 code unit of resource names, which decides where Kafka's scan jumps (kafka_scan_order).


UnitCounts: TypeAlias = Mapping[tuple[int, int], int]
"""By resource type and first code unit of the name: how many ACLs there are. Those on `*` and on the empty name are
left out."""

_SUPPLEMENTARY, _HIGH_SURROGATES = 0x10000, 0xD800
_UNITS = 1 << 16
_SORTED_BELOW = 2_000
"""So many resources are sorted in less time than the counts of all code units are set to zero."""


def first_unit(name: str) -> int:
    """Return the first UTF-16 code unit; 0 for the empty name."""
    code = ord(name[0]) if name else 0
    return code if code < _SUPPLEMENTARY else _HIGH_SURROGATES + (code - _SUPPLEMENTARY >> 10)


def count_units(kinds: Bytes, data: Bytes, starts: Int64s, ends: Int64s, acls: Int64s) -> dict[tuple[int, int], int]:
    """Return the UnitCounts of resources, given their types, their names as ranges of UTF-8, and their numbers of ACLs.

    A few vector operations, so that no decision has to pass over all resources.
    """
    named: Bools = (ends > starts) & ~((ends - starts == 1) & (data.take(starts, mode="clip") == ord(WILDCARD)))
    key = kinds[named].astype(np.int64) * _UNITS + _units(data, starts[named])
    if len(key) < _SORTED_BELOW:
        found, place = np.unique(key, return_inverse=True)
        sums = np.bincount(place, weights=acls[named], minlength=len(found))
        return {divmod(each, _UNITS): int(total) for each, total in zip(found.tolist(), sums, strict=True) if total}
    totals = np.bincount(key, weights=acls[named])
    return {divmod(each, _UNITS): int(totals[each]) for each in np.flatnonzero(totals).tolist()}


def _units(data: Bytes, starts: Int64s) -> Int64s:
    """Return the first code unit of each name, none of which is empty."""
    units = data[starts].astype(np.int64)
    wide = np.flatnonzero(units >= 0x80)
    if len(wide):
        lead = units[wide]
        second, third = (data.take(starts[wide] + step, mode="clip").astype(np.int64) & 0x3F for step in (1, 2))
        supplementary = (lead & 0x07) << 8 | second << 2 | third >> 4  # the code point without its last ten bits
        units[wide] = np.select(
            [lead < 0xE0, lead < 0xF0],
            [(lead & 0x1F) << 6 | second, (lead & 0x0F) << 12 | second << 6 | third],
            _HIGH_SURROGATES + supplementary - (_SUPPLEMENTARY >> 10),
        )
    return units


# Where the names that begin with a prefix stand among sorted ones.


def prefix_range(
    rows: Any, prefix: str, name_of: Callable[[Any], str] = str, *, low: int = 0, high: int | None = None
) -> tuple[int, int]:
    """Return the first place, and the one after the last, of the rows whose names begin with a prefix.

    `rows` is a sequence that is sorted by `name_of`; only those from `low` to `high` are looked at.
    """
    size = len(prefix)

    def head(row: Any) -> str:
        """Return as much of a name as is compared: no text comes after all that begin so."""
        return name_of(row)[:size]

    first = bisect_left(rows, prefix, low, high, key=head)
    return first, bisect_right(rows, prefix, first, high, key=head)


def outermost(prefixes: Iterable[str]) -> list[str]:
    """Return the prefixes that begin with no other one, sorted."""
    outer: list[str] = []
    for prefix in sorted(prefixes):
        if not outer or not prefix.startswith(outer[-1]):
            outer.append(prefix)
    return outer


def begins_with_one(name: str, prefixes: Sequence[str]) -> bool:
    """Return whether a name begins with one of the prefixes that `outermost` returns."""
    # Every text sorted between a prefix and a name that begins with it also begins with the prefix.
    at = bisect_right(prefixes, name)
    return at > 0 and name.startswith(prefixes[at - 1])


# The PREFIXED names of a base, and the chain of those that are prefixes of a given name.
#
# The names of a type are sorted, and also a forest: the parent of a name is the longest other name that it begins
# with. The prefixes of a given name are ancestors of the last name that sorts at or before it. Walking up parent by
# parent could take a thousand steps in a ladder of nested prefixes, so each node has a jump link to a far ancestor,
# too (skew-binary jump pointers, Myers 1983): the longest prefix is found with O(log n) comparisons on any set of
# names.
#
# Names are compared as UTF-8, whose order is that of code points.


_FEW = 256
"""So many names are listed at once, without numpy."""
_LISTED_AFTER = 64
"""A list of all names is made once there was one search per this many names: by then it costs less than they did."""


@define(eq=False, repr=False)
class Prefixes:
    """The prefixed names of all types by type and name. A node is an index into these columns, -1 means no node."""

    _keys: KeyTable
    resources: memoryview
    parents: memoryview
    jumps: memoryview
    type_nodes: memoryview
    """Where the nodes of each type begin, and at the end their number."""
    _searches: int = 0
    _names: list[bytes] | None = Factory(lambda: None)
    """All names, once searches have paid for them. Threads may race here: they make the same list."""

    def __len__(self) -> int:
        return len(self.resources)

    def name(self, node: int) -> bytes:
        """Return the name of a node in UTF-8."""
        return name_bytes(self._keys.key(self.resources[node]))

    def longest(self, resource_type: int, name: bytes) -> int:
        """Return the node of the longest name that `name`, in UTF-8, begins with or equals; -1 without one."""
        low, high = self.type_nodes[resource_type], self.type_nodes[resource_type + 1]
        if low == high:
            return -1
        names = self._names
        if names is None:
            names = self._listed()
        if names is None:
            node = bisect_right(range(high), name, low, high, key=self.name) - 1
        else:
            node = bisect_right(names, name, low, high) - 1
        if node < low:
            return -1
        text, parents, jumps = self.name if names is None else names.__getitem__, self.parents, self.jumps
        while node >= 0 and not name.startswith(text(node)):
            # If the jump target is no prefix, nothing between it and this node is: all of them begin with the target.
            jump = jumps[node]
            node = jump if jump >= 0 and not name.startswith(text(jump)) else parents[node]
        return node

    def chain(self, resource_type: int, name: bytes) -> Iterator[int]:
        """Yield the nodes of all prefixes of `name`, in UTF-8, longest first."""
        node = self.longest(resource_type, name)
        while node >= 0:
            yield node
            node = self.parents[node]

    def _listed(self) -> list[bytes] | None:
        if len(self.resources) <= _FEW:
            self._names = [self.name(node) for node in range(len(self.resources))]
            return self._names
        self._searches += 1
        if self._searches * _LISTED_AFTER > len(self.resources):
            self._names = self._all_names()
        return self._names

    def _all_names(self) -> list[bytes]:
        data, offsets = np.frombuffer(self._keys.data, np.uint8), np.asarray(self._keys.offsets).astype(np.int64)
        nodes = np.asarray(self.resources)
        _, starts, _ = unsigned_varints(data, offsets[nodes] + 1)
        return ByteStrings.cut(data, starts, offsets[nodes + 1] - 1).values()


def links(names: ByteStrings, pause: Pause = no_pause) -> tuple[Int32s, Int32s]:
    """Return the parent and the jump link of each of these sorted names, all of one type; -1 for none."""
    parents, jumps = np.full(len(names), -1, np.int32), np.full(len(names), -1, np.int32)
    # Most names begin no other one. After a name without a parent that begins none, the next has no parent either.
    roots = np.flatnonzero(_begins_next(names)).tolist()
    data, offsets = names.data.tobytes() if roots else b"", names.offsets.tolist() if roots else []
    done = 0
    for root in roots:
        if root >= done:
            below = _links_below(root, data, offsets, pause)
            done = root + len(below[0])
            for column, each in zip((parents, jumps), below, strict=True):
                distances = np.array(each, np.int32)
                column[root:done] = np.where(distances < 0, distances, distances + np.int32(root))
    return parents, jumps


def _begins_next(names: ByteStrings) -> Bools:
    """Return whether the next name begins with each, but the last."""
    sizes = np.diff(names.offsets)
    rows = np.flatnonzero(sizes[:-1] <= sizes[1:])
    starts, nexts, sizes = names.offsets[rows], names.offsets[rows + 1], sizes[rows]
    texts = ByteStrings.cut(names.data, starts, starts + sizes)
    differing = np.append(0, np.cumsum(texts.data != ByteStrings.cut(names.data, nexts, nexts + sizes).data))
    begins: Bools = np.zeros(max(len(names) - 1, 0), np.bool_)
    begins[rows] = differing[texts.ends] == differing[texts.starts]
    return begins


def _links_below(root: int, data: bytes, offsets: list[int], pause: Pause) -> tuple[list[int], list[int]]:
    """Return the links of a name without a parent, and of all names that begin with it, as distances from it."""
    names, parents, jumps = [data[offsets[root] : offsets[root + 1]]], [-1], [-1]
    depths: dict[int, int] = {}
    for node in range(1, len(offsets) - 1 - root):
        if node % _CHUNK == 0:
            pause()
        # The predecessor in sorted order, or one of its ancestors, is the parent.
        name, parent = data[offsets[root + node] : offsets[root + node + 1]], node - 1
        while parent >= 0 and not name.startswith(names[parent]):
            parent = parents[parent]
        if parent < 0:
            break
        depths[node] = depths.get(parent, 0) + 1
        # Skew-binary rule: if the parent's last two jumps span equal depths, the new node jumps over both, else to its
        # parent. Jump lengths then grow exponentially towards the root.
        jump = jumps[parent]
        far = jumps[jump] if jump >= 0 else -1
        depth, middle, end = depths.get(parent, 0), depths.get(jump, 0), depths.get(far, 0)
        names.append(name)
        parents.append(parent)
        jumps.append(far if far >= 0 and depth - middle == middle - end else parent)
    return parents, jumps


# The CIDR ranges (KIP-1276) that are hosts of one principal's ACLs, and those that contain an address.


@define(eq=False, repr=False)
class RangeHosts:
    """Ranges by size, and those of a size by their first address: an address is looked up once per size.

    Ranges may be added at any time, and none is ever removed: one that no ACL has any more matches no cell. Threads
    need no lock: they add the same ranges, and `_overlay` is set when all of its ranges are there.
    """

    _sizes: dict[tuple[int, int], dict[int, list[str]]] = Factory(dict)
    """By version and size - 1."""
    _hosts: set[str] = Factory(set)
    _overlay: tuple[str, ...] = ()
    """The hosts of an overlay that were added last."""

    def add(self, hosts: Iterable[str]) -> None:
        """Add the hosts that are ranges, as written in ACLs."""
        for host in hosts:
            if host not in self._hosts:
                cidr = cidr_range(host)
                if cidr is not None:
                    firsts = self._sizes.setdefault((cidr.version, cidr.last - cidr.first), {})
                    firsts.setdefault(cidr.first, []).append(host)
                self._hosts.add(host)

    def add_overlay(self, hosts: tuple[str, ...]) -> None:
        """Add the hosts of an overlay (Overlay.ranges), which usually has the same as the last time, or one more."""
        last = self._overlay
        if hosts is not last:
            self.add(islice(hosts, len(last), None) if hosts[: len(last)] == last else hosts)
            self._overlay = hosts

    def containing(self, address: AddressNumber) -> Iterator[str]:
        """Yield the hosts that contain an address."""
        version, number = address
        # No IPv4 range contains 0.0.0.0 (CidrRange.contains_number).
        if version == 6 or number:
            for (family, below), firsts in list(self._sizes.items()):  # a copy: another thread may add a size
                if family == version:
                    yield from firsts.get(number & ~below, ())


# Rows by the uuid of their ACL: rows sorted by uuid, in buckets by the leading bits.


@frozen(eq=False, repr=False)
class IdIndex:
    """Rows sorted by id; 24 bytes per ACL."""

    ids: memoryview
    """16 big-endian bytes per row."""
    _order: memoryview
    _starts: memoryview
    _shift: int

    @classmethod
    def of(cls, ids: memoryview, order: memoryview, starts: memoryview) -> Self:
        """Return the index in these columns; the number of buckets is a power of two."""
        return cls(ids, order, starts, 128 - (len(starts) - 2).bit_length())

    def find(self, number: int) -> int:
        """Return the row of the uuid with this integer value; -1 if not found."""
        bucket = number >> self._shift
        low, high = self._starts[bucket], self._starts[bucket + 1]
        if low == high:  # most ids that are added are new
            return -1
        ids, order = self.ids, self._order
        key = number.to_bytes(16)
        # Buckets hold one row on average. Only uuids that are not random, such as numbered ones, crowd into a bucket.
        if high - low > 4:
            low = bisect_left(order, number, low, high, key=self.number)
            high = min(high, low + 1)
        for at in range(low, high):
            row = order[at]
            if ids[16 * row : 16 * row + 16] == key:
                return int(row)
        return -1

    def rows_from(self, number: int) -> Iterator[int]:
        """Yield the rows whose uuid has this integer value or a higher one, in ascending order of the uuids."""
        order = self._order
        at = bisect_left(order, number, key=self.number)
        while at < len(order):
            yield order[at]
            at += 1

    def number(self, row: int) -> int:
        """Return the integer value of a row's uuid."""
        return int.from_bytes(self.ids[16 * row : 16 * row + 16])


def id_order(ids: NDArray[np.uint8]) -> tuple[Int32s, Int32s, bool]:
    """Return the columns of the index of (n, 16) ids, order and starts, and whether an id occurs twice."""
    n = len(ids)
    halves = np.ascontiguousarray(ids).view(">u8").reshape(n, 2)
    high = halves[:, 0].astype(np.uint64)
    order = np.argsort(high)
    ordered = high[order]
    repeated = False
    # Random uuids almost never share their high halves; only if two do are the low halves sorted as well.
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((halves[:, 1], high))
        ordered, low = high[order], halves[:, 1][order]
        repeated = bool(((ordered[1:] == ordered[:-1]) & (low[1:] == low[:-1])).any())
    bits = bucket_count(n).bit_length() - 1
    bucket_of = (ordered >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(n, np.int64)
    return order.astype(np.int32), starts_of(bucket_of, 1 << bits), repeated
