"""The base: all ACLs of one moment in immutable columns, which lie in one flat buffer (aclog.authorizer.index.layout).

The columns are a sparse matrix in CSR form. Its rows are resource patterns, its columns are (principal, host) pairs,
and a cell holds the ACLs of one pair on one pattern, together with one mask of what they deny and allow. Nothing is
kept per ACL but numbers; objects are made when an ACL is asked for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from attrs import Factory, define, frozen

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, StandardAcl, StandardAclWithId
from aclog.authorizer.index.core import BaseCore
from aclog.authorizer.index.first_units import UnitCounts
from aclog.authorizer.index.generations import Generations
from aclog.authorizer.index.ids import IdIndex
from aclog.authorizer.index.keys import (
    KeyTable,
    compact,
    pair_hash,
    pair_key,
    resource_hash,
    resource_key,
    resource_name,
    split_pair,
)
from aclog.authorizer.index.prefixes import Prefixes
from aclog.authorizer.index.range_hosts import RangeHosts
from aclog.metalog.records import TaggedFields

NameLookup: TypeAlias = tuple[int, int, int, bool]
"""What the base has on a resource name: the cells [low, high) of its LITERAL pattern, the node of its longest
prefix (-1 for none), and whether the name is hidden from LITERAL `*`: it begins with `*` and is longer (see "Quirks" in
docs/semantics.md)."""

_EVERYBODY = WILDCARD_PRINCIPAL, WILDCARD

LONGEST_REMEMBERED = 249
"""Longer names are not memoised, in characters (a topic name's limit): clients choose names and could fill the
memory."""

_MAX_LOOKUPS = 1 << 16
_MAX_MASKS = 1 << 20
_MAX_SUBJECTS = 1 << 16
"""Sizes of the memo's generations: name look-ups of about 200 bytes each, chain masks of subjects of about 100 bytes
each, and subjects of about 1 kB each."""


@define(eq=False)
class Subject:
    """A principal and host, resolved to the few pairs of the base that can match them."""

    keys: tuple[tuple[str, str], ...]
    """The (principal, host) texts of ACLs that match: the subject's own and the wildcards."""
    pairs: tuple[int, ...]
    """The numbers of those of `keys` that the base has."""
    wildcard_masks: dict[int, int] = Factory(dict)
    """By resource type: the mask of LITERAL `*`; filled as types are asked about (Base.wildcard_mask)."""
    prefix_masks: dict[int, int] = Factory(lambda: {-1: 0})
    """By node: the mask of a prefix and all its shorter prefixes; filled as nodes are asked about (Base.chain_mask).
    Node -1, "no prefix", ends every chain."""

    def renewed(self) -> "Subject":
        """Return the subject without its chain masks."""
        return Subject(self.keys, self.pairs, self.wildcard_masks)


RangeSubject: TypeAlias = tuple[Subject, tuple[str, ...], tuple[str, ...]]
"""A subject with the ranges that contain its host, and what the overlay had for its principal and for `User:*` then."""


@define(eq=False)
class Memo:
    """What the base remembers about names and subjects.

    What it answers follows from the base alone, never from an overlay. So an update cannot make it stale, and the image
    after an update starts with a warm memo.
    """

    lookups: dict[int, dict[str, NameLookup]] = Factory(lambda: {code: {} for code in range(8)})
    """By resource type and name: the young generation (aclog.authorizer.index.generations)."""
    older_lookups: dict[int, dict[str, NameLookup]] = Factory(lambda: {code: {} for code in range(8)})
    lookup_count: int = 0
    """Of the young generation."""
    subjects: Generations[tuple[str, str], Subject] = Factory(lambda: Generations(_MAX_SUBJECTS))
    mask_count: int = 0
    """How many chain masks were added to subjects since the last time that subjects aged."""
    range_subjects: Generations[tuple[str, str], RangeSubject] = Factory(lambda: Generations(_MAX_SUBJECTS))
    range_hosts: dict[str, RangeHosts] = Factory(dict)
    """By principal; only those that have ranges."""
    range_masks: tuple[int, ...] | None = None
    """By resource type, of the ACLs whose host is a range (aclog.authorizer.index.ranges)."""
    ranges_read: bool = False
    """Whether the native core has read its own."""
    colonless_patterns: dict[int, tuple[frozenset[str], tuple[str, ...]]] = Factory(dict)
    colonless: dict[int, list[Any]] = Factory(dict)
    """By resource type, and by resource: see aclog.authorizer.index.colonless."""
    columns: object = None
    """Built lazily by aclog.authorizer.index.columns."""
    ranks: object = None
    """Built lazily by aclog.authorizer.index.name_ranks."""
    tables: object = None
    """Built lazily by aclog.authorizer.index.tables."""
    readings: object = None
    """What aclog.analysis.estate has read."""
    touched_names: object = None
    """Of an overlay that was asked last: those of others are made from it (aclog.authorizer.index.touched_names)."""

    def count_masks(self, count: int) -> None:
        """Count chain masks that were added to subjects; these age when there are too many."""
        self.mask_count += count
        # Chain masks live in subjects and go with them. A subject that is asked for again is renewed.
        if self.mask_count > _MAX_MASKS:
            self.mask_count = 0
            self.subjects.age()
            self.range_subjects.age()


@frozen(eq=False, kw_only=True)
class Base:
    """The matrix: rows are ACLs sorted by (resource, pair); a cell is the rows of one resource and pair."""

    buffer: memoryview
    """The flat form, which the columns below are views of."""
    resources: KeyTable
    pairs: KeyTable
    cell_starts: memoryview
    """The first cell of each resource, and at the end the number of cells."""
    cell_pairs: memoryview
    """By cell: the pair; ascending within a resource, so that a pair is found by bisection."""
    cell_masks: memoryview
    """By cell: aclog.authorizer.index.masks, or-ed over the cell's rows."""
    cell_rows: "memoryview | range"
    """The first row of each cell, and at the end the number of rows; a range if every cell has one row."""
    operations: memoryview
    permissions: memoryview
    ids: IdIndex
    has_ids: bool
    """False if the source has no ids; `ids` is all zeros then."""
    raw_codes: Mapping[int, tuple[int, int]]
    """Row -> (resource type, pattern type) as written in the record, for rows whose key had to be normalised."""
    tags: Mapping[int, TaggedFields]
    """Row -> unknown tagged fields."""
    prefixes: Prefixes
    wildcard_resources: Sequence[int]
    """By resource type: the number of LITERAL `*`, or -1."""
    colonless_resources: frozenset[int]
    """Resources with an ACL whose principal has no colon; Kafka's authorizer throws when it reaches such an ACL."""
    unbindable: int
    """The number of ACLs that Kafka cannot list: they hold ANY or MATCH, which belong in filters only."""
    irregular: int
    """The number of ACLs whose pattern type or permission authorize() and byResourceType read differently."""
    units: UnitCounts
    range_pairs: memoryview
    """The pairs whose host may have a slash, sorted by key: candidates for CIDR ranges."""
    core: BaseCore | None = None
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
        found = memo.lookups[resource_type].get(name)
        if found is not None:
            return found
        # Threads may race here: they compute the same value, and a dict assignment is atomic.
        found = memo.older_lookups[resource_type].get(name)
        if found is None:
            low, high = self.cells(self.resource(resource_type, name, literal=True))
            node = self.prefixes.longest(resource_type, name.encode("utf-8", "surrogatepass"))
            found = (low, high, node, name[:1] == "*" and len(name) > 1)
            if len(name) > LONGEST_REMEMBERED:
                return found
        if memo.lookup_count >= _MAX_LOOKUPS:
            # New dicts instead of clear(): another thread may be reading the old ones.
            memo.older_lookups, memo.lookups = memo.lookups, {code: {} for code in range(8)}
            memo.lookup_count = 0
        memo.lookup_count += 1
        memo.lookups[resource_type][name] = found
        return found

    def pairs_of(self, principal: str, order: Sequence[int]) -> list[int]:
        """Return those of the pairs `order`, which are sorted by key, that have this principal."""
        # A compact string begins with its length, so a pair key that starts with it has exactly this principal.
        wanted, key = compact(principal), self.pairs.key
        at = bisect_left(order, wanted, key=key)
        found = []
        while at < len(order) and key(order[at]).startswith(wanted):
            found.append(int(order[at]))
            at += 1
        return found

    def cells(self, resource: int) -> tuple[int, int]:
        """Return the cells [low, high) of a resource; an empty range for -1."""
        return (self.cell_starts[resource], self.cell_starts[resource + 1]) if resource >= 0 else (0, 0)

    def subject(self, keys: Sequence[tuple[str, str]]) -> Subject:
        """Resolve a subject from the (principal, host) texts that match it."""
        # A client that was never seen costs four look-ups, and four keys of two texts: each text is encoded once.
        encoded: dict[str, bytes] = {}
        find, pairs = self.pairs.find, []
        for key in keys:
            if key == _EVERYBODY:
                number = self.everybody
            else:
                principal, host = key
                data = (encoded.get(principal) or encoded.setdefault(principal, compact(principal))) + (
                    encoded.get(host) or encoded.setdefault(host, compact(host))
                )
                number = find(data, pair_hash(data))
            if number >= 0:
                pairs.append(number)
        return Subject(tuple(keys), tuple(pairs))

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
        prefixes, path = self.prefixes, []
        # Up to the nearest prefix whose mask is known (or -1), then back down. The masks on the way are kept, so that a
        # ladder of a thousand nested prefixes is walked once per subject.
        while (known := masks.get(node)) is None:
            path.append(node)
            node = prefixes.parents[node]
        mask = known
        for step in reversed(path):
            mask |= self.cells_mask(*self.cells(prefixes.resources[step]), subject.pairs)
            masks[step] = mask
        self.memo.count_masks(len(path))
        return mask

    def resource(self, resource_type: int, name: str, *, literal: bool) -> int:
        """Return the number of a resource pattern, or -1."""
        hashed = resource_hash(resource_type, name.encode("utf-8", "surrogatepass"), literal=literal)
        return self.resources.find(resource_key(resource_type, name, literal=literal), hashed)

    def pair(self, principal: str, host: str) -> int:
        """Return the number of a principal and host, or -1."""
        key = pair_key(principal, host)
        return self.pairs.find(key, pair_hash(key))

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
        principal, host = split_pair(self.pairs.key(self.cell_pairs[cell]))
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
        return next(self.rules((row,), key, resource_name(key), cell))
