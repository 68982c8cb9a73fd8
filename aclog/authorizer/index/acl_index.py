"""The index of ACLs: a base and an overlay of what changed since the base was built, in persistent maps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from attrs import field

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index import layout
from aclog.authorizer.index.base import Base, Rows, Subject, row_keys
from aclog.authorizer.index.layout import resource_key
from aclog.metalog.columns import Bools, Bytes
from aclog.metalog.errors import ReplayError
from aclog.metalog.native import np
from aclog.metalog.persistent_map import Map
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.values import define, frozen

# The overlay: the changes since the base was built, in persistent maps.
#
# Persistent (immutable, structure-sharing) maps make a new version in O(log n) and leave the old one as it was: an
# image that a reader or a checkpoint holds stays valid, and nothing is locked or copied for it.


ResourceKey: TypeAlias = tuple[int, str, bool]
"""Resource type 0..7, name, and whether the pattern is LITERAL."""
PairKey: TypeAlias = tuple[str, str]
"""Principal and host."""

NO_ROWS = range(0)


class Cell(NamedTuple):
    """A cell (one resource and pair) that a change touched."""

    mask: int
    """The mask of all its ACLs now, those of the base included: it replaces the base's."""
    added: tuple[AccessControlEntryRecord, ...]
    rows: range = NO_ROWS
    """The base's rows of this cell, removed ones included."""


Cells: TypeAlias = Map[PairKey, Cell] | dict[PairKey, Cell]
"""By pair. A dictionary, which is never changed, for the one cell of a new pattern: a third of the objects of a map."""


class TouchedResource(NamedTuple):
    """A resource pattern that a change touched."""

    cells: Cells
    rules: int
    """How many ACLs it has now, those of untouched cells included."""
    shrunk: bool
    """Whether an ACL of the base was removed: then masks of the base may have extra bits and cannot just be or-ed."""
    number: int
    """Its number in the base, or -1."""


class Overlay(NamedTuple):
    """Changes on top of a base.

    A named tuple and not an attrs class: one is made for every update, and a frozen class takes five times as long.
    """

    added: Map[int, AccessControlEntryRecord] = Map()
    """By the uuid's integer value."""
    removed: Map[int, bool] = Map()
    """Rows of the base; the values mean nothing."""
    touched: tuple[Map[str, TouchedResource], ...] = (Map(),) * (2 * layout.TYPES)
    """By twice the resource type, plus one for LITERAL: by name, a text that keeps its hash, as no tuple does."""
    lengths: tuple[tuple[int, ...], ...] = ((),) * layout.TYPES
    """By resource type: the lengths of the touched prefixes, longest first. Prefixes of a name are found by cutting it
    at each length, unless there are many lengths and many decisions on one version (`_listed_names`)."""
    wildcards: tuple[TouchedResource | None, ...] = (None,) * layout.TYPES
    """By resource type: LITERAL `*`, if touched. Every decision needs it, so it is kept out of the map."""
    ranges: Map[str, tuple[str, ...]] = Map()
    """Principal -> hosts of added ACLs that contain a slash: candidates for CIDR ranges."""
    colonless: int = 0
    """How many ACLs were added whose principal has no colon. Never decreases: it only switches a slow check on."""
    unbindable: int = 0
    irregular: int = 0
    """What to add to the counts of the base (see Base)."""
    units: Map[tuple[int, int], int] = Map()
    """What to add to the base's UnitCounts."""
    changes: int = 0
    """The number of ACLs added and removed."""
    core: layout.Core | None = None
    """The same changes in the native core, if there is one and the base was ever changed."""
    touching: Map[PairKey, tuple[tuple[int, str], ...] | None] | None = Map()
    """By principal and host: the patterns, as an index into `touched` and a name, that have a touched cell of this pair
    or had one; None if they are more than _MOST_PATTERNS. A subject is decided by the base alone where it has none.
    None as a whole if the native core decides."""

    def resource(self, kind: int, name: str, *, literal: bool) -> TouchedResource | None:
        """Return a resource pattern, if a change touched it; `kind` is 0..7."""
        return self.touched[2 * kind + literal].get(name)

    def resources(self) -> Iterator[tuple[ResourceKey, TouchedResource]]:
        """Yield every resource pattern that a change touched."""
        for number, by_name in enumerate(self.touched):
            for name, touched in by_name.items():
                yield (number // 2, name, number % 2 == 1), touched


def key_of(acl: StandardAcl | AccessControlEntryRecord) -> ResourceKey:
    """Return the resource of an ACL as authorize() reads it."""
    return layout.known_type(acl.resource_type), acl.resource_name, acl.pattern_type == _LITERAL


# The index behind an AclsImage: a base and its overlay, and the mask that decides a request.


class Resource(NamedTuple):
    """A resource pattern: its number in the base (or -1), and its state in the overlay if a change touched it."""

    name: str
    literal: bool
    number: int
    touched: TouchedResource | None


class Levels(NamedTuple):
    """The resource patterns with ACLs that cover a name, grouped by their names."""

    named: list[list[Resource]]
    """The name itself and its prefixes, longest first."""
    wildcard: list[Resource]
    """LITERAL `*`, unless it is the name itself."""
    empty: list[Resource]
    """The empty name."""

    @property
    def only(self) -> list[Resource] | None:
        """The only level that is not empty; None if there are several: then it matters in which order Kafka scans."""
        several = [*self.named]
        if self.wildcard:
            several.append(self.wildcard)
        if self.empty:
            several.append(self.empty)
        return several[0] if len(several) == 1 else None


@define(eq=False, repr=False)
class AclIndex:
    """A base and the changes since. Immutable by convention, as AclsImage is."""

    base: Base
    overlay: Overlay = field(factory=Overlay)
    memo: dict[str, Any] = field(factory=dict)
    """Results that are seldom needed, kept once computed. Unlike the base's memo it dies with this version."""
    core: layout.Core | None = field(init=False)
    """The same index in the native core, if there is one."""

    def __attrs_post_init__(self) -> None:
        self.core = self.overlay.core or self.base.core

    @property
    def has_slashes(self) -> bool:
        """Whether some ACL's host may have a slash, which every CIDR range has."""
        return len(self.base.range_pairs) > 0 or len(self.overlay.ranges) > 0

    @property
    def has_colonless(self) -> bool:
        """Whether some ACL's principal has no colon: a decision that reaches such an ACL is an error."""
        return self.overlay.colonless > 0 or len(self.base.colonless_resources) > 0

    def mask(self, subject: Subject, resource_type: int, name: str, documented: bool) -> int:
        """Return the mask of all ACLs that cover a name and match the subject (denied << 16 | allowed).

        A decision is this mask shifted by the operation: any DENY wins at any level, so the order in which Kafka visits
        the ACLs does not matter here. `documented`: LITERAL `*` also covers names that begin with `*`.
        """
        # Hot path: dicts are indexed and misses caught, since a try that does not raise is free, and the base is read
        # without a call where its memo has the answer.
        base = self.base
        try:
            low, high, node, hidden = base.memo.lookups[resource_type][name]
        except KeyError:
            resource_type = layout.known_type(resource_type)
            low, high, node, hidden = base.lookup(resource_type, name)
        if self.overlay.changes:
            own = self._own_patterns(subject, resource_type, name)
            if own is None or own:
                maps: Sequence[Mapping[str, TouchedResource] | _ByName] = self.overlay.touched
                if own is None:
                    listed = self._listed_names()
                    maps = maps if listed is None else listed.by_name
                    prefixes = self._possible_prefixes(resource_type, name, listed)
                else:
                    prefixes = [pattern for at, pattern in own if at == 2 * resource_type]
                mask = self._prefix_mask(subject, prefixes, maps[2 * resource_type], node)
                touched = maps[2 * resource_type + 1].get(name)
                if touched is not None or low != high:
                    mask |= self._resource_mask(low, high, touched, subject)
                return mask | self._wildcard_mask(subject, resource_type) if documented or not hidden else mask
        try:
            mask = subject.prefix_masks[node]
        except KeyError:
            mask = base.chain_mask(subject, node)
        if not hidden or documented:
            try:
                mask |= subject.wildcard_masks[resource_type]
            except KeyError:
                mask |= base.wildcard_mask(subject, resource_type)
        if low != high:
            mask |= base.cells_mask(low, high, subject.pairs)
        return mask

    def _own_patterns(self, subject: Subject, resource_type: int, name: str) -> list[tuple[int, str]] | None:
        """Return the patterns that cover a name and may have a touched cell of a subject, as in Overlay.touching.

        Most clients have no rule that changed lately, and nothing else of the overlay concerns them. None: unknown, or
        it would take longer than to look up prefixes of few lengths.
        """
        touching = self.overlay.touching
        if touching is None or len(self.overlay.lengths[resource_type]) <= _FEW_LENGTHS:
            return None
        get, prefixed, own = touching.get, 2 * resource_type, []
        for key in subject.keys:
            patterns = get(key, ())
            if patterns is None:
                return None
            for each in patterns:
                at, pattern = each
                if at == prefixed:
                    if name.startswith(pattern):
                        own.append(each)
                elif at == prefixed + 1 and pattern in {name, WILDCARD}:
                    own.append(each)
        return own

    def _wildcard_mask(self, subject: Subject, resource_type: int) -> int:
        """Return the mask of LITERAL `*`."""
        touched = self.overlay.wildcards[resource_type]
        if touched is None:
            return self.base.wildcard_mask(subject, resource_type)
        return self._resource_mask(*self.base.cells(self.base.wildcard_resources[resource_type]), touched, subject)

    def literal_mask(self, subject: Subject, resource_type: int, name: str) -> int:
        """Return the mask of the LITERAL pattern of exactly this name."""
        low, high, _, _ = self.base.lookup(resource_type, name)
        return self._resource_mask(low, high, self.overlay.touched[2 * resource_type + 1].get(name), subject)

    def prefix_mask(self, subject: Subject, resource_type: int, name: str) -> int:
        """Return the mask of all prefixes of a name."""
        prefixes = self._possible_prefixes(resource_type, name, self._listed_names())
        node = self.base.lookup(resource_type, name)[2]
        return self._prefix_mask(subject, prefixes, self.overlay.touched[2 * resource_type], node)

    def _prefix_mask(
        self,
        subject: Subject,
        possible: Iterable[str],
        by_name: Mapping[str, TouchedResource] | _ByName,
        node: int,
    ) -> int:
        """Return the same; `possible`: its prefixes with a touched cell of the subject, perhaps among others.

        `by_name`: the touched prefixes of the type; `node`: the name's longest prefix in the base.
        """
        base, mask = self.base, 0
        get, left_out = by_name.get, set()
        for prefix in possible:
            touched = get(prefix)
            if touched is None:
                continue
            low = high = 0
            if touched.shrunk:
                # Most removals are of other clients' ACLs: then the base's chain has no bit of this prefix.
                low, high = base.cells(touched.number)
                if base.cells_mask(low, high, subject.pairs):
                    left_out.add(touched.number)
                else:
                    low = high = 0
            # Of additions only, the masks are or-ed to the base's chain: its own cells need no second look (0, 0).
            mask |= self._resource_mask(low, high, touched, subject)
        if left_out:
            return mask | self._chain_mask_without(subject, node, left_out)
        chain = subject.prefix_masks.get(node)
        return mask | (base.chain_mask(subject, node) if chain is None else chain)

    def _chain_mask_without(self, subject: Subject, node: int, left_out: set[int]) -> int:
        """Return the base's mask of a prefix and all its shorter prefixes, without that of some of these resources.

        A removal cannot be taken out of the memoised mask of a whole chain: another prefix may set the same bit.
        """
        base, mask, left = self.base, 0, len(left_out)
        resources, parents = base.prefixes.resources, base.prefixes.parents
        while left and node >= 0:
            number = resources[node]
            if number in left_out:
                left -= 1
            else:
                mask |= base.cells_mask(*base.cells(number), subject.pairs)
            node = parents[node]
        return mask | base.chain_mask(subject, node)

    def _resource_mask(self, low: int, high: int, touched: TouchedResource | None, subject: Subject) -> int:
        """Return the mask of one pattern, with the base's cells [low, high) and the overlay's."""
        base, pairs = self.base, subject.pairs
        if touched is None:
            return base.cells_mask(low, high, pairs)
        mask = 0
        get = touched.cells.get
        for key in subject.keys:
            cell = get(key)
            if cell is not None:
                mask |= cell.mask
                if touched.shrunk and low < high:
                    # After a removal each pair is taken from one side only: the overlay's cell replaces the base's.
                    replaced = base.pair(*key)
                    pairs = tuple(pair for pair in pairs if pair != replaced)
        return mask | base.cells_mask(low, high, pairs) if low < high else mask

    def _touched_prefixes(self, resource_type: int, name: str) -> list[Resource]:
        """Return the prefixes of a name that the overlay has, longest first."""
        resources, by_name = [], self.overlay.touched[2 * resource_type]
        for prefix in self._possible_prefixes(resource_type, name, self._listed_names()):
            touched = by_name.get(prefix)
            if touched is not None:
                resources.append(Resource(prefix, literal=False, number=touched.number, touched=touched))
        return resources

    def _possible_prefixes(self, resource_type: int, name: str, listed: TouchedNames | None) -> Iterable[str]:
        """Return all prefixes of a name that the overlay has, longest first, perhaps among others."""
        lengths, whole = self.overlay.lengths[resource_type], len(name)
        if listed is not None and len(lengths) > _FEW_LENGTHS:
            return listed.prefixes_of(resource_type, name)
        return [name[:length] for length in lengths if length <= whole]

    def _listed_names(self) -> TouchedNames | None:
        """Return the names of the overlay in order; None if listing them would not pay: it takes all names once."""
        memo, maps = self.base.memo, self.overlay.touched
        listed = memo.touched_names
        if isinstance(listed, TouchedNames) and listed.maps is maps:
            return listed
        queries = memo.asked
        if queries is None or queries[0] is not maps:
            memo.asked = [maps, 0]
            return None
        queries[1] += 1
        return touched_names(self) if queries[1] * _PAYS >= self.overlay.changes else None

    def prefixes(self, resource_type: int, name: str) -> Iterator[Resource]:
        """Yield all prefixes of a name, longest first."""
        prefixes = self.base.prefixes
        # A merge of two sequences by descending length; a prefix that both have comes with the overlay's state.
        touched = {resource.name: resource for resource in self._touched_prefixes(resource_type, name)}
        for node in prefixes.chain(resource_type, name.encode("utf-8", "surrogatepass")):
            text = prefixes.name(node).decode()
            longer = [prefix for prefix in touched if len(prefix) > len(text)]
            for prefix in longer:
                yield touched.pop(prefix)
            yield touched.pop(text, Resource(text, literal=False, number=prefixes.resources[node], touched=None))
        yield from touched.values()

    def literal(self, resource_type: int, name: str) -> Resource:
        """Return the LITERAL pattern of exactly this name, whether it has ACLs or not."""
        number = self.base.resource(resource_type, name, literal=True)
        return Resource(
            name, literal=True, number=number, touched=self.overlay.resource(resource_type, name, literal=True)
        )

    def count(self, resource: Resource) -> int:
        """Return how many ACLs a pattern has."""
        if resource.touched is not None:
            return resource.touched.rules
        return len(self.base.rows(*self.base.cells(resource.number)))

    def named(self, resource_type: int, name: str) -> tuple[Resource, Resource]:
        """Return the two patterns of exactly this name, LITERAL first, whether they have ACLs or not."""
        number = self.base.resource(resource_type, name, literal=False)
        prefixed = Resource(
            name, literal=False, number=number, touched=self.overlay.resource(resource_type, name, literal=False)
        )
        return self.literal(resource_type, name), prefixed

    def levels(self, resource_type: int, name: str, *, documented: bool) -> Levels:
        """Return the patterns with ACLs that cover a name, for any principal."""
        by_name: dict[str, list[Resource]] = {name: [self.literal(resource_type, name)]}
        for resource in self.prefixes(resource_type, name):
            by_name.setdefault(resource.name, []).append(resource)
        levels = {text: [r for r in level if self.count(r)] for text, level in by_name.items()}
        empty = levels.pop("", [])
        wildcard = []
        if name != WILDCARD and (documented or name[:1] != WILDCARD):
            wildcard = [r for r in (self.literal(resource_type, WILDCARD),) if self.count(r)]
        return Levels([level for level in levels.values() if level], wildcard, empty)

    def resources(self) -> Iterator[tuple[int, Resource]]:
        """Yield every pattern with ACLs, with its type, in no particular order."""
        base, overlay = self.base, self.overlay
        keys = set()
        for number in range(len(base.resources)):
            key = base.resources.key(number)
            resource_key = key[0], layout.resource_name(key), key[-1] == PatternType.LITERAL
            touched = overlay.resource(*resource_key[:2], literal=resource_key[2]) if overlay.changes else None
            if touched is not None:
                keys.add(resource_key)
            if touched is None or touched.rules:  # a resource of the base has rules
                yield key[0], Resource(resource_key[1], literal=resource_key[2], number=number, touched=touched)
        for (kind, name, literal), touched in overlay.resources():
            if touched.rules and (kind, name, literal) not in keys:
                yield kind, Resource(name, literal=literal, number=-1, touched=touched)


# The names of an overlay in order, to find the touched patterns that begin with a text.


_ByName: TypeAlias = Map[str, TouchedResource]


_MOST_PATTERNS = 16
"""Patterns of a pair that are compared with a name one by one."""
_FEW_LENGTHS = 12
"""Up to so many look-ups take no longer than a search among names in order."""
_PAYS = 64
"""Decisions on one version of so many changes each, from which listing its names pays."""


@frozen(eq=False, repr=False)
class TouchedNames:
    """The names of one version of an overlay."""

    maps: Sequence[_ByName]
    """As Overlay.touched."""
    by_name: Sequence[Mapping[str, TouchedResource]]
    """The same as dictionaries, which are read in a fraction of the time."""
    _ordered: list[tuple[_ByName, list[str]]]
    """By map: the names of an earlier version in the order of their code points, and that version; the names of this
    one once they are needed. Threads may race: they order the same names."""
    _shorter: Mapping[int, dict[str, str | None]] = field(factory=lambda: {code: {} for code in range(layout.TYPES)})
    """By type: the next shorter PREFIXED name that each begins with, once it was looked for."""

    def under(self, kind: int, prefix: str) -> list[Resource]:
        """Return the patterns of a type whose names begin with a text, which may be empty; `kind` is 0..7."""
        resources = []
        for literal in (False, True):
            names, by_name = self._names(2 * kind + literal), self.by_name[2 * kind + literal]
            low, high = layout.prefix_range(names, prefix)
            for name in names[low:high]:
                touched = by_name[name]
                resources.append(Resource(name, literal=literal, number=touched.number, touched=touched))
        return resources

    def prefixes_of(self, kind: int, name: str) -> list[str]:
        """Return the names of all PREFIXED patterns of a type that a name begins with, longest first."""
        names, shorter = self._names(2 * kind), self._shorter[kind]
        prefixes = []
        prefix = next(prefixes_among(names, name), None)
        while prefix is not None:
            prefixes.append(prefix)
            if prefix not in shorter:
                # The first is the name itself.
                shorter[prefix] = next(islice(prefixes_among(names, prefix), 1, None), None)
            prefix = shorter[prefix]
        return prefixes

    def moved(self, maps: Sequence[_ByName]) -> TouchedNames:
        """Return the names of another version, in time that mostly follows what differs."""
        by_name = tuple(
            flat if before is after else after.flat()
            for flat, before, after in zip(self.by_name, self.maps, maps, strict=True)
        )
        return TouchedNames(maps, by_name, list(self._ordered))

    def _names(self, at: int) -> list[str]:
        """Return the names of a map in the order of their code points."""
        earlier, names = self._ordered[at]
        if earlier is not self.maps[at]:
            names = _moved(names, earlier, self.maps[at])
            self._ordered[at] = self.maps[at], names
        return names


def prefixes_among(names: Sequence[str], name: str) -> Iterator[str]:
    """Yield those of some names, in order, that a name begins with, longest first."""
    at = bisect_right(names, name)
    while at:
        candidate = names[at - 1]
        if name.startswith(candidate):
            yield candidate
            at -= 1
        else:
            # What precedes it and is longer than what the two have in common is no prefix of the name.
            at = bisect_right(names, name[: _alike(candidate, name)], 0, at - 1)


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    high = min(len(one), len(other))
    if one.isascii() and other.isascii():
        # As numbers of a byte per character: the highest bit in which they differ is in the first character that does.
        bits = (int.from_bytes(one[:high].encode()) ^ int.from_bytes(other[:high].encode())).bit_length()
        return high - (bits + 7) // 8
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def touched_names(index: AclIndex) -> TouchedNames:
    """Return the names of an index's overlay."""
    memo, maps = index.base.memo, index.overlay.touched
    previous = memo.touched_names
    if not isinstance(previous, TouchedNames):
        nothing: _ByName = Map()
        previous = TouchedNames((nothing,) * len(maps), [{} for _ in maps], [(nothing, []) for _ in maps])
    # Another thread may do the same: both results are equally good starting points.
    names = memo.touched_names = previous.moved(maps)
    return names


def added_for(index: AclIndex, principal: str) -> Sequence[AccessControlEntryRecord]:
    """Return the ACLs of a principal that were added since the base was built."""
    by_principal: dict[str, list[AccessControlEntryRecord]] | None = index.memo.get("added_for")
    if by_principal is None:
        by_principal = {}
        for record in index.overlay.added.values():
            by_principal.setdefault(record.principal, []).append(record)
        index.memo["added_for"] = by_principal
    return by_principal.get(principal, ())


def _moved(names: list[str], before: _ByName, after: _ByName) -> list[str]:
    differ = set(before.unshared_keys(after))
    if not differ:
        return names
    # What is in order is merged with the rest, which takes little more than copying it.
    return sorted([*(name for name in names if name not in differ), *(name for name in differ if name in after)])


# Applying ACL records to an overlay.
#
# A node runs this for every ACL record it replays, at about 10 us per record, so the code is kept flat: codes stay
# plain integers, since enum members are slow to look up, and little is called for each record.


Change: TypeAlias = AccessControlEntryRecord | RemoveAccessControlEntryRecord
Codes: TypeAlias = tuple[int, int, int, int]
"""Resource type, pattern type, operation and permission as written in the record."""

_LITERAL = int(PatternType.LITERAL)
_SUPPLEMENTARY = 0x10000
"""The first code point that takes two UTF-16 code units."""
_PATTERNS = frozenset(map(int, (PatternType.LITERAL, PatternType.PREFIXED)))
_PERMISSIONS = frozenset(map(int, (AclPermissionType.DENY, AclPermissionType.ALLOW)))
_TYPES = frozenset(map(int, ResourceType)) - {ResourceType.ANY}
_OPERATIONS = frozenset(map(int, AclOperation)) - {AclOperation.ANY}
_ORDINARY: frozenset[Codes] = frozenset(product(_TYPES, _PATTERNS, _OPERATIONS, _PERMISSIONS))
"""The codes of nearly every ACL: neither unbindable nor irregular, found by one look-up."""

# A named tuple's own constructor is a call of a function in Python first, which takes as long again.
_new_tuple = tuple.__new__

_NO_CELLS: Map[PairKey, Cell] = Map()
_UNTOUCHED = TouchedResource(_NO_CELLS, rules=0, shrunk=False, number=-1)


def apply_changes(base: Base, overlay: Overlay, changes: Iterable[Change]) -> Overlay:
    """Return the overlay after these changes, applied in order.

    Raises:
        ReplayError: an added id exists already, an added ACL exists under another id, or a removed id does not exist.

    """
    if overlay.core is None and base.core is not None:
        overlay = overlay._replace(core=base.core, touching=None)
    added: list[AccessControlEntryRecord] = []
    for change in changes:
        if isinstance(change, AccessControlEntryRecord):
            added.append(change)
            continue
        if added:
            overlay, added = _add_all(base, overlay, added), []
        overlay = _remove(base, overlay, change.id)
    return _add_all(base, overlay, added) if added else overlay


def is_unbindable(codes: Codes) -> bool:
    """Return whether Kafka cannot list the ACL: it holds ANY or MATCH, which belong in filters only."""
    kind, pattern, operation, permission = codes
    return (
        kind == ResourceType.ANY
        or operation == AclOperation.ANY
        or permission == AclPermissionType.ANY
        or pattern in {PatternType.ANY, PatternType.MATCH}
    )


def is_irregular(codes: Codes) -> bool:
    """Return whether authorize() and byResourceType read the ACL differently."""
    return codes[3] not in _PERMISSIONS or codes[1] not in _PATTERNS


def _add_all(base: Base, overlay: Overlay, records: Sequence[AccessControlEntryRecord]) -> Overlay:
    """Return the overlay with these ACLs as well.

    Each map is changed once: of a map of many entries, one change copies far more than itself.
    """
    new = _new_ids(base, overlay, records)
    touched, core = _touched_by(base, overlay, records)
    added, removed, resources = overlay.added.updated(new), overlay.removed, list(overlay.touched)
    for at, by_name in touched.items():
        resources[at] = resources[at].updated(by_name)
    counts = _with_counts_of(overlay, resources, records)
    touching = overlay.touching
    if touching is not None:
        for record in records:
            at = 2 * layout.known_type(record.resource_type) + (record.pattern_type == _LITERAL)
            touching = _with_pattern(touching, (record.principal, record.host), at, record.resource_name)
    return _new_tuple(Overlay, (added, removed, tuple(resources), *counts, len(added) + len(removed), core, touching))


def _new_ids(
    base: Base, overlay: Overlay, records: Sequence[AccessControlEntryRecord]
) -> dict[int, AccessControlEntryRecord]:
    """Return these records by the integer value of the id. Raises ReplayError: an id exists already."""
    added, removed, find = overlay.added, overlay.removed, base.ids.find if base.has_ids else None
    new: dict[int, AccessControlEntryRecord] = {}
    for record in records:
        number = record.id.int
        if (
            number in new
            or added.get(number) is not None
            or (find is not None and (row := find(number)) >= 0 and row not in removed)
        ):
            raise ReplayError(f"ACL {uuid_text(record.id)} is added, but exists already")
        new[number] = record
    return new


def _touched_by(
    base: Base, overlay: Overlay, records: Sequence[AccessControlEntryRecord]
) -> tuple[dict[int, dict[str, TouchedResource]], layout.Core | None]:
    """Return the resources that new ACLs touch, by map of `Overlay.touched` and name, and the core with the ACLs.

    Raises ReplayError: one exists already under another id.
    """
    maps, core = overlay.touched, overlay.core
    now: dict[int, dict[str, TouchedResource]] = {}
    masks: dict[Codes, int] = {}
    for record in records:
        codes = record.resource_type, record.pattern_type, record.operation, record.permission_type
        kind, pattern, operation, permission = codes
        name, pair, literal = record.resource_name, (record.principal, record.host), pattern == _LITERAL
        # Inlined aclog.authorizer.index.acl_index.key_of: enum comparisons are slow here.
        if not 0 <= kind < layout.TYPES:
            kind = 0
        at = 2 * kind + literal
        by_name = now.get(at)
        if by_name is None:
            by_name = now[at] = {}
        touched = by_name.get(name) or maps[at].get(name)
        if touched is None:
            number = base.resource(kind, name, literal=literal)
            touched = _UNTOUCHED if number < 0 else _untouched(base, number)
        cells, rules, shrunk, resource = touched
        mask = masks.get(codes)
        if mask is None:
            mask = masks[codes] = layout.rule_mask(operation, permission)
        if resource < 0 and not rules:  # nearly every new ACL: the first one of its resource pattern
            first = {pair: _new_tuple(Cell, (mask, (record,), NO_ROWS))}
            by_name[name] = _new_tuple(TouchedResource, (first, 1, shrunk, resource))
            if core is not None:
                core = core.put(kind, name, literal, *pair, mask, 1)
            continue
        rows = NO_ROWS
        of_cell: tuple[AccessControlEntryRecord, ...] = (record,)
        cell = cells.get(pair)
        # The first change to a cell starts from the base's cell: from then on the overlay's mask replaces the base's.
        if cell is None and resource >= 0:
            cell = _untouched_cell(base, resource, pair)
        if cell is not None:
            _check_content(base, overlay, record.id, codes, cell)
            mask, rows, of_cell = mask | cell.mask, cell.rows, (*cell.added, record)
        cells = _as_map(cells).set(pair, _new_tuple(Cell, (mask, of_cell, rows)))
        by_name[name] = _new_tuple(TouchedResource, (cells, rules + 1, shrunk, resource))
        if core is not None:
            core = core.put(kind, name, literal, *pair, mask, rules + 1)
    return now, core


def _with_counts_of(
    overlay: Overlay, touched: Sequence[Map[str, TouchedResource]], records: Sequence[AccessControlEntryRecord]
) -> tuple[object, ...]:
    """Return the fields of an overlay from `lengths` to `units` after new ACLs; `touched` already has them."""
    _, _, _, lengths, stars, ranges, colonless, unbindable, irregular, units, *_ = overlay
    counts: dict[tuple[int, int], int] = {}
    for record in records:
        codes = record.resource_type, record.pattern_type, record.operation, record.permission_type
        name, kind = record.resource_name, codes[0] if 0 <= codes[0] < layout.TYPES else 0
        # Inlined for nearly all names: aclog.authorizer.index.layout.
        if name and name != WILDCARD:
            code = ord(name[0])
            unit = kind, code if code < _SUPPLEMENTARY else layout.first_unit(name)
            counts[unit] = counts.get(unit, 0) + 1
        if codes[1] != _LITERAL:
            lengths = _with_length(lengths, kind, len(name))
        elif name == WILDCARD:
            stars = (*stars[:kind], touched[2 * kind + 1][name], *stars[kind + 1 :])
        if codes not in _ORDINARY:
            unbindable += is_unbindable(codes)
            irregular += is_irregular(codes)
        if "/" in record.host:
            hosts = (*ranges.get(record.principal, ()), record.host)
            ranges = ranges.set(record.principal, hosts)
        colonless += ":" not in record.principal
    for unit, count in counts.items():
        units = units.set(unit, units.get(unit, 0) + count)
    return lengths, stars, ranges, colonless, unbindable, irregular, units


def _remove(base: Base, overlay: Overlay, uuid: UUID) -> Overlay:
    number = uuid.int
    record = overlay.added.get(number)
    if record is not None:
        return _remove_added(base, overlay, record)
    # The overlay comes first: an id that was removed from the base may have been added again.
    row = base.ids.find(number) if base.has_ids else -1
    if row < 0 or row in overlay.removed:
        raise ReplayError(f"ACL {uuid_text(uuid)} is removed, but does not exist")
    return _remove_row(base, overlay, row)


def _remove_added(base: Base, overlay: Overlay, record: AccessControlEntryRecord) -> Overlay:
    kind = record.resource_type
    codes = kind, record.pattern_type, record.operation, record.permission_type
    key = kind if 0 <= kind < layout.TYPES else 0, record.resource_name, codes[1] == _LITERAL
    pair = record.principal, record.host
    touched = overlay.touched[2 * key[0] + key[2]][key[1]]
    cell = touched.cells[pair]
    others = tuple(other for other in cell.added if other is not record)
    cells = _with_cell(base, touched.cells, pair, removed=overlay.removed, added=others, rows=cell.rows)
    touched = TouchedResource(cells, touched.rules - 1, touched.shrunk, touched.number)
    return _after_removal(
        overlay,
        key,
        pair,
        touched,
        added=overlay.added.delete(record.id.int),
        removed=overlay.removed,
        codes=codes,
    )


def _remove_row(base: Base, overlay: Overlay, row: int) -> Overlay:
    at = base.cell_of(row)
    resource = base.resource_of(at)
    data = base.resources.key(resource)
    key, pair = (
        (data[0], layout.resource_name(data), data[-1] == _LITERAL),
        layout.split_pair(base.pairs.key(base.cell_pairs[at])),
    )
    touched = overlay.touched[2 * key[0] + key[2]].get(key[1]) or _untouched(base, resource)
    cell = touched.cells.get(pair)
    others, rows = (cell.added, cell.rows) if cell is not None else ((), base.rows(at, at + 1))
    removed = overlay.removed.set(row, True)
    cells = _with_cell(base, touched.cells, pair, removed=removed, added=others, rows=rows)
    touched = TouchedResource(cells, touched.rules - 1, True, resource)
    codes = base.codes(row, data)
    return _after_removal(overlay, key, pair, touched, added=overlay.added, removed=removed, codes=codes)


def _with_cell(
    base: Base,
    cells: Cells,
    pair: PairKey,
    *,
    removed: Map[int, bool],
    added: tuple[AccessControlEntryRecord, ...],
    rows: range,
) -> Map[PairKey, Cell]:
    """Return the cells with one of them recomputed from these added ACLs and the base's rows that are not removed."""
    if not added and not rows:
        return _as_map(cells).delete(pair)
    # A bit cannot be taken out of an or-ed mask: another ACL of the cell may also set it.
    mask = 0
    for record in added:
        mask |= layout.rule_mask(record.operation, record.permission_type)
    for row in rows:
        if row not in removed:
            mask |= layout.rule_mask(base.operations[row], base.permissions[row])
    return _as_map(cells).set(pair, Cell(mask, added, rows))


def _as_map(cells: Cells) -> Map[PairKey, Cell]:
    return cells if isinstance(cells, Map) else Map(cells)


def _after_removal(
    overlay: Overlay,
    key: ResourceKey,
    pair: PairKey,
    touched: TouchedResource,
    *,
    added: Map[int, AccessControlEntryRecord],
    removed: Map[int, bool],
    codes: Codes,
) -> Overlay:
    """Return the overlay with the new state of a resource, from one cell of which an ACL was removed."""
    _, _, resources, lengths, stars, ranges, colonless, unbindable, irregular, units, _, core, touching = overlay
    kind, name, literal = key
    # Inlined for nearly all names: aclog.authorizer.index.layout.
    if name and name != WILDCARD:
        code = ord(name[0])
        unit = kind, code if code < _SUPPLEMENTARY else layout.first_unit(name)
        units = units.set(unit, units.get(unit, 0) - 1)
    # Lengths are never taken back when a prefix loses its ACLs: a look-up that finds nothing is cheap.
    if not literal:
        lengths = _with_length(lengths, kind, len(name))
    elif name == WILDCARD:
        stars = (*stars[:kind], touched, *stars[kind + 1 :])
    if codes not in _ORDINARY:
        unbindable -= is_unbindable(codes)
        irregular -= is_irregular(codes)
    at = 2 * kind + literal
    resources = (*resources[:at], resources[at].set(name, touched), *resources[at + 1 :])
    changes = len(added) + len(removed)
    if core is not None:
        cell = touched.cells.get(pair)
        core = core.put(kind, name, literal, *pair, -1 if cell is None else cell.mask, touched.rules)
    if touching is not None:
        touching = _with_pattern(touching, pair, at, name)
    counts = colonless, unbindable, irregular
    fields = added, removed, resources, lengths, stars, ranges, *counts, units, changes, core, touching
    return _new_tuple(Overlay, fields)


def _with_pattern(
    touching: Map[PairKey, tuple[tuple[int, str], ...] | None], pair: PairKey, at: int, name: str
) -> Map[PairKey, tuple[tuple[int, str], ...] | None]:
    """Return Overlay.touching with a pattern that has a touched cell of a pair."""
    patterns = touching.get(pair, ())
    if patterns is None or (at, name) in patterns:
        return touching
    return touching.set(pair, (*patterns, (at, name)) if len(patterns) < _MOST_PATTERNS else None)


def _with_length(lengths: tuple[tuple[int, ...], ...], kind: int, length: int) -> tuple[tuple[int, ...], ...]:
    """Return Overlay.lengths with the length of a prefix of this type."""
    if length in lengths[kind]:
        return lengths
    longest_first = tuple(sorted((*lengths[kind], length), reverse=True))
    return (*lengths[:kind], longest_first, *lengths[kind + 1 :])


def _untouched(base: Base, resource: int) -> TouchedResource:
    """Return the state of a resource that the base has unchanged, or that it does not have (-1)."""
    if resource < 0:
        return _UNTOUCHED
    return TouchedResource(_NO_CELLS, len(base.rows(*base.cells(resource))), shrunk=False, number=resource)


def _untouched_cell(base: Base, resource: int, pair: PairKey) -> Cell | None:
    """Return the base's cell of a resource and a pair, if there is one."""
    low, high = base.cell(resource, base.pair(*pair))
    return Cell(base.cell_masks[low], (), base.rows(low, high)) if low < high else None


def _check_content(base: Base, overlay: Overlay, uuid: UUID, codes: Codes, cell: Cell) -> None:
    """Raise ReplayError if the cell has an ACL with the same codes already."""
    other: UUID | None = None
    for record in cell.added:
        if codes == (record.resource_type, record.pattern_type, record.operation, record.permission_type):
            other = record.id
    if cell.rows:
        # A cell has few rows: at most one per operation and permission.
        data = base.resources.key(base.resource_of(base.cell_of(cell.rows[0])))
        for row in cell.rows:
            if row not in overlay.removed and base.codes(row, data) == codes:
                other = base.id_of(row) or UUID(int=0)
    if other is not None:
        both = f"ACL {uuid_text(uuid)} is the same as ACL {uuid_text(other)}"
        raise ReplayError(f"{both}: expected every ACL once")


# The merge of an overlay into the rows of a new base.
#
# It may run in a thread while others decide: no step holds the GIL for long, and `pause` is called between steps.


_CHUNK = 512
_Key = TypeVar("_Key", ResourceKey, PairKey)


def merged_rows(
    base: Base,
    added: Sequence[AccessControlEntryRecord],
    removed: Collection[int],
    pause: layout.Pause = layout.no_pause,
) -> Rows:
    """Return the rows of a base without the rows `removed` and with the records `added`."""
    keep = np.ones(len(base), np.bool_)
    keep[list(removed)] = False
    resource_of, pair_of = row_keys(base)
    resources, resource_of = _numbered(
        base.resources,
        resource_of[keep],
        map(key_of, added),
        find=lambda key: base.resource(key[0], key[1], literal=key[2]),
        encode=lambda key: resource_key(key[0], key[1], literal=key[2]),
        pause=pause,
    )
    pairs, pair_of = _numbered(
        base.pairs,
        pair_of[keep],
        ((record.principal, record.host) for record in added),
        find=lambda key: base.pair(*key),
        encode=lambda key: layout.pair_key(*key),
        pause=pause,
    )
    count = int(keep.sum())
    moved = np.cumsum(keep) - 1
    raw_codes = {int(moved[row]): kinds for row, kinds in base.raw_codes.items() if keep[row]}
    raw_codes |= {count + n: kinds for n, kinds in _raw_codes(added)}
    tags = {int(moved[row]): fields for row, fields in base.tags.items() if keep[row]}
    tags |= {count + n: record.tagged_fields for n, record in enumerate(added) if record.tagged_fields}
    ids = np.frombuffer(base.ids.ids, np.uint8).reshape(-1, 16)[keep]
    return Rows(
        resources=resources,
        resource_of=resource_of,
        pairs=pairs,
        pair_of=pair_of,
        ids=np.concatenate((ids, np.frombuffer(b"".join(r.id.bytes for r in added), np.uint8).reshape(-1, 16))),
        has_ids=base.has_ids,
        operations=_codes(base.operations, keep, [record.operation for record in added]),
        permissions=_codes(base.permissions, keep, [record.permission_type for record in added]),
        raw_codes=raw_codes,
        tags=tags,
    )


def _raw_codes(added: Sequence[AccessControlEntryRecord]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the codes of a resource pattern that its key does not have, by row."""
    for n, record in enumerate(added):
        kind, pattern = record.resource_type, record.pattern_type
        if pattern not in _PATTERNS or not 0 <= kind < layout.TYPES:
            yield n, (kind, pattern)


def _codes(before: memoryview, keep: Bools, added: list[int]) -> Bytes:
    return np.concatenate((np.frombuffer(before, np.uint8)[keep], np.array(added, np.int8).view(np.uint8)))


def _numbered(
    table: layout.KeyTable,
    numbers: layout.Int32s,
    added: Iterable[_Key],
    *,
    find: Callable[[_Key], int],
    encode: Callable[[_Key], bytes],
    pause: layout.Pause,
) -> tuple[layout.ByteStrings, layout.Int32s]:
    """Return the keys that are used after the merge, and the number of each row's key.

    `find` returns the number of a key in the table, or -1, and `encode` its bytes; each is called once for a key.
    """
    new: list[bytes] = []
    known: dict[_Key, int] = {}
    added_numbers = []
    for n, key in enumerate(added):
        if n % _CHUNK == 0:
            pause()
        number = known.get(key, -1)
        if number < 0:
            number = find(key)
            if number < 0:
                number = len(table) + len(new)
                new.append(encode(key))
            known[key] = number
        added_numbers.append(number)
    numbers = np.concatenate((numbers, np.array(added_numbers, np.int32)))
    offsets = np.asarray(table.offsets).astype(np.int64)
    keys = layout.ByteStrings(offsets, np.frombuffer(table.data, np.uint8)).joined(layout.ByteStrings.of(new))
    used = np.bincount(numbers, minlength=len(keys)) > 0
    if not used.all():
        keys = keys.take(np.flatnonzero(used), pause)
        numbers = (np.cumsum(used) - 1).astype(np.int32)[numbers]
    return keys, numbers
