"""The base of the index: all ACLs of one moment in immutable columns, its flat form, and how it is built from ACLs."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from uuid import UUID

from attrs import Factory, evolve

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.codes import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index import layout
from aclog.authorizer.index.layout import distinct, id_order
from aclog.metalog.codec import read_tagged_fields, write_tagged_fields
from aclog.metalog.columns import AclColumns, Bools, Bytes, Int64s, unsigned_varints
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.native import np
from aclog.metalog.primitives import Buffer, uuid_text
from aclog.metalog.records import TaggedFields
from aclog.metalog.values import define, frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The base of the index: all ACLs of one moment in immutable columns, and its flat form.


# The base: all ACLs of one moment in immutable columns, which lie in one flat buffer (aclog.authorizer.index.layout).
#
# The columns are a sparse matrix in CSR form. Its rows are resource patterns, its columns are (principal, host)
# pairs, and a cell holds the ACLs of one pair on one pattern, together with one mask of what they deny and allow.
# Nothing is kept per ACL but numbers; objects are made when an ACL is requested.


NameLookup: TypeAlias = tuple[int, int, int, bool]
"""What the base has on a resource name: the cells [low, high) of its LITERAL pattern, the node of its longest
prefix (-1 for none), and whether the name is hidden from LITERAL `*`: it begins with `*` and is longer (see "Quirks" in
docs/semantics.md)."""

_EVERYBODY = WILDCARD_PRINCIPAL, WILDCARD

LONGEST_REMEMBERED = 249
"""Longer names are not memoised, in characters (a topic name's limit): clients choose names and could fill the
memory."""

_ANY_HOST = layout.compact(WILDCARD)
_MAX_LOOKUPS = 1 << 16
_MAX_MASKS = 1 << 20
_MAX_SUBJECTS = 1 << 16
"""Sizes of the memo's generations: name look-ups of about 200 bytes each, chain masks of subjects of about 100 bytes
each, and subjects of about 1 kB each."""


@define(eq=False, repr=False)
class Subject:
    """A principal and host, resolved to the few pairs of the base that can match them."""

    keys: tuple[tuple[str, str], ...]
    """The (principal, host) texts of ACLs that match: the subject's own and the wildcards."""
    pairs: tuple[int, ...]
    """The numbers of those of `keys` that the base has."""
    wildcard_masks: dict[int, int] = Factory(dict)
    """By resource type: the mask of LITERAL `*`; filled when a type is first read (Base.wildcard_mask)."""
    prefix_masks: dict[int, int] = Factory(lambda: {-1: 0})
    """By node: the mask of a prefix and all its shorter prefixes; filled when a node is first read (Base.chain_mask).
    Node -1, "no prefix", ends every chain."""

    def renewed(self) -> Subject:
        """Return the subject without its chain masks."""
        return Subject(self.keys, self.pairs, self.wildcard_masks)


RangeSubject: TypeAlias = tuple[Subject, tuple[str, ...], tuple[str, ...]]
"""A subject with the ranges that contain its host, and the overlay's entries for its principal and `User:*` then."""


@define(eq=False, repr=False)
class Memo:
    """What the base remembers about names and subjects.

    What it answers follows from the base alone, never from an overlay. So an update cannot make it stale, and the image
    after an update starts with a warm memo.
    """

    lookups: dict[int, dict[str, NameLookup]] = Factory(lambda: {code: {} for code in range(8)})
    """By resource type and name: the young generation (aclog.authorizer.index.layout)."""
    older_lookups: dict[int, dict[str, NameLookup]] = Factory(lambda: {code: {} for code in range(8)})
    lookup_count: int = 0
    """Of the young generation."""
    subjects: layout.Generations[tuple[str, str], Subject] = Factory(lambda: layout.Generations(_MAX_SUBJECTS))
    everybody_at: dict[str, int] = Factory(dict)
    """By host: the pair of `User:*`, or -1. Clients of one host need it for each of their principals."""
    mask_count: int = 0
    """How many chain masks were added to subjects since the last time that subjects aged."""
    range_subjects: layout.Generations[tuple[str, str], RangeSubject] = Factory(
        lambda: layout.Generations(_MAX_SUBJECTS)
    )
    range_hosts: dict[str, layout.RangeHosts] = Factory(dict)
    """By principal; only those that have ranges."""
    range_masks: tuple[int, ...] | None = None
    """By resource type, of the ACLs whose host is a range (aclog.authorizer.index.subjects)."""
    ranges_read: bool = False
    """Whether the native core has read its own."""
    colonless_patterns: dict[int, tuple[frozenset[str], tuple[str, ...]]] = Factory(dict)
    colonless: dict[int, list[Any]] = Factory(dict)
    """By resource type, and by resource: see aclog.authorizer.index.subjects."""
    columns: object = None
    """Built lazily by aclog.authorizer.index.base."""
    ranks: object = None
    """Built lazily by aclog.authorizer.index.scan_order."""
    tables: object = None
    """Built lazily by aclog.authorizer.index.scan_order."""
    readings: object = None
    """What aclog.analysis.policy has read."""
    asked: list[Any] | None = None
    """The version of an overlay (its maps), and how many of its decisions have looked for prefixes."""
    touched_names: object = None
    """Of the overlay that was read last, from which those of others are made (aclog.authorizer.index.acl_index)."""

    def count_masks(self, count: int) -> None:
        """Count chain masks that were added to subjects; these age when there are too many."""
        self.mask_count += count
        # Chain masks live in subjects and go with them. A subject that is used again is renewed.
        if self.mask_count > _MAX_MASKS:
            self.mask_count = 0
            self.subjects.age()
            self.range_subjects.age()


@frozen(eq=False, kw_only=True, repr=False)
class Base:
    """The matrix: rows are ACLs sorted by (resource, pair); a cell is the rows of one resource and pair."""

    buffer: memoryview
    """The flat form, which the columns below are views of."""
    resources: layout.KeyTable
    pairs: layout.KeyTable
    cell_starts: memoryview
    """The first cell of each resource, and at the end the number of cells."""
    cell_pairs: memoryview
    """By cell: the pair; ascending within a resource, so that a pair is found by bisection."""
    cell_masks: memoryview
    """By cell: aclog.authorizer.index.layout, or-ed over the cell's rows."""
    cell_rows: memoryview | range
    """The first row of each cell, and at the end the number of rows; a range if every cell has one row."""
    operations: memoryview
    permissions: memoryview
    ids: layout.IdIndex
    has_ids: bool
    """False if the source has no ids; `ids` is all zeros then."""
    raw_codes: Mapping[int, tuple[int, int]]
    """Row -> (resource type, pattern type) as written in the record, for rows whose key had to be normalised."""
    tags: Mapping[int, TaggedFields]
    """Row -> unknown tagged fields."""
    prefixes: layout.Prefixes
    wildcard_resources: Sequence[int]
    """By resource type: the number of LITERAL `*`, or -1."""
    colonless_resources: frozenset[int]
    """Resources with an ACL whose principal has no colon; Kafka's authorizer throws when it reaches such an ACL."""
    unbindable: int
    """The number of ACLs that Kafka cannot list: they hold ANY or MATCH, which belong in filters only."""
    irregular: int
    """The number of ACLs whose pattern type or permission authorize() and byResourceType read differently."""
    units: layout.UnitCounts
    range_pairs: memoryview
    """The pairs whose host may have a slash, sorted by key: candidates for CIDR ranges."""
    core: layout.BaseCore | None = None
    """The same base in the native core, if there is one."""
    everybody: int = Factory(lambda self: self.pair(*_EVERYBODY), takes_self=True)
    """The pair of every principal and host, or -1."""
    memo: Memo = Factory(Memo)

    def __len__(self) -> int:
        return len(self.operations)

    def read_ranges(self) -> None:
        """Have the native core, if there is one, read the hosts that are ranges; it takes ms if there are many."""
        if self.core is not None and not self.memo.ranges_read:
            self.core.read_ranges()
            self.memo.ranges_read = True

    def lookup(self, resource_type: int, name: str) -> NameLookup:
        """Return what the base has on a name, memoised. `resource_type` is 0..7."""
        memo = self.memo
        lookup = memo.lookups[resource_type].get(name)
        if lookup is not None:
            return lookup
        # Threads may race here: they compute the same value, and a dict assignment is atomic.
        lookup = memo.older_lookups[resource_type].get(name)
        if lookup is None:
            data = name.encode("utf-8", "surrogatepass")
            low, high = self.cells(self._resource(resource_type, data, literal=True))
            node = self.prefixes.longest(resource_type, data)
            lookup = (low, high, node, name[:1] == "*" and len(name) > 1)
            if len(name) > LONGEST_REMEMBERED:
                return lookup
        if memo.lookup_count >= _MAX_LOOKUPS:
            # New dicts instead of clear(): another thread may be reading the old ones.
            memo.older_lookups, memo.lookups = memo.lookups, {code: {} for code in range(8)}
            memo.lookup_count = 0
        memo.lookup_count += 1
        memo.lookups[resource_type][name] = lookup
        return lookup

    def pairs_of(self, principal: str, order: Sequence[int]) -> list[int]:
        """Return those of the pairs `order`, which are sorted by key, that have this principal."""
        # A compact string begins with its length, so a pair key that starts with it has exactly this principal.
        prefix, key = layout.compact(principal), self.pairs.key
        at = bisect_left(order, prefix, key=key)
        pairs = []
        while at < len(order) and key(order[at]).startswith(prefix):
            pairs.append(int(order[at]))
            at += 1
        return pairs

    def cells(self, resource: int) -> tuple[int, int]:
        """Return the cells [low, high) of a resource; an empty range for -1."""
        return (self.cell_starts[resource], self.cell_starts[resource + 1]) if resource >= 0 else (0, 0)

    def subject(self, keys: Sequence[tuple[str, str]]) -> Subject:
        """Resolve a subject from the (principal, host) texts that match it."""
        # A client that was never seen costs up to three look-ups, and keys of two texts: each text is encoded once.
        last, encoded, pairs = None, b"", []
        find, pair_hash = self.pairs.find, layout.pair_hash
        for principal, host in keys:
            if principal == WILDCARD_PRINCIPAL:
                number = self.everybody if host == WILDCARD else self._everybody_at(host)
            else:
                if principal is not last:
                    last, encoded = principal, layout.compact(principal)
                data = encoded + (_ANY_HOST if host == WILDCARD else layout.compact(host))
                number = find(data, pair_hash(data))
            if number >= 0:
                pairs.append(number)
        return Subject(tuple(keys), tuple(pairs))

    def _everybody_at(self, host: str) -> int:
        memo = self.memo
        number = memo.everybody_at.get(host)
        if number is None:
            if len(memo.everybody_at) >= _MAX_SUBJECTS:
                memo.everybody_at = {}  # not clear(): another thread may be reading the old one
            number = memo.everybody_at[host] = self.pair(WILDCARD_PRINCIPAL, host)
        return number

    def wildcard_mask(self, subject: Subject, resource_type: int) -> int:
        """Return the mask of LITERAL `*`. Memoised per type, 0..7."""
        mask = subject.wildcard_masks.get(resource_type)
        if mask is None:
            mask = self.cells_mask(*self.cells(self.wildcard_resources[resource_type]), subject.pairs)
            subject.wildcard_masks[resource_type] = mask
        return mask

    def cells_mask(self, low: int, high: int, pairs: Sequence[int]) -> int:
        """Return the mask of these pairs in the cells [low, high) of one resource."""
        mask = 0
        cell_pairs = self.cell_pairs
        for pair in pairs:
            # Bisection in a column instead of a dict per resource: nothing to build at load, and LITERAL `*` may have
            # tens of thousands of pairs.
            cell = bisect_left(cell_pairs, pair, low, high)
            if cell < high and cell_pairs[cell] == pair:
                mask |= self.cell_masks[cell]
        return mask

    def chain_mask(self, subject: Subject, node: int) -> int:
        """Return the mask of a prefix and all its shorter prefixes. Memoised per node."""
        masks = subject.prefix_masks
        if not subject.pairs:
            return 0
        prefixes, path = self.prefixes, []
        # Up to the nearest prefix whose mask is known (or -1), then back down. The masks on the way are kept, so that a
        # ladder of a thousand nested prefixes is walked once per subject.
        while (chain := masks.get(node)) is None:
            path.append(node)
            node = prefixes.parents[node]
        mask = chain
        # Inlined `cells_mask`: there may be hundreds of prefixes, most of which have one cell, of another client.
        pairs, resources, starts = subject.pairs, prefixes.resources, self.cell_starts
        cell_pairs, cell_masks = self.cell_pairs, self.cell_masks
        for step in reversed(path):
            resource = resources[step]
            low, high = starts[resource], starts[resource + 1]
            if high - low == 1:
                if cell_pairs[low] in pairs:
                    mask |= cell_masks[low]
            else:
                mask |= self.cells_mask(low, high, pairs)
            masks[step] = mask
        self.memo.count_masks(len(path))
        return mask

    def resource(self, resource_type: int, name: str, *, literal: bool) -> int:
        """Return the number of a resource pattern, or -1."""
        if self.core is not None and (number := self.core.resource(resource_type, name, literal)) != layout.NOT_TAKEN:
            return number
        return self._resource(resource_type, name.encode("utf-8", "surrogatepass"), literal=literal)

    def _resource(self, resource_type: int, name: bytes, *, literal: bool) -> int:
        hashed = layout.resource_hash(resource_type, name, literal=literal)
        return self.resources.find(layout.encoded_key(resource_type, name, literal=literal), hashed)

    def pair(self, principal: str, host: str) -> int:
        """Return the number of a principal and host, or -1."""
        key = layout.pair_key(principal, host)
        return self.pairs.find(key, layout.pair_hash(key))

    def rows(self, low: int, high: int) -> range:
        """Return the rows of the cells [low, high)."""
        return range(self.cell_rows[low], self.cell_rows[high])

    def cell(self, resource: int, pair: int) -> tuple[int, int]:
        """Return the cell of a resource and a pair as a range [low, high) of one cell or none."""
        if resource < 0 or pair < 0:
            return 0, 0
        low, high = self.cells(resource)
        cell = bisect_left(self.cell_pairs, pair, low, high)
        return (cell, cell + 1) if cell < high and self.cell_pairs[cell] == pair else (0, 0)

    def cell_of(self, row: int) -> int:
        """Return the cell that holds a row."""
        return row if isinstance(self.cell_rows, range) else bisect_right(self.cell_rows, row) - 1

    def resource_of(self, cell: int) -> int:
        """Return the resource of a cell."""
        return bisect_right(self.cell_starts, cell) - 1

    def codes(self, row: int, key: bytes) -> tuple[int, int, int, int]:
        """Return resource type, pattern type, operation and permission of a row, as written in the record."""
        kinds = self.raw_codes.get(row) or (key[0], key[-1])
        operation, permission = self.operations[row], self.permissions[row]
        # The record's fields are int8, the columns unsigned bytes: from 0x80 on, the code is negative.
        return (*kinds, operation - (operation >> 7 << 8), permission - (permission >> 7 << 8))

    def rules(self, rows: Sequence[int], key: bytes, name: str, cell: int) -> Iterator[StandardAclWithId]:
        """Yield the ACLs of these rows, all of one cell of the resource with this key and name."""
        principal, host = layout.split_pair(self.pairs.key(self.cell_pairs[cell]))
        for row in rows:
            kind, pattern, operation, permission = self.codes(row, key)
            acl = StandardAcl(
                resource_type=kind,
                resource_name=name,
                pattern_type=pattern,
                principal=principal,
                host=host,
                operation=operation,
                permission_type=permission,
            )
            yield StandardAclWithId(id=self.id_of(row), acl=acl)

    def id_of(self, row: int) -> UUID | None:
        """Return the uuid of a row; None if the source has no ids."""
        return UUID(int=self.ids.number(row)) if self.has_ids else None

    def rule(self, row: int) -> StandardAclWithId:
        """Return the ACL of a row."""
        cell = self.cell_of(row)
        key = self.resources.key(self.resource_of(cell))
        return next(self.rules((row,), key, layout.resource_name(key), cell))


# Columns by row that only filters and byResourceType need; built on first use and kept with the base.


@frozen(eq=False, kw_only=True, repr=False)
class RowColumns:
    """The fields of each row, and the rows of each pair."""

    resource_of: layout.Int32s
    pair_of: layout.Int32s
    operations: Bytes
    permissions: Bytes
    types: Bytes
    """By row: the resource type, 0..7."""
    masks: layout.Masks
    """By row: the mask of its cell."""
    by_pair: layout.Int32s
    """Rows sorted by pair, resource type, operation and permission."""
    keys: NDArray[np.uint64]
    """By position in `by_pair`: these four as one number, for bisection."""
    pair_starts: Int64s
    pair_order: layout.Int32s
    """Pairs sorted by key, so that the pairs of one principal are adjacent."""

    def of_pair(self, pair: int) -> layout.Int32s:
        """Return the rows of a pair; none for -1."""
        return self.by_pair[self.pair_starts[pair] : self.pair_starts[pair + 1]] if pair >= 0 else self.by_pair[:0]

    def of(self, pair: int, resource_type: int, operation: int, permission: int) -> layout.Int32s:
        """Return the rows of a pair with this resource type, operation and permission."""
        # The same layout as `keys`: pair, then one byte each for type, operation and permission.
        key = pair << 24 | resource_type << 16 | operation << 8 | permission
        low, high = np.searchsorted(self.keys, np.array([key, key + 1], np.uint64)).tolist()
        return self.by_pair[low:high]


def row_columns(base: Base) -> RowColumns:
    """Return the columns of a base."""
    columns = base.memo.columns
    if not isinstance(columns, RowColumns):
        columns = base.memo.columns = _make(base)
    return columns


def row_keys(base: Base) -> tuple[layout.Int32s, layout.Int32s]:
    """Return the resource and the pair of each row."""
    cell_resources = np.repeat(np.arange(len(base.resources), dtype=np.int32), np.diff(np.asarray(base.cell_starts)))
    return cell_resources[_cell_of(base)], np.asarray(base.cell_pairs)[_cell_of(base)]


def _cell_of(base: Base) -> Int64s | slice:
    """Return the cell of each row."""
    if isinstance(base.cell_rows, range):
        return slice(None)
    return np.repeat(np.arange(len(base.cell_pairs)), np.diff(np.asarray(base.cell_rows)))


def _make(base: Base) -> RowColumns:
    resource_of, pair_of = row_keys(base)
    starts = np.zeros(len(base.pairs) + 1, np.int64)
    np.cumsum(np.bincount(pair_of, minlength=len(base.pairs)), out=starts[1:])
    key_data = np.frombuffer(base.resources.data, np.uint8)
    types = key_data[np.asarray(base.resources.offsets)[:-1]][resource_of]
    operations, permissions = np.frombuffer(base.operations, np.uint8), np.frombuffer(base.permissions, np.uint8)
    keys = pair_of.astype(np.uint64)
    for column in (types, operations, permissions):
        keys = keys << np.uint64(8) | column
    by_pair = np.argsort(keys)
    pair_offsets = np.asarray(base.pairs.offsets).astype(np.int64)
    return RowColumns(
        resource_of=resource_of,
        pair_of=pair_of,
        operations=operations,
        permissions=permissions,
        masks=np.asarray(base.cell_masks)[_cell_of(base)],
        types=types,
        by_pair=by_pair.astype(np.int32),
        keys=keys[by_pair],
        pair_starts=starts,
        pair_order=layout.sorted_rows(np.frombuffer(base.pairs.data, np.uint8), pair_offsets[:-1], pair_offsets[1:]),
    )


def pairs_of(base: Base, principal: str) -> list[int]:
    """Return the pairs of a principal with any host."""
    return base.pairs_of(principal, row_columns(base).pair_order.data)


# The columns of a base about its resources: prefixes and their links, LITERAL `*`, first units; and odd pairs.


_COLON, _SLASH = ord(":"), ord("/")

FILTER_BITS = 16
"""Bits of the filter per prefix: with two of them set for each, one absent name in 70 gets through."""
SECOND_BIT = 0xC2B2AE35
"""The hash is multiplied by it for the second bit."""


def resource_columns(
    keys: layout.ByteStrings, hashes: layout.UInt32s, acls: Int64s, pause: layout.Pause = layout.no_pause
) -> dict[str, Any]:
    """Return these columns of BaseColumns, given the resource keys, their hashes and their numbers of ACLs."""
    _, name_starts, _ = unsigned_varints(keys.data, keys.starts + 1)
    name_ends, kinds = keys.ends - 1, keys.data[keys.starts]
    prefixed = keys.data[name_ends] == PatternType.PREFIXED
    # mode="clip": the empty name at the very end of the data has no first byte.
    stars = ~prefixed & (name_ends - name_starts == 1) & (keys.data.take(name_starts, mode="clip") == ord(WILDCARD))
    wildcards = np.full(layout.TYPES, -1, np.int32)
    wildcards[kinds[stars]] = np.flatnonzero(stars)
    nodes, parents, jumps, type_nodes = _forest(keys, np.flatnonzero(prefixed), name_starts, pause)
    return {
        "prefix_resources": nodes,
        "prefix_parents": parents,
        "prefix_jumps": jumps,
        "type_nodes": type_nodes,
        "prefix_lengths": _lengths((name_ends - name_starts)[nodes], type_nodes),
        "prefix_filter": _filter(hashes[nodes]),
        "wildcards": wildcards,
        "units": layout.count_units(kinds, keys.data, name_starts, name_ends, acls),
    }


def _forest(
    keys: layout.ByteStrings, prefixed: Int64s, name_starts: Int64s, pause: layout.Pause
) -> tuple[layout.Int32s, layout.Int32s, layout.Int32s, layout.Int32s]:
    """Return the prefixed resources by type and name, their parents and jump links, and where each type begins."""
    nodes: list[Int64s] = []
    parents: list[layout.Int32s] = []
    jumps: list[layout.Int32s] = []
    type_nodes, kinds = [0], keys.data[keys.starts[prefixed]]
    for kind in range(layout.TYPES):
        members = prefixed[kinds == kind]
        rows = layout.sorted_rows(keys.data, name_starts[members], keys.ends[members] - 1)
        pause()
        members, first = members[rows], type_nodes[-1]
        names = layout.ByteStrings.cut(keys.data, name_starts[members], keys.ends[members] - 1, pause)
        for column, into in zip(layout.links(names, pause), (parents, jumps), strict=True):
            into.append(np.where(column < 0, column, column + np.int32(first)))
        nodes.append(members)
        type_nodes.append(first + len(members))
    columns = (np.concatenate(each).astype(np.int32) for each in (nodes, parents, jumps))
    return *columns, np.array(type_nodes, np.int32)  # type: ignore[return-value]  # three of them


def _lengths(sizes: Int64s, type_nodes: layout.Int32s) -> layout.Int32s:
    """Return where the lengths of each type begin, and then the distinct lengths in bytes of each type's prefixes."""
    of_types = [distinct(sizes[type_nodes[kind] : type_nodes[kind + 1]]) for kind in range(layout.TYPES)]
    starts = np.cumsum([0, *map(len, of_types)])
    return np.concatenate((starts, *of_types)).astype(np.int32)


def _filter(hashes: layout.UInt32s) -> NDArray[np.uint64]:
    """Return a Bloom filter of these hashes: two bits for each."""
    words = layout.bucket_count(-(-len(hashes) * FILTER_BITS // 64))
    shift = np.uint32(32 - (64 * words).bit_length() + 1)
    bitmap = np.zeros(words, np.uint64)
    for bits in (hashes >> shift, (hashes * np.uint32(SECOND_BIT)) >> shift):
        np.bitwise_or.at(bitmap, bits >> np.uint32(6), np.uint64(1) << (bits & np.uint32(63)).astype(np.uint64))
    return bitmap


def with_colon(pairs: layout.ByteStrings) -> Bools:
    """Return whether the principal of each pair key has a colon."""
    length, starts, _ = unsigned_varints(pairs.data, pairs.starts)
    colons = np.append(np.flatnonzero(pairs.data == _COLON), len(pairs.data) + 1)
    return np.asarray(colons[np.searchsorted(colons, starts)] < starts + length - 1, np.bool_)


def with_slash(pairs: layout.ByteStrings) -> layout.Int32s:
    """Return the pairs whose host may have a slash (or 46 bytes, the same byte as a slash), sorted by key."""
    length, starts, _ = unsigned_varints(pairs.data, pairs.starts)
    slashes = np.append(-1, np.flatnonzero(pairs.data == _SLASH))
    rows = np.flatnonzero(slashes[np.searchsorted(slashes, pairs.ends) - 1] >= starts + length - 1)
    in_order: layout.Int32s = rows[layout.sorted_rows(pairs.data, pairs.starts[rows], pairs.ends[rows])].astype(
        np.int32
    )
    return in_order


# A base as one flat buffer: packed from columns once, and opened wherever it is mapped.


_HAS_IDS, _ONE_ROW_EACH = 1, 2
_COUNTS = 8
_TAG_HEAD = struct.Struct("<iI")
"""Row, and the size of its tagged fields, which follow as in the record."""


@frozen(eq=False, kw_only=True, repr=False)
class BaseColumns:
    """What `pack_base` puts into one buffer: the columns of a Base, and of its tables."""

    resources: layout.ByteStrings
    resource_buckets: layout.Int32s
    pairs: layout.ByteStrings
    pair_buckets: layout.Int32s
    cell_starts: layout.Int32s
    cell_pairs: layout.Int32s
    cell_masks: layout.UInt32s
    cell_rows: layout.Int32s | None
    """None if every cell has one row."""
    operations: Bytes
    permissions: Bytes
    ids: Bytes
    id_order: layout.Int32s
    id_starts: layout.Int32s
    has_ids: bool
    prefix_resources: layout.Int32s
    prefix_parents: layout.Int32s
    prefix_jumps: layout.Int32s
    type_nodes: layout.Int32s
    prefix_lengths: layout.Int32s
    prefix_filter: np.ndarray[Any, np.dtype[np.uint64]]
    wildcards: layout.Int32s
    units: layout.UnitCounts
    colonless: layout.Int32s
    range_pairs: layout.Int32s
    raw_codes: Mapping[int, tuple[int, int]]
    tags: Mapping[int, TaggedFields]
    unbindable: int
    irregular: int


def pack_base(columns: BaseColumns, allocate: layout.Allocate = bytearray) -> Base:
    """Return the base in one flat buffer, which `allocate` returns."""
    c = columns
    flags = _HAS_IDS * c.has_ids | _ONE_ROW_EACH * (c.cell_rows is None)
    counts = (
        len(c.operations),
        len(c.resources),
        len(c.pairs),
        len(c.cell_pairs),
        len(c.prefix_resources),
        flags,
        c.unbindable,
        c.irregular,
    )
    packed = {
        layout.Column.COUNTS: np.array(counts, np.int64),
        layout.Column.RESOURCE_DATA: c.resources.data,
        layout.Column.RESOURCE_OFFSETS: _offsets(c.resources),
        layout.Column.RESOURCE_BUCKETS: c.resource_buckets,
        layout.Column.PAIR_DATA: c.pairs.data,
        layout.Column.PAIR_OFFSETS: _offsets(c.pairs),
        layout.Column.PAIR_BUCKETS: c.pair_buckets,
        layout.Column.CELL_STARTS: c.cell_starts,
        layout.Column.CELL_PAIRS: c.cell_pairs,
        layout.Column.CELL_MASKS: c.cell_masks,
        layout.Column.CELL_ROWS: np.zeros(0, np.int32) if c.cell_rows is None else c.cell_rows,
        layout.Column.OPERATIONS: c.operations,
        layout.Column.PERMISSIONS: c.permissions,
        layout.Column.IDS: np.ascontiguousarray(c.ids).reshape(-1),
        layout.Column.ID_ORDER: c.id_order,
        layout.Column.ID_STARTS: c.id_starts,
        layout.Column.PREFIX_RESOURCES: c.prefix_resources,
        layout.Column.PREFIX_PARENTS: c.prefix_parents,
        layout.Column.PREFIX_JUMPS: c.prefix_jumps,
        layout.Column.TYPE_NODES: c.type_nodes,
        layout.Column.PREFIX_LENGTHS: c.prefix_lengths,
        layout.Column.PREFIX_FILTER: c.prefix_filter,
        layout.Column.WILDCARDS: c.wildcards,
        layout.Column.UNITS: _triples((kind, unit, count) for (kind, unit), count in sorted(c.units.items())),
        layout.Column.COLONLESS: c.colonless,
        layout.Column.RANGE_PAIRS: c.range_pairs,
        layout.Column.RAW_CODES: _triples((row, *codes) for row, codes in sorted(c.raw_codes.items())),
        layout.Column.TAGS: b"".join(_tagged(row, c.tags[row]) for row in sorted(c.tags)),
    }
    return base_of(layout.pack(packed, allocate))


def empty_base() -> Base:
    """Return what `build` makes of no ACLs, without numpy: every state and every authorizer begins with it."""
    columns: dict[layout.Column, bytes | array[int]] = dict.fromkeys(layout.Column, b"")
    for column in (layout.Column.RESOURCE_OFFSETS, layout.Column.PAIR_OFFSETS, layout.Column.CELL_STARTS):
        columns[column] = bytes(4)
    for column in (layout.Column.RESOURCE_BUCKETS, layout.Column.PAIR_BUCKETS, layout.Column.ID_STARTS):
        columns[column] = bytes(8)
    columns |= {
        layout.Column.COUNTS: array("q", (0, 0, 0, 0, 0, _HAS_IDS | _ONE_ROW_EACH, 0, 0)),
        layout.Column.TYPE_NODES: bytes(4 * (layout.TYPES + 1)),
        layout.Column.PREFIX_LENGTHS: bytes(4 * (layout.TYPES + 1)),
        layout.Column.PREFIX_FILTER: bytes(8),
        layout.Column.WILDCARDS: array("i", (-1,) * layout.TYPES),
    }
    return base_of(layout.pack(columns))


def base_of(flat: memoryview) -> Base:
    """Return the base in a flat buffer; nothing of it is copied, and the buffer must not change afterwards.

    Raises:
        DecodeError: it is not a flat base of this version, or its columns do not fit together.

    """
    view = layout.unpack(memoryview(flat).cast("B"))
    if len(view[layout.Column.COUNTS]) != _COUNTS:
        raise DecodeError("column COUNTS of the flat base has the wrong size")
    rows, resources, pairs, cells, nodes, flags, unbindable, irregular = view[layout.Column.COUNTS]
    one_row_each = bool(flags & _ONE_ROW_EACH)
    _check_sizes(view, (rows, resources, pairs, cells, nodes), one_row_each=one_row_each)
    keys = _table(view, layout.Column.RESOURCE_DATA)
    return Base(
        buffer=flat,
        resources=keys,
        pairs=_table(view, layout.Column.PAIR_DATA),
        cell_starts=view[layout.Column.CELL_STARTS],
        cell_pairs=view[layout.Column.CELL_PAIRS],
        cell_masks=view[layout.Column.CELL_MASKS],
        cell_rows=range(cells + 1) if one_row_each else view[layout.Column.CELL_ROWS],
        operations=view[layout.Column.OPERATIONS],
        permissions=view[layout.Column.PERMISSIONS],
        ids=layout.IdIndex.of(view[layout.Column.IDS], view[layout.Column.ID_ORDER], view[layout.Column.ID_STARTS]),
        has_ids=bool(flags & _HAS_IDS),
        raw_codes={row: (kind, pattern) for row, kind, pattern in _rows_of(view[layout.Column.RAW_CODES], rows)},
        tags=_tags(view[layout.Column.TAGS]),
        prefixes=layout.Prefixes(
            keys,
            view[layout.Column.PREFIX_RESOURCES],
            view[layout.Column.PREFIX_PARENTS],
            view[layout.Column.PREFIX_JUMPS],
            view[layout.Column.TYPE_NODES],
        ),
        wildcard_resources=tuple(view[layout.Column.WILDCARDS]),
        colonless_resources=frozenset(view[layout.Column.COLONLESS]),
        unbindable=unbindable,
        irregular=irregular,
        units={(kind, unit): count for kind, unit, count in _rows_of(view[layout.Column.UNITS], None)},
        range_pairs=view[layout.Column.RANGE_PAIRS],
        core=layout.core_of(flat),
    )


def _check_sizes(view: Mapping[layout.Column, memoryview], counts: tuple[int, ...], *, one_row_each: bool) -> None:
    """Check that every column has as many items as the others require, and that the last offsets point to the ends."""
    rows, resources, pairs, cells, nodes = counts
    expected = {
        layout.Column.RESOURCE_OFFSETS: resources + 1,
        layout.Column.PAIR_OFFSETS: pairs + 1,
        layout.Column.CELL_STARTS: resources + 1,
        layout.Column.CELL_PAIRS: cells,
        layout.Column.CELL_MASKS: cells,
        layout.Column.CELL_ROWS: 0 if one_row_each else cells + 1,
        layout.Column.OPERATIONS: rows,
        layout.Column.PERMISSIONS: rows,
        layout.Column.IDS: 16 * rows,
        layout.Column.ID_ORDER: rows,
        layout.Column.PREFIX_RESOURCES: nodes,
        layout.Column.PREFIX_PARENTS: nodes,
        layout.Column.PREFIX_JUMPS: nodes,
        layout.Column.TYPE_NODES: layout.TYPES + 1,
        layout.Column.WILDCARDS: layout.TYPES,
    }
    wrong = [column for column, size in expected.items() if len(view[column]) != size]
    powers = (layout.Column.RESOURCE_BUCKETS, layout.Column.PAIR_BUCKETS, layout.Column.ID_STARTS)
    wrong += [column for column in powers if (len(view[column]) - 1).bit_count() != 1]
    words = len(view[layout.Column.PREFIX_FILTER])
    if words.bit_count() != 1:
        wrong.append(layout.Column.PREFIX_FILTER)
    if not wrong:
        ends = {
            layout.Column.RESOURCE_OFFSETS: len(view[layout.Column.RESOURCE_DATA]),
            layout.Column.PAIR_OFFSETS: len(view[layout.Column.PAIR_DATA]),
            layout.Column.RESOURCE_BUCKETS: resources,
            layout.Column.PAIR_BUCKETS: pairs,
            layout.Column.CELL_STARTS: cells,
            layout.Column.ID_STARTS: rows,
            layout.Column.TYPE_NODES: nodes,
        }
        wrong = [column for column, end in ends.items() if view[column][-1] != end]
    if wrong or (one_row_each and cells != rows):
        names = ", ".join(column.name for column in wrong) or "CELL_ROWS"
        raise DecodeError(f"columns of the flat base do not fit together: {names}")


def _table(view: Mapping[layout.Column, memoryview], data: layout.Column) -> layout.KeyTable:
    """Return the table whose data is this column; its offsets and buckets are the next two."""
    return layout.KeyTable.of(view[data], view[layout.Column(data + 1)], view[layout.Column(data + 2)])


def _offsets(strings: layout.ByteStrings) -> np.ndarray[Any, Any]:
    wide = len(strings.data) >= layout.WIDE_BYTES
    return strings.offsets if wide else strings.offsets.astype(np.uint32)


def _triples(rows: Any) -> layout.Int32s:
    return np.array([item for row in rows for item in row], np.int32)


def _rows_of(column: memoryview, rows: int | None) -> zip[tuple[int, int, int]]:
    items = column.tolist()
    if len(items) % 3 or (rows is not None and any(not 0 <= row < rows for row in items[::3])):
        raise DecodeError("a sparse column of the flat base is out of bounds")
    return zip(items[::3], items[1::3], items[2::3], strict=True)


def _tagged(row: int, fields: TaggedFields) -> bytes:
    data = write_tagged_fields(fields)
    return _TAG_HEAD.pack(row, len(data)) + data


def _tags(column: memoryview) -> dict[int, TaggedFields]:
    tags: dict[int, TaggedFields] = {}
    at, data = 0, column.tobytes()
    while at < len(data):
        if len(data) - at < _TAG_HEAD.size:
            raise DecodeError("column TAGS of the flat base is cut off")
        row, size = _TAG_HEAD.unpack_from(data, at)
        tags[row], end = read_tagged_fields(data, at + _TAG_HEAD.size)
        at += _TAG_HEAD.size + size
        if end != at:
            raise DecodeError("column TAGS of the flat base is damaged")
    return tags


# Building a base from ACLs in columns.


T = TypeVar("T")


@frozen(eq=False, kw_only=True, repr=False)
class Rows:
    """ACLs in log order with dictionary-encoded keys: the input of `build`."""

    resources: layout.ByteStrings
    """Distinct resource keys (aclog.authorizer.index.layout); `resource_of` and `pair_of` are indices into the keys."""
    resource_of: layout.Int32s
    pairs: layout.ByteStrings
    pair_of: layout.Int32s
    ids: NDArray[np.uint8]
    has_ids: bool = True
    operations: NDArray[np.uint8]
    permissions: NDArray[np.uint8]
    raw_codes: Mapping[int, tuple[int, int]]
    tags: Mapping[int, TaggedFields]


def rows_of_acls(acls: Iterable[StandardAclWithId]) -> Rows:
    """Return the rows of ACLs given as objects."""
    rules = list(acls)
    code, text = [bytes((number,)) for number in range(256)], layout.compact
    often = cache(layout.compact)  # most principals and hosts have several ACLs
    resources = [
        b"".join((code[a.resource_type & 0xFF], text(a.resource_name), code[a.pattern_type & 0xFF]))
        for a in (r.acl for r in rules)
    ]
    pairs = [often(a.principal) + often(a.host) for a in (r.acl for r in rules)]
    ids = b"".join(r.id.bytes if r.id is not None else bytes(16) for r in rules)
    return _encoded(
        _whole(layout.ByteStrings.of(resources)),
        _whole(layout.ByteStrings.of(pairs)),
        ids=np.frombuffer(ids, np.uint8).reshape(-1, 16),
        has_ids=all(r.id is not None for r in rules),
        operations=np.array([r.acl.operation & 0xFF for r in rules], np.uint8),
        permissions=np.array([r.acl.permission_type & 0xFF for r in rules], np.uint8),
    )


def rows_of_columns(columns: AclColumns, *, has_ids: bool = True) -> Rows:
    """Return the rows of records in a buffer; the buffer is not kept."""
    buffer = columns.buffer
    return _encoded(
        (buffer, columns.resource_start, columns.resource_end),
        (buffer, columns.pair_start, columns.pair_end),
        ids=columns.ids,
        has_ids=has_ids,
        operations=columns.operation.view(np.uint8),
        permissions=columns.permission_type.view(np.uint8),
    )


def _whole(strings: layout.ByteStrings) -> tuple[Buffer, Int64s, Int64s]:
    return strings.data.tobytes(), strings.starts, strings.ends


def _encoded(
    resource_keys: tuple[Buffer, Int64s, Int64s],
    pair_keys: tuple[Buffer, Int64s, Int64s],
    *,
    ids: NDArray[np.uint8],
    has_ids: bool,
    operations: NDArray[np.uint8],
    permissions: NDArray[np.uint8],
) -> Rows:
    resources, resource_of, raw_codes = _canonical(*layout.numbered(*resource_keys))
    pairs, pair_of = layout.numbered(*pair_keys)
    return Rows(
        resources=resources,
        resource_of=resource_of,
        pairs=pairs,
        pair_of=pair_of,
        ids=ids,
        has_ids=has_ids,
        operations=operations,
        permissions=permissions,
        raw_codes=raw_codes,
        tags={},
    )


def _canonical(
    keys: layout.ByteStrings, numbers: layout.Int32s
) -> tuple[layout.ByteStrings, layout.Int32s, dict[int, tuple[int, int]]]:
    """Return the keys as authorize() reads them, and the original codes of each row whose key had to change.

    Kafka reads a resource type that it does not know as UNKNOWN, and every pattern type but LITERAL acts as PREFIXED.
    """
    kinds, patterns = keys.data[keys.starts], keys.data[keys.ends - 1]
    plain = (kinds < layout.TYPES) & ((patterns == PatternType.LITERAL) | (patterns == PatternType.PREFIXED))
    if plain.all():
        return keys, numbers, {}
    # Slow, by design: only handwritten records have such codes. Different keys may become equal here, so the changed
    # keys are numbered once more.
    raw_codes = {}
    texts = keys.values()
    for number in np.flatnonzero(~plain).tolist():
        key = texts[number]
        kind, pattern = layout.signed(key[0]), layout.signed(key[-1])
        literal = PatternType.LITERAL if pattern == PatternType.LITERAL else PatternType.PREFIXED
        texts[number] = bytes((layout.known_type(kind),)) + key[1:-1] + bytes((literal,))
        for row in np.flatnonzero(numbers == number).tolist():
            raw_codes[row] = kind, pattern
    distinct, again = layout.numbered(*_whole(layout.ByteStrings.of(texts)))
    return distinct, again[numbers], raw_codes


def build(rows: Rows, pause: layout.Pause = layout.no_pause, allocate: layout.Allocate = bytearray) -> Base:
    """Return a base of these ACLs, in a buffer that `allocate` returns.

    Raises:
        ReplayError: an id occurs twice, or the same ACL under two ids; `position` is the later one's row.

    """
    rows, resource_hashed, resource_buckets, pair_buckets = _in_bucket_order(rows, pause)
    order, resource_of, pair_of, codes = _sorted(rows)
    pause()
    # From here on columns are sorted by (resource, pair): a cell is one slice of rows.
    ids = rows.ids.take(order, axis=0)
    id_rows, id_starts, repeated = id_order(ids)
    _check_unique(rows, order, resource_of=resource_of, pair_of=pair_of, codes=codes, repeated=repeated)
    first = layout.changes(resource_of, pair_of)
    cell_resources, cell_pairs = resource_of[first], pair_of[first]
    masks = np.bitwise_or.reduceat(layout.mask_table().ravel()[codes], first) if len(first) else np.zeros(0, np.uint32)
    pause()
    unbindable, irregular = _counts(rows)
    colonless = np.flatnonzero(~with_colon(rows.pairs))
    of_resources = resource_columns(
        rows.resources, resource_hashed, np.bincount(rows.resource_of, minlength=len(rows.resources)), pause
    )
    columns = BaseColumns(
        resources=rows.resources,
        resource_buckets=resource_buckets,
        pairs=rows.pairs,
        pair_buckets=pair_buckets,
        cell_starts=layout.starts_of(cell_resources, len(rows.resources)),
        cell_pairs=cell_pairs,
        cell_masks=masks,
        # With one row in every cell, a row and its cell have the same number and the column is left out.
        cell_rows=None if len(first) == len(order) else np.append(first, len(order)).astype(np.int32),
        operations=(codes & 0xFF).astype(np.uint8),
        permissions=(codes >> 8).astype(np.uint8),
        ids=ids,
        id_order=id_rows,
        id_starts=id_starts,
        has_ids=rows.has_ids,
        **of_resources,
        colonless=distinct(cell_resources[np.isin(cell_pairs, colonless)]),
        range_pairs=with_slash(rows.pairs),
        raw_codes=_moved(rows.raw_codes, order),
        tags=_moved(rows.tags, order),
        unbindable=unbindable,
        irregular=irregular,
    )
    pause()
    return pack_base(columns, allocate)


def _in_bucket_order(rows: Rows, pause: layout.Pause) -> tuple[Rows, layout.UInt32s, layout.Int32s, layout.Int32s]:
    """Return the rows with their keys numbered as in a KeyTable, the resources' hashes, and the buckets of both."""
    hashed = layout.resource_hashes(rows.resources, pause)
    resources, resource_buckets = layout.bucket_order(rows.resources, hashed)
    pairs, pair_buckets = layout.bucket_order(rows.pairs, layout.pair_hashes(rows.pairs, pause))
    renumbered = evolve(
        rows,
        resources=rows.resources.take(resources, pause),
        resource_of=_places(resources)[rows.resource_of],
        pairs=rows.pairs.take(pairs, pause),
        pair_of=_places(pairs)[rows.pair_of],
    )
    return renumbered, hashed[resources], resource_buckets, pair_buckets


def _places(order: Int64s) -> layout.Int32s:
    """Return by old number the new one."""
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def _check_unique(
    rows: Rows,
    order: Int64s,
    *,
    resource_of: layout.Int32s,
    pair_of: layout.Int32s,
    codes: NDArray[np.uint16],
    repeated: bool,
) -> None:
    refused = dict(_repeated_content(rows, order, resource_of=resource_of, pair_of=pair_of, codes=codes))
    if repeated and rows.has_ids:
        refused |= _repeated_ids(rows)
    if refused:
        # The first offending row in log order, as a replay record by record would report it.
        row = min(refused)
        raise ReplayError(refused[row], position=row)


def _sorted(rows: Rows) -> tuple[NDArray[np.int64], layout.Int32s, layout.Int32s, NDArray[np.uint16]]:
    """Return the order of rows by (resource, pair, permission << 8 | operation), and these columns in that order."""
    codes: NDArray[np.uint16] = (rows.permissions.astype(np.uint16) << np.uint16(8)) | rows.operations
    # One sort of a combined uint64 is several times as fast as lexsort; it needs resource and pair to fit into 48 bits.
    pair_bits = len(rows.pairs).bit_length()
    if len(rows.resources).bit_length() + pair_bits > 48:
        wide = np.lexsort((codes, rows.pair_of, rows.resource_of))
        return wide, rows.resource_of[wide], rows.pair_of[wide], codes[wide]
    key = rows.resource_of.astype(np.uint64) << np.uint64(pair_bits + 16)
    key |= rows.pair_of.astype(np.uint64) << np.uint64(16)
    key |= codes
    order: Int64s = np.argsort(key)
    key = key[order]
    pairs = (key >> np.uint64(16)) & np.uint64((1 << pair_bits) - 1)
    return (
        order,
        (key >> np.uint64(pair_bits + 16)).astype(np.int32),
        pairs.astype(np.int32),
        (key & np.uint64(0xFFFF)).astype(np.uint16),
    )


def _moved(sparse: Mapping[int, T], order: NDArray[np.int64]) -> dict[int, T]:
    """Renumber the rows of a sparse column by their positions in `order`."""
    if not sparse:
        return {}
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return {int(place[row]): value for row, value in sparse.items()}


def _repeated_content(
    rows: Rows, order: Int64s, *, resource_of: layout.Int32s, pair_of: layout.Int32s, codes: NDArray[np.uint16]
) -> Iterator[tuple[int, str]]:
    """Yield the rows whose ACL equals that of an earlier row, each with an error text."""
    same = resource_of[1:] == resource_of[:-1]
    same &= pair_of[1:] == pair_of[:-1]
    same &= codes[1:] == codes[:-1]
    if not same.any():
        return
    # Equal in the columns is not yet equal: codes that Kafka reads alike are still different records.
    first_rows: dict[tuple[object, ...], int] = {}
    for row in np.unique(np.concatenate((order[:-1][same], order[1:][same]))).tolist():
        content = (rows.resource_of[row], rows.pair_of[row], rows.operations[row], rows.permissions[row])
        before = first_rows.setdefault((*content, rows.raw_codes.get(row)), row)
        if before != row:
            yield row, f"{_name(rows, row)} is the same as {_name(rows, before)}: expected every ACL once"


def _repeated_ids(rows: Rows) -> dict[int, str]:
    """Return the rows whose id occurs in an earlier row, each with an error text."""
    values = np.ascontiguousarray(rows.ids).view(">u8").reshape(-1, 2)
    order = np.lexsort((np.arange(len(values)), values[:, 1], values[:, 0]))
    ordered = values[order]
    repeated = order[1:][(ordered[1:] == ordered[:-1]).all(axis=1)].tolist()
    return {row: f"{_name(rows, row)} is added, but exists already" for row in repeated}


def _name(rows: Rows, row: int) -> str:
    return f"ACL {uuid_text(UUID(bytes=rows.ids[row].tobytes()))}" if rows.has_ids else f"ACL {row + 1}"


def _counts(rows: Rows) -> tuple[int, int]:
    """Return the counts `unbindable` and `irregular` (see Base): ACLs that CreateAcls would have refused."""
    any_code = (rows.operations == AclOperation.ANY) | (rows.permissions == AclPermissionType.ANY)
    strange = (rows.permissions != AclPermissionType.ALLOW) & (rows.permissions != AclPermissionType.DENY)
    if len(rows.resources):
        any_code |= (rows.resources.data[rows.resources.starts] == ResourceType.ANY)[rows.resource_of]
    for row, (_, pattern) in rows.raw_codes.items():
        any_code[row] |= pattern in {PatternType.ANY, PatternType.MATCH}
        strange[row] |= pattern not in {PatternType.LITERAL, PatternType.PREFIXED}
    return int(any_code.sum()), int(strange.sum())
