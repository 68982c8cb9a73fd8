"""The rules behind what is allowed: those that give a region, and those that take a part of what they give away."""

from collections.abc import Iterator, Sequence

from attrs import define

from aclog.analysis.engine.host_partition import is_address
from aclog.analysis.pattern_index import PatternIndex
from aclog.analysis.policy import Policy
from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.name_sets import pattern_meets
from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBindingFilter,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    resource_of,
)
from aclog.authorizer.cidr import address_number, cidr_range, is_cidr
from aclog.authorizer.index.masks import ALL_OPERATIONS, rule_mask
from aclog.authorizer.index.rules import rules_of
from aclog.authorizer.settings import Settings


@define(eq=False, kw_only=True)
class RulesAbout:
    """The rules that are about any request of a query; immutable by convention."""

    settings: Settings
    denying: tuple[StandardAcl, ...]
    """All of them that deny."""
    _allowing: dict[str, PatternIndex]
    _indexed_denying: dict[str, PatternIndex]
    _all_denying: PatternIndex
    _odd: tuple[str, ...]
    """Principals without a colon that have a rule."""

    @staticmethod
    def of(policy: Policy, query: Query) -> "RulesAbout":
        """Find the rules of a policy that are about a query."""
        allowing: dict[str, list[StandardAcl]] = {}
        denying: dict[str, list[StandardAcl]] = {}
        for rule in dict.fromkeys(_about(policy, query)):
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
        """Return the ALLOW rules for the region's principals that are about a request of it.

        If the region has all principals but some, these are the rules for `User:*`.
        """
        named = () if region.principals.complement else region.principals.named
        indexes = [self._allowing[each] for each in (*named, WILDCARD_PRINCIPAL) if each in self._allowing]
        found = {
            rule: None
            for index in indexes
            for part in region.names
            for rule in index.near(region.resource_type, part)
            if self._is_about(rule, region, part)
        }
        return sorted(found, key=rule_order)

    def taking(self, rules: Sequence[StandardAcl]) -> list[StandardAcl]:
        """Return the rules about the query that deny a part of what some ALLOW rules give."""
        found: dict[StandardAcl, None] = {}
        for allow in rules:
            part = _names_covered(allow)
            for index in self._denying_of(allow.principal):
                for deny in index.near(allow.resource_type, part):
                    if deny not in found and self._overlap(allow, deny):
                        found[deny] = None
        return sorted(found, key=rule_order)

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
    """Return whether a rule matches a request of a query, or makes Kafka's authorizer throw on one."""
    return _is_about_some(rule, query, settings) and any(
        _covers_some(rule, resource, settings) for resource in query.resources
    )


def _about(policy: Policy, query: Query) -> Iterator[StandardAcl]:
    return (rule for rule in _of_resources(policy, query) if _is_about_some(rule, query, policy.settings))


def _is_about_some(rule: StandardAcl, query: Query, settings: Settings) -> bool:
    """Return whether a rule is about a query, its resources aside."""
    mask = rule_mask(rule.operation, rule.permission_type)
    return _is_colonless(rule) or (
        bool((mask | mask >> 16) & query.operations)
        and _is_for(rule.principal, query.principals)
        and _is_from(rule.host, query.host, cidr=settings.cidr)
    )


def _of_resources(policy: Policy, query: Query) -> Iterator[StandardAcl]:
    acls = policy.acls.with_options(documented=policy.settings.documented, cidr=policy.settings.cidr)
    if not query.principals.complement:
        odd = [each for each in acls.principals() if ":" not in each] if acls.index.has_colonless else []
        for principal in {*query.principals.named, WILDCARD_PRINCIPAL, *odd}:
            for found in acls.matching(AclBindingFilter(principal=principal)):
                if any(_covers_some(found.acl, each, policy.settings) for each in query.resources):
                    yield found.acl
        return
    for resource in query.resources:
        if resource.pattern_type == PatternType.LITERAL:
            yield from (found.acl for found in acls.candidates(resource.resource_type, resource.name))
        else:
            yield from (found.acl for found in rules_on(policy, resource))


def rules_on(policy: Policy, resource: ResourcePattern) -> Iterator[StandardAclWithId]:
    """Yield the rules that cover a name that begins so, in time that follows how many are near; one may come twice."""
    root, estate = Root(resource.resource_type, resource.name, literal=False), policy.estate
    for pattern in (*estate.covering(root), estate.wildcard(root.kind), *estate.under(root)):
        for found in rules_of(policy.acls.index, pattern):
            if _covers_some(found.acl, resource, policy.settings):
                yield found


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
    """Return whether a rule makes Kafka's authorizer throw on what it covers, for everybody, so that all is denied."""
    return ":" not in rule.principal


def _names_covered(rule: StandardAcl) -> NamePart:
    """Return at least the names that a rule covers."""
    is_literal = rule.pattern_type == PatternType.LITERAL and rule.resource_name != WILDCARD
    if is_literal:
        return Literal(name=rule.resource_name)
    return Subtree(prefix="" if rule.pattern_type == PatternType.LITERAL else rule.resource_name)


def _is_for(principal: str, wanted: Principals) -> bool:
    return principal == WILDCARD_PRINCIPAL or principal in wanted


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
        # A set that leaves ranges out may leave all of this one out.
        if hosts.complement:
            return not any(_hosts_within(host, entry) for entry in hosts.entries)
        return any(_hosts_overlap(host, entry, cidr=True) for entry in hosts.entries)
    return host in hosts


def _hosts_overlap(one: str, other: str, *, cidr: bool) -> bool:
    if one == other or WILDCARD in (one, other):
        return True
    return cidr and (_hosts_within(one, other) or _hosts_within(other, one))


def _hosts_within(inner: str, outer: str) -> bool:
    """Return whether an address or range is in a range."""
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
    """Return whether the host of a rule matches an address, or any address at all."""
    if address is not None:
        return host in (WILDCARD, address) or (cidr and _hosts_within(address, host))
    return host == WILDCARD or is_address(host) or (cidr and is_cidr(host))


def rule_order(rule: StandardAcl) -> tuple[object, ...]:
    """Return what rules are sorted by."""
    return (
        rule.resource_type,
        rule.resource_name,
        rule.pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    )
