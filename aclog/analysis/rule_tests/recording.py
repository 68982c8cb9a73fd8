"""Recording of tests from the decisions of a policy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import evolve, field

from aclog.analysis.comparison import allowed, differences
from aclog.analysis.engine.host_classes import Partition, partition
from aclog.analysis.policy import Policy, is_allowed
from aclog.analysis.regions import (
    REQUESTED,
    Hosts,
    Literal,
    NamePart,
    Query,
    Region,
    Request,
    Subtree,
    everyone_but,
    only,
    operations_of,
    without_exceptions,
)
from aclog.analysis.rows.row import fold, place
from aclog.analysis.rule_tests.case import CaseSubject, resource_text
from aclog.analysis.rule_tests.expectations import ANY_HOST, Cannot, ListedAccess, ListedHosts, WhoCan, groups, who
from aclog.authorizer.acl import FileOrigin, ResourcePattern, StandardAcl
from aclog.authorizer.codes import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index.layout import known_type
from aclog.metalog.values import define, frozen

# Names as items of tests: `topic:orders.*` with exceptions.


Listed: TypeAlias = tuple[ResourcePattern, tuple[ResourcePattern, ...]]
"""A name, or names with a prefix, and the excepted names."""


def listed_names(kind: ResourceType, names: Iterable[NamePart]) -> Iterator[Listed]:
    """Yield resources that together equal a set of names, each with its exceptions.

    `topic:*` is what LITERAL `*` covers (aclog.analysis.rule_tests.expectations), so every name takes two items.
    """
    parts = set(names)
    for part in sorted(parts, key=place):
        if isinstance(part, Subtree) and not part.prefix:
            yield from _from_every_name(kind, part, star=Literal(name=WILDCARD) in parts)
        elif isinstance(part, Subtree):
            yield _resource(kind, part.prefix), _but(kind, part)
        elif part.name != WILDCARD or Subtree(prefix="") not in map(without_exceptions, parts):
            yield ResourcePattern(resource_type=kind, name=part.name), ()


def _from_every_name(kind: ResourceType, part: Subtree, *, star: bool) -> Iterator[Listed]:
    """Yield every name with exceptions; `star`: including `*` itself."""
    usual, other = _split(part)
    has_star = star or WILDCARD in part
    only_star = ResourcePattern(resource_type=kind, name=WILDCARD)
    yield _resource(kind, ""), (*_but(kind, usual), *(() if has_star else (only_star,)))
    if WILDCARD not in part.except_prefixes:
        yield _resource(kind, WILDCARD), _but(kind, other)


def _split(part: Subtree) -> tuple[Subtree, Subtree]:
    """Return the exceptions among ordinary names, and among those that begin with `*`."""
    prefixes, literals = part.except_prefixes, part.except_literals
    usual = Subtree(
        prefix="",
        except_prefixes=tuple(each for each in prefixes if not each.startswith(WILDCARD)),
        except_literals=tuple(each for each in literals if not each.startswith(WILDCARD)),
    )
    other = Subtree(
        prefix=WILDCARD,
        except_prefixes=tuple(each for each in prefixes if each.startswith(WILDCARD)),
        except_literals=tuple(each for each in literals if each.startswith(WILDCARD)),
    )
    return usual, other


def _but(kind: ResourceType, part: Subtree) -> tuple[ResourcePattern, ...]:
    return (
        *(_resource(kind, prefix) for prefix in part.except_prefixes),
        *(ResourcePattern(resource_type=kind, name=name) for name in part.except_literals),
    )


def _resource(kind: ResourceType, prefix: str) -> ResourcePattern:
    return ResourcePattern(resource_type=kind, name=prefix, pattern_type=PatternType.PREFIXED)


# Tests as objects of a YAML file: the subject, and lists of resources by operation.


TestObject = dict[str, object]


def by_operation(items: Iterable[tuple[int, object]]) -> dict[str, list[object]]:
    """Return items by the names of their operations; `ALL` is all 13."""
    named: dict[str, list[object]] = {}
    for mask, item in items:
        names = ["ALL"] if mask == REQUESTED else [operation.name for operation in operations_of(mask)]
        for name in names:
            listed = named.setdefault(name, [])
            if item not in listed[-1:]:
                listed.append(item)
    return dict(sorted(named.items()))


def item_of(access: ListedAccess) -> object:
    """Return an item of `can_only`: a text, or a mapping if it has exceptions or hosts."""
    text = resource_text(access.resource)
    if not access.but and access.hosts == ANY_HOST:
        return text
    word, _, name = text.partition(":")
    item: dict[str, object] = {word: name or access.resource.name}
    if access.but:
        item["except"] = [resource_text(each).partition(":")[2] for each in access.but]
    if access.hosts.entries:
        item["from"] = list(access.hosts.entries)
    if access.hosts.but:
        item["not_from"] = list(access.hosts.but)
    return item


def test_object(name: str, subject: CaseSubject, expected: Mapping[str, object]) -> TestObject:
    """Return a test of a subject."""
    test: TestObject = {"name": name, "principal": subject.principal}
    if subject.but:
        test["except"] = list(subject.but)
    if subject.host is not None:
        test["host"] = subject.host
    return {**test, **expected}


# Tests of past accesses: the present decision on each, folded to common names.


_FOLDED = 3
"""The least number of accessed names under a fully allowed prefix that are written as the prefix."""


def tests_of_accesses(policy: Policy, accesses: Iterable[Request]) -> Iterator[TestObject]:
    """Yield tests that expect the present decision on each access: by principal, and by host where it matters."""
    of_principal: dict[str, list[Request]] = {}
    for each in accesses:
        if ":" in each.principal and each.principal != WILDCARD_PRINCIPAL and each.resource_name:
            of_principal.setdefault(each.principal, []).append(each)
    for principal, requests in sorted(of_principal.items()):
        yield from _Principal.of(policy, principal).tests(requests)


@define(eq=False, kw_only=True)
class _Principal:
    """The allowed access of one principal."""

    policy: Policy
    principal: str
    _everywhere: dict[tuple[int, int], dict[str, list[NamePart]]] = field(factory=dict, init=False)
    """Access from every host, by resource type and operation, and by a prefix of the names."""
    _somewhere: dict[tuple[int, int], dict[str, list[NamePart]]] = field(factory=dict, init=False)

    @staticmethod
    def of(policy: Policy, principal: str) -> "_Principal":
        """Read the allowed access of a principal."""
        reader = _Principal(policy=policy, principal=principal)
        for region in allowed(policy, Query(principals=only(principal))):
            reader._add(region)
        return reader

    def tests(self, requests: Iterable[Request]) -> Iterator[TestObject]:
        """Yield the tests of some accesses of the principal."""
        can: dict[str | None, set[tuple[int, int, str]]] = {}
        cannot: dict[str | None, set[tuple[int, int, str]]] = {}
        for each in requests:
            place = (each.resource_type, each.operation)
            access = (*place, each.resource_name)
            if is_allowed(self.policy, each):
                everywhere = self._part(self._everywhere, place, each.resource_name) is not None
                can.setdefault(None if everywhere else each.host, set()).add(access)
            else:
                nowhere = self._part(self._somewhere, place, each.resource_name) is None
                cannot.setdefault(None if nowhere else each.host, set()).add(access)
        for host in sorted({*can, *cannot}, key=lambda each: each or ""):
            expected: TestObject = {}
            if host in can:
                expected["can"] = by_operation(self._folded(can[host], fold=host is None))
            if host in cannot:
                expected["cannot"] = by_operation(self._folded(cannot[host], fold=False))
            name = self.principal if host is None else f"{self.principal} from {host}"
            yield test_object(name, CaseSubject(principal=self.principal, host=host), expected)

    def _add(self, region: Region) -> None:
        everywhere = region.hosts.complement and not region.hosts.entries
        for operation in operations_of(region.operations):
            for part in region.names:
                begin = part.name if isinstance(part, Literal) else part.prefix
                for places in (self._somewhere, *((self._everywhere,) if everywhere else ())):
                    places.setdefault((region.resource_type, operation), {}).setdefault(begin, []).append(part)

    def _part(
        self, places: dict[tuple[int, int], dict[str, list[NamePart]]], place: tuple[int, int], name: str
    ) -> NamePart | None:
        """Return the widest of the parts that contain a name."""
        begins = places.get(place, {})
        parts = (part for end in range(len(name) + 1) for part in begins.get(name[:end], ()) if name in part)
        return next(parts, None)

    def _folded(self, accesses: Iterable[tuple[int, int, str]], *, fold: bool) -> Iterator[tuple[int, object]]:
        names: dict[tuple[int, int, str], list[str]] = {}
        for kind, operation, name in accesses:
            part = self._part(self._everywhere, (kind, operation), name) if fold else None
            whole = isinstance(part, Subtree) and part == Subtree(prefix=part.prefix) and bool(part.prefix)
            begin = part.prefix if whole and isinstance(part, Subtree) else ""
            names.setdefault((kind, operation, begin), []).append(name)
        for (kind, operation, begin), members in sorted(names.items()):
            folds = bool(begin) and len(members) >= _FOLDED
            for name in [begin] if folds else sorted(members):
                pattern = PatternType.PREFIXED if folds else PatternType.LITERAL
                resource = ResourcePattern(resource_type=ResourceType(kind), name=name, pattern_type=pattern)
                yield 1 << operation, resource_text(resource)


# Tests of the present access: `can_only` for each principal, so that any other decision fails a test.


_LONG = 50
"""The most exceptions of a subtree before it is folded with other parts, which may fill some of the exceptions."""


@frozen(kw_only=True)
class RecordedAccess:
    """A principal, or everyone else, and all its access."""

    subject: CaseSubject
    listed: tuple[ListedAccess, ...]


def recorded(policy: Policy) -> Iterator[RecordedAccess]:
    """Yield the access of each principal that differs from everyone else, then that of everyone else.

    Together they determine the decision on every request, except those of super users.
    """
    principals = everyone_but(*policy.settings.super_users)
    regions = list(_allowed_regions(policy, Query(principals=principals)))
    hosts = _hosts_of_rules(policy)
    rest, *others = groups(principals, regions)
    apart = sorted((each, theirs) for named, theirs in others for each in named.named)
    cache: dict[tuple[int, ...], tuple[ListedAccess, ...]] = {}
    for principal, theirs in apart:
        listed = cache.get(tuple(map(id, theirs)))
        if listed is None:
            texts = hosts.get(principal, set()) | hosts.get(WILDCARD_PRINCIPAL, set())
            listed = cache[tuple(map(id, theirs))] = _listed(theirs, texts)
        yield RecordedAccess(subject=CaseSubject(principal=principal), listed=listed)
    everybody_else = CaseSubject(principal=WILDCARD_PRINCIPAL, but=tuple(each for each, _ in apart))
    yield RecordedAccess(subject=everybody_else, listed=_listed(rest[1], hosts.get(WILDCARD_PRINCIPAL, set())))


def _allowed_regions(policy: Policy, query: Query) -> Iterator[Region]:
    """Yield the allowed regions; those on names without ACLs are separate, and so equal for all principals."""
    if not policy.settings.allow_everyone:
        yield from allowed(policy, query)
        return
    strict = Policy(policy.acls, evolve(policy.settings, allow_everyone=False))
    yield from allowed(strict, query)
    yield from (each.region for each in differences(strict, policy, query=query))


def _hosts_of_rules(policy: Policy) -> dict[str, set[str]]:
    hosts: dict[str, set[str]] = {}
    for rule in policy.acls:
        if rule.acl.host != WILDCARD:
            hosts.setdefault(rule.acl.principal, set()).add(rule.acl.host)
    return hosts


def _listed(regions: Sequence[Region], texts: Iterable[str]) -> tuple[ListedAccess, ...]:
    listing = _Listing(regions=regions, texts=sorted(texts))
    return tuple(listing.access())


@define(eq=False, kw_only=True)
class _Listing:
    """The regions of one subject while they are listed."""

    regions: Sequence[Region]
    texts: Sequence[str]
    """The hosts of ACLs, in which sets of hosts are expressed where possible."""
    _classes: Partition = field(init=False)

    def __attrs_post_init__(self) -> None:
        every = {text for each in self.regions for text in (*each.hosts.entries, *each.hosts.except_addresses)}
        self._classes = partition({*every, *self.texts}, cidr=any("/" in text for text in every))

    def access(self) -> Iterator[ListedAccess]:
        """Yield the allowed access, by type and name."""
        operations: dict[tuple[int, NamePart, int], int] = {}
        for kind, operation, part, classes in self._parts():
            place = (kind, part, classes)
            operations[place] = operations.get(place, 0) | 1 << operation
        names: dict[tuple[int, int, int], list[NamePart]] = {}
        for (kind, part, classes), mask in operations.items():
            names.setdefault((kind, classes, mask), []).append(part)
        for (kind, classes, mask), parts in sorted(names.items(), key=lambda item: item[0]):
            listed = list(listed_names(ResourceType(kind), parts))
            for hosts in self._hosts(classes):
                for resource, but in listed:
                    yield ListedAccess(operations=mask, resource=resource, but=but, hosts=hosts)

    def _parts(self) -> Iterator[tuple[int, int, NamePart, int]]:
        """Yield resource type, operation, names, and the classes of hosts from which they are allowed."""
        of_class: dict[tuple[int, ...], int] = {}
        masks = [self._classes.classes_of(region.hosts) for region in self.regions]
        for number in range(self._classes.count):
            key = tuple(n for n, mask in enumerate(masks) if mask >> number & 1)
            of_class[key] = of_class.get(key, 0) | 1 << number
        classes_of: dict[tuple[int, int, NamePart], int] = {}
        for key, classes in of_class.items():
            names: dict[tuple[int, int], list[NamePart]] = {}
            for region in (self.regions[number] for number in key):
                for operation in operations_of(region.operations):
                    names.setdefault((region.resource_type, operation), []).extend(region.names)
            for of_type, parts in names.items():
                # Names without ACLs have as many exceptions as there are names: list them once for all operations.
                apart = [part for part in parts if _is_long(part)]
                for part in (*apart, *fold(part for part in parts if not _is_long(part))):
                    place = (*of_type, part)
                    classes_of[place] = classes_of.get(place, 0) | classes
        yield from ((*place, classes) for place, classes in classes_of.items())

    def _hosts(self, classes: int) -> Iterator[ListedHosts]:
        """Yield the hosts of some classes, by the hosts of ACLs if possible, otherwise in as few as possible."""
        every = (1 << self._classes.count) - 1
        if classes == every:
            yield ANY_HOST
            return
        for among in (classes, every):
            entries = self._largest(among, meeting=classes)
            for base in (entries, ()):
                matched = ListedHosts(entries=base).classes_in(self._classes)
                listed = ListedHosts(entries=base, but=self._largest(matched & ~classes))
                if listed.classes_in(self._classes) == classes:
                    yield listed
                    return
        yield from map(_as_listed, self._classes.hosts(classes))

    def _largest(self, among: int, meeting: int | None = None) -> tuple[str, ...]:
        """Return the hosts of ACLs inside some classes, except those inside another one."""
        texts: list[str] = []
        covered = 0
        matched = ((self._classes.matched(text, cidr=True), text) for text in self.texts)
        for mask, text in sorted(matched, key=lambda pair: (-pair[0].bit_count(), pair[1])):
            fits = mask and not mask & ~among and (meeting is None or mask & meeting)
            if fits and mask & ~covered:
                texts.append(text)
                covered |= mask
        return tuple(sorted(texts))


def _as_listed(hosts: Hosts) -> ListedHosts:
    if hosts.complement:
        return ListedHosts(but=hosts.entries)
    return ListedHosts(entries=hosts.entries, but=hosts.except_addresses)


def _is_long(part: NamePart) -> bool:
    return isinstance(part, Subtree) and len(part.except_prefixes) + len(part.except_literals) > _LONG


# Tests of the complete state: can_only for each principal, denied access, and access that few principals have.


NOWHERE = FileOrigin(file="", line=0)
"""The origin of a case that is run before it is written."""
_MOST_HOLDERS = 20
"""The longest list of principals of a who_can; a longer one is no help to a reader."""


def tests_of_state(policy: Policy) -> Iterator[TestObject]:
    """Yield tests that pass, at least one of which fails if any request is decided differently.

    Requests of super users are excluded: they follow from the settings.
    """
    denies = [rule.acl for rule in policy.acls if rule.acl.permission_type != AclPermissionType.ALLOW]
    denied: dict[str, list[StandardAcl]] = {}
    for rule in denies:
        denied.setdefault(rule.principal, []).append(rule)
    everybody = denied_to(policy, denied.pop(WILDCARD_PRINCIPAL, ()))
    if everybody:
        yield test_object("everyone", CaseSubject(principal=WILDCARD_PRINCIPAL), {"cannot": everybody})
    yield from _holders(policy, denies)
    for each in recorded(policy):
        subject = each.subject
        listed = sorted(each.listed, key=_place)
        expected: TestObject = {"can_only": by_operation((item.operations, item_of(item)) for item in listed)}
        cannot = denied_to(policy, denied.get(subject.principal, ()))
        if cannot:
            expected["cannot"] = cannot
        name = subject.principal if subject.principal != WILDCARD_PRINCIPAL else "everyone else"
        yield test_object(name, subject, expected)


def denied_to(policy: Policy, rules: Iterable[StandardAcl]) -> dict[str, list[object]]:
    """Return the resources, by operation, of those of some ACLs whose requests are all denied, from any host."""
    items: list[tuple[int, str]] = []
    for rule in rules:
        resource = resource_of_rule(rule)
        if rule.host != WILDCARD or ":" not in rule.principal or resource is None:
            continue
        mask = operations_of_rule(rule)
        subject = CaseSubject(principal=rule.principal)
        case = Cannot(test="", origin=NOWHERE, subject=subject, operations=mask, resource=resource)
        if mask and case.run(policy).passed:
            items.append((mask, resource_text(resource)))
    items.sort(key=lambda item: item[1])
    return by_operation(items)


def resource_of_rule(rule: StandardAcl) -> ResourcePattern | None:
    """Return the resource that an ACL covers, LITERAL `*` as every name; None for a type or name without requests."""
    kind = known_type(rule.resource_type)
    if kind not in set(ResourceType) or kind <= ResourceType.ANY:
        return None
    literal = rule.pattern_type == PatternType.LITERAL and rule.resource_name != WILDCARD
    if kind == ResourceType.CLUSTER or (literal and not rule.resource_name):
        return None
    every = rule.pattern_type == PatternType.LITERAL and rule.resource_name == WILDCARD
    return ResourcePattern(
        resource_type=kind,
        name="" if every else rule.resource_name,
        pattern_type=PatternType.LITERAL if literal else PatternType.PREFIXED,
    )


def operations_of_rule(rule: StandardAcl) -> int:
    """Return the operations of an ACL as a mask, without implied operations."""
    return REQUESTED if rule.operation == AclOperation.ALL else 1 << rule.operation & REQUESTED


def _place(listed: ListedAccess) -> tuple[int, str, bool]:
    resource = listed.resource
    return resource.resource_type, resource.name, resource.pattern_type != PatternType.LITERAL


def _holders(policy: Policy, denies: Sequence[StandardAcl]) -> Iterator[TestObject]:
    """Yield the principals that can read and write what is denied to others, if they are few."""
    protected = {
        resource: None for rule in denies if (resource := resource_of_rule(rule)) is not None and resource.name
    }
    expected: dict[str, list[str]] = {}
    for resource in sorted(protected, key=resource_text):
        for operation in (AclOperation.READ, AclOperation.WRITE):
            case = WhoCan(test="", origin=NOWHERE, operations=1 << operation, resource=resource, expected=())
            (query,) = case.queries(policy.settings)
            holders = sorted(who(list(allowed(policy, query)), policy.settings))
            if 0 < len(holders) <= _MOST_HOLDERS and WILDCARD_PRINCIPAL not in holders:
                expected[f"{operation.name} {resource_text(resource)}"] = holders
    if expected:
        yield {"name": "what is denied to others", "who_can": expected}


# Tests that removed access stays removed.


@frozen(kw_only=True)
class Removal:
    """A removal of an ACL, from a log."""

    acl: StandardAcl
    when: str
    """The offset and the time of its record, for display."""


def tests_of_removals(policy: Policy, removals: Iterable[Removal]) -> Iterator[TestObject]:
    """Yield tests that access of removed ACLs stays denied, if all of it is denied today."""
    removed: dict[str, dict[StandardAcl, str]] = {}
    last: dict[str, str] = {}
    for removal in removals:
        if removal.acl.permission_type == AclPermissionType.ALLOW and policy.acls.find(removal.acl) is None:
            removed.setdefault(removal.acl.principal, {})[removal.acl] = removal.when
            last[removal.acl.principal] = removal.when
    for principal, rules in sorted(removed.items()):
        cannot = denied_to(policy, rules)
        if cannot:
            name = f"taken from {principal}, last at {last[principal]}"
            yield test_object(name, CaseSubject(principal=principal), {"cannot": cannot})
