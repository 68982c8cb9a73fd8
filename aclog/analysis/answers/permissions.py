"""What a policy allows, with the rules behind it: the answers to "who can" and "what can"."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from attrs import evolve, frozen

from aclog.analysis.answers.extent import Extent, extent_of
from aclog.analysis.answers.holders import holders
from aclog.analysis.answers.intents import Need
from aclog.analysis.answers.rules_about import RulesAbout, names_of
from aclog.analysis.difference import allowed, differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.hosts import EVERYWHERE, Hosts
from aclog.analysis.regions.names import Literal, Names
from aclog.analysis.regions.principals import Principals, everyone_but, only
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region
from aclog.authorizer.acl import CLUSTER_NAME, PatternType, ResourcePattern, ResourceType, StandardAcl
from aclog.authorizer.decision import Basis
from aclog.authorizer.name_notation import is_set

SUPER_USER, DEFAULT_ALLOW = Basis.SUPER_USER.value, Basis.DEFAULT_ALLOW.value


@frozen(kw_only=True)
class Permission:
    """A region that is allowed, and why."""

    region: Region
    rules: tuple[StandardAcl | str, ...]
    """ALLOW rules that give it, each of them a part or all; or `SuperUser`, or `DefaultAllow`."""
    denies: tuple[StandardAcl, ...] = ()
    """Rules that take away a part of what `rules` would give."""
    extent: Extent | None = None
    """How much of the names that are asked about it has; None if the question names no prefix (see `with_extents`)."""


def permission_key(permission: Permission) -> Hashable:
    """Return what two generations of Kafka must agree on, for one permission to be that of both."""
    return permission.region, permission.rules, permission.denies


def permissions(policy: Policy, query: Query) -> Iterator[Permission]:
    """Yield exactly what a policy allows of a query: by its rules, by allow.everyone.if.no.acl.found, to super users.

    Regions may overlap, unless their reasons are of two of these three kinds.
    """
    supers, others = _split(policy, query.principals)
    if others is not None:
        asked = evolve(query, principals=others)
        strict = _without_default(policy)
        about = RulesAbout.of(policy, asked)
        yield from (_by_rules(region, about) for region in allowed(strict, asked))
        if policy.settings.allow_everyone:
            for difference in differences(strict, policy, query=asked):
                yield Permission(region=difference.region, rules=(DEFAULT_ALLOW,))
    if supers is not None:
        yield from (Permission(region=region, rules=(SUPER_USER,)) for region in _everything(query, supers))


def intent_permissions(
    policy: Policy, needs: Sequence[Need], *, principals: Principals, host: str | None = None
) -> Iterator[Permission]:
    """Yield what makes an intent hold: for each of those for whom it does, the resources that meet each need."""
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


def with_extents(found: Iterable[Permission], resources: Sequence[ResourcePattern]) -> Iterator[Permission]:
    """Yield permissions with their extent, where the question names a prefix of their type."""
    asked: dict[int, list[ResourcePattern]] = {}
    for resource in resources:
        asked.setdefault(resource.resource_type, []).append(resource)
    for permission in found:
        kind, names = permission.region.resource_type, permission.region.names
        named = asked.get(kind, [])
        yield evolve(permission, extent=extent_of(names, kind, named)) if any(map(is_set, named)) else permission


def _split(policy: Policy, principals: Principals) -> tuple[Principals | None, Principals | None]:
    """Return the super users among principals, and the others; None for none."""
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
    if not rules:  # an intent's resource that no rule is about
        return Permission(region=region, rules=(DEFAULT_ALLOW,))
    return Permission(region=region, rules=tuple(rules), denies=tuple(about.taking(rules)))


def _everything(query: Query, principals: Principals) -> Iterator[Region]:
    """Yield all requests of a query by these principals."""
    names: dict[int, list[ResourcePattern]] = {}
    for resource in query.resources:
        names.setdefault(resource.resource_type, []).append(resource)
    for kind, resources in names.items():
        found = _names(resources)
        if found:
            yield Region(
                resource_type=ResourceType(kind),
                operations=query.operations,
                principals=principals,
                hosts=EVERYWHERE if query.host is None else Hosts(entries=(query.host,)),
                names=found,
            )


def _names(resources: Iterable[ResourcePattern]) -> Names:
    return tuple(part for resource in resources for part in _names_of(resource))


def _names_of(resource: ResourcePattern) -> Names:
    if resource.resource_type != ResourceType.CLUSTER:
        return names_of(resource)
    prefixed = resource.pattern_type != PatternType.LITERAL and CLUSTER_NAME.startswith(resource.name)
    return (Literal(name=CLUSTER_NAME),) if prefixed or resource.name == CLUSTER_NAME else ()
