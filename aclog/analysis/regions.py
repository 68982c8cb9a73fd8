"""Sets of requests: regions as products of five sets, with their texts and JSON objects."""

import json
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cached_property, reduce
from ipaddress import IPv4Address, IPv6Address
from itertools import chain, count
from typing import NamedTuple, Protocol, Self, TypeAlias, TypeGuard

from attrs import evolve

from aclog.authorizer.acl import (
    NO_ORIGINS,
    Origins,
    ResourcePattern,
    StandardAcl,
    TwoOrigins,
    code_name,
    host_address,
    in_cidr,
    object_of_rule,
    parse_cidr,
    place_object,
)
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    LONGEST_TOPIC,
    WILDCARD,
    AclOperation,
    PatternType,
    ResourceType,
    is_legal_topic,
)
from aclog.authorizer.index.layout import begins_with_one, outermost, prefix_range
from aclog.metalog.errors import printable, without_marks
from aclog.metalog.values import frozen

# A set of client addresses: some addresses and ranges, or all except some.


@frozen(kw_only=True)
class Hosts:
    """Addresses in the form of `host_address`, and CIDR ranges; with `complement`, every other address."""

    entries: tuple[str, ...] = ()
    """Sorted, distinct. An entry with a `/` is a range."""
    complement: bool = False
    except_addresses: tuple[str, ...] = ()
    """IPv6 addresses in a range of `entries` that are not in this set; never with `complement`.

    A range contains an address with any scope (`fe80:...%1`), while an ACL on an address is compared as text, so these
    addresses cannot be cut out of a range.
    """

    def __contains__(self, host: str) -> bool:
        return self.lists(host) is not self.complement and host not in self.except_addresses

    def lists(self, host: str) -> bool:
        """Return whether an entry is this address, or a range that contains it."""
        return host in self._addresses or any(in_cidr(entry, host) for entry in self._ranges)

    @cached_property
    def _addresses(self) -> frozenset[str]:
        return frozenset(entry for entry in self.entries if "/" not in entry)

    @cached_property
    def _ranges(self) -> tuple[str, ...]:
        return tuple(entry for entry in self.entries if "/" in entry)


EVERYWHERE = Hosts(complement=True)


# Sets of resource names: single names, and all names that begin with a prefix, with exceptions.


@frozen(kw_only=True)
class Literal:
    """One name."""

    name: str

    def __contains__(self, name: str) -> bool:
        return name == self.name


@frozen(kw_only=True)
class Subtree:
    """Every non-empty name that begins with `prefix`, except those that an exception covers; "" begins every name."""

    prefix: str
    except_prefixes: tuple[str, ...] = ()
    except_literals: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return (
            bool(name)
            and name.startswith(self.prefix)
            and not name.startswith(self.except_prefixes)
            and name not in self.except_literals
        )


NamePart: TypeAlias = Literal | Subtree
Names: TypeAlias = tuple[NamePart, ...]
"""A union of parts, in the order of their names."""

ANY_NAME: Names = (Subtree(prefix=""),)


def without_exceptions(part: NamePart) -> NamePart:
    """Return a part with the names that it leaves out."""
    return part if isinstance(part, Literal) else Subtree(prefix=part.prefix)


def contains(names: Names, name: str) -> bool:
    """Return whether one of the parts contains a name."""
    return any(name in part for part in names)


# Existing topics, and how many of them are in a set of names.


class HasNames(Protocol):
    """A region of requests, or a clause of a row: names of one type of resources."""

    @property
    def resource_type(self) -> int:
        """The type, as a code."""

    @property
    def names(self) -> "Names":
        """The names."""


@frozen
class ExistingNames:
    """Names of topics, sorted and distinct."""

    _names: tuple[str, ...]

    @staticmethod
    def of(names: Iterable[str]) -> "ExistingNames":
        """Return the set of these names."""
        return ExistingNames(tuple(sorted(set(names))))

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def among(self, names: Names) -> set[str]:
        """Return those of the topics that are in a set of names."""
        return set(self.each(names))

    def each(self, names: Names) -> Iterator[str]:
        """Yield the same, one by one: part by part, in the order of their names, some twice if parts overlap."""
        return (name for part in names for name in self._of_part(part))

    def of_clauses(self, clauses: "Iterable[HasNames]") -> set[str]:
        """Return those that are in the names of topics of regions, or of other clauses."""
        return self.among(
            tuple(part for each in clauses if each.resource_type == ResourceType.TOPIC for part in each.names)
        )

    def _of_part(self, part: NamePart) -> Iterator[str]:
        prefix = part.name if isinstance(part, Literal) else part.prefix
        for position in range(bisect_left(self._names, prefix), len(self._names)):
            name = self._names[position]
            if not name.startswith(prefix):
                return
            if name in part:
                yield name


# Operations on sets of names: intersection, difference, and coverage by patterns and of prefixes.


def common(one: Names, other: Names) -> Names:
    """Return the intersection of two sets; its parts may overlap."""
    if one == other:
        return one
    parts = (common_part(a, b) for a in one for b in other)
    return tuple(dict.fromkeys(part for part in parts if part is not None))


def common_part(one: NamePart, other: NamePart) -> NamePart | None:
    """Return the intersection of two parts; None if it is empty."""
    if isinstance(one, Literal):
        return one if one.name in other else None
    if isinstance(other, Literal):
        return other if other.name in one else None
    outer, inner = sorted((one, other), key=lambda part: len(part.prefix))
    if not inner.prefix.startswith(outer.prefix) or inner.prefix.startswith(outer.except_prefixes):
        return None
    if not (outer.except_prefixes or outer.except_literals):
        return inner
    prefixes = {*inner.except_prefixes, *(each for each in outer.except_prefixes if each.startswith(inner.prefix))}
    literals = {*inner.except_literals, *(each for each in outer.except_literals if each.startswith(inner.prefix))}
    return Subtree(
        prefix=inner.prefix, except_prefixes=tuple(sorted(prefixes)), except_literals=tuple(sorted(literals))
    )


def without(names: Names, other: NamePart) -> Names:
    """Return the names of a set outside a single name, or outside a subtree without exceptions."""
    parts = (_part_without(part, other) for part in names)
    return tuple(part for part in parts if part is not None)


def _part_without(part: NamePart, other: NamePart) -> NamePart | None:
    if isinstance(part, Literal):
        return None if part.name in other else part
    if isinstance(other, Literal):
        if other.name not in part:
            return part
        return evolve(part, except_literals=tuple(sorted((*part.except_literals, other.name))))
    if part.prefix.startswith(other.prefix):
        return None
    if not other.prefix.startswith(part.prefix) or other.prefix.startswith(part.except_prefixes):
        return part
    prefixes = (each for each in part.except_prefixes if not each.startswith(other.prefix))
    literals = (each for each in part.except_literals if not each.startswith(other.prefix))
    return evolve(
        part, except_prefixes=tuple(sorted((*prefixes, other.prefix))), except_literals=tuple(sorted(literals))
    )


def less(names: Names, other: NamePart) -> Names:
    """Return the names of a set that are not in a part."""
    if isinstance(other, Literal):
        return without(names, other)
    exceptions: Names = (
        *(Subtree(prefix=each) for each in other.except_prefixes),
        *(Literal(name=each) for each in other.except_literals),
    )
    return (*without(names, Subtree(prefix=other.prefix)), *common(names, exceptions))


@frozen(kw_only=True)
class PlainNames:
    """The names that begin with some prefixes, and single names: those of any number of patterns."""

    prefixes: Sequence[str]
    """Sorted; none begins with another."""
    literals: Sequence[str]
    """Sorted; none begins with one of the prefixes."""

    @classmethod
    def of(cls, prefixes: Iterable[str], literals: Iterable[str]) -> Self:
        """Return the set of these names."""
        outer = outermost(prefixes)
        return cls(
            prefixes=outer, literals=[each for each in sorted(set(literals)) if not begins_with_one(each, outer)]
        )

    def cover(self, prefix: str) -> bool:
        """Return whether all names that begin with a prefix are among these."""
        return begins_with_one(prefix, self.prefixes)

    def __contains__(self, name: str) -> bool:
        at = bisect_left(self.literals, name)
        return self.cover(name) or self.literals[at : at + 1] == [name]

    def outside(self, part: NamePart) -> NamePart | None:
        """Return the names of a part that are not among these; None if all of them are."""
        if isinstance(part, Literal):
            return None if part.name in self else part
        if self.cover(part.prefix):
            return None
        prefixes, literals = (_beginning(each, part.prefix) for each in (self.prefixes, self.literals))
        if not prefixes and not literals:
            return part
        excepted = outermost({*part.except_prefixes, *prefixes})
        single = {name for name in chain(part.except_literals, literals) if not begins_with_one(name, excepted)}
        return evolve(part, except_prefixes=tuple(excepted), except_literals=tuple(sorted(single)))


def _beginning(names: Sequence[str], prefix: str) -> Sequence[str]:
    """Return those of sorted names that begin with a prefix."""
    begin, end = prefix_range(names, prefix)
    return names[begin:end]


def less_all(names: Names, others: Iterable[NamePart]) -> Names:
    """Return the names of a set that are in none of some parts: as `less` of each, but many plain ones at once."""
    prefixes: list[str] = []
    literals: list[str] = []
    odd: list[NamePart] = []
    for other in others:
        if isinstance(other, Literal):
            literals.append(other.name)
        elif other.except_prefixes or other.except_literals:
            odd.append(other)
        else:
            prefixes.append(other.prefix)
    left = map(PlainNames.of(prefixes, literals).outside, names)
    return reduce(less, odd, tuple(part for part in left if part is not None))


def covers_all(names: Names, prefix: str) -> bool:
    """Return whether a set has every non-empty name that begins with a prefix."""
    # Any other name shares its membership with every name that extends the same text of the set, or the prefix, by a
    # character that none of these texts has: so these examples are sufficient.
    texts = {text for part in names for text in _texts(part) if text.startswith(prefix)} | {prefix}
    fresh = next(code for code in range(0x21, 0xD800) if not any(chr(code) in text for text in texts))
    examples = (*texts - {""}, *(text + chr(fresh) for text in texts))
    return all(contains(names, example) for example in examples)


def _texts(part: NamePart) -> tuple[str, ...]:
    return (part.name,) if isinstance(part, Literal) else (part.prefix, *part.except_prefixes, *part.except_literals)


def pattern_meets(name: str, pattern: int, names: Names, *, documented: bool) -> bool:
    """Return whether the pattern of an ACL covers any of the names; documented: LITERAL `*` covers them all."""
    if pattern != PatternType.LITERAL:
        return any(_prefix_meets(name, part) for part in names)
    if name != WILDCARD:
        return contains(names, name)
    return documented or any(_has_usual_name(part) for part in names)


def _prefix_meets(prefix: str, part: NamePart) -> bool:
    if isinstance(part, Literal):
        return part.name.startswith(prefix)
    if prefix.startswith(part.prefix):
        return not prefix.startswith(part.except_prefixes)
    return part.prefix.startswith(prefix)


def _has_usual_name(part: NamePart) -> bool:
    """Return whether a part has a name that LITERAL `*` covers in Kafka: `*`, or one that does not begin with it."""
    if WILDCARD in part:
        return True
    return not (part.name if isinstance(part, Literal) else part.prefix).startswith(WILDCARD)


# Operations as masks: bit n is the operation with code n (AclOperation); only the 13 request operations.


REQUESTED = sum(1 << code for code in AclOperation if code > AclOperation.ALL)
"""All 13: no request has UNKNOWN, ANY or ALL."""


def operations_of(mask: int) -> Iterator[AclOperation]:
    """Yield the operations of a mask, by their codes."""
    return (operation for operation in AclOperation if mask >> operation & 1)


# A set of principals: some named ones, or all others.


@frozen(kw_only=True)
class Principals:
    """The named principals, or, with `complement`, all others, of any type."""

    named: tuple[str, ...]
    """Sorted, distinct."""
    complement: bool = False

    def __contains__(self, principal: str) -> bool:
        return (principal in self.named) is not self.complement


EVERYONE = Principals(named=(), complement=True)


def only(*principals: str) -> Principals:
    """Return the set of these principals."""
    return Principals(named=tuple(sorted(set(principals))))


def everyone_but(*principals: str) -> Principals:
    """Return the set of all other principals."""
    return Principals(named=tuple(sorted(set(principals))), complement=True)


# Regions and their parts as text for people. Long lists are cut; the JSON lines of a difference are complete.
#
# Names with characters other than letters, digits, `.`, `_` and `-` are quoted as in JSON, so `orders.*` is always a
# prefix.


LIST_LIMIT = 4
"""How many members of a list are shown if it has at least two more."""

EXCEPT = " except "
"""In texts: what follows is left out of what precedes."""
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
_RESOURCE_TYPES = sum(kind > ResourceType.ANY for kind in ResourceType)
"""The number of resource types."""


def who_text(principals: Principals) -> str:
    """Return such as `User:a, User:b`, `everyone` or `everyone except User:a`."""
    if not principals.complement:
        return _listed(principals.named)
    return f"everyone except {_listed(principals.named)}" if principals.named else "everyone"


def requests_text(operations: int, types: Sequence[str], names: Names) -> str:
    """Return such as `READ, DESCRIBE on TOPIC orders.*`, for names of one type or of several."""
    text = f"{operations_text(operations)} on"
    (first, *others) = names
    if others or isinstance(first, Literal) or first.prefix:
        return f"{text} {', '.join(types)} {names_text(names)}"
    if types == [ResourceType.CLUSTER.name]:
        return f"{text} CLUSTER"
    every = "everything" if len(types) == _RESOURCE_TYPES else f"every {_listed(types)}"
    return f"{text} {_as_one(every + _but_text(first))}"


def operations_text(mask: int) -> str:
    """Return names of operations; `ALL` for all 13, and `ALL except READ` if few are missing."""
    missing = REQUESTED & ~mask
    if not missing:
        return "ALL"
    if missing.bit_count() <= LIST_LIMIT:
        return "ALL except " + ", ".join(operation.name for operation in operations_of(missing))
    return ", ".join(operation.name for operation in operations_of(mask))


def names_text(names: Names) -> str:
    """Return names and prefixes; `*` is the names that LITERAL `*` covers: no longer name that begins with `*`."""
    texts = []
    covered = Literal(name=WILDCARD) in names and any(map(_is_without_longer, names))
    for part in names:
        if covered and _is_without_longer(part):
            texts.append(f"*{_but_text(part, WILDCARD)}")
        elif not covered or part != Literal(name=WILDCARD):
            texts.append(_part_text(part))
    return _listed([_as_one(text) for text in texts])


def _as_one(text: str) -> str:
    """Return a text in parentheses if it has an exception: hosts and other names that follow are not its exceptions."""
    return f"({text})" if EXCEPT in text else text


def hosts_text(hosts: Hosts) -> str:
    """Return such as `10.0.0.1, 10.1.0.0/16`, `any host` or `any host except 10.0.0.1`."""
    if not hosts.complement:
        but = f"{EXCEPT}{_listed(hosts.except_addresses)}" if hosts.except_addresses else ""
        return _listed(hosts.entries) + but
    return f"any host{EXCEPT}{_listed(hosts.entries)}" if hosts.entries else "any host"


def _is_without_longer(part: NamePart) -> TypeGuard[Subtree]:
    """Return whether a part is a subset of the names that LITERAL `*` covers besides `*` itself."""
    return isinstance(part, Subtree) and not part.prefix and WILDCARD in part.except_prefixes


def _part_text(part: NamePart) -> str:
    if isinstance(part, Literal):
        return _name(part.name)
    return f"{f'{_name(part.prefix)}*' if part.prefix else 'every name'}{_but_text(part)}"


def _but_text(part: Subtree, unsaid: str | None = None) -> str:
    """Return the text of a part's exceptions, except one prefix."""
    prefixes = [f"{_name(prefix)}*" for prefix in part.except_prefixes if prefix != unsaid]
    but = [*prefixes, *map(_name, part.except_literals)]
    return f"{EXCEPT}{_listed(but)}" if but else ""


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(without_marks(name), ensure_ascii=False)


def _listed(members: Sequence[str]) -> str:
    if len(members) <= LIST_LIMIT + 1:
        return ", ".join(members)
    return f"{', '.join(members[:LIST_LIMIT])} and {len(members) - LIST_LIMIT:,} more"


# A region: a set of requests that is a product of five sets.


class Direction(Enum):
    """The direction in which a change moves the requests of a region."""

    GAINED = "GAINED"
    LOST = "LOST"


@frozen(kw_only=True)
class Request:
    """One request for one of the 13 operations on one resource; `host` is in the form of `host_address`."""

    principal: str
    host: str
    operation: int
    resource_type: int
    resource_name: str


@frozen(kw_only=True)
class Region:
    """All requests by these principals, from these hosts, for these operations, on these names of one type."""

    resource_type: ResourceType
    operations: int
    """A mask (aclog.analysis.regions)."""
    principals: Principals
    hosts: Hosts
    names: Names

    def __str__(self) -> str:
        what = requests_text(self.operations, [self.resource_type.name], self.names)
        return printable(f"{who_text(self.principals)}: {what}, from {hosts_text(self.hosts)}")

    def __contains__(self, request: Request) -> bool:
        return (
            request.resource_type == self.resource_type
            and bool(self.operations >> request.operation & 1)
            and request.principal in self.principals
            and request.host in self.hosts
            and contains(self.names, request.resource_name)
        )


@frozen(kw_only=True)
class Difference:
    """A region in which one policy allows every request, and another one none."""

    direction: Direction
    region: Region
    by_kafka: bool = False
    """Whether the other generation of Kafka alone, with the rules and settings of the first policy, decides so."""

    def __str__(self) -> str:
        return f"{self.direction.value}  {self.region}"


# Regions, differences and requests as JSON objects: the lines of `--format jsonl` (docs/commands).


JsonObject = dict[str, object]


def region_object(region: Region) -> JsonObject:
    """Return the five sets of a region."""
    return {
        "resourceType": region.resource_type.name,
        "operations": [operation.name for operation in operations_of(region.operations)],
        "principals": principals_object(region.principals),
        "hosts": _hosts(region.hosts),
        "names": [_part(part) for part in region.names],
    }


def request_object(request: Request) -> JsonObject:
    """Return a request as a line of `authorize --requests`."""
    return {
        "principal": request.principal,
        "host": request.host,
        "operation": code_name(AclOperation, request.operation),
        "resourceType": code_name(ResourceType, request.resource_type),
        "resourceName": request.resource_name,
    }


def decided_by_object(rule: StandardAcl | str | None, origins: Origins = NO_ORIGINS) -> JsonObject | str | None:
    """Return the basis of a decision (aclog.analysis.policy): an object for an ACL, the name of a reason, or None.

    The file and line of an ACL follow its keys, if known.
    """
    if not isinstance(rule, StandardAcl):
        return rule
    return {**object_of_rule(rule), **place_object(rule, origins)}


def witness_object(request: Request, *, legal: bool) -> JsonObject:
    """Return the example of a region; `"legal": false` is included if no topic can have any of its names."""
    return {"witness": request_object(request)} if legal else {"witness": request_object(request), "legal": False}


def difference_object(
    difference: Difference,
    *,
    old: StandardAcl | str | None,
    new: StandardAcl | str | None,
    origins: TwoOrigins,
) -> JsonObject:
    """Return a difference without its witness; `old` and `new` decide the witness."""
    return {
        "change": difference.direction.value,
        **region_object(difference.region),
        "old": decided_by_object(old, origins.old),
        "new": decided_by_object(new, origins.new),
    }


def principals_object(principals: Principals) -> JsonObject:
    """Return the named principals, or those that are left out of all."""
    return {"except" if principals.complement else "in": list(principals.named)}


def _hosts(hosts: Hosts) -> JsonObject:
    if hosts.except_addresses:
        return {"cidr": list(hosts.entries), "except": list(hosts.except_addresses)}
    return {"except" if hosts.complement else "in": list(hosts.entries)}


def _part(part: NamePart) -> JsonObject:
    if isinstance(part, Literal):
        return {"literal": part.name}
    return {
        "prefix": part.prefix,
        "exceptPrefixes": list(part.except_prefixes),
        "exceptLiterals": list(part.except_literals),
    }


# A root: one resource name, or all names that begin with a prefix; where the engine begins to explore.


class Root(NamedTuple):
    """One name of a resource type, or, unless `literal`, every name that begins with it."""

    kind: int
    name: str
    literal: bool


def root_of_pattern(kind: int, name: str, *, literal: bool) -> Root | None:
    """Return the names that a resource pattern of an ACL can cover; None if it covers no name.

    LITERAL `*` covers no longer name that begins with `*`; the root includes them, which is harmless.
    """
    if literal and name == WILDCARD:
        return root_of_names(kind, "", literal=False)
    return root_of_names(kind, name, literal=literal)


def root_of_names(kind: int, name: str, *, literal: bool) -> Root | None:
    """Return the root of a name, or of all names that begin with it; None if no resource has such a name."""
    if kind == ResourceType.CLUSTER:
        covers = name == CLUSTER_NAME or (not literal and CLUSTER_NAME.startswith(name))
        return Root(kind, CLUSTER_NAME, literal=True) if covers else None
    if literal and not name:
        return None
    return Root(kind, name, literal)


def topmost(roots: Iterable[Root]) -> Iterator[Root]:
    """Yield those roots that no other one contains, by type and name."""
    last: Root | None = None
    for root in sorted(roots):  # a prefix precedes the names that begin with it, and itself as a single name
        if last is not None and last.kind == root.kind and not last.literal and root.name.startswith(last.name):
            continue
        if root != last:
            if not root.literal:
                last = root
            yield root


def within(root: Root, limits: Iterable[Root]) -> Iterator[Root]:
    """Yield the parts of a root inside some other roots."""
    for limit in limits:
        if _contains(limit, root):
            yield root
        elif _contains(root, limit):
            yield limit


def _contains(outer: Root, inner: Root) -> bool:
    if outer.kind != inner.kind:
        return False
    return outer == inner or (not outer.literal and inner.name.startswith(outer.name))


# A query: the requests that a question is about.


RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)


@frozen(kw_only=True)
class Query:
    """The requests for these operations on these resources by these principals, from one host or from any."""

    resources: tuple[ResourcePattern, ...] = tuple(
        ResourcePattern(resource_type=kind, name="", pattern_type=PatternType.PREFIXED) for kind in RESOURCE_TYPES
    )
    """LITERAL: that name; PREFIXED: all names that begin with it. `*` is an ordinary name here."""
    operations: int = REQUESTED
    """A mask (aclog.analysis.regions)."""
    principals: Principals = EVERYONE
    host: str | None = None
    """In the form of `host_address`; None for any host."""

    @cached_property
    def roots(self) -> tuple[Root, ...]:
        """The roots of the resources, none inside another."""
        roots = (
            root_of_names(each.resource_type, each.name, literal=each.pattern_type == PatternType.LITERAL)
            for each in self.resources
        )
        return tuple(topmost(root for root in roots if root is not None))


def query_of_region(region: Region) -> Query:
    """Return a query that contains a region; from any host unless the region has a single one."""
    resources = tuple(
        ResourcePattern(resource_type=region.resource_type, name=part.name)
        if isinstance(part, Literal)
        else ResourcePattern(resource_type=region.resource_type, name=part.prefix, pattern_type=PatternType.PREFIXED)
        for part in region.names
    )
    single = len(region.hosts.entries) == 1 and not region.hosts.complement and "/" not in region.hosts.entries[0]
    return Query(
        resources=resources,
        operations=region.operations,
        principals=region.principals,
        host=region.hosts.entries[0] if single else None,
    )


# Examples of legal topic names. Kafka authorizes a request before it validates the name.


LEGAL_CHARACTERS = "xabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
"""Legal characters of a topic name; examples are made of the first one."""


# A request of a region as a verifiable example.


_LEGAL_CHARACTERS = frozenset(LEGAL_CHARACTERS)
_PLACEHOLDER = "User:anyone"
_USUAL_HOSTS = ("127.0.0.1", *(f"203.0.113.{n}" for n in range(1, 255)))
_UNUSUAL_HOSTS = ("0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1", "0.0.0.0")  # noqa: S104  # of a request, not to listen on


def witness(region: Region) -> Request:
    """Return a request of a region, on a legal topic name if it has one."""
    return Request(
        principal=_principal(region.principals),
        host=_host(region.hosts),
        operation=next(operations_of(region.operations)),
        resource_type=region.resource_type,
        resource_name=_example_name(region.resource_type, region.names),
    )


def has_legal_name(region: Region) -> bool:
    """Return whether any of the region's names is legal; only topic names are restricted."""
    if region.resource_type != ResourceType.TOPIC:
        return True
    return any(_legal_topic(part) is not None for part in region.names)


def _principal(principals: Principals) -> str:
    if not principals.complement:
        return principals.named[0]
    candidates = chain((_PLACEHOLDER,), (f"{_PLACEHOLDER}-{n}" for n in count(2)))
    return next(name for name in candidates if name in principals)


def is_placeholder(principal: str) -> bool:
    """Return whether the principal of an example is the name that a region of unnamed principals gets."""
    return re.fullmatch(rf"{_PLACEHOLDER}(-\d+)?", principal) is not None


def _host(hosts: Hosts) -> str:
    if hosts.complement:
        candidates = chain(_USUAL_HOSTS, _beside(hosts), _UNUSUAL_HOSTS)
    else:
        first = [_first_address(entry) for entry in hosts.entries]
        # The remaining addresses of a range of one IPv6 address may be clients with other scopes.
        scoped = (f"{address}%{scope}" for scope in count(1) for address in first if ":" in address)
        candidates = chain(("127.0.0.1",), first, scoped)
    return next(host for host in candidates if host in hosts)


def _first_address(entry: str) -> str:
    if "/" not in entry:
        return entry
    block = parse_cidr(entry)
    return _address(block.version, block.first)


def _beside(hosts: Hosts) -> Iterator[str]:
    """Yield the addresses right before and after each range."""
    for entry in hosts.entries:
        if "/" in entry:
            block = parse_cidr(entry)
            for number in block.first - 1, block.last + 1:
                if 0 <= number < 1 << (32 if block.version == 4 else 128):
                    yield _address(block.version, number)


def _address(version: int, number: int) -> str:
    return host_address(str(IPv4Address(number) if version == 4 else IPv6Address(number)))


def _example_name(kind: ResourceType, names: Names) -> str:
    if kind == ResourceType.TOPIC:
        for part in names:
            legal = _legal_topic(part)
            if legal is not None:
                return legal
    first = names[0]
    return first.name if isinstance(first, Literal) else next(chain(_members(first), _unusual_members(first)))


def _legal_topic(part: NamePart) -> str | None:
    """Return a legal topic name of a part, or None."""
    if isinstance(part, Literal):
        return part.name if is_legal_topic(part.name) else None
    if not set(part.prefix) <= _LEGAL_CHARACTERS:
        return None
    return next(filter(is_legal_topic, _members(part)), None)


def _members(part: Subtree) -> Iterator[str]:
    """Yield names of a subtree, including a legal topic name if there is one, unless the prefix itself is illegal."""
    if part.prefix in part:
        yield part.prefix
    below = deque([part.prefix])
    while below:
        name = below.popleft()
        for longer in (name + character for character in LEGAL_CHARACTERS if len(name) < LONGEST_TOPIC):
            if longer in part:
                yield longer
            # Names below a member are equivalent to it, except below these two, which are illegal as topics.
            if longer in (".", "..") or (longer not in part and not longer.startswith(part.except_prefixes)):
                below.append(longer)


def _unusual_members(part: Subtree) -> Iterator[str]:
    """Yield names that continue with any other character."""
    return filter(part.__contains__, (part.prefix + chr(code) for code in range(0x21, 0xD800)))
