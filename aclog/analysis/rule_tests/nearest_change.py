"""The nearest change that makes a failing case hold: as few rules as possible to add or to remove."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from attrs import evolve

from aclog.analysis.answers.permissions import permissions
from aclog.analysis.answers.rules_about import RulesAbout
from aclog.analysis.deciding import is_allowed
from aclog.analysis.difference import allowed
from aclog.analysis.policy import Policy
from aclog.analysis.regions.names import Literal
from aclog.analysis.regions.operations import REQUESTED, operations_of
from aclog.analysis.regions.principals import everyone_but, only
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.witness import witness
from aclog.analysis.rule_tests.can import Can
from aclog.analysis.rule_tests.can_only import CanOnly
from aclog.analysis.rule_tests.cannot import Cannot
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.changed_policy import changed_policy
from aclog.analysis.rule_tests.decides import Decides
from aclog.analysis.rule_tests.intent_case import HasIntent
from aclog.analysis.rule_tests.no_new_access import NoNewAccess
from aclog.analysis.rule_tests.same_as import SameAs
from aclog.analysis.rule_tests.who_can import WhoCan
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    StandardAcl,
)
from aclog.authorizer.rule_change import RuleChange, changes_between

_Changes: TypeAlias = tuple[RuleChange, ...]

MOST_CHANGES = 8
"""A longer list of changes is no advice."""


def nearest_change(case: Case, policy: Policy) -> tuple[RuleChange, ...]:
    """Return the fewest changes of rules that were found to make a failing case hold; () if none was.

    Each candidate is tried: the case is run on the policy that it makes.
    """
    for candidate in sorted(_candidates(case, policy), key=len):
        if 0 < len(candidate) <= MOST_CHANGES and case.run(changed_policy(policy, candidate)).passed:
            return _fewest(case, policy, candidate)
    return ()


def _fewest(case: Case, policy: Policy, changes: _Changes) -> _Changes:
    """Return what is left of some changes after leaving out, one by one, those without which the case holds, too."""
    for change in changes if len(changes) > 1 else ():
        less = tuple(each for each in changes if each != change)
        if less and case.run(changed_policy(policy, less)).passed:
            changes = less
    return changes


def _candidates(case: Case, policy: Policy) -> Iterator[_Changes]:
    queries = case.queries(policy.settings)
    if isinstance(case, Can | HasIntent) or (isinstance(case, Decides) and case.decision == "ALLOWED"):
        yield from _granting(policy, queries)
    elif isinstance(case, Cannot) or (isinstance(case, Decides) and case.decision == "DENIED"):
        yield from _revoking(policy, queries)
    elif isinstance(case, WhoCan):
        yield from _correcting(policy, case)
    elif isinstance(case, SameAs | NoNewAccess):
        other = case.other if isinstance(case, SameAs) else case.than
        yield tuple(changes_between(policy.acls, other.policy(policy.settings).acls))
    elif isinstance(case, CanOnly):
        yield from _by_regions(policy, case)


def _granting(policy: Policy, queries: Sequence[Query]) -> Iterator[_Changes]:
    adding = _new(rule for query in queries for rule in _rules_for(query, AclPermissionType.ALLOW))
    denying = dict.fromkeys(rule for query in queries for rule in RulesAbout.of(policy, query).denying)
    added = tuple(change for change in adding if policy.acls.find(change.acl) is None)
    removed = _gone(denying)
    yield from (added, removed, removed + added)


def _revoking(policy: Policy, queries: Sequence[Query]) -> Iterator[_Changes]:
    """Yield the removal of what gives it, and a DENY; first what takes no more than is asked, if it does not matter."""
    giving = _giving(policy, queries)
    removed = _gone(giving)
    added = _new(rule for query in queries for rule in _rules_for(query, AclPermissionType.DENY))
    narrow = all(_is_within(rule, query.resources) for query in queries for rule in giving)
    added = tuple(change for change in added if policy.acls.find(change.acl) is None)
    yield from (removed, added) if narrow else (added, removed)


def _correcting(policy: Policy, case: WhoCan) -> Iterator[_Changes]:
    (query,) = case.queries(policy.settings)
    who = [each for each in case.expected if not each.startswith("not ")]
    rest = evolve(query, principals=everyone_but(*query.principals.named, *who))
    removed = _gone(rule for rule in _giving(policy, (rest,)) if rule.principal not in who)
    granted = [each for each in who if next(allowed(policy, evolve(query, principals=only(each))), None) is None]
    added = _new(
        rule for each in granted for rule in _rules_for(evolve(query, principals=only(each)), AclPermissionType.ALLOW)
    )
    yield from (removed, added, removed + added)


def _by_regions(policy: Policy, case: CanOnly) -> Iterator[_Changes]:
    """Yield the removal of what gives too much, and rules for what is lacking."""
    (query,) = case.queries(policy.settings)
    about = RulesAbout.of(policy, query)
    giving: list[StandardAcl] = []
    lacking: list[StandardAcl] = []
    for region in (failure.region for failure in case.run(policy).failures):
        if region is not None and is_allowed(policy, witness(region)):
            giving += about.giving(region)
        elif region is not None:
            lacking += _rules_for(_query_of(region), AclPermissionType.ALLOW)
    added = tuple(change for change in _new(lacking) if policy.acls.find(change.acl) is None)
    yield _gone(giving) + added


def _query_of(region: Region) -> Query:
    """Return a query for at least a region; from any host unless it has a single one."""
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


def _giving(policy: Policy, queries: Sequence[Query]) -> dict[StandardAcl, None]:
    found = (rule for query in queries for each in permissions(policy, query) for rule in each.rules)
    return dict.fromkeys(rule for rule in found if isinstance(rule, StandardAcl))


def _rules_for(query: Query, permission: AclPermissionType) -> Iterator[StandardAcl]:
    """Yield the rules that are about all of a query and no more."""
    every = query.operations == REQUESTED
    operations = (AclOperation.ALL,) if every else tuple(operations_of(query.operations))
    named = (WILDCARD_PRINCIPAL,) if query.principals.complement else query.principals.named
    for resource in query.resources:
        all_names = not resource.name  # every name: LITERAL `*`, as an empty name is no ACL's
        for principal in named:
            for operation in operations:
                yield StandardAcl(
                    resource_type=resource.resource_type,
                    resource_name=WILDCARD if all_names else resource.name,
                    pattern_type=PatternType.LITERAL if all_names else resource.pattern_type,
                    principal=principal,
                    host=query.host or WILDCARD,
                    operation=operation,
                    permission_type=permission,
                )


def _is_within(rule: StandardAcl, resources: Sequence[ResourcePattern]) -> bool:
    """Return whether a rule covers no more names than some resources have."""
    if rule.pattern_type == PatternType.LITERAL and rule.resource_name == WILDCARD:
        return any(not each.name for each in resources)
    return any(
        rule.resource_name == each.name and rule.pattern_type == each.pattern_type
        if each.pattern_type == PatternType.LITERAL
        else rule.resource_name.startswith(each.name)
        for each in resources
    )


def _new(rules: Iterable[StandardAcl]) -> _Changes:
    return tuple(RuleChange(added=True, acl=rule) for rule in dict.fromkeys(rules))


def _gone(rules: Iterable[StandardAcl]) -> _Changes:
    return tuple(RuleChange(added=False, acl=rule) for rule in dict.fromkeys(rules))
