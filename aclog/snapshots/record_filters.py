"""Which records of a log are of interest: narrowed down for thousands of values at once, then decided one by one.

A filter is called with a value, and decides. `rows` only narrows down: it may keep values that the call rejects.
"""

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Protocol

import numpy as np
from attrs import field
from numpy.typing import NDArray

from aclog.authorizer.codes import WILDCARD
from aclog.metalog.columns import Bools, Bytes, Int64s, bytes_at, slices_at, unsigned_varints
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import Buffer, read_unsigned_varint
from aclog.metalog.records import RecordType
from aclog.metalog.values import define, frozen

_ID, _TYPE = 3, 19
"""In the record of an ACL, where its id begins, and its resource type after it: the frame's header has three bytes."""
_ADDED, _REMOVED = RecordType.ACCESS_CONTROL_ENTRY_RECORD, RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD
_MARKERS = (
    RecordType.BEGIN_TRANSACTION_RECORD,
    RecordType.END_TRANSACTION_RECORD,
    RecordType.ABORT_TRANSACTION_RECORD,
)
_WILDCARD = WILDCARD.encode()
_ONE_BYTE = 0x80
"""An apiKey from here on takes more than the byte behind the frame version."""


class RecordFilter(Protocol):
    """Decides which record values are decoded; it accepts markers of transactions."""

    def __call__(self, value: bytes) -> bool:
        """Return whether a value is of interest; values are passed in the order of the log."""
        ...

    def rows(self, buffer: Buffer, start: Int64s, end: Int64s) -> Int64s:
        """Return the numbers, ascending, of at least those values [start, end) that the filter accepts."""
        ...


def api_keys(buffer: Buffer, start: Int64s, end: Int64s) -> Bytes:
    """Return the byte behind the frame version of each value, of which none is empty; 255 without such a byte."""
    keys = bytes_at(np.frombuffer(buffer, np.uint8), start + 1)
    keys[end - start < 2] = 0xFF
    return keys


def has_markers(buffer: Buffer, start: Int64s, end: Int64s) -> bool:
    """Return whether one of the values may be a marker of a transaction."""
    keys = api_keys(buffer, start, end)
    return bool((np.isin(keys, _MARKERS) | (keys >= _ONE_BYTE)).any())


@frozen
class OfKinds:
    """Records of some types, whose apiKeys take one byte; those of transactions among them."""

    _kinds: frozenset[int]

    def __call__(self, value: bytes) -> bool:
        """Decide by the apiKey."""
        return len(value) > 1 and value[1] in self._kinds

    def rows(self, buffer: Buffer, start: Int64s, end: Int64s) -> Int64s:
        """Return exactly those."""
        return np.flatnonzero(np.isin(api_keys(buffer, start, end), list(self._kinds)))


@frozen
class AdditionsOf:
    """All records but those of other ACLs than some, which are given by their ids, and removals of ACLs."""

    _ids: Collection[bytes]

    @cached_property
    def _id_heads(self) -> NDArray[np.uint64]:
        """The first 8 bytes of the ids, sorted."""
        return np.sort(np.array([int.from_bytes(each[:8]) for each in self._ids], np.uint64))

    def __call__(self, value: bytes) -> bool:
        """Decide by the apiKey and the id in a record's value, both at fixed positions."""
        if len(value) < _TYPE:
            return True  # it may be damaged, which decoding reports
        if value[1] == _ADDED:
            return value[_ID:_TYPE] in self._ids
        return value[1] != _REMOVED

    def rows(self, buffer: Buffer, start: Int64s, end: Int64s) -> Int64s:
        """Return those whose id begins as one of the ids does."""
        keys, short = api_keys(buffer, start, end), end - start < _TYPE
        keeps = short | ((keys != _ADDED) & (keys != _REMOVED))
        added = np.flatnonzero(~short & (keys == _ADDED))
        ids = slices_at(np.frombuffer(buffer, np.uint8), start[added] + _ID, 8).view(">u8")[:, 0]
        keeps[added[_is_among(ids.astype(np.uint64), self._id_heads)]] = True
        return np.flatnonzero(keeps)


def _is_among(numbers: NDArray[np.uint64], ordered: NDArray[np.uint64]) -> Bools:
    """Return which numbers are among some in ascending order."""
    if not len(ordered):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    return np.asarray(ordered[places] == numbers)


def _heads(names: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(name.encode(errors="surrogatepass") for name in names)


@define
class AclsNear:
    """Changes of ACLs that may cover one of some names, or names that begin with one, of any resource type."""

    _names: tuple[bytes, ...] = field(converter=_heads)
    _ids: set[bytes] = field(factory=set, init=False)
    """Of the ACLs that were accepted: a removal has nothing else."""

    def add_known(self, name: str, acl_id: bytes) -> bool:
        """Accept the ACL with this id and resource name, or reject it; return which. For those before the log."""
        near = self._is_near(name.encode(errors="surrogatepass"))
        if near:
            self._ids.add(acl_id)
        return near

    def __call__(self, value: bytes) -> bool:
        """Decide by the name in a value, or by the id of an earlier one."""
        if len(value) < _TYPE or value[1] in _MARKERS:
            return True  # it may be damaged, which decoding reports
        if value[1] == _REMOVED:
            return value[_ID:_TYPE] in self._ids
        if value[1] != _ADDED:
            return value[1] >= _ONE_BYTE
        try:
            size, at = read_unsigned_varint(value, _TYPE + 1)
        except (DecodeError, IndexError):
            return True
        if not self._is_near(value[at : at + size - 1]):
            return False
        self._ids.add(value[_ID:_TYPE])
        return True

    def _is_near(self, name: bytes) -> bool:
        return name == _WILDCARD or any(name.startswith(each) or each.startswith(name) for each in self._names)

    def rows(self, buffer: Buffer, start: Int64s, end: Int64s) -> Int64s:
        """Return additions whose names begin alike, and everything else that is no addition."""
        data, keys = np.frombuffer(buffer, np.uint8), api_keys(buffer, start, end)
        added = (keys == _ADDED) & (end - start > _TYPE)
        other = (end - start < _TYPE) | (keys == _REMOVED) | np.isin(keys, _MARKERS) | (keys >= _ONE_BYTE)
        rows = np.flatnonzero(added)
        size, at, _ = unsigned_varints(data, start[rows] + _TYPE + 1)
        keeps = other | ((keys == _ADDED) & ~added)
        for name in (*self._names, _WILDCARD):
            keeps[rows[_begin_alike(data, at, size - 1, name)]] = True
        return np.flatnonzero(keeps)


def _begin_alike(data: Bytes, at: Int64s, size: Int64s, name: bytes) -> Int64s:
    """Return the numbers of the texts that begin with a name or are its beginning."""
    rows = np.arange(len(at))
    for position, byte in enumerate(name):
        rows = rows[(size[rows] <= position) | (bytes_at(data, at[rows] + position) == byte)]
        if not len(rows):
            break
    return rows
