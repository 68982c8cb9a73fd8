"""The order in which Kafka's scan visits the ACLs that cover a name."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from operator import ne
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.codes import WILDCARD, PatternType
from aclog.authorizer.index import layout
from aclog.authorizer.index.acl_index import AclIndex, Levels, Resource
from aclog.authorizer.index.base import Base, row_keys
from aclog.metalog.columns import Bytes, Int64s, unsigned_varints
from aclog.metalog.native import np
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Open-addressing hash tables in numpy, for looking up millions of pairs of numbers at a time.


_MULTIPLIER = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio: Fibonacci hashing spreads consecutive keys."""


@frozen(eq=False, repr=False)
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

    def get(self, first: layout.Int32s | Int64s, second: layout.Int32s | Int64s) -> NDArray[np.uint32]:
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


def _key(first: layout.Int32s | Int64s, second: layout.Int32s | Int64s) -> NDArray[np.uint64]:
    """Return both numbers in one, plus 1, since 0 marks a free slot."""
    return (first.astype(np.uint64) << np.uint64(32)) + second.astype(np.uint64) + np.uint64(1)


@frozen(eq=False, kw_only=True, repr=False)
class Tables:
    """The principals and hosts of a base, numbered separately, and a table of its pairs."""

    pairs: PairedTable
    """(principal, host) -> pair + 1."""
    principals: layout.ByteStrings
    hosts: layout.ByteStrings
    """Compact strings; a string's position is its number."""
    principal_of: layout.Int32s
    host_of: layout.Int32s
    """By pair."""

    def pair(self, principals: layout.Int32s | Int64s, hosts: layout.Int32s | Int64s) -> layout.Int32s:
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
    principals, principal_of = layout.numbered(keys, offsets[:-1], middle)
    hosts, host_of = layout.numbered(keys, middle, offsets[1:])
    pairs = np.arange(1, len(offsets), dtype=np.uint32)
    return Tables(
        pairs=PairedTable.of(principal_of.astype(np.int64), host_of.astype(np.int64), pairs),
        principals=principals,
        hosts=hosts,
        principal_of=principal_of,
        host_of=host_of,
    )


def numbers_of(texts: Sequence[str], strings: layout.ByteStrings) -> layout.Int32s:
    """Return the number of each text among compact strings; -1 for absent ones."""
    both = strings.joined(layout.ByteStrings.of([layout.compact(text) for text in texts]))
    distinct, codes = layout.numbered(both.data.data, both.starts, both.ends)
    number_of = np.full(len(distinct), -1, np.int32)
    number_of[codes[: len(strings)]] = np.arange(len(strings), dtype=np.int32)
    numbers: layout.Int32s = number_of[codes[len(strings) :]]
    return numbers


# The order in which Kafka's scan visits the ACLs that cover a name; it decides which of them is named.
#
# StandardAuthorizerData.findAclRule walks one sorted set of all ACLs (StandardAcl.compareTo: type ascending, name
# descending, then `scan_key`) in two sections. The first starts at the resource's name, the second at LITERAL `*`;
# each goes down to the empty name and, at a name that is no prefix of the resource's, jumps to what the two names
# share. A DENY ends the scan and is named; otherwise the last ALLOW that was visited is named. So a DENY is named by
# the order of first visits, an ALLOW by the order of last visits. Nearly always both are the same: longest name
# first, then LITERAL `*`, then the empty name. Both functions below describe their exceptions. Differential tests
# against the real class found these.


_ALL_PATTERNS = range(5)
_BELOW_LITERAL, _FROM_LITERAL = range(PatternType.LITERAL), range(PatternType.LITERAL, 5)
"""Codes of pattern types as Kafka reads them: ANY, MATCH and those that it does not know are below LITERAL."""


ScanKey: TypeAlias = tuple[int, int, bytes, bytes, int]


def scan_key(rule: StandardAclWithId) -> ScanKey:
    """Return the sort key of the ACLs on one name (StandardAcl.compareTo after type and name)."""
    acl = rule.acl
    return (
        layout.known_pattern(acl.pattern_type),
        layout.known_operation(acl.operation),
        layout.utf16(acl.principal),
        layout.utf16(acl.host),
        layout.known_permission(acl.permission_type),
    )


def first_visits(index: AclIndex, levels: Levels, resource_type: int, name: str) -> list[list[Resource]]:
    """Return the levels, some possibly empty, in the order of Kafka's first visits to them."""
    if levels.wildcard and levels.empty and _empty_precedes_wildcard(index, resource_type, name):
        return [*levels.named, levels.empty, levels.wildcard]
    return [*levels.named, levels.wildcard, levels.empty]


class Visit(NamedTuple):
    """ACLs that Kafka's scan visits one after another: those of these patterns, by `scan_key`."""

    level: list[Resource]
    patterns: range = _ALL_PATTERNS
    """Only the ACLs whose pattern type has one of these codes."""

    def has(self, rule: StandardAclWithId) -> bool:
        """Return whether an ACL of the level is among them."""
        return layout.known_pattern(rule.acl.pattern_type) in self.patterns


def last_visits(index: AclIndex, levels: Levels, resource_type: int, name: str) -> list[Visit]:
    """Return the levels, some possibly empty or in two parts, in the order of Kafka's last visits to them."""
    named, wildcard = list(map(Visit, levels.named)), Visit(levels.wildcard)
    if not levels.empty and layout.utf16(name) >= layout.utf16(WILDCARD):
        return [*named, wildcard]
    again, jumps = _second_section(index, resource_type, name)
    if again:
        named, twice = [], [wildcard, *named]
    elif name.startswith(WILDCARD) and named and named[-1].level[0].name == WILDCARD:
        star = named.pop().level
        named, twice = [*named, Visit(star, _BELOW_LITERAL)], [Visit(star, _FROM_LITERAL), wildcard]
    else:
        twice = [wildcard]
    if not jumps:
        return [*named, *twice, Visit(levels.empty)]
    # The section begins at the LITERAL `*`, and so it jumps to LITERAL on the empty name.
    return [*named, Visit(levels.empty, _BELOW_LITERAL), *twice, Visit(levels.empty, _FROM_LITERAL)]


def _second_section(index: AclIndex, resource_type: int, name: str) -> tuple[bool, bool]:
    """Return whether the second section visits the name and its prefixes again, and whether it jumps to the empty name.

    Going down from LITERAL `*` it comes past the names that sort below. At one that shares no character with the
    resource's it jumps. At one that does and is no prefix, Kafka 4.3.1 loops or throws ("Quirks" in docs/semantics.md);
    here the scan continues.
    """
    first = layout.first_unit(name) if name else -1
    # PREFIXED `*` sorts right after LITERAL `*`, and is a prefix of nothing that does not begin with `*`.
    if first != layout.first_unit(WILDCARD) and PatternType.PREFIXED in _wildcard_patterns(index, resource_type):
        return False, True
    counts = _counts_by_first_unit(index).items()
    below = {
        unit for (kind, unit), count in counts if kind == resource_type and unit < layout.first_unit(WILDCARD) and count
    }
    return max(below, default=None) == first, not below <= {first}


def _empty_precedes_wildcard(index: AclIndex, resource_type: int, name: str) -> bool:
    """Return whether Kafka's first section reaches the empty name before any section visits LITERAL `*`.

    The first section passes `*` on its way down only if the name sorts above `*` and nothing in between makes it jump:
    at a name that shares no character with the resource's, it jumps to the empty name and so over `*`.
    """
    if layout.utf16(name) < layout.utf16(WILDCARD):
        return True
    first = layout.first_unit(name)
    counts = _counts_by_first_unit(index)
    return any(
        kind == resource_type and layout.first_unit(WILDCARD) <= unit < first and count
        for (kind, unit), count in counts.items()
    ) or (
        # On the name `*` itself, pattern types below LITERAL sort before LITERAL `*` and cause the same jump.
        layout.first_unit(WILDCARD) < first
        and any(pattern < PatternType.LITERAL for pattern in _wildcard_patterns(index, resource_type))
    )


def _wildcard_patterns(index: AclIndex, resource_type: int) -> set[int]:
    """Return the pattern types other than LITERAL of the ACLs on the name `*`."""
    base, overlay = index.base, index.overlay
    touched = overlay.resource(resource_type, WILDCARD, literal=False)
    patterns = set()
    number = base.resource(resource_type, WILDCARD, literal=False)
    for row in base.rows(*base.cells(number)):
        if row not in overlay.removed:
            patterns.add(layout.known_pattern(base.codes(row, base.resources.key(number))[1]))
    for cell in touched.cells.values() if touched is not None else ():
        patterns.update(layout.known_pattern(record.pattern_type) for record in cell.added)
    return patterns


def _counts_by_first_unit(index: AclIndex) -> layout.UnitCounts:
    """Return the counts of the base with what the overlay changes in them."""
    base, changed = index.base.units, index.overlay.units
    return {**base, **{unit: base.get(unit, 0) + step for unit, step in changed.items()}} if changed else base


# Kafka's scan order as one number per ACL, for deciding in bulk.
#
# All ACLs that cover a name have that name or one of its prefixes. So "longest name first" orders all ACLs for any
# request: by length of the name, then by `scan_key`. LITERAL `*` and the empty name have their own levels.


NAMED, STAR, EMPTY, ODD = 0, 1, 2, 3
"""Levels: ACLs on a name or a non-empty prefix, on LITERAL `*`, on the empty name; and those on the empty name whose
pattern type only a record can carry, which Kafka may visit earlier than their rank."""

_FIRST_ABOVE_SURROGATES = 0xEE
"""UTF-8 lead byte of U+E000. Only texts with code points from there on sort differently in UTF-8 and UTF-16."""


def levels_of(base: Base) -> NDArray[np.uint8]:
    """Return the level of each row."""
    levels = np.full(len(base.resources), NAMED, np.uint8)
    levels[[number for number in base.wildcard_resources if number >= 0]] = STAR
    levels[_name_lengths(base) == 0] = EMPTY
    of_rows: NDArray[np.uint8] = levels[row_keys(base)[0]]
    for row, (_, pattern) in base.raw_codes.items():
        if of_rows[row] == EMPTY and layout.known_pattern(pattern) < PatternType.LITERAL:
            of_rows[row] = ODD
    return of_rows


def ranks_of(base: Base) -> layout.Int32s:
    """Return the rank of each row in scan order, among all rows."""
    resource_of, pair_of = row_keys(base)
    tables = tables_of(base)
    operations = np.frombuffer(base.operations, np.uint8)
    ordered = np.array([layout.known_permission(byte) for byte in range(256)], np.int8)
    order = np.lexsort(  # the last key is the most significant one
        (
            ordered[np.frombuffer(base.permissions, np.uint8)],
            _text_ranks(tables.hosts)[tables.host_of[pair_of]],
            _text_ranks(tables.principals)[tables.principal_of[pair_of]],
            np.where(operations < layout.OPERATIONS, operations, 0),
            _patterns(base, resource_of),
            -_name_lengths(base)[resource_of],
            np.minimum(levels_of(base), EMPTY),
        )
    )
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


def _patterns(base: Base, resource_of: layout.Int32s) -> Bytes:
    """Return the pattern type of each row as Kafka reads it from the record."""
    data, offsets = np.frombuffer(base.resources.data, np.uint8), np.asarray(base.resources.offsets)
    patterns: Bytes = data[offsets[1:] - 1][resource_of] if len(resource_of) else np.zeros(0, np.uint8)
    for row, (_, pattern) in base.raw_codes.items():
        patterns[row] = layout.known_pattern(pattern)
    return patterns


def _name_lengths(base: Base) -> Int64s:
    """Return the length of each resource's name in UTF-16 code units, as Java counts."""
    data, offsets = np.frombuffer(base.resources.data, np.uint8), np.asarray(base.resources.offsets).astype(np.int64)
    if not len(data):
        return np.zeros(0, np.int64)
    _, starts, _ = unsigned_varints(data, offsets[:-1] + 1)
    # One unit per UTF-8 lead byte, one more for the lead byte of a four-byte sequence (a surrogate pair in UTF-16).
    units = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.concatenate(([0], np.cumsum(units)))
    lengths: Int64s = before[offsets[1:] - 1] - before[starts]
    return lengths


def _text_ranks(texts: layout.ByteStrings) -> layout.Int32s:
    """Return the rank of each compact string in the order of String.compareTo."""
    data = texts.data
    _, starts, _ = unsigned_varints(data, texts.starts)
    if (data >= _FIRST_ABOVE_SURROGATES).any():
        bounds = zip(starts.tolist(), texts.ends.tolist(), strict=True)
        values = [layout.utf16(data[start:end].tobytes().decode()) for start, end in bounds]
        order = np.array(sorted(range(len(values)), key=values.__getitem__), np.int32)
    else:
        order = layout.sorted_rows(data, starts, texts.ends)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


# The base's resources ranked by name; built on first use and kept with the base.


@frozen(eq=False, kw_only=True, repr=False)
class NameRanks:
    """Ranks of names by code points, for all resource types together; 8 bytes per resource.

    They are kept with their base, and refer to its keys only: a cycle would keep both alive.
    """

    resources: layout.KeyTable
    order: layout.Int32s
    """Resources sorted by name."""
    of_resource: layout.Int32s
    """By resource: the rank of its name, which is the first position of that name in `order`."""

    def of(self, name: str, resource: int) -> int:
        """Return the rank of a name; `resource` is one with that name, or -1 if the base has none.

        An absent name has the rank of the next higher one.
        """
        if resource >= 0:
            return int(self.of_resource[resource])

        at = bisect_left(self.order, name, key=self._name)
        return int(self.of_resource[self.order[at]]) if at < len(self.order) else len(self.order)

    def under(self, prefix: str) -> tuple[int, int]:
        """Return the range of positions in `order` of the names that begin with a prefix."""
        return layout.prefix_range(self.order, prefix, self._name)

    def _name(self, resource: int) -> str:
        return layout.resource_name(self.resources.key(resource))


def name_ranks(base: Base) -> NameRanks:
    """Return the ranks of a base's names."""
    ranks = base.memo.ranks
    if not isinstance(ranks, NameRanks):
        ranks = base.memo.ranks = _name_ranks(base)
    return ranks


def _name_ranks(base: Base) -> NameRanks:
    offsets, data = np.asarray(base.resources.offsets).astype(np.int64), np.frombuffer(base.resources.data, np.uint8)
    _, starts, _ = unsigned_varints(data, offsets[:-1] + 1)
    ends = offsets[1:] - 1
    order = layout.sorted_rows(data, starts, ends)
    names = layout.ByteStrings.cut(data, starts[order], ends[order]).values()
    differs = np.fromiter(map(ne, names, chain([None], names)), np.bool_, len(names))
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.maximum.accumulate(np.where(differs, np.arange(len(order)), 0))
    return NameRanks(resources=base.resources, order=order, of_resource=ranks)
