"""Resolution of (principal, host) to the pairs that match, CIDR ranges among them, and the ACLs of a subject."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Self

from attrs import evolve

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, address_number, is_cidr, rule_of
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, PatternType
from aclog.authorizer.index import layout
from aclog.authorizer.index.acl_index import AclIndex, Levels, Resource, ResourceKey, TouchedResource
from aclog.authorizer.index.base import Base, Subject
from aclog.authorizer.index.name_resources import NameResources
from aclog.authorizer.index.scan_order import (
    PairedTable,
    ScanKey,
    Tables,
    first_visits,
    numbers_of,
    scan_key,
    tables_of,
)
from aclog.authorizer.interface import InvalidRequestError
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.native import np
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Resolution of (principal, host) to the pairs that match: itself, `User:*`, host `*`, and CIDR ranges if enabled.


_NO_HOSTS: tuple[str, ...] = ()


def check_principal(principal: str) -> None:
    """Check the principal of a request.

    Raises:
        InvalidRequestError: it has no colon or is `User:*`; Kafka's authorizer throws on both.

    """
    if principal == WILDCARD_PRINCIPAL:
        raise InvalidRequestError(
            f"{principal} cannot be the principal of a request: in an ACL it means every principal"
        )
    if ":" not in principal:
        raise InvalidRequestError(f"invalid principal {principal!r}: expected principalType:principalName")


def matching_pairs(principal: str, host: str) -> tuple[tuple[str, str], ...]:
    """Return the (principal, host) texts of ACLs that match this subject. Raises as `check_principal`."""
    check_principal(principal)
    if host == WILDCARD:
        return (principal, host), (WILDCARD_PRINCIPAL, host)
    return (principal, host), (principal, WILDCARD), (WILDCARD_PRINCIPAL, host), (WILDCARD_PRINCIPAL, WILDCARD)


def resolve(index: AclIndex, principal: str, host: str) -> Subject:
    """Return the subject, memoised by the base. Raises as `check_principal`."""
    memo, key = index.base.memo.subjects, (principal, host)
    subject = memo.young.get(key)
    if subject is None:
        subject = memo.old.get(key)
        # Without its chain masks: those of a subject that is always in use would never be dropped.
        subject = index.base.subject(matching_pairs(principal, host)) if subject is None else subject.renewed()
        memo.put(key, subject)
    return subject


def resolve_ranges(index: AclIndex, principal: str, host: str) -> Subject:
    """Return the subject if hosts of ACLs may be CIDR ranges. Raises as `check_principal`."""
    # Memoised by the base, together with what the overlay had then: an added ACL may bring a new range. Most updates
    # bring none and leave these tuples as they are.
    memo, added = index.base.memo.range_subjects, index.overlay.ranges
    own, everybodys = added.get(principal, _NO_HOSTS), added.get(WILDCARD_PRINCIPAL, _NO_HOSTS)
    key = principal, host
    entry = memo.young.get(key)
    if entry is None and (entry := memo.old.get(key)) is not None:
        entry = entry[0].renewed(), entry[1], entry[2]
        memo.put(key, entry)
    if entry is not None and entry[1] is own and entry[2] is everybodys:
        return entry[0]
    keys = matching_pairs(principal, host)
    address = address_number(host)
    if address is not None:
        for who, hosts in (principal, own), (WILDCARD_PRINCIPAL, everybodys):
            ranges = _ranges(index.base, who, hosts)
            if ranges is not None:
                keys += tuple((who, where) for where in dict.fromkeys(ranges.containing(address)))
    subject = index.base.subject(keys)
    memo.put(key, (subject, own, everybodys))
    return subject


def _ranges(base: Base, principal: str, added: tuple[str, ...]) -> layout.RangeHosts | None:
    """Return the ranges of a principal, in the base and of an overlay; None without ranges."""
    ranges = base.memo.range_hosts.get(principal)
    if ranges is None:
        pairs = base.pairs_of(principal, base.range_pairs) if len(base.range_pairs) else []
        if not pairs and not added:
            return None  # not remembered: clients choose principals
        ranges = layout.RangeHosts()
        ranges.add(layout.split_pair(base.pairs.key(pair))[1] for pair in pairs)
        base.memo.range_hosts[principal] = ranges
    ranges.add_overlay(added)
    return ranges


# The ACLs that deny, or allow, one subject one operation; only the subject's own cells are read.


@frozen(eq=False, repr=False)
class SubjectRules:
    """The ACLs that match a subject and set one bit of the mask."""

    index: AclIndex
    subject: Subject
    bit: int
    """ALLOWED or DENIED, shifted by the operation."""

    def levels(self, resource_type: int, name: str, *, documented: bool) -> Levels:
        """Return AclIndex.levels, reduced to the patterns that have such an ACL."""
        named: list[list[Resource]] = []
        empty: list[Resource] = []
        for resource in chain(self._literal(resource_type, name), self._prefixes(resource_type, name)):
            if not resource.name:
                empty.append(resource)
            elif named and named[-1][0].name == resource.name:
                named[-1].append(resource)
            else:
                named.append([resource])
        is_covered = name != WILDCARD and (documented or name[:1] != WILDCARD)
        return Levels(named, self._wildcard(resource_type) if is_covered else [], empty)

    def rules(self, level: list[Resource]) -> Iterator[StandardAclWithId]:
        """Yield such ACLs of these patterns in no particular order."""
        base = self.index.base
        for resource in level:
            for cell, row in self._rows(resource):
                yield from base.rules((row,), base.resources.key(resource.number), resource.name, cell)
            if resource.touched is not None:
                yield from map(rule_of, self._records(resource))

    def _literal(self, resource_type: int, name: str) -> list[Resource]:
        index, base = self.index, self.index.base
        low, high, _, _ = base.lookup(resource_type, name)
        if index.overlay.changes:
            literal = index.literal(resource_type, name)
            return [literal] if self._has(literal) else []
        if not base.cells_mask(low, high, self.subject.pairs) & self.bit:
            return []
        return [Resource(name, literal=True, number=base.resource_of(low), touched=None)]

    def _prefixes(self, resource_type: int, name: str) -> Iterable[Resource]:
        """Return the prefixes of a name with such an ACL, longest first."""
        index, base, subject, bit = self.index, self.index.base, self.subject, self.bit
        if index.overlay.lengths[resource_type]:
            return filter(self._has, index.prefixes(resource_type, name))
        _, _, node, _ = base.lookup(resource_type, name)
        prefixes = base.prefixes
        resources = []
        # The mask of a chain covers all shorter prefixes: without the bit, the rest of the chain can be skipped.
        while node >= 0 and base.chain_mask(subject, node) & bit:
            number = prefixes.resources[node]
            if base.cells_mask(*base.cells(number), subject.pairs) & bit:
                resources.append(Resource(prefixes.name(node).decode(), literal=False, number=number, touched=None))
            node = prefixes.parents[node]
        return resources

    def _wildcard(self, resource_type: int) -> list[Resource]:
        index = self.index
        untouched = index.overlay.wildcards[resource_type] is None
        if untouched and not index.base.wildcard_mask(self.subject, resource_type) & self.bit:
            return []
        wildcard = index.literal(resource_type, WILDCARD)
        return [wildcard] if self._has(wildcard) else []

    def _has(self, resource: Resource) -> bool:
        if resource.touched is None:
            base = self.index.base
            return bool(base.cells_mask(*base.cells(resource.number), self.subject.pairs) & self.bit)
        return bool(self._rows(resource) or self._records(resource))

    def _rows(self, resource: Resource) -> list[tuple[int, int]]:
        """Return (cell, row) of such ACLs in the base."""
        base, removed, bit = self.index.base, self.index.overlay.removed, self.bit
        return [
            (cell, row)
            for pair in self.subject.pairs
            for cell in range(*base.cell(resource.number, pair))
            for row in base.rows(cell, cell + 1)
            if layout.rule_mask(base.operations[row], base.permissions[row]) & bit and row not in removed
        ]

    def _records(self, resource: Resource) -> list[AccessControlEntryRecord]:
        """Return the records of such ACLs in the overlay."""
        if resource.touched is None:
            return []
        cells = resource.touched.cells
        of_subject = (cells[key].added for key in self.subject.keys if key in cells)
        return [
            record
            for added in of_subject
            for record in added
            if layout.rule_mask(record.operation, record.permission_type) & self.bit
        ]


# ACLs whose principal has no colon, on which Kafka's authorizer throws when its scan comes to one.
#
# CreateAcls refuses them, so almost no log has one. But one is enough to check, at each decision, whether Kafka would
# throw: whether its scan comes to such an ACL before the first DENY that matches.


_MAX_PATTERNS = 256
"""With more resource patterns of a type that have such an ACL, none is compared with a name beforehand."""


class Patterns(NamedTuple):
    """The resource patterns of one type in the base that have such an ACL."""

    literal: frozenset[str]
    prefixes: tuple[str, ...]


class Place(NamedTuple):
    """Such an ACL and its place among the ACLs on its name."""

    key: ScanKey
    acl: StandardAcl
    row: int
    """Of the base, or -1."""


def check_principals(
    index: AclIndex, subject: Subject, operation: int, *, resource_type: int, name: str, documented: bool
) -> None:
    """Check the principals of the ACLs that Kafka would visit, up to the first DENY that matches.

    Raises:
        InvalidRequestError: a principal without a colon, on which Kafka's authorizer throws.

    """
    if not index.overlay.colonless and not _may_cover(index.base, resource_type, name):
        return
    levels = index.levels(resource_type, name, documented=documented)
    denying = SubjectRules(index, subject, layout.DENIED << operation)
    for level in first_visits(index, levels, resource_type, name):
        # Not all ACLs of the level are sorted, only those that end the scan: a level may have 100,000.
        places = (place for resource in level for place in _places(index, resource_type, resource))
        odd = min(places, key=attrgetter("key"), default=None)
        denied = min(map(scan_key, denying.rules(level)), default=None)
        if odd is not None and (denied is None or odd.key < denied):
            raise InvalidRequestError(
                f"an ACL on the resource has the principal {odd.acl.principal!r}: expected principalType:principalName"
            )
        if denied is not None:
            return


def of_type(index: AclIndex, resource_type: int) -> Iterator[StandardAcl]:
    """Yield such ACLs on resources of a type."""
    base, overlay = index.base, index.overlay
    for number in base.colonless_resources:
        key = base.resources.key(number)
        if key[0] == resource_type:
            yield from (place.acl for place in _of_base(base, number, key) if place.row not in overlay.removed)
    if overlay.colonless:
        for touched in chain.from_iterable(overlay.touched[2 * resource_type + literal].values() for literal in (0, 1)):
            yield from (place.acl for place in _of_cells(touched))


def _may_cover(base: Base, resource_type: int, name: str) -> bool:
    """Return whether a resource pattern of the base that has such an ACL may cover a name; usually none does."""
    patterns = base.memo.colonless_patterns.get(resource_type)
    if patterns is None:
        patterns = base.memo.colonless_patterns[resource_type] = _patterns(base, resource_type)
    literal, prefixes = patterns
    return name in literal or WILDCARD in literal or len(prefixes) > _MAX_PATTERNS or name.startswith(prefixes)


def _patterns(base: Base, resource_type: int) -> Patterns:
    keys = [key for key in map(base.resources.key, base.colonless_resources) if key[0] == resource_type]
    literal = frozenset(layout.resource_name(key) for key in keys if key[-1] == PatternType.LITERAL)
    return Patterns(literal, tuple(layout.resource_name(key) for key in keys if key[-1] != PatternType.LITERAL))


def _places(index: AclIndex, resource_type: int, resource: Resource) -> Iterator[Place]:
    base, removed = index.base, index.overlay.removed
    if resource.number in base.colonless_resources:
        key = base.resources.key(resource.number)
        yield from (place for place in _of_base(base, resource.number, key) if place.row not in removed)
    if resource.touched is not None and index.overlay.colonless:
        places: dict[ResourceKey, list[Place]] = index.memo.setdefault("colonless", {})
        resource_key = resource_type, resource.name, resource.literal
        resource_places = places.get(resource_key)
        if resource_places is None:
            resource_places = places[resource_key] = _of_cells(resource.touched)
        yield from resource_places


def _of_base(base: Base, number: int, key: bytes) -> list[Place]:
    """Return those of a resource in the base, found once: its pairs have to be read one by one."""
    places = base.memo.colonless.get(number)
    if places is None:
        places, name = [], layout.resource_name(key)
        for cell in range(*base.cells(number)):
            pair = base.pairs.key(base.cell_pairs[cell])
            if (
                b":" not in pair[: pair[0]] and ":" not in layout.split_pair(pair)[0]
            ):  # the first test is the faster one
                rows = base.rows(cell, cell + 1)
                rules = base.rules(rows, key, name, cell)
                places += [Place(scan_key(rule), rule.acl, row) for row, rule in zip(rows, rules, strict=True)]
        base.memo.colonless[number] = places
    return places


def _of_cells(touched: TouchedResource) -> list[Place]:
    """Return those that were added to a resource."""
    return [
        Place(scan_key(rule), rule.acl, -1)
        for (principal, _), cell in touched.cells.items()
        if ":" not in principal
        for rule in map(rule_of, cell.added)
    ]


# The pairs whose host is a CIDR range (KIP-1276), and which of them match many requests.


@frozen(eq=False, kw_only=True, repr=False)
class SubjectPairs:
    """Pairs that match some requests through a range."""

    starts: Int64s
    pairs: layout.Int32s
    """Those of subject s are `pairs[starts[s]:starts[s + 1]]`."""
    subject_of: Int64s
    """By request."""

    @classmethod
    def of(cls, pairs: Sequence[Sequence[int]], subject_of: Int64s) -> Self:
        """Return the pairs of these subjects."""
        counts = np.fromiter(map(len, pairs), np.int64, len(pairs))
        flat = np.array([pair for each in pairs for pair in each], np.int32)
        return cls(starts=np.concatenate(([0], np.cumsum(counts))), pairs=flat, subject_of=subject_of)

    def of_rows(self, rows: slice) -> Self:
        """Return those of some requests, numbered from 0."""
        return evolve(self, subject_of=self.subject_of[rows])

    def of_requests(self, request: Int64s) -> tuple[Int64s, layout.Int32s]:
        """Return (i, pair) for each pair that matches request[i]."""
        subject = self.subject_of[request]
        at, place = layout.expanded(self.starts[subject], self.starts[subject + 1])
        return at, self.pairs[place]


@frozen(eq=False, kw_only=True, repr=False)
class RangePairs:
    """The pairs of a base whose host is a range, by principal."""

    _of_principal: Mapping[str, Mapping[str, int]]
    """By host, including hosts with a slash that are not ranges and match no client."""
    _hosts: layout.RangeHosts
    """The hosts of all principals: an address is looked up once for all."""

    @classmethod
    def of(cls, base: Base) -> Self:
        """Return the pairs of a base."""
        by_principal: dict[str, dict[str, int]] = {}
        hosts = layout.RangeHosts()
        for number in base.range_pairs:
            principal, host = layout.split_pair(base.pairs.key(number))
            if "/" in host:
                by_principal.setdefault(principal, {})[host] = number
        hosts.add(host for pairs in by_principal.values() for host in pairs)
        return cls(of_principal=by_principal, hosts=hosts)

    def subject_pairs(
        self, principals: Sequence[str], principal_of: layout.Int32s, hosts: Sequence[str], host_of: layout.Int32s
    ) -> list[SubjectPairs]:
        """Return the pairs that match each request, dictionary-encoded as in RequestCodes: `User:*`'s, and its own."""
        if not self._of_principal:
            return []
        containing = [self._containing(host) for host in hosts]
        pairs = []
        if WILDCARD_PRINCIPAL in self._of_principal:
            everybodys = [self._pairs(WILDCARD_PRINCIPAL, ranges) for ranges in containing]
            pairs.append(SubjectPairs.of(everybodys, host_of.astype(np.int64)))
        has_ranges = np.fromiter((who in self._of_principal for who in principals), np.bool_, len(principals))
        rows = np.flatnonzero(has_ranges[principal_of])
        if len(rows):
            numbers = principal_of[rows].astype(np.int64) * len(hosts) + host_of[rows]
            subjects, number_of = np.unique(numbers, return_inverse=True)
            parts = (divmod(subject, len(hosts)) for subject in subjects.tolist())
            own = [self._pairs(principals[who], containing[where]) for who, where in parts]
            subject_of = np.zeros(len(principal_of), np.int64)  # subject 0 has none
            subject_of[rows] = number_of + 1
            pairs.append(SubjectPairs.of([[], *own], subject_of))
        return pairs

    def _containing(self, host: str) -> frozenset[str]:
        address = address_number(host)
        return frozenset() if address is None else frozenset(self._hosts.containing(address))

    def _pairs(self, principal: str, hosts: frozenset[str]) -> list[int]:
        pairs = self._of_principal[principal]
        return sorted(pairs[host] for host in pairs.keys() & hosts)


def range_masks(index: AclIndex) -> list[int]:
    """Return the masks of all ACLs whose host is a range, or-ed, by the code of the resource type.

    They may still have the bits of ACLs that were removed since the base was built.
    """
    masks = list(_base_masks(index.base))
    if index.overlay.ranges:
        for (kind, _, _), touched in index.overlay.resources():
            for (_, host), cell in touched.cells.items():
                if is_cidr(host):
                    masks[kind] |= cell.mask
    return masks


def _base_masks(base: Base) -> tuple[int, ...]:
    cached = base.memo.range_masks
    if cached is None:
        masks = [0] * layout.TYPES
        pairs = [pair for pair in base.range_pairs if is_cidr(layout.split_pair(base.pairs.key(pair))[1])]
        if pairs:
            cells = np.flatnonzero(np.isin(np.asarray(base.cell_pairs), pairs))
            resources = np.searchsorted(np.asarray(base.cell_starts), cells, side="right") - 1
            for resource, mask in zip(resources.tolist(), np.asarray(base.cell_masks)[cells].tolist(), strict=True):
                masks[base.resources.key(resource)[0]] |= mask
        cached = base.memo.range_masks = tuple(masks)
    return cached


# Every ACL that matches, for many requests at a time: two columns (request, row of the base).
#
# Which ACL determines each decision follows from the matches and aclog.authorizer.index.scan_order; so does what a
# decision depends on: which ACLs could be removed without changing it.


_CHUNK = 1 << 17
"""Requests processed at a time; bounds the memory for intermediate columns."""

_FEW_REQUESTS = 4
"""With fewer than one request per this many pairs of the base, pairs are looked up one by one."""

_EVERYBODY = WILDCARD_PRINCIPAL, WILDCARD


@frozen(eq=False, kw_only=True, repr=False)
class RequestCodes:
    """Requests without operations, dictionary-encoded: the distinct values, and per request an index into them."""

    principals: Sequence[str]
    principal_of: layout.Int32s
    hosts: Sequence[str]
    host_of: layout.Int32s
    types: Sequence[int]
    """0..7; `types` and `names` together are the distinct resources."""
    names: Sequence[str]
    name_of: layout.Int32s
    """Index into `types` and `names`."""


@frozen(eq=False, kw_only=True, repr=False)
class Matches:
    """Pairs of a request (its index) and a row of the base that matches it, sorted by request."""

    request: Int64s
    row: Int64s


@frozen(eq=False, kw_only=True, repr=False)
class Matcher:
    """Finds matches in a base. Built once for many calls; takes about 30 bytes per ACL on top of the base."""

    base: Base
    documented: bool
    masks: layout.Masks
    """By row: the ACL's mask (aclog.authorizer.index.layout)."""
    _tables: Tables
    _cells: PairedTable
    """(resource, pair) -> cell + 1."""
    _cell_rows: Int64s
    _ranges: RangePairs | None
    """None unless the host of an ACL may be a CIDR range."""

    @classmethod
    def of(cls, base: Base, *, documented: bool = False, cidr: bool = False) -> Self:
        """Build the tables; `documented` and `cidr` as in AclsImage."""
        resources = np.repeat(np.arange(len(base.resources)), np.diff(np.asarray(base.cell_starts)))
        cell_pairs = np.asarray(base.cell_pairs).astype(np.int64)
        numbers = np.arange(1, len(cell_pairs) + 1, dtype=np.uint32)
        codes = np.frombuffer(base.permissions, np.uint8).astype(np.int64) << 8
        return cls(
            base=base,
            documented=documented,
            masks=layout.mask_table().ravel()[codes | np.frombuffer(base.operations, np.uint8)],
            tables=tables_of(base),
            cells=PairedTable.of(resources, cell_pairs, numbers),
            cell_rows=np.asarray(base.cell_rows).astype(np.int64),
            ranges=RangePairs.of(base) if cidr else None,
        )

    def resources_on(self, requests: RequestCodes) -> NameResources:
        """Return the patterns that cover the requested names."""
        return NameResources.of(self.base, requests.types, requests.names, documented=self.documented)

    def matches(self, requests: RequestCodes, operations: NDArray[np.uint8], resources: NameResources) -> Matches:
        """Return what matches each request. No principal may be `User:*` and no host `*`."""
        pairs = self._pairs(requests)
        ranges: list[SubjectPairs] = []
        if self._ranges is not None:
            ranges = self._ranges.subject_pairs(
                requests.principals, requests.principal_of, requests.hosts, requests.host_of
            )
        chunks = [
            self._chunk(
                operations=operations[rows],
                covering=resources.of_requests(requests.name_of[rows]),
                pairs=[pair[rows] for pair in pairs],
                ranges=[each.of_rows(rows) for each in ranges],
                start=rows.start,
            )
            for rows in (slice(start, start + _CHUNK) for start in range(0, max(len(operations), 1), _CHUNK))
        ]
        return Matches(
            request=np.concatenate([matches.request for matches in chunks]),
            row=np.concatenate([matches.row for matches in chunks]),
        )

    def _pairs(self, requests: RequestCodes) -> list[layout.Int32s]:
        """Return the four pairs that match each request (own and wildcard principal and host); -1 for absent ones."""
        if len(requests.name_of) * _FEW_REQUESTS < len(self.base.pairs):
            return self._pairs_one_by_one(requests)
        tables = self._tables
        principals = numbers_of(requests.principals, tables.principals)
        hosts = numbers_of(requests.hosts, tables.hosts)
        (any_principal,) = numbers_of([WILDCARD_PRINCIPAL], tables.principals).tolist()
        (anywhere,) = numbers_of([WILDCARD], tables.hosts).tolist()
        who, where = principals[requests.principal_of], hosts[requests.host_of]
        every_who, every_where = np.full_like(who, any_principal), np.full_like(where, anywhere)
        subjects = ((who, where), (who, every_where), (every_who, where), (every_who, every_where))
        return [tables.pair(*subject) for subject in subjects]

    def _pairs_one_by_one(self, requests: RequestCodes) -> list[layout.Int32s]:
        """Return the same for few requests: `numbers_of` would hash every principal that has ACLs, at each call."""
        find, numbers = self.base.pair, dict[tuple[str, str], int]()
        pairs = []
        for who, where in zip(requests.principal_of.tolist(), requests.host_of.tolist(), strict=True):
            principal, host = requests.principals[who], requests.hosts[where]
            for pair in (principal, host), (principal, WILDCARD), (WILDCARD_PRINCIPAL, host), _EVERYBODY:
                number = numbers.get(pair)
                if number is None:
                    number = numbers[pair] = find(*pair)
                pairs.append(number)
        return list(np.array(pairs, np.int32).reshape(-1, 4).T)

    def _chunk(
        self,
        *,
        operations: NDArray[np.uint8],
        covering: tuple[Int64s, layout.Int32s],
        pairs: list[layout.Int32s],
        ranges: Sequence[SubjectPairs],
        start: int,
    ) -> Matches:
        """Return the matches of the requests from `start` on; all columns are cut to these requests."""
        request, resource = covering
        owners, cells = [], []
        # Pairs differ, so a cell is hit through one of them only and no match is found twice.
        for pair in pairs:
            cell = self._cells.get(resource, pair[request]).astype(np.int64) - 1
            hit = np.flatnonzero(cell >= 0)
            owners.append(request[hit])
            cells.append(cell[hit])
        for each in ranges:
            at, pair = each.of_requests(request)
            cell = self._cells.get(resource[at], pair).astype(np.int64) - 1
            hit = np.flatnonzero(cell >= 0)
            owners.append(request[at][hit])
            cells.append(cell[hit])
        owner, cell = np.concatenate(owners), np.concatenate(cells)
        at, row = layout.expanded(self._cell_rows[cell], self._cell_rows[cell + 1])
        request = owner[at]
        bits = self.masks[row] >> operations[request] & np.uint32(layout.ALLOWED | layout.DENIED)
        decisive: Bools = bits != 0
        request, row = request[decisive], row[decisive]
        order = np.argsort(request, kind="stable")
        return Matches(request=request[order] + start, row=row[order])
