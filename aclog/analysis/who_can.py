"""The answers to "who can" and "what can": allowed regions, with the ACLs behind them.

Also the principals for whom an intent holds.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import reduce
from operator import and_, or_
from typing import TypeAlias

from attrs import evolve, field

from aclog.analysis.comparison import allowed, differences
from aclog.analysis.engine.host_classes import Partition, is_address, partition
from aclog.analysis.intents import Need
from aclog.analysis.policy import PatternIndex, Policy
from aclog.analysis.regions import (
    EVERYONE,
    EVERYWHERE,
    EXCEPT,
    LIST_LIMIT,
    REQUESTED,
    Hosts,
    JsonObject,
    Literal,
    NamePart,
    Names,
    Principals,
    Query,
    Region,
    Root,
    Subtree,
    common,
    covers_all,
    decided_by_object,
    everyone_but,
    has_legal_name,
    hosts_text,
    less,
    less_all,
    only,
    operations_of,
    operations_text,
    pattern_meets,
    region_object,
    witness,
    witness_object,
)
from aclog.analysis.rows.row import Clause, what_text
from aclog.authorizer.acl import (
    NO_ORIGINS,
    AclBindingFilter,
    Origins,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    address_number,
    cidr_range,
    is_cidr,
    resource_of,
)
from aclog.authorizer.acls_image import Basis
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.explain import located_text
from aclog.authorizer.index.layout import ALL_OPERATIONS, matched_operations, rule_mask
from aclog.authorizer.index.queries import rules_of
from aclog.authorizer.settings import Settings, is_set, name_text
from aclog.metalog.values import define, frozen

# The extent of a permission on the names of a question: all names with a prefix, or some.


_LONGER_THAN_STAR = Subtree(prefix=WILDCARD, except_literals=(WILDCARD,))
"""The names that LITERAL `*` does not cover in Kafka."""


@frozen(kw_only=True)
class Extent:
    """The part of the queried names that a permission covers."""

    is_all: bool
    text: str
    """Such as `all queried topics`."""


def extent_of(names: Names, kind: ResourceType, patterns: Sequence[ResourcePattern]) -> Extent:
    """Return the extent of a set of names on some resources of one type."""
    queried = f"queried {kind.name.lower().replace('_', ' ')}s"
    lacking = tuple(part for each in patterns for part in _lacking(names, kind, each))
    if not lacking:
        return Extent(is_all=True, text=f"all {queried}")
    if all(less((part,), _LONGER_THAN_STAR) == () for part in lacking):
        return Extent(is_all=False, text=f"all {queried} except longer names that begin with *")
    return Extent(is_all=False, text=f"some {queried}")


def names_that_exist(kind: ResourceType, names: Names) -> Names:
    """Return the parts of a set that have a legal name; only topic names are restricted."""
    return tuple(part for part in names if has_legal_name(_region(kind, (part,))))


def _lacking(names: Names, kind: ResourceType, pattern: ResourcePattern) -> Names:
    if kind == ResourceType.CLUSTER:
        whole: Names = (Literal(name=CLUSTER_NAME),)
    elif is_set(pattern):
        whole = (Subtree(prefix=pattern.name),)
    else:
        whole = (Literal(name=pattern.name),)
    lacking = less_all(whole, names)
    # A mistyped prefix without legal topic names is compared literally.
    return names_that_exist(kind, lacking) if names_that_exist(kind, whole) else lacking


def _region(kind: ResourceType, names: Names) -> Region:
    return Region(resource_type=kind, operations=REQUESTED, principals=EVERYONE, hosts=EVERYWHERE, names=names)


# The ACLs behind allowed regions: those that grant a region, and those that deny a part of what they grant.


@define(eq=False, kw_only=True)
class RulesAbout:
    """The ACLs that match any request of a query; immutable by convention."""

    settings: Settings
    denying: tuple[StandardAcl, ...]
    """All DENY rules among them."""
    _allowing: dict[str, PatternIndex]
    _indexed_denying: dict[str, PatternIndex]
    _all_denying: PatternIndex
    _odd: tuple[str, ...]
    """Principals without a colon that have an ACL."""

    @staticmethod
    def of(policy: Policy, query: Query) -> "RulesAbout":
        """Return the ACLs of a policy that match a query."""
        allowing: dict[str, list[StandardAcl]] = {}
        denying: dict[str, list[StandardAcl]] = {}
        for rule in dict.fromkeys(rules_about(policy, query)):
            allows = rule.permission_type == AclPermissionType.ALLOW and not _is_colonless(rule)
            (allowing if allows else denying).setdefault(rule.principal, []).append(rule)
        everybody = sorted((rule for rules in denying.values() for rule in rules), key=rule_order)
        return RulesAbout(
            settings=policy.settings,
            denying=tuple(everybody),
            allowing={principal: PatternIndex.of(rules) for principal, rules in allowing.items()},
            indexed_denying={principal: PatternIndex.of(rules) for principal, rules in denying.items()},
            all_denying=PatternIndex.of(everybody),
            odd=tuple(each for each in denying if ":" not in each),
        )

    def giving(self, region: Region) -> list[StandardAcl]:
        """Return the ALLOW rules for the region's principals that match one of its requests.

        If the principals of the region are a complement, these are the rules for `User:*`.
        """
        named = () if region.principals.complement else region.principals.named
        indexes = [self._allowing[each] for each in (*named, WILDCARD_PRINCIPAL) if each in self._allowing]
        rules = {
            rule: None
            for index in indexes
            for part in region.names
            for rule in index.near(region.resource_type, part)
            if self._is_about(rule, region, part)
        }
        return sorted(rules, key=rule_order)

    def taking(self, rules: Sequence[StandardAcl]) -> list[StandardAcl]:
        """Return the DENY rules of the query that overrule a part of some ALLOW rules."""
        taking: dict[StandardAcl, None] = {}
        for allow in rules:
            part = _names_covered(allow)
            for index in self._denying_of(allow.principal):
                for deny in index.near(allow.resource_type, part):
                    if deny not in taking and self._overlap(allow, deny):
                        taking[deny] = None
        return sorted(taking, key=rule_order)

    def _denying_of(self, principal: str) -> Sequence[PatternIndex]:
        if principal == WILDCARD_PRINCIPAL:
            return (self._all_denying,)
        return [
            self._indexed_denying[each]
            for each in (principal, WILDCARD_PRINCIPAL, *self._odd)
            if each in self._indexed_denying
        ]

    def _is_about(self, rule: StandardAcl, region: Region, part: NamePart) -> bool:
        return (
            bool(rule_mask(rule.operation, rule.permission_type) & region.operations)
            and _hosts_meet(rule.host, region.hosts, cidr=self.settings.cidr)
            and pattern_meets(rule.resource_name, rule.pattern_type, (part,), documented=self.settings.documented)
        )

    def _overlap(self, allow: StandardAcl, deny: StandardAcl) -> bool:
        if _is_colonless(deny):
            return _patterns_overlap(allow, deny, documented=self.settings.documented)
        operations = rule_mask(deny.operation, deny.permission_type) >> 16
        return (
            bool(rule_mask(allow.operation, allow.permission_type) & operations & ALL_OPERATIONS)
            and (allow.principal == deny.principal or WILDCARD_PRINCIPAL in (allow.principal, deny.principal))
            and _hosts_overlap(allow.host, deny.host, cidr=self.settings.cidr)
            and _patterns_overlap(allow, deny, documented=self.settings.documented)
        )


def is_about(rule: StandardAcl, query: Query, settings: Settings) -> bool:
    """Return whether an ACL matches a request of a query, or makes Kafka's authorizer throw on one."""
    return _is_about_some(rule, query, settings) and any(
        _covers_some(rule, resource, settings) for resource in query.resources
    )


def rules_about(policy: Policy, query: Query) -> Iterator[StandardAcl]:
    """Yield the ACLs of a policy that match any request of a query, and those on which the authorizer fails."""
    return (rule for rule in _of_resources(policy, query) if _is_about_some(rule, query, policy.settings))


def _is_about_some(rule: StandardAcl, query: Query, settings: Settings) -> bool:
    """Return whether an ACL matches a query, its resources aside."""
    return _is_colonless(rule) or (
        bool(matched_operations(rule.operation, rule.permission_type) & query.operations)
        and _is_for(rule.principal, query.principals)
        and _is_from(rule.host, query.host, cidr=settings.cidr)
    )


def _of_resources(policy: Policy, query: Query) -> Iterator[StandardAcl]:
    acls = policy.acls.with_options(documented=policy.settings.documented, cidr=policy.settings.cidr)
    if not query.principals.complement:
        odd = [each for each in acls.principals() if ":" not in each] if acls.index.has_colonless else []
        for principal in {*query.principals.named, WILDCARD_PRINCIPAL, *odd}:
            for entry in acls.matching(AclBindingFilter(principal=principal)):
                if any(_covers_some(entry.acl, each, policy.settings) for each in query.resources):
                    yield entry.acl
        return
    for resource in query.resources:
        if resource.pattern_type == PatternType.LITERAL:
            yield from (entry.acl for entry in acls.candidates(resource.resource_type, resource.name))
        else:
            yield from (entry.acl for entry in rules_on(policy, resource))


def rules_on(policy: Policy, resource: ResourcePattern) -> Iterator[StandardAclWithId]:
    """Yield the ACLs that cover a name with a prefix, in time proportional to nearby ones; one may be repeated."""
    root, estate = Root(resource.resource_type, resource.name, literal=False), policy.estate
    for pattern in (*estate.covering(root), estate.wildcard(root.kind), *estate.under(root)):
        for entry in rules_of(policy.acls.index, pattern):
            if _covers_some(entry.acl, resource, policy.settings):
                yield entry


def _covers_some(rule: StandardAcl, resource: ResourcePattern, settings: Settings) -> bool:
    names = names_of(resource)
    return rule.resource_type == resource.resource_type and pattern_meets(
        rule.resource_name, rule.pattern_type, names, documented=settings.documented
    )


def names_of(resource: ResourcePattern) -> Names:
    """Return the names of a resource of a query."""
    literal = resource.pattern_type == PatternType.LITERAL
    return (Literal(name=resource.name) if literal else Subtree(prefix=resource.name),)


def _is_colonless(rule: StandardAcl) -> bool:
    """Return whether Kafka's authorizer throws on an ACL, so that it denies everything to everyone."""
    return ":" not in rule.principal


def _names_covered(rule: StandardAcl) -> NamePart:
    """Return at least the names that an ACL covers."""
    is_literal = rule.pattern_type == PatternType.LITERAL and rule.resource_name != WILDCARD
    if is_literal:
        return Literal(name=rule.resource_name)
    return Subtree(prefix="" if rule.pattern_type == PatternType.LITERAL else rule.resource_name)


def _is_for(principal: str, principals: Principals) -> bool:
    return principal == WILDCARD_PRINCIPAL or principal in principals


def _patterns_overlap(one: StandardAcl, other: StandardAcl, *, documented: bool) -> bool:
    if one.pattern_type == PatternType.LITERAL and one.resource_name == WILDCARD:
        one, other = other, one
    if one.pattern_type == PatternType.LITERAL and one.resource_name == WILDCARD:
        return True
    return pattern_meets(other.resource_name, other.pattern_type, names_of(resource_of(one)), documented=documented)


def _hosts_meet(host: str, hosts: Hosts, *, cidr: bool) -> bool:
    if host == WILDCARD:
        return True
    if cidr and "/" in host:
        # A complement with ranges may exclude this one entirely.
        if hosts.complement:
            return not any(_hosts_within(host, entry) for entry in hosts.entries)
        return any(_hosts_overlap(host, entry, cidr=True) for entry in hosts.entries)
    return host in hosts


def _hosts_overlap(one: str, other: str, *, cidr: bool) -> bool:
    if one == other or WILDCARD in (one, other):
        return True
    return cidr and (_hosts_within(one, other) or _hosts_within(other, one))


def _hosts_within(inner: str, outer: str) -> bool:
    """Return whether an address or range lies inside a range."""
    range_ = cidr_range(outer)
    if range_ is None:
        return False
    if "/" not in inner:
        return range_.contains_number(address_number(inner))
    part = cidr_range(inner)
    return (
        part is not None and part.version == range_.version and range_.first <= part.first <= part.last <= range_.last
    )


def _is_from(host: str, address: str | None, *, cidr: bool) -> bool:
    """Return whether the host of an ACL matches an address, or any address at all."""
    if address is not None:
        return host in (WILDCARD, address) or (cidr and _hosts_within(address, host))
    return host == WILDCARD or is_address(host) or (cidr and is_cidr(host))


def rule_order(rule: StandardAcl) -> tuple[object, ...]:
    """Return the sort key of an ACL."""
    return (
        rule.resource_type,
        rule.resource_name,
        rule.pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    )


# The holders of an intent: principals and hosts with all the access that it needs.


_Place: TypeAlias = tuple[int, Names]
"""Host classes as a mask, and the names on which all operations of a need are allowed from there."""


@frozen(kw_only=True)
class Holder:
    """Principals and hosts for which an intent holds, in every combination."""

    principals: Principals
    hosts: tuple[Hosts, ...]
    """Disjoint."""
    grants: tuple[tuple[Region, ...], ...]
    """By need: the resources that satisfy it."""


def holders(
    policy: Policy, needs: Sequence[Need], *, principals: Principals = EVERYONE, host: str | None = None
) -> Iterator[Holder]:
    """Yield all holders of an intent, in a stable order; each principal and host once."""
    regions = _allowed_of_each(policy, needs, principals, host)
    if regions is None:
        return
    search = _Search(needs=needs, regions=regions, cidr=policy.settings.cidr)
    groups: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for principal in search.named():
        groups.setdefault(search.regions_of(principal), []).append(principal)
    others = search.regions_of(None)
    # Principals that share their regions with everyone else are not named, which keeps groups short.
    groups.setdefault(others, [])
    for key, members in groups.items():
        if key == others:
            named = {each for other, rest in groups.items() if other != key for each in rest}
            yield from search.holder(everyone_but(*named), key)
        else:
            yield from search.holder(only(*members), key)


def _allowed_of_each(
    policy: Policy, needs: Sequence[Need], principals: Principals, host: str | None
) -> list[list[Region]] | None:
    """Return the allowed regions of each need, for principals with some access to all; None without such principals."""
    by_need: dict[int, list[Region]] = {}
    # Needs on few names first: they often leave few principals for those on any name.
    for number in sorted(range(len(needs)), key=lambda number: any(not each.name for each in needs[number].patterns)):
        regions = list(allowed(policy, needs[number].query(principals, host)))
        if not regions:
            return None
        by_need[number] = regions
        if not any(region.principals.complement for region in regions):
            principals = only(*(each for region in regions for each in region.principals.named))
    return [by_need[number] for number in range(len(needs))]


@define(eq=False, kw_only=True)
class _Search:
    needs: Sequence[Need]
    regions: Sequence[Sequence[Region]]
    """The allowed regions of each need."""
    cidr: bool
    _classes: Partition = field(init=False)

    def __attrs_post_init__(self) -> None:
        every = (region.hosts for regions in self.regions for region in regions)
        texts = {text for hosts in every for text in (*hosts.entries, *hosts.except_addresses)}
        self._classes = partition(texts, cidr=self.cidr)

    def named(self) -> list[str]:
        return sorted({each for regions in self.regions for region in regions for each in region.principals.named})

    def regions_of(self, principal: str | None) -> tuple[tuple[int, ...], ...]:
        """Return, by need, the numbers of a principal's regions; None: a principal that none of them names."""
        return tuple(
            tuple(n for n, region in enumerate(regions) if _has(region.principals, principal))
            for regions in self.regions
        )

    def holder(self, principals: Principals, key: Sequence[Sequence[int]]) -> Iterator[Holder]:
        """Yield the holder that some principals with these regions form, if any."""
        places = [
            self._places(need, [regions[number] for number in numbers])
            for need, regions, numbers in zip(self.needs, self.regions, key, strict=True)
        ]
        hosts = reduce(and_, (reduce(or_, (mask for mask, _ in each), 0) for each in places))
        if not hosts:
            return
        grants = tuple(
            tuple(self._grants(need, principals, each, hosts)) for need, each in zip(self.needs, places, strict=True)
        )
        yield Holder(principals=principals, hosts=tuple(self._classes.hosts(hosts)), grants=grants)

    def _grants(self, need: Need, principals: Principals, places: Iterable[_Place], hosts: int) -> Iterator[Region]:
        for mask, names in places:
            for each in self._classes.hosts(mask & hosts):
                yield Region(
                    resource_type=need.resource_type,
                    operations=need.operations,
                    principals=principals,
                    hosts=each,
                    names=names,
                )

    def _places(self, need: Need, regions: Sequence[Region]) -> list[_Place]:
        """Return the places where all operations of a need are allowed, given the allowed regions."""
        whole: list[_Place] = []
        partial: list[Region] = []
        for region in regions:
            if region.operations == need.operations:
                whole.append((self._classes.classes_of(region.hosts), region.names))
            else:
                partial.append(region)
        whole += self._joined(need, [*partial, *(r for r in regions if r.operations == need.operations and partial)])
        return self._with_every(need, whole) if need.every else list(dict.fromkeys(whole))

    def _joined(self, need: Need, regions: Sequence[Region]) -> Iterator[_Place]:
        """Yield the places where each operation is allowed by one of the regions."""
        places: list[_Place] | None = None
        for operation in operations_of(need.operations):
            of_one = [(self._classes.classes_of(r.hosts), r.names) for r in regions if r.operations >> operation & 1]
            if places is None:
                places = of_one
            else:
                met = ((mask & other, common(names, more)) for mask, names in places for other, more in of_one)
                places = list(dict.fromkeys(place for place in met if all(place)))
        yield from places or ()

    def _with_every(self, need: Need, places: Sequence[_Place]) -> list[_Place]:
        """Return the hosts from which every name of the need's patterns is allowed."""
        classes = 0
        for number in range(self._classes.count):
            names = tuple(part for mask, names in places if mask >> number & 1 for part in names)
            if names and all(covers_all(names, pattern.name) for pattern in need.patterns):
                classes |= 1 << number
        every = tuple(part for pattern in need.patterns for part in names_of(pattern))
        return [(classes, every)] if classes else []


def _has(principals: Principals, principal: str | None) -> bool:
    return principals.complement if principal is None else principal in principals


# Allowed regions with the ACLs behind them: the answers to "who can" and "what can".


SUPER_USER, DEFAULT_ALLOW = Basis.SUPER_USER.value, Basis.DEFAULT_ALLOW.value


@frozen(kw_only=True)
class Permission:
    """An allowed region, and why it is allowed."""

    region: Region
    rules: tuple[StandardAcl | str, ...]
    """The ALLOW rules that grant it, in part or in full; or `SuperUser`, or `DefaultAllow`."""
    denies: tuple[StandardAcl, ...] = ()
    """The DENY rules that overrule a part of `rules`."""
    extent: Extent | None = None
    """The covered part of the queried names; None if the query has no prefix (see `with_extents`)."""


def permission_key(permission: Permission) -> Hashable:
    """Return the key on which two generations of Kafka must agree to share a permission."""
    return permission.region, permission.rules, permission.denies


def permissions(policy: Policy, query: Query, *, unnamed: bool = False) -> Iterator[Permission]:
    """Yield exactly what a policy allows of a query: by ACLs, by allow.everyone.if.no.acl.found, and to super users.

    Regions may overlap, unless their reasons are of different kinds. `unnamed`: only those of all principals but some.
    """
    supers, others = _split(policy, query.principals)
    if others is not None:
        rest = evolve(query, principals=others)
        strict = _without_default(policy)
        about = RulesAbout.of(policy, rest)
        yield from (_by_rules(region, about) for region in allowed(strict, rest, unnamed=unnamed))
        if policy.settings.allow_everyone:
            for difference in differences(strict, policy, query=rest, unnamed=unnamed):
                yield Permission(region=difference.region, rules=(DEFAULT_ALLOW,))
    if supers is not None and not unnamed:
        yield from (Permission(region=region, rules=(SUPER_USER,)) for region in _everything(query, supers))


def intent_permissions(
    policy: Policy, needs: Sequence[Need], *, principals: Principals, host: str | None = None
) -> Iterator[Permission]:
    """Yield the permissions behind an intent: for each of its holders, the resources that satisfy each need."""
    supers, others = _split(policy, principals)
    if others is not None:
        queries = [need.query(others, host) for need in needs]
        about = [RulesAbout.of(policy, query) for query in queries]
        for holder in holders(policy, needs, principals=others, host=host):
            for grants, rules in zip(holder.grants, about, strict=True):
                yield from (_by_rules(region, rules) for region in grants)
    if supers is not None:
        for need in needs:
            for region in _everything(need.query(supers, host), supers):
                yield Permission(region=region, rules=(SUPER_USER,))


def granted(policy: Policy, needs: Sequence[Need], query: Query, *, unnamed: bool = False) -> Iterator[Permission]:
    """Yield the permissions behind an intent; without its needs, those of a query. `unnamed`: as for permissions."""
    if needs:
        return intent_permissions(policy, needs, principals=query.principals, host=query.host)
    return permissions(policy, query, unnamed=unnamed)


def with_extents(answers: Iterable[Permission], resources: Sequence[ResourcePattern]) -> Iterator[Permission]:
    """Yield permissions with their extent if the query has a prefix of their type."""
    by_type: dict[int, list[ResourcePattern]] = {}
    for resource in resources:
        by_type.setdefault(resource.resource_type, []).append(resource)
    for permission in answers:
        kind, names = permission.region.resource_type, permission.region.names
        named = by_type.get(kind, [])
        yield evolve(permission, extent=extent_of(names, kind, named)) if any(map(is_set, named)) else permission


def _split(policy: Policy, principals: Principals) -> tuple[Principals | None, Principals | None]:
    """Return the super users among principals, and the others; None for an empty part."""
    supers = [each for each in policy.settings.super_users if each in principals]
    if principals.complement:
        others: Principals | None = everyone_but(*principals.named, *supers)
    else:
        rest = set(principals.named) - set(supers)
        others = only(*rest) if rest else None
    return only(*supers) if supers else None, others


def _without_default(policy: Policy) -> Policy:
    if not policy.settings.allow_everyone:
        return policy
    return Policy(policy.acls, evolve(policy.settings, allow_everyone=False))


def _by_rules(region: Region, about: RulesAbout) -> Permission:
    rules = about.giving(region)
    if not rules:  # an intent's resource without ACLs
        return Permission(region=region, rules=(DEFAULT_ALLOW,))
    return Permission(region=region, rules=tuple(rules), denies=tuple(about.taking(rules)))


def _everything(query: Query, principals: Principals) -> Iterator[Region]:
    """Yield all requests of a query by these principals."""
    names: dict[int, list[ResourcePattern]] = {}
    for resource in query.resources:
        names.setdefault(resource.resource_type, []).append(resource)
    for kind, resources in names.items():
        parts = _names(resources)
        if parts:
            yield Region(
                resource_type=ResourceType(kind),
                operations=query.operations,
                principals=principals,
                hosts=EVERYWHERE if query.host is None else Hosts(entries=(query.host,)),
                names=parts,
            )


def _names(resources: Iterable[ResourcePattern]) -> Names:
    return tuple(part for resource in resources for part in _names_of(resource))


def _names_of(resource: ResourcePattern) -> Names:
    if resource.resource_type != ResourceType.CLUSTER:
        return names_of(resource)
    prefixed = resource.pattern_type != PatternType.LITERAL and CLUSTER_NAME.startswith(resource.name)
    return (Literal(name=CLUSTER_NAME),) if prefixed or resource.name == CLUSTER_NAME else ()


# Permissions as lines of text and as JSON objects.


_RULE_LIMIT = 10
"""The most ACLs of one permission in text; the JSON lines have all."""


def permission_object(permission: Permission, origins: Origins = NO_ORIGINS) -> JsonObject:
    """Return the region, an example, the ACLs that grant it, and those that overrule a part of these.

    `covers` is whether the region has all names of the queried prefixes, or some.
    """
    region = permission.region
    return {
        **region_object(region),
        **({} if permission.extent is None else {"covers": "ALL" if permission.extent.is_all else "SOME"}),
        "rules": [decided_by_object(rule, origins) for rule in permission.rules],
        "denies": [decided_by_object(rule, origins) for rule in permission.denies],
        **witness_object(witness(region), legal=has_legal_name(region)),
    }


def permission_lines(
    permission: Permission, origins: Origins = NO_ORIGINS, listed: Iterable[Region] = ()
) -> Iterator[str]:
    """Yield the principals, operations, hosts and names of a permission; then the ACLs that grant and restrict it.

    `listed`: the regions of the permissions that are printed above it.
    """
    yield f"{all_of(permission.region.principals)}: {access_text(permission, listed)}"
    yield from (f"  {line}" for line in reason_lines(permission, origins))


def access_text(permission: Permission, listed: Iterable[Region] = ()) -> str:
    """Return the operations, names and hosts of a permission; `listed` as in permission_lines."""
    region = permission.region
    clause = Clause(resource_type=region.resource_type, operations=region.operations, names=region.names)
    what = what_text([clause])
    if missing := _listed_operations(region, listed):
        names = " and ".join(operation.name for operation in operations_of(missing))
        rest = what.removeprefix(f"{operations_text(region.operations)} ")
        what = f"all other operations, besides {names} above, {rest}"
    return f"{what}, from {hosts_text(region.hosts)}{_extent_text(permission)}"


def access_cells(permission: Permission) -> tuple[str, str, str]:
    """Return the operations, the resources and the hosts of a permission."""
    region = permission.region
    operations = operations_text(region.operations)
    what = what_text([Clause(resource_type=region.resource_type, operations=region.operations, names=region.names)])
    resources = what.removeprefix(f"{operations} on ")
    return operations, f"{resources}{_extent_text(permission)}", hosts_text(region.hosts)


def _extent_text(permission: Permission) -> str:
    """Return in parentheses how much of the query it covers, and whether its names are legal."""
    legal = "" if has_legal_name(permission.region) else " (not a legal topic name)"
    return f"{'' if permission.extent is None else f' ({permission.extent.text})'}{legal}"


def _listed_operations(region: Region, listed: Iterable[Region]) -> int:
    """Return the few operations that a region lacks, if one of the listed regions has them; else 0."""
    missing = REQUESTED & ~region.operations
    if not 0 < missing.bit_count() <= LIST_LIMIT:
        return 0
    scope = (region.resource_type, region.principals, region.hosts)
    return missing * any(
        scope == (each.resource_type, each.principals, each.hosts)
        and not missing & ~each.operations
        and set(region.names) <= set(each.names)
        for each in listed
    )


def reason_lines(permission: Permission, origins: Origins = NO_ORIGINS) -> Iterator[str]:
    """Yield the ACLs that grant a permission, and those that restrict it."""
    if permission.rules != (SUPER_USER,):
        yield from _rules("granted by", permission.rules, origins, within=permission.region.names)
    yield from _rules("limited by", permission.denies, origins)


def _is_within(rule: StandardAcl, names: Names) -> bool:
    """Return whether an ACL covers only a part of a prefix of some names, so that another ACL covers the prefix."""
    if rule.pattern_type == PatternType.LITERAL and rule.resource_name == WILDCARD:
        return False
    return any(
        isinstance(part, Subtree)
        and rule.resource_name.startswith(part.prefix)
        and (rule.pattern_type == PatternType.LITERAL or rule.resource_name != part.prefix)
        for part in names
    ) and not any(isinstance(part, Literal) and part.name == rule.resource_name for part in names)


def all_of(principals: Principals) -> str:
    """Return all principals by name."""
    named = ", ".join(principals.named)
    if not principals.complement:
        return named
    return f"anyone{EXCEPT}{named}" if named else "anyone"


def _rules(word: str, rules: Sequence[StandardAcl | str], origins: Origins, *, within: Names = ()) -> Iterator[str]:
    for rule in rules[:_RULE_LIMIT]:
        if isinstance(rule, str):
            yield f"{word} {rule}"
        elif _is_within(rule, within):
            name = name_text(rule.resource_name, rule.pattern_type)
            yield f"also granted, for {name} only, by {located_text(rule, origins)}"
        else:
            yield f"{word} {located_text(rule, origins)}"
    if len(rules) > _RULE_LIMIT:
        yield f"{word} {len(rules) - _RULE_LIMIT:,} more"
