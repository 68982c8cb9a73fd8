"""Rows: the lines of a report on a change, each with access that some principals gain or lose."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import takewhile
from typing import Generic, Self, TypeVar

from attrs import evolve

from aclog.analysis.regions import (
    ANY_NAME,
    EVERYONE,
    EVERYWHERE,
    REQUESTED,
    Direction,
    Hosts,
    Literal,
    NamePart,
    Names,
    Principals,
    Region,
    Request,
    Subtree,
    common,
    contains,
    everyone_but,
    only,
    operations_of,
    requests_text,
    witness,
)
from aclog.authorizer.acl import StandardAcl, is_cidr
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index.layout import ALL_OPERATIONS, rule_mask
from aclog.authorizer.settings import Settings
from aclog.metalog.values import frozen

# A row: a line of a report on a change, with access that some principals gained or lost.


@frozen(kw_only=True)
class Clause:
    """Operations on names of one type: a part of a row."""

    resource_type: ResourceType
    operations: int
    """A mask (aclog.analysis.regions)."""
    names: Names


class Setting(Enum):
    """A setting that affects decisions."""

    SUPER_USERS = "super.users"
    ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"
    SEMANTICS = "the scope of LITERAL *"


class Bound(Enum):
    """The sets in which a row may exceed the changes."""

    NONE = ""
    """None: every request of the row changed."""
    WHO = "principals and hosts"
    """Each operation of a clause changed on each of its names: for some of the principals, from some of the hosts."""
    NAMES = "principals, names and hosts"
    """Each operation of a clause changed: on some of its names, for some of the principals, from some of the hosts."""
    ALL = "principals, operations, names and hosts"
    """Some requests changed; overlaps of address ranges are not resolved."""


@frozen(kw_only=True)
class Cause:
    """The cause of a summary: ACLs that were added or removed, all with one permission, or a setting."""

    is_added: bool
    """Whether the ACLs were added, or the setting was turned on (super.users: principals were added)."""
    rules: tuple[StandardAcl, ...] = ()
    setting: Setting | None = None


@frozen(kw_only=True)
class Summary:
    """The exact counts of a summary, and the bound of its claim."""

    cause: Cause
    bound: Bound
    principals: int
    """How many of the principals that ACLs or settings name gained or lost access."""
    everyone_else: bool
    """Whether principals that are not named also did."""
    rules: int
    """How many ALLOW rules cover some of the row's requests: of the policy before if there are losses, of the policy
    after
    if there are only gains. 0 if the cause is a setting."""


@frozen(kw_only=True)
class Row:
    """Access that some principals gained or lost from some hosts.

    Without `summary` the row is exact: one direction, and every request by one of the principals, from one of the
    hosts, for an operation and name of a clause changed in it. With `summary` no other requests changed for that cause;
    `bound` has the sets in which the row may exceed the changes, and the row may have both directions.
    """

    directions: tuple[Direction, ...]
    principals: Principals
    hosts: Hosts
    clauses: tuple[Clause, ...]
    """By resource type and name; never empty."""
    witness: Request
    """A request that changed."""
    before: StandardAcl | str | None
    """The rule that decided the witness, or `SuperUser`, `DefaultAllow` or `DefaultDeny`; None if Kafka throws."""
    after: StandardAcl | str | None
    legal: bool
    """Whether the row has a legal name; only topic names are restricted."""
    summary: Summary | None = None
    by_kafka: bool = False
    """Whether the row has only differences by another generation of Kafka (Difference.by_kafka)."""
    witness_exists: bool = False
    """Whether the topic of the witness is known to exist."""

    @property
    def bound(self) -> Bound:
        """The sets in which the row may exceed the changes."""
        return Bound.NONE if self.summary is None else self.summary.bound

    @property
    def witness_is_made_up(self) -> bool:
        """Whether the name of the witness is made up from a prefix: no rule has it, and no such topic is known."""
        kind, own = self.witness.resource_type, Literal(name=self.witness.resource_name)
        return not self.witness_exists and not any(
            own in clause.names for clause in self.clauses if clause.resource_type == kind
        )

    def __contains__(self, request: Request) -> bool:
        """Return whether the row covers a request; in a summary the request may be unchanged."""
        return (
            request.principal in self.principals
            and request.host in self.hosts
            and any(
                clause.resource_type == request.resource_type
                and clause.operations >> request.operation & 1
                and contains(clause.names, request.resource_name)
                for clause in self.clauses
            )
        )


# The extent of an ACL: the requests that it covers.


WILDCARD_NAMES: Names = (Subtree(prefix="", except_prefixes=(WILDCARD,)), Literal(name=WILDCARD))
"""The names that LITERAL `*` covers in Kafka 4.3.1."""


@frozen(kw_only=True)
class Extent:
    """The requests that an ACL covers; `names` is empty if it covers no request."""

    resource_type: ResourceType
    operations: int
    """A mask (aclog.analysis.regions), including the operations that an ALLOW implies."""
    principals: Principals
    hosts: Hosts
    names: Names

    def region(self) -> Region:
        """Return the extent as a region."""
        return Region(
            resource_type=self.resource_type,
            operations=self.operations,
            principals=self.principals,
            hosts=self.hosts,
            names=self.names,
        )

    def meets(self, region: Region, names: Names | None = None) -> bool:
        """Return whether the extent and a region have requests in common; ranges of addresses are not compared.

        `names`: some of the region's names, to which the comparison is limited.
        """
        return (
            self.resource_type == region.resource_type
            and bool(self.operations & region.operations)
            and principals_meet(self.principals, region.principals)
            and hosts_meet(self.hosts, region.hosts)
            and names_meet(self.names, region.names if names is None else names)
        )

    def spans(self, region: Region) -> bool:
        """Return whether the extent covers all principals, hosts and operations of a region."""
        return (
            not region.operations & ~self.operations
            and self.principals in (EVERYONE, region.principals)
            and self.hosts in (EVERYWHERE, region.hosts)
        )


def extent_of(rule: StandardAcl, settings: Settings) -> Extent:
    """Return the extent of an ACL of a known resource type under some settings."""
    names, throws = pattern_names(rule, settings), ":" not in rule.principal
    mask = ALL_OPERATIONS if throws else rule_mask(rule.operation, rule.permission_type)
    return Extent(
        resource_type=ResourceType(rule.resource_type),
        operations=(mask | mask >> 16) & ALL_OPERATIONS & REQUESTED,
        principals=EVERYONE if throws or rule.principal == WILDCARD_PRINCIPAL else only(rule.principal),
        hosts=EVERYWHERE if throws else _hosts(rule.host, settings),
        names=names,
    )


def is_allow(rule: StandardAcl) -> bool:
    """Return whether an ACL allows; one whose principal has no colon acts as a DENY, since Kafka throws on it."""
    return rule.permission_type == AclPermissionType.ALLOW and ":" in rule.principal


def pattern_names(rule: StandardAcl, settings: Settings) -> Names:
    """Return the names that the pattern of an ACL covers."""
    name, literal = rule.resource_name, rule.pattern_type == PatternType.LITERAL
    star = literal and name == WILDCARD
    if rule.resource_type == ResourceType.CLUSTER:
        covers = star or (name == CLUSTER_NAME if literal else CLUSTER_NAME.startswith(name))
        return (Literal(name=CLUSTER_NAME),) if covers else ()
    if star:
        return ANY_NAME if settings.documented else WILDCARD_NAMES
    if literal:
        return (Literal(name=name),) if name else ()
    return (Subtree(prefix=name),)


def _hosts(host: str, settings: Settings) -> Hosts:
    if host == WILDCARD:
        return EVERYWHERE
    return Hosts(entries=(host,)) if "/" not in host or (settings.cidr and is_cidr(host)) else Hosts()


def principals_meet(one: Principals, other: Principals) -> bool:
    """Return whether two sets of principals have one in common."""
    if one.complement and other.complement:
        return True
    if one.complement:
        one, other = other, one
    return any(name in other for name in one.named)


def hosts_meet(one: Hosts, other: Hosts) -> bool:
    """Return whether two sets of addresses have one in common; always True for two sets with ranges."""
    if one.complement and other.complement:
        return True
    if one.complement:
        one, other = other, one
    if any(entry in other for entry in one.entries if "/" not in entry):
        return True
    if other.complement:
        return one.entries != other.entries and any("/" in entry for entry in one.entries)
    if any(entry in one for entry in other.entries if "/" not in entry):
        return True
    return all(any("/" in entry for entry in each.entries) for each in (one, other))


def names_meet(some: Names, others: Names) -> bool:
    """Return whether two unions of names have one in common."""
    return any(_parts_meet(part, other) for part in some for other in others)


def _parts_meet(one: NamePart, other: NamePart) -> bool:
    if isinstance(one, Literal):
        return one.name in other
    if isinstance(other, Literal):
        return other.name in one
    outer, inner = sorted((one, other), key=lambda part: len(part.prefix))
    return inner.prefix.startswith(outer.prefix) and not inner.prefix.startswith(outer.except_prefixes)


# The texts of a row beyond those of a region.


_NO_SUPER_USERS = "{lose} all access that no rule grants: no longer super users"
_CHANGE_TEXTS = {
    (True, True, True): "{gain} access that was not granted before, unless a DENY applies",
    (False, True, False): "{lose} access that no other rule grants",
    (True, False, False): "{lose} all previous access here",
    (False, False, True): "{gain} access that other rules grant",
    # with allow.everyone.if.no.acl.found:
    (
        True,
        True,
        False,
    ): "{lose} access: the resources now have ACLs, so allow.everyone.if.no.acl.found no longer grants it",
    (
        False,
        True,
        True,
    ): "{gain} access: the resources have no ACLs any more, so allow.everyone.if.no.acl.found grants it",
}
"""The change of a summary, by whether the ACLs were added, whether they allow, and whether access was gained."""
_MESSAGE_TEXTS = {
    **_CHANGE_TEXTS,
    (
        True,
        True,
        False,
    ): "{lose} the access that allow.everyone.if.no.acl.found granted while the resources had no ACLs",
    (False, True, True): "{gain} the access that allow.everyone.if.no.acl.found grants to resources without ACLs",
}
"""The same in messages of SARIF."""


def directions_text(row: Row) -> str:
    """Return `GAINED`, `LOST` or `GAINED, LOST`."""
    return ", ".join(direction.value for direction in row.directions)


def claim_text(row: Row) -> str:
    """Return the claim of a row, such as `READ on TOPIC a`, or `at most READ on TOPIC *` if it is an upper bound."""
    what = what_text(row.clauses)
    return what if row.bound is Bound.NONE else f"at most {what}"


def bound_text(row: Row) -> str:
    """Return the bound of a claim, empty if the row is exact.

    Such as ` (some principals and hosts may be unaffected)`.
    """
    if row.bound is Bound.NONE:
        return ""
    return f" (some {row.bound.value} may be unaffected)"


def what_text(clauses: Sequence[Clause]) -> str:
    """Return such as `READ, DESCRIBE on TOPIC orders.* but orders.pii.*; READ on GROUP app`."""
    return "; ".join(clause_texts(clauses))


def clause_texts(clauses: Sequence[Clause]) -> list[str]:
    """Return the texts of clauses, one for clauses that differ only in their resource type."""
    types: dict[tuple[int, Names], list[str]] = {}
    for clause in clauses:
        names = ANY_NAME if clause.resource_type == ResourceType.CLUSTER else clause.names
        types.setdefault((clause.operations, names), []).append(clause.resource_type.name)
    return [requests_text(operations, kinds, names) for (operations, names), kinds in types.items()]


def summary_text(row: Row, summary: Summary, *, is_message: bool = False) -> str:
    """Return such as `2 principals lose all previous access here (before the change, 9 ALLOW rules covered ...)`.

    `is_message`: in the words of SARIF.
    """
    named = f"{summary.principals:,} principal{'s' * (summary.principals != 1)}"
    who = f"{named} that rules or settings name, and all other principals," if summary.everyone_else else named
    singular = summary.principals == 1 and not summary.everyone_else
    verbs = {"gain": "gains", "lose": "loses"} if singular else {"gain": "gain", "lose": "lose"}
    texts = _MESSAGE_TEXTS if is_message else _CHANGE_TEXTS
    return f"{who} {_change_text(row, summary.cause, texts).format_map(verbs)}{_rules_text(row, summary.rules)}"


def _rules_text(row: Row, count: int) -> str:
    if not count:
        return ""
    is_one = count == 1
    if Direction.LOST in row.directions:
        when, verb = "before", "covered"
    else:
        when, verb = "after", "covers" if is_one else "cover"
    return f" ({when} the change, {count:,} ALLOW rule{'s' * (not is_one)} {verb} part of it)"


def _change_text(row: Row, cause: Cause, texts: Mapping[tuple[bool, bool, bool], str]) -> str:
    if len(row.directions) > 1:
        return "{gain} some access and {lose} some"
    gained = row.directions == (Direction.GAINED,)
    verb = "{gain}" if gained else "{lose}"
    if cause.setting is Setting.SUPER_USERS:
        return "{gain} all access as new super users" if gained else _NO_SUPER_USERS
    if cause.setting is not None:
        return f"{verb} some access by a change of {cause.setting.value}"
    allows = {is_allow(rule) for rule in cause.rules}
    if len(allows) > 1:
        return f"{verb} some access"
    return texts[cause.is_added, allows.pop(), gained]


# Finds, among many names and prefixes, those that have names in common with another; and so extents of rules.


_LAST = "\U0010ffff"
_Value = TypeVar("_Value")


@frozen(eq=False)
class NameIndex(Generic[_Value]):
    """Values by names and prefixes of resource types."""

    _literals: dict[tuple[int, str], list[_Value]]
    _subtrees: dict[tuple[int, str], list[_Value]]
    _sorted: dict[int, list[str]]
    """By resource type: every name and prefix, once."""

    @classmethod
    def of(cls, parts: Iterable[tuple[int, NamePart, _Value]]) -> Self:
        """Return the index of values by parts of names, each of a resource type."""
        literals: dict[tuple[int, str], list[_Value]] = defaultdict(list)
        subtrees: dict[tuple[int, str], list[_Value]] = defaultdict(list)
        for kind, part, value in parts:
            if isinstance(part, Literal):
                literals[kind, part.name].append(value)
            else:
                subtrees[kind, part.prefix].append(value)
        names: dict[int, list[str]] = defaultdict(list)
        for kind, name in sorted(literals.keys() | subtrees.keys()):
            names[kind].append(name)
        return cls(dict(literals), dict(subtrees), dict(names))

    def near(self, kind: int, part: NamePart) -> Iterator[_Value]:
        """Yield the values of parts that share names with this one, or may."""
        name = part.name if isinstance(part, Literal) else part.prefix
        for end in range(len(name) + 1):
            yield from self._subtrees.get((kind, name[:end]), ())
        if isinstance(part, Literal):
            yield from self._literals.get((kind, name), ())
            return
        names = self._sorted.get(kind, [])
        for number in range(bisect_left(names, name), bisect_left(names, name + _LAST)):
            yield from self._literals.get((kind, names[number]), ())
            yield from self._subtrees.get((kind, names[number]), ())


def index_of_extents(extents: Iterable[Extent]) -> NameIndex[Extent]:
    """Return the index of extents by their names."""
    return NameIndex.of((extent.resource_type, part, extent) for extent in extents for part in extent.names)


def index_of_region(region: Region) -> NameIndex[NamePart]:
    """Return the index of the parts of a region's names."""
    return NameIndex.of((region.resource_type, part, part) for part in region.names)


def near_region(extents: NameIndex[Extent], region: Region) -> Iterator[tuple[Extent, NamePart]]:
    """Yield extents with a part of a region that shares names with them, or may."""
    for part in region.names:
        for extent in extents.near(region.resource_type, part):
            yield extent, part


# Intersection of regions.


def common_request(one: Region, other: Region) -> Request | None:
    """Return a request of both regions, on a legal topic name if there is one; None if none is found.

    A common request is always found, unless ranges of addresses overlap without their first addresses, or have
    exceptions.
    """
    operations, principals = one.operations & other.operations, _principals(one.principals, other.principals)
    names = common(one.names, other.names)
    if one.resource_type != other.resource_type or not operations or not names:
        return None
    if not principals.named and not principals.complement:
        return None
    for hosts in _common_hosts(one.hosts, other.hosts):
        request = witness(evolve(one, operations=operations, principals=principals, names=names, hosts=hosts))
        if request in one and request in other:
            return request
    return None


def _principals(one: Principals, other: Principals) -> Principals:
    if one.complement and other.complement:
        return everyone_but(*one.named, *other.named)
    if one.complement:
        one, other = other, one
    return only(*(name for name in one.named if name in other))


def _common_hosts(one: Hosts, other: Hosts) -> Iterator[Hosts]:
    """Yield sets of addresses, one of which intersects both."""
    yield one
    yield other
    for each in (one, other):
        if not each.complement:
            yield from (evolve(each, entries=(entry,)) for entry in each.entries)


# Folding of a union of names: exceptions that another part fills are dropped, and so are parts inside others.


MOST = 5_000
"""Folding compares pairs of names; a report cuts so many anyway."""
_FEW = 100
"""A part with more exceptions is compared with no others."""


def fold(parts: Iterable[NamePart]) -> Names:
    """Return the same names as fewer parts, in the order of their names, a prefix before the names that begin with it.

    Above `MOST` parts and exceptions, only parts inside the widest part are dropped.
    """
    return tuple(sorted(_least(set(parts)), key=place))


def folds_to_more(parts: Iterable[NamePart], most: int) -> bool:
    """Return whether `fold` returns more than `most` parts; without folding if there are no more to begin with."""
    distinct = set(parts)
    return len(distinct) > most and len(_least(distinct)) > most


def _least(parts: set[NamePart]) -> set[NamePart]:
    """Return the same names as the fewest parts that folding finds."""
    if sum(map(_size, parts)) > MOST:
        parts = _without_inner(parts)
        if sum(map(_size, parts)) > MOST:
            return parts
    return _folded(parts) if len(parts) > 1 else parts


def _without_inner(parts: set[NamePart]) -> set[NamePart]:
    """Return the parts without those inside the widest one."""
    subtrees = (part for part in parts if isinstance(part, Subtree))
    widest = min(subtrees, key=lambda part: (len(part.prefix), _size(part)), default=None)
    if widest is None or _size(widest) > _FEW:
        return parts
    return {part for part in parts if part == widest or not _lies_in(part, widest)}


def _lies_in(part: NamePart, outer: Subtree) -> bool:
    if isinstance(part, Literal):
        return part.name in outer
    return part.prefix.startswith(outer.prefix) and _covers(outer, part)


def _folded(parts: set[NamePart]) -> set[NamePart]:
    singles = {part.name for part in parts if isinstance(part, Literal)}
    subtrees: dict[str, Subtree] = {}
    for part in parts:
        if isinstance(part, Subtree):
            other = subtrees.get(part.prefix)
            subtrees[part.prefix] = part if other is None else _union(other, part)
    merged: dict[str, Subtree] = {}
    for prefix in sorted(subtrees, reverse=True):  # the deepest first: it fills exceptions of those above
        filled = _filled(subtrees[prefix], merged, singles)
        for below in list(takewhile(partial(_begins, prefix), reversed(merged))):
            if _covers(filled, merged[below]):
                del merged[below]
        merged[prefix] = filled
    return {*merged.values(), *(Literal(name=name) for name in singles if not _is_held(name, merged))}


def _begins(prefix: str, name: str) -> bool:
    return name.startswith(prefix)


def _is_held(name: str, subtrees: dict[str, Subtree]) -> bool:
    above = (subtrees.get(name[:end]) for end in range(len(name) + 1))
    return any(part is not None and name in part for part in above)


def _size(part: NamePart) -> int:
    return 1 if isinstance(part, Literal) else 1 + len(part.except_prefixes) + len(part.except_literals)


def place(part: NamePart) -> tuple[str, bool]:
    """Return the sort key of a part."""
    return (part.name, True) if isinstance(part, Literal) else (part.prefix, False)


def _union(one: Subtree, other: Subtree) -> Subtree:
    """Return the union of two subtrees of one prefix: its exceptions are those of both."""
    literals = {name for name in one.except_literals if name not in other}
    literals |= {name for name in other.except_literals if name not in one}
    prefixes = {name for name in one.except_prefixes if name.startswith(other.except_prefixes)}
    prefixes |= {name for name in other.except_prefixes if name.startswith(one.except_prefixes)}
    return Subtree(prefix=one.prefix, except_prefixes=tuple(sorted(prefixes)), except_literals=tuple(sorted(literals)))


def _filled(part: Subtree, below: dict[str, Subtree], singles: set[str]) -> Subtree:
    """Return a subtree without the exceptions that other parts fill; the union with them is the same."""
    prefixes: list[str] = []
    literals = [name for name in part.except_literals if name not in singles]
    for prefix in part.except_prefixes:
        inner = below.get(prefix)
        if inner is None:
            prefixes.append(prefix)
        else:
            prefixes += inner.except_prefixes
            literals += (name for name in inner.except_literals if name not in singles)
    return Subtree(prefix=part.prefix, except_prefixes=tuple(sorted(prefixes)), except_literals=tuple(sorted(literals)))


def _covers(outer: Subtree, inner: Subtree) -> bool:
    """Return whether a subtree contains all of one below it."""
    return (
        not inner.prefix.startswith(outer.except_prefixes)
        and all(
            not prefix.startswith(inner.prefix) or prefix.startswith(inner.except_prefixes)
            for prefix in outer.except_prefixes
        )
        and all(name not in inner for name in outer.except_literals)
    )


# The clauses of regions with the same principals and hosts.


def clauses_of(regions: Iterable[Region]) -> tuple[Clause, ...]:
    """Return clauses with exactly the operations and names of all the regions."""
    of_type: dict[ResourceType, dict[int, list[NamePart]]] = defaultdict(lambda: defaultdict(list))
    for region in regions:
        of_type[region.resource_type][region.operations] += region.names
    return tuple(clause for kind in sorted(of_type) for clause in _clauses(kind, of_type[kind]))


def _clauses(kind: ResourceType, of_mask: dict[int, list[NamePart]]) -> Sequence[Clause]:
    """Return the shorter of two lists: by operations that occur together, or by operations with equal names."""
    together = _grouped((mask, fold(parts)) for mask, parts in of_mask.items())
    if len(of_mask) > 1:
        operations = operations_of(sum(1 << bit for bit in range(16) if any(mask >> bit & 1 for mask in of_mask)))
        one_by_one = _grouped(
            (1 << operation, fold(part for mask, parts in of_mask.items() if mask >> operation & 1 for part in parts))
            for operation in operations
        )
        together = min(together, one_by_one, key=lambda candidate: (len(candidate), sum(map(len, candidate))))
    clauses = [Clause(resource_type=kind, operations=mask, names=names) for names, mask in together.items()]
    return sorted(clauses, key=lambda clause: (place(clause.names[0]), clause.operations))


def _grouped(masks: Iterable[tuple[int, Names]]) -> dict[Names, int]:
    mask_of: dict[Names, int] = defaultdict(int)
    for mask, names in masks:
        mask_of[names] |= mask
    return mask_of
