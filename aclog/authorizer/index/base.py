"""The base: all rules of one moment in immutable columns. Nothing is kept per rule but numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from attrs import Factory, define, frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.index.ids import IdIndex
from aclog.authorizer.index.keys import KeyTable, pair_key, resource_key, resource_name, split_pair
from aclog.authorizer.index.prefixes import Prefixes
from aclog.metalog.records import TaggedFields

Place: TypeAlias = tuple[int, int, int, bool]
"""Where a name leads: cells [low, high) of its LITERAL resource, the node of its longest prefix or -1, and whether it
begins with `*` and is longer (LITERAL `*` does not match it: quirk 3 of docs/semantics.md)."""

LONGEST_REMEMBERED = 249
"""In characters, as long as a topic's name may be. Clients choose the names: they are not to fill memory with them."""

_MOST_PLACES = 1 << 16
_MOST_MASKS = 1 << 20
"""How much is remembered of names, and of subjects on prefixes; about 200 and 100 bytes each."""


@define(eq=False)
class Subject:
    """Who asks, resolved to the few pairs of the base that can match, and what these say on prefixes and on `*`."""

    keys: tuple[tuple[str, str], ...]
    """The (principal, host) texts that match: own and wildcard."""
    pairs: tuple[int, ...]
    stars: dict[int, int]
    """The mask of LITERAL `*`, by resource type."""
    chains: dict[int, int]
    """The mask of a prefix and all shorter ones, by global node; filled as nodes are asked about."""


@define(eq=False)
class Memo:
    """What the base remembers of names and subjects; it holds nothing that an update could make wrong."""

    places: dict[int, dict[str, Place]] = Factory(lambda: {code: {} for code in range(8)})
    place_count: int = 0
    subjects: dict[tuple[str, str], Subject] = Factory(dict)
    mask_count: int = 0
    names: tuple[dict[tuple[int, int], int], list[tuple[int, str]]] | None = None
    """See aclog.authorizer.index.kafka_scan_order."""
    columns: object = None
    """See aclog.authorizer.index.columns."""
    ranks: object = None
    """See aclog.authorizer.index.name_ranks."""
    tables: object = None
    """See aclog.authorizer.index.tables."""


@frozen(eq=False, kw_only=True)
class Base:
    """Rows sorted by (resource, pair); a cell is the rows of one resource and pair, with one mask for all of them."""

    resources: KeyTable
    pairs: KeyTable
    cell_starts: memoryview
    """First cell of each resource, and the number of cells."""
    cell_pairs: memoryview
    cell_masks: memoryview
    cell_rows: "memoryview | range"
    """First row of each cell, and the number of rows."""
    operations: bytes
    permissions: bytes
    ids: IdIndex
    has_ids: bool
    """False where the source has none: ids are zero then."""
    odd: Mapping[int, tuple[int, int]]
    """Row -> (resource type, pattern type) as they stand in the record, where the key differs."""
    tags: Mapping[int, TaggedFields]
    """Row -> unknown tagged fields."""
    prefixes: tuple[Prefixes, ...]
    """By resource type."""
    first_nodes: tuple[int, ...]
    """By resource type: what makes a node global."""
    stars: tuple[int, ...]
    """By resource type: the resource LITERAL `*`, or -1."""
    throwing: frozenset[int]
    """Resources with a rule whose principal has no colon."""
    unbindable: int
    """How many rules Kafka cannot list (ANY or MATCH where only a filter may have them)."""
    irregular: int
    """How many rules have a pattern type or a permission that authorize() and byResourceType read differently."""
    memo: Memo = Factory(Memo)

    def __len__(self) -> int:
        return len(self.operations)

    def place(self, resource_type: int, name: str) -> Place:
        """Where a name leads; remembered. `resource_type` is 0..7."""
        memo = self.memo
        found = memo.places[resource_type].get(name)
        if found is not None:
            return found
        low, high = self.cells(self.resources.find(resource_key(resource_type, name, literal=True)))
        node = self.prefixes[resource_type].nearest(name)
        node = -1 if node < 0 else node + self.first_nodes[resource_type]
        found = (low, high, node, name[:1] == "*" and len(name) > 1)
        if len(name) > LONGEST_REMEMBERED:
            return found
        if memo.place_count >= _MOST_PLACES:
            memo.places = {code: {} for code in range(8)}
            memo.place_count = 0
        memo.place_count += 1
        memo.places[resource_type][name] = found
        return found

    def cells(self, resource: int) -> tuple[int, int]:
        """The cells [low, high) of a resource; none of -1."""
        return (self.cell_starts[resource], self.cell_starts[resource + 1]) if resource >= 0 else (0, 0)

    def subject(self, keys: Sequence[tuple[str, str]]) -> Subject:
        """A subject of these (principal, host) texts."""
        found = (self.pairs.find(pair_key(principal, host)) for principal, host in keys)
        pairs = tuple(pair for pair in found if pair >= 0)
        stars = {kind: self.level(*self.cells(star), pairs) for kind, star in enumerate(self.stars)}
        return Subject(tuple(keys), pairs, stars, {-1: 0})

    def level(self, low: int, high: int, pairs: Sequence[int]) -> int:
        """What the cells [low, high) of one resource say to these pairs."""
        mask = 0
        cell_pairs = self.cell_pairs
        for pair in pairs:
            cell = bisect_left(cell_pairs, pair, low, high)
            if cell < high and cell_pairs[cell] == pair:
                mask |= self.cell_masks[cell]
        return mask

    def chain(self, subject: Subject, resource_type: int, node: int) -> int:
        """What a prefix and all shorter ones say to the subject; `node` is global, and remembered with its parents."""
        chains = subject.chains
        prefixes, first = self.prefixes[resource_type], self.first_nodes[resource_type]
        path = []
        while (known := chains.get(node)) is None:
            path.append(node)
            parent = prefixes.parents[node - first]
            node = parent + first if parent >= 0 else -1
        mask = known
        for step in reversed(path):
            mask |= self.level(*self.cells(prefixes.resources[step - first]), subject.pairs)
            chains[step] = mask
        self.memo.mask_count += len(path)
        if self.memo.mask_count > _MOST_MASKS:
            self.memo.subjects = {}
            self.memo.mask_count = 0
        return mask

    def resource(self, resource_type: int, name: str, *, literal: bool) -> int:
        """The number of a resource, or -1."""
        return self.resources.find(resource_key(resource_type, name, literal=literal))

    def rows(self, low: int, high: int) -> range:
        """The rows of cells [low, high)."""
        return range(self.cell_rows[low], self.cell_rows[high])

    def cell(self, resource: int, pair: int) -> tuple[int, int]:
        """The cell of a resource and a pair as [low, high): one or none."""
        if resource < 0 or pair < 0:
            return 0, 0
        low, high = self.cells(resource)
        cell = bisect_left(self.cell_pairs, pair, low, high)
        return (cell, cell + 1) if cell < high and self.cell_pairs[cell] == pair else (0, 0)

    def cell_of(self, row: int) -> int:
        """The cell a row lies in."""
        return row if isinstance(self.cell_rows, range) else bisect_right(self.cell_rows, row) - 1

    def resource_of(self, cell: int) -> int:
        """The resource a cell belongs to."""
        return bisect_right(self.cell_starts, cell) - 1

    def codes(self, row: int, key: bytes) -> tuple[int, int, int, int]:
        """Resource type, pattern type, operation and permission of a row as they stand in the record."""
        kinds = self.odd.get(row) or (key[0], key[-1])
        operation, permission = self.operations[row], self.permissions[row]
        return (*kinds, operation - (operation >> 7 << 8), permission - (permission >> 7 << 8))

    def rules(self, rows: Sequence[int], key: bytes, name: str, cell: int) -> Iterator[StandardAclWithId]:
        """The rules of these rows, which lie in one cell of the resource with this key and name."""
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
        """The uuid of a row; None where the source has none."""
        return UUID(bytes=self.ids.ids[16 * row : 16 * row + 16]) if self.has_ids else None

    def rule(self, row: int) -> StandardAclWithId:
        """The rule of a row."""
        cell = self.cell_of(row)
        key = self.resources.key(self.resource_of(cell))
        return next(self.rules((row,), key, resource_name(key), cell))
