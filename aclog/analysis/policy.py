"""A policy: ACLs and the settings with which an authorizer decides.

Also its cells as the engine reads them, and the mapping of resource names between clusters.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from attrs import evolve, field

from aclog.analysis.regions import Literal, NamePart, Request, Root
from aclog.authorizer.acl import (
    AclBindingFilter,
    Origin,
    Origins,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    code_name,
    is_cidr,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index.acl_index import AclIndex, Resource, TouchedNames, added_for, key_of, touched_names
from aclog.authorizer.index.base import LONGEST_REMEMBERED, Base, pairs_of, row_columns
from aclog.authorizer.index.layout import ALL_OPERATIONS, Generations, Int32s, resource_name, split_pair
from aclog.authorizer.index.scan_order import name_ranks
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Generation, GenerationPair, Settings
from aclog.authorizer.standard import StandardAuthorizer, build_authorizer
from aclog.authorizer.symbols import is_symbol, known_beginning
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

# ACLs whose host is a range of addresses: the only ones on which generations of Kafka differ.


def range_rules(acls: AclsImage) -> Iterator[StandardAcl]:
    """Yield the ACLs whose host Kafka 4.4 treats as a range, without scanning the others."""
    for principal, host in dict.fromkeys(_range_pairs(acls.index)):
        if is_cidr(host):
            for rule in acls.matching(AclBindingFilter(principal=principal, host=host)):
                yield rule.acl


def _range_pairs(index: AclIndex) -> Iterator[tuple[str, str]]:
    for pair in index.base.range_pairs:
        yield split_pair(index.base.pairs.key(pair))
    for principal, hosts in index.overlay.ranges.items():
        yield from ((principal, host) for host in hosts)


# Mapping of resource names between clusters, by prefix.


_MAPPED_TYPES = frozenset((ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID))


@frozen(kw_only=True)
class NameMap:
    """Maps names of topics, groups and transactional ids that begin with `old` to names that begin with `new`."""

    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.old}={self.new}"


def parse_name_maps(texts: Iterable[str]) -> tuple[NameMap, ...]:
    """Parse `OLD=NEW` texts; either part may be empty.

    Raises:
        ConfigError: no `=`, or a repeated OLD.

    """
    maps: dict[str, NameMap] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not equals:
            raise ConfigError(f"--map-names {text!r}: expected OLD=NEW")
        if old in maps:
            raise ConfigError(f"--map-names {text!r}: names that begin with {old!r} are mapped twice")
        maps[old] = NameMap(old=old, new=new)
    return tuple(maps.values())


def bounds(policy: "Policy") -> "tuple[Policy, ...]":
    """Return policies between which the policy is, for each request, regardless of what its symbols turn out to be.

    One has each symbol of an ALLOW widened to all that it may be, the other each symbol of a DENY. None are returned if
    a rule may also close a name to others, so that more rules do not always allow more.
    """
    symbolic = policy.acls.symbolic()
    if policy.settings.allow_everyone and any(is_symbol(acl.resource_name) for acl in symbolic):
        return ()
    return tuple(
        Policy(
            _widened(policy.acls, allows=allows).with_options(documented=policy.acls.documented, cidr=policy.acls.cidr),
            policy.settings,
        )
        for allows in (True, False)
    )


def _widened(acls: AclsImage, *, allows: bool) -> AclsImage:
    rules = dict.fromkeys(
        _widest(rule.acl) if (rule.acl.permission_type == AclPermissionType.ALLOW) is allows else rule.acl
        for rule in acls
    )
    return AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in rules)


def _widest(acl: StandardAcl) -> StandardAcl:
    """Return a rule that covers a rule with symbols, regardless of what they turn out to be."""
    if is_symbol(acl.principal):
        acl = evolve(acl, principal=WILDCARD_PRINCIPAL)
    if is_symbol(acl.host):
        acl = evolve(acl, host=WILDCARD)
    if is_symbol(acl.resource_name):
        beginning = known_beginning(acl.resource_name)
        pattern = PatternType.PREFIXED if beginning else PatternType.LITERAL
        acl = evolve(acl, resource_name=beginning or WILDCARD, pattern_type=pattern)
    return acl


def mapped_acls(acls: AclsImage, maps: Sequence[NameMap]) -> AclsImage:
    """Return the ACLs, without ids, with their resource names mapped by the longest matching `old`.

    LITERAL `*` is not a name and stays.

    Raises:
        ConfigError: a prefix also covers names that are not mapped, or two names become one.

    """
    rules = [rule.acl for rule in acls]
    patterns = {(rule.resource_type, rule.resource_name, rule.pattern_type) for rule in rules}
    names = {pattern: _mapped(*pattern, maps) for pattern in patterns if _is_mappable(*pattern)}
    for kind in _MAPPED_TYPES:
        of_kind = {pattern[1:]: name for pattern, name in names.items() if pattern[0] == kind}
        _check_distinct(kind, of_kind)
    mapped = (
        evolve(
            rule,
            resource_name=names.get((rule.resource_type, rule.resource_name, rule.pattern_type), rule.resource_name),
        )
        for rule in rules
    )
    return AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in mapped)


@frozen
class MappedOrigins:
    """The locations of ACLs whose names were mapped (aclog.authorizer.acl.Origins)."""

    _before: Origins
    _maps: Sequence[NameMap]

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every location of the ACL before the mapping."""
        if not _is_mappable(acl.resource_type, acl.resource_name, acl.pattern_type):
            return self._before.of(acl)
        name = acl.resource_name
        names = [each.old + name[len(each.new) :] for each in self._maps if name.startswith(each.new)]
        origins = [self._before.of(evolve(acl, resource_name=old)) for old in dict.fromkeys((*names, name))]
        return next((places for places in origins if places), ())


def _is_mappable(kind: int, name: str, pattern: int) -> bool:
    return kind in _MAPPED_TYPES and not (pattern == PatternType.LITERAL and name == WILDCARD)


def _mapped(kind: int, name: str, pattern: int, maps: Sequence[NameMap]) -> str:
    longest = max((each for each in maps if name.startswith(each.old)), key=lambda each: len(each.old), default=None)
    if pattern != PatternType.LITERAL:
        for each in maps:
            if each.old != name and each.old.startswith(name):
                raise ConfigError(
                    f"--map-names {each}: {code_name(ResourceType, kind)} PREFIXED {name!r} is shorter than "
                    f"{each.old!r}: it also covers names that stay as they are"
                )
    return name if longest is None else longest.new + name[len(longest.old) :]


def _check_distinct(kind: int, names: dict[tuple[str, int], str]) -> None:
    """Refuse two names that become one, even under a prefix."""
    came_from: dict[str, str] = {}
    for (old, _), new in names.items():
        if came_from.setdefault(new, old) != old:
            raise _two_names(kind, old, came_from[new], new)
    prefixes = {new: old for (old, pattern), new in names.items() if pattern != PatternType.LITERAL}
    ordered = sorted(came_from)
    for prefix, old_prefix in prefixes.items():
        for new in _beginning(ordered, prefix):
            old = came_from[new]
            if old != old_prefix + new[len(prefix) :]:
                raise _two_names(kind, old, f"{old_prefix}{new[len(prefix) :]}", new)


def _beginning(ordered: Sequence[str], prefix: str) -> Iterator[str]:
    for position in range(bisect_left(ordered, prefix), len(ordered)):
        if not ordered[position].startswith(prefix):
            return
        yield ordered[position]


def _two_names(kind: int, one: str, other: str, new: str) -> ConfigError:
    type_name = code_name(ResourceType, kind)
    return ConfigError(f"--map-names: {type_name} {one!r} and {other!r} would both be {new!r}: two names become one")


# Answers of several generations of Kafka: those that all give, and those that only one gives.


T = TypeVar("T")
G = TypeVar("G", bound=Generation | GenerationPair | None)


def _itself(value: object) -> Hashable:
    return value


def merged(answers: Mapping[G, Iterable[T]], key: Callable[[T], Hashable] = _itself) -> Iterator[tuple[T, G | None]]:
    """Yield the items of the answers of all generations; an item that some lack has the generation of each other.

    `key`: the part of an item on which generations must agree to share it. With one generation there is no comparison
    and no read-ahead.
    """
    if len(answers) == 1:
        yield from ((value, None) for values in answers.values() for value in values)
        return
    keyed = {each: {key(value): value for value in values} for each, values in answers.items()}
    for each, own in keyed.items():
        for name, value in own.items():
            holding = [other for other, values in keyed.items() if name in values]
            if len(holding) < len(keyed):
                yield value, each
            elif holding[0] is each:
                yield value, None


def only_on(generation: Generation | GenerationPair | None) -> str:
    """Return such as ` (on Kafka 4.4 only)`; empty for None."""
    if generation is None:
        return ""
    return f" (on {generation})" if isinstance(generation, GenerationPair) else f" (on {generation} only)"


def marked(answers: Mapping[G, Iterable[object]]) -> Iterator[str]:
    """Yield the texts of the answers; a text of only one generation ends with `only_on`."""
    yield from (f"{value}{only_on(only)}" for value, only in merged(answers, str))


def generation_object(generation: Generation | GenerationPair | None) -> dict[str, str]:
    """Return the JSON object with the key `generation`, of two states that of the second one; empty for None."""
    return {} if generation is None else {"generation": generation.value}


# A lookup cache of a base, shared by both sides of a comparison and by later ones.


_MOST = 1024
"""The number of entries of each kind per cache generation."""
_LONGEST = 64
"""The longest cached entry, in resources or pairs; a principal may have ACLs on all resources."""


@define(eq=False)
class BaseReadings:
    """The cache of one base. Thread-safe. It is stored with its base, and so does not refer to it.

    A reference from the cache back to the base would keep the base alive until a full garbage collection.
    """

    _pairs: Generations[str, tuple[tuple[int, str], ...]] = field(factory=lambda: Generations(_MOST), init=False)
    _bounds: Generations[str, tuple[int, int]] = field(factory=lambda: Generations(_MOST), init=False)
    _under: Generations[tuple[Root, str], tuple[int, ...]] = field(factory=lambda: Generations(_MOST), init=False)

    @staticmethod
    def of(base: Base) -> "BaseReadings":
        """Return the cache of a base."""
        readings = base.memo.readings
        if not isinstance(readings, BaseReadings):
            readings = base.memo.readings = BaseReadings()
        return readings

    def pairs(self, base: Base, principal: str) -> tuple[tuple[int, str], ...]:
        """Return the numbers of a principal's pairs, and their hosts."""
        pairs = self._pairs.get(principal)
        if pairs is None:
            keys = base.pairs
            pairs = tuple((pair, split_pair(keys.key(pair))[1]) for pair in pairs_of(base, principal))
            if len(pairs) <= _LONGEST and len(principal) <= LONGEST_REMEMBERED:
                self._pairs.put(principal, pairs)
        return pairs

    def bounds(self, base: Base, prefix: str) -> tuple[int, int]:
        """Return the range of positions, in the order of names, of the names that begin with a prefix."""
        bounds = self._bounds.get(prefix)
        if bounds is None:
            bounds = name_ranks(base).under(prefix)
            if len(prefix) <= LONGEST_REMEMBERED:
                self._bounds.put(prefix, bounds)
        return bounds

    def under_of(self, base: Base, root: Root, principal: str) -> tuple[int, ...]:
        """Return the resources below a root, of its type, on which a principal has cells."""
        resources = self._under.get((root, principal))
        if resources is None:
            resources = self._read(base, root, principal)
            if len(resources) <= _LONGEST and max(len(root.name), len(principal)) <= LONGEST_REMEMBERED:
                self._under.put((root, principal), resources)
        return resources

    def _read(self, base: Base, root: Root, principal: str) -> tuple[int, ...]:
        columns = row_columns(base)
        rows = [columns.of_pair(pair) for pair, _ in self.pairs(base, principal)]
        if not rows:
            return ()
        all_rows = rows[0] if len(rows) == 1 else np.concatenate(rows)
        numbers = columns.resource_of[all_rows[columns.types[all_rows] == root.kind]]
        if root.name:
            low, high = self.bounds(base, root.name)
            ranks = name_ranks(base).of_resource[numbers]
            numbers = numbers[(ranks >= low) & (ranks < high)]
        return tuple(dict.fromkeys(numbers.tolist()))


# The ACLs of one image as the engine reads them: cells of a principal and a host on a resource pattern.


_DENY_ALL = ALL_OPERATIONS << 16
_LITERAL = int(PatternType.LITERAL)


class Cell(NamedTuple):
    """All ACLs of one principal and host on one resource pattern."""

    name: str
    literal: bool
    host: str
    mask: int
    """Denied << 16 | allowed (aclog.authorizer.index.layout); never 0."""


@define(eq=False, slots=False)
class Estate:
    """Reads cells from the index of an image. Cheap to create; its caches live as long as it does."""

    index: AclIndex
    _touched: dict[tuple[int, str], list[Resource]] = field(factory=dict, init=False)

    def covering(self, root: Root) -> list[Resource]:
        """Return the patterns that cover every name of a root, except LITERAL `*`."""
        patterns = list(self.index.prefixes(root.kind, root.name))
        if root.literal:
            patterns.append(self.index.literal(root.kind, root.name))
        return patterns

    def wildcard(self, kind: int) -> Resource:
        """Return LITERAL `*`, even if it has no ACLs."""
        return self.index.literal(kind, WILDCARD)

    def under(self, root: Root) -> list[Resource]:
        """Return the patterns that cover some names of a root but not all; empty for a single name."""
        if root.literal:
            return []
        base = self.index.base
        numbers = self._named_under(root)
        if numbers.size:
            kinds = np.frombuffer(base.resources.data, np.uint8)[np.asarray(base.resources.offsets)[numbers]]
            numbers = numbers[kinds == root.kind]
        return self._joined(root, numbers.tolist())

    def under_of(self, root: Root, principal: str) -> list[Resource]:
        """Return at least those of `under` on which a principal has cells, in time proportional to its ACLs."""
        if root.literal:
            return []
        index, keys = self.index, self.index.base.resources
        resources: dict[tuple[str, bool], Resource] = {}
        for number in self._readings.under_of(index.base, root, principal):
            key = keys.key(number)
            name, literal = resource_name(key), key[-1] == _LITERAL
            touched = index.overlay.resource(root.kind, name, literal=literal)
            resources[name, literal] = Resource(name, literal=literal, number=number, touched=touched)
        for record in added_for(index, principal):
            kind, name, literal = key_of(record)
            if kind == root.kind and (name, literal) not in resources and name.startswith(root.name):
                touched = index.overlay.resource(kind, name, literal=literal)
                if touched is not None:  # LITERAL `*` is apart
                    resources[name, literal] = Resource(name, literal=literal, number=touched.number, touched=touched)
        return [each for each in resources.values() if each.literal or each.name != root.name]

    def has_at_most(self, root: Root, most: int) -> bool:
        """Return whether the patterns that cover names of a root have at most this many cells."""
        if not root.literal and self._named_under(root).size > most:
            return False
        remaining = most
        for resource in (*self.covering(root), self.wildcard(root.kind), *self.under(root)):
            low, high = self.index.base.cells(resource.number)
            remaining -= high - low + (0 if resource.touched is None else len(resource.touched.cells))
            if remaining < 0:
                return False
        return True

    def cells(self, resource: Resource) -> Iterator[tuple[str, Cell]]:
        """Yield the principal and the cell of each pair on a pattern."""
        base, touched = self.index.base, resource.touched
        for number in range(*base.cells(resource.number)):
            principal, host = split_pair(base.pairs.key(base.cell_pairs[number]))
            if touched is None or (principal, host) not in touched.cells:
                yield principal, Cell(resource.name, resource.literal, host, base.cell_masks[number])
        if touched is not None:
            for (principal, host), cell in touched.cells.items():
                if cell.mask:
                    yield principal, Cell(resource.name, resource.literal, host, cell.mask)

    def cells_of(self, resource: Resource, principal: str) -> Iterator[Cell]:
        """Yield the cells of one principal on a pattern."""
        base, touched = self.index.base, resource.touched
        if resource.number >= 0:
            for pair, host in self._readings.pairs(self.index.base, principal):
                low, high = base.cell(resource.number, pair)
                if low < high and (touched is None or (principal, host) not in touched.cells):
                    yield Cell(resource.name, resource.literal, host, base.cell_masks[low])
        if touched is not None:
            for (who, host), cell in touched.cells.items():
                if who == principal and cell.mask:
                    yield Cell(resource.name, resource.literal, host, cell.mask)

    def cells_of_everyone(self, resource: Resource) -> Iterator[Cell]:
        """Yield the cells of `User:*` on a pattern.

        An ACL whose principal has no colon counts as a DENY of everything to everyone: Kafka's authorizer visits every
        candidate before it allows, and throws on that ACL.
        """
        yield from self.cells_of(resource, WILDCARD_PRINCIPAL)
        if self.index.has_colonless and any(":" not in principal for principal, _ in self.cells(resource)):
            yield Cell(resource.name, resource.literal, WILDCARD, _DENY_ALL)

    def exists(self, resource: Resource) -> bool:
        """Return whether a pattern has any ACL: it is then a candidate, for any principal."""
        return self.index.count(resource) > 0

    def _named_under(self, root: Root) -> Int32s:
        low, high = self._readings.bounds(self.index.base, root.name)
        return name_ranks(self.index.base).order[low:high]

    def _joined(self, root: Root, numbers: Iterable[int]) -> list[Resource]:
        """Return resources of the base, by number, and of the overlay under a root, except the root itself."""
        touched = self._touched_under(root)
        overlaid = {resource.number for resource in touched}
        base, resources = self.index.base, [*touched]
        for number in numbers:
            if number not in overlaid:
                key = base.resources.key(number)
                resources.append(Resource(resource_name(key), literal=key[-1] == _LITERAL, number=number, touched=None))
        return [each for each in resources if each.literal or each.name != root.name]

    def _touched_under(self, root: Root) -> list[Resource]:
        resources = self._touched.get((root.kind, root.name))
        if resources is None:
            resources = self._touched[root.kind, root.name] = self._touched_names.under(root.kind, root.name)
        return resources

    @cached_property
    def _readings(self) -> BaseReadings:
        return BaseReadings.of(self.index.base)

    @cached_property
    def _touched_names(self) -> TouchedNames:
        return touched_names(self.index)


# A policy: ACLs, and the settings with which an authorizer decides on them.


@define(eq=False, slots=False)
class Policy:
    """The ACLs of one moment, and the settings. Immutable by convention."""

    acls: AclsImage
    settings: Settings = field(factory=Settings)

    def __repr__(self) -> str:
        return f"Policy({self.acls!r}, {self.settings!r})"

    def __reduce__(self) -> tuple[type["Policy"], tuple[AclsImage, Settings]]:
        """Pickle what the others are made of: an index of the estate is larger, and bound to its process."""
        return type(self), (self.acls, self.settings)

    @cached_property
    def estate(self) -> Estate:
        """The ACLs as the engine reads them, with a cache for later questions."""
        return Estate(self.acls.index)

    @cached_property
    def authorizer(self) -> StandardAuthorizer:
        """The authorizer of this policy, ready to decide."""
        return build_authorizer(
            self.acls,
            super_users=";".join(sorted(self.settings.super_users)),
            allow_everyone=self.settings.allow_everyone,
            documented=self.settings.documented,
            cidr=self.settings.cidr,
            cache=False,
        )


# Decisions on single requests, and their basis: an ACL, or the reason that Kafka names without one.


def is_allowed(policy: Policy, request: Request) -> bool:
    """Return whether a request is allowed; False if Kafka's authorizer throws (see `deciding`)."""
    try:
        (result,) = policy.authorizer.authorize(_context(request), (_action(request),))
    except InvalidRequestError:
        return False
    return bool(result)


def deciding(policy: Policy, request: Request) -> StandardAcl | str | None:
    """Return the ACL that Kafka names for a request, or `SuperUser`, `DefaultAllow` or `DefaultDeny`.

    None if Kafka's authorizer throws, because an ACL on the resource has a principal without a colon.
    """
    try:
        decision = policy.authorizer.decide(_context(request), _action(request))
    except InvalidRequestError:
        return None
    return decision.basis.value if decision.rule is None else decision.rule.acl


def _context(request: Request) -> RequestContext:
    return RequestContext(principal=request.principal, host=request.host)


def _action(request: Request) -> Action:
    resource = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
    return Action(operation=request.operation, resource_pattern=resource)


# ACLs by the names of their patterns, to find those that may cover some names without a scan.


@define(eq=False, kw_only=True)
class PatternIndex:
    """ACLs by resource type and name; immutable by convention."""

    _rules: dict[tuple[int, str], list[StandardAcl]]
    _names: list[tuple[int, str]]
    """Sorted."""
    _lengths: tuple[int, ...]
    """The lengths of the names of prefixed patterns."""

    @staticmethod
    def of(rules: Iterable[StandardAcl]) -> "PatternIndex":
        """Return the index of some ACLs."""
        by_pattern: dict[tuple[int, str], list[StandardAcl]] = {}
        lengths = set()
        for rule in rules:
            by_pattern.setdefault((rule.resource_type, rule.resource_name), []).append(rule)
            if rule.pattern_type != PatternType.LITERAL:
                lengths.add(len(rule.resource_name))
        return PatternIndex(rules=by_pattern, names=sorted(by_pattern), lengths=tuple(sorted(lengths)))

    def near(self, kind: int, part: NamePart) -> Iterator[StandardAcl]:
        """Yield, once each, at least the ACLs that cover a name of a part."""
        name = part.name if isinstance(part, Literal) else part.prefix
        covering = {name[:length] for length in self._lengths if length < len(name)}
        for each in covering | {WILDCARD, name}:
            yield from self._rules.get((kind, each), ())
        if isinstance(part, Literal):
            return
        for position in range(bisect_left(self._names, (kind, name)), len(self._names)):
            key = self._names[position]
            if key[0] != kind or not key[1].startswith(name):
                return
            if key[1] not in (WILDCARD, name):
                yield from self._rules[key]
