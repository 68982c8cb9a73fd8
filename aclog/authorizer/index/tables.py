"""Open-addressing hash tables in numpy, for looking up millions of pairs of numbers at a time."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.index.base import Base
from aclog.authorizer.index.layout import ByteStrings, Int32s, compact, numbered
from aclog.metalog.vectors import Int64s, unsigned_varints

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: Fibonacci hashing spreads consecutive keys."""


@frozen(eq=False)
class PairedTable:
    """(number, number) -> uint32, 0 for absent keys; about 24 bytes per entry, at most half full."""

    _keys: NDArray[np.uint64]
    _values: NDArray[np.uint32]
    _shift: np.uint64

    @classmethod
    def of(cls, first: Int64s, second: Int64s, values: NDArray[np.uint32]) -> Self:
        """Build the table from distinct pairs of numbers in 0..2**31-1."""
        pair_keys = _key(first, second)
        bits = len(pair_keys).bit_length() + 1
        keys, table = np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, np.uint32)
        shift = np.uint64(64 - bits)
        remaining = np.arange(len(pair_keys))
        slots = (pair_keys * _MULTIPLIER >> shift).astype(np.int64)
        # All keys probe in lockstep. Several may write to one free slot: the last write wins, and the others continue
        # with their next slot.
        while remaining.size:
            free = keys[slots] == 0
            keys[slots[free]] = pair_keys[remaining[free]]
            won = keys[slots] == pair_keys[remaining]
            table[slots[won]] = values[remaining[won]]
            remaining, slots = remaining[~won], (slots[~won] + 1) & ((1 << bits) - 1)
        return cls(keys, table, shift)

    def get(self, first: Int32s | Int64s, second: Int32s | Int64s) -> NDArray[np.uint32]:
        """Return the value of each pair; 0 if it is absent or one of its numbers is negative."""
        result = np.zeros(len(first), np.uint32)
        rows = np.flatnonzero((first >= 0) & (second >= 0))
        pair_keys = _key(first[rows], second[rows])
        slots = (pair_keys * _MULTIPLIER >> self._shift).astype(np.int64)
        wrap = len(self._keys) - 1
        while rows.size:
            keys = self._keys[slots]
            same = keys == pair_keys
            result[rows[same]] = self._values[slots[same]]
            going = ~same & (keys != 0)  # a free slot ends the probe: the key is absent
            rows, pair_keys, slots = rows[going], pair_keys[going], (slots[going] + 1) & wrap
        return result


def _key(first: Int32s | Int64s, second: Int32s | Int64s) -> NDArray[np.uint64]:
    """Return both numbers in one, plus 1, since 0 marks a free slot."""
    return (first.astype(np.uint64) << np.uint64(32)) + second.astype(np.uint64) + np.uint64(1)


@frozen(eq=False, kw_only=True)
class Tables:
    """The principals and hosts of a base, numbered separately, and a table of its pairs."""

    pairs: PairedTable
    """(principal, host) -> pair + 1."""
    principals: ByteStrings
    hosts: ByteStrings
    """Compact strings; a string's position is its number."""
    principal_of: Int32s
    host_of: Int32s
    """By pair."""

    def pair(self, principals: Int32s | Int64s, hosts: Int32s | Int64s) -> Int32s:
        """Return the pair of each principal and host by number; -1 if not found."""
        return self.pairs.get(principals, hosts).astype(np.int32) - 1


def tables_of(base: Base) -> Tables:
    """Return the tables of a base, built on first use and kept with it."""
    tables = base.memo.tables
    if not isinstance(tables, Tables):
        tables = base.memo.tables = _make(base)
    return tables


def _make(base: Base) -> Tables:
    keys, offsets = base.pairs.data, np.asarray(base.pairs.offsets).astype(np.int64)
    # A pair key is two compact strings; the varint before the first one is its length + 1.
    length, starts, _ = unsigned_varints(np.frombuffer(keys, np.uint8), offsets[:-1])
    middle = starts + length - 1
    principals, principal_of = numbered(keys, offsets[:-1], middle)
    hosts, host_of = numbered(keys, middle, offsets[1:])
    pairs = np.arange(1, len(offsets), dtype=np.uint32)
    return Tables(
        pairs=PairedTable.of(principal_of.astype(np.int64), host_of.astype(np.int64), pairs),
        principals=principals,
        hosts=hosts,
        principal_of=principal_of,
        host_of=host_of,
    )


def numbers_of(texts: Sequence[str], strings: ByteStrings) -> Int32s:
    """Return the number of each text among compact strings; -1 for absent ones."""
    both = strings.joined(ByteStrings.of([compact(text) for text in texts]))
    distinct, codes = numbered(both.data.data, both.starts, both.ends)
    number_of = np.full(len(distinct), -1, np.int32)
    number_of[codes[: len(strings)]] = np.arange(len(strings), dtype=np.int32)
    numbers: Int32s = number_of[codes[len(strings) :]]
    return numbers
