"""Grants: what a suggested rule allows, and the accesses that stand for it."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.settings import Settings
from aclog.usage.decisions.accesses import ParsedAccess
from aclog.usage.suggestion.need import Evidence
from aclog.usage.suggestion.rule_index import RuleIndex, allows, host_covers


@frozen(kw_only=True)
class Grant:
    """A rule that allows, and why."""

    acl: StandardAcl
    evidence: Evidence
    names: frozenset[str]
    """The names that were used by it."""
    replaces: frozenset[StandardAcl]
    """The present rules that allowed these accesses."""
    why: str = ""

    def with_all_of(self, others: Iterable["Grant"]) -> "Grant":
        """Return it with what stands for others, too."""
        found = [self, *others]
        return evolve(
            self,
            evidence=Evidence.sum_of(each.evidence for each in found),
            names=frozenset[str]().union(*(each.names for each in found)),
            replaces=frozenset[StandardAcl]().union(*(each.replaces for each in found)),
        )


def literal_grants(needs: Mapping[ParsedAccess, Evidence], present: RuleIndex) -> Iterator[Grant]:
    """Yield a grant of each need by name: from any host if the present rules allow that, else from what they do.

    Every need is covered by a present ALLOW.
    """
    by_hosts: dict[tuple[str, int, int, str], dict[str, Evidence]] = {}
    for need, evidence in needs.items():
        key = (need.principal, need.operation, need.resource_type, need.resource_name)
        by_hosts.setdefault(key, {})[need.host] = evidence
    for (principal, operation, kind, name), hosts in by_hosts.items():
        covering = [rule for rule in present.on_name(kind, name, principal) if allows(rule, operation)]
        for host, used in _hosts(covering, hosts, present.settings):
            behind = [rule for rule in covering if any(host_covers(rule.host, h, present.settings) for h in used)]
            pattern = _pattern(kind, name, [rule for rule in behind if host_covers(rule.host, host, present.settings)])
            acl = StandardAcl(
                resource_type=kind,
                resource_name=pattern[1],
                pattern_type=pattern[0],
                principal=principal,
                host=host,
                operation=operation,
                permission_type=AclPermissionType.ALLOW,
            )
            evidence = Evidence.sum_of(hosts[each] for each in used)
            yield Grant(acl=acl, evidence=evidence, names=frozenset({name}), replaces=frozenset(behind))


def _hosts(covering: Iterable[StandardAcl], used: Iterable[str], settings: Settings) -> Iterator[tuple[str, list[str]]]:
    """Yield the hosts of present rules that cover the addresses used, few rather than many, and which they cover."""
    left = list(used)
    hosts = sorted({rule.host for rule in covering}, key=lambda host: (host != WILDCARD, host))
    while left:
        covered = {host: [each for each in left if host_covers(host, each, settings)] for host in hosts}
        best = WILDCARD if WILDCARD in covered else max(hosts, key=lambda host: len(covered[host]))
        yield best, covered[best]
        left = [each for each in left if each not in covered[best]]


def _pattern(kind: int, name: str, behind: Iterable[StandardAcl]) -> tuple[int, str]:
    """Return the narrowest pattern for a name: the name itself, unless no rule can name it alone."""
    can_be_named = name == CLUSTER_NAME if kind == ResourceType.CLUSTER else name not in {"", WILDCARD}
    if can_be_named:
        return PatternType.LITERAL, name
    rule = next(iter(behind))
    return rule.pattern_type, rule.resource_name


def without_covered(grants: Iterable[Grant], settings: Settings) -> list[Grant]:
    """Leave out grants of which another one allows all, which then stands for their accesses, too.

    Grants on one pattern for one principal, host and operation become one.
    """
    by_acl: dict[StandardAcl, list[Grant]] = {}
    for grant in grants:
        by_acl.setdefault(grant.acl, []).append(grant)
    index = RuleIndex.of(by_acl, settings)
    over = {acl: _wider(acl, index) for acl in by_acl}
    kept: dict[StandardAcl, list[Grant]] = {}
    for acl, found in by_acl.items():
        top = acl
        while (wider := over[top]) is not None:
            top = wider
        kept.setdefault(top, []).extend(found)
    return [_one(acl, found) for acl, found in kept.items()]


def _one(acl: StandardAcl, found: list[Grant]) -> Grant:
    # one of its own comes first: it says why
    first, *others = sorted(found, key=lambda grant: grant.acl != acl)
    return first.with_all_of(others)


def covers(index: RuleIndex, acl: StandardAcl) -> Iterator[StandardAcl]:
    """Yield the ALLOWs of an index that allow all that a rule allows, itself included if it is in the index."""
    kind, name = acl.resource_type, acl.resource_name
    literal = acl.pattern_type == PatternType.LITERAL
    if literal and name == WILDCARD:
        return  # what covers LITERAL * is LITERAL * alone
    found = (index.on_name if literal else index.on_all)(kind, name, acl.principal)
    for rule in found:
        if allows(rule, acl.operation) and host_covers(rule.host, acl.host, index.settings):
            yield rule


def _wider(acl: StandardAcl, index: RuleIndex) -> StandardAcl | None:
    return next((rule for rule in covers(index, acl) if rule != acl), None)
