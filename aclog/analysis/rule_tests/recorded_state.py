"""Tests of all that a policy decides: who can only do what, what is denied, and who can do what others cannot."""

from collections.abc import Iterable, Iterator, Sequence

from aclog.analysis.difference import allowed
from aclog.analysis.policy import Policy
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.rule_tests.cannot import Cannot
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.listed_access import ListedAccess
from aclog.analysis.rule_tests.recorded_objects import TestObject, by_operation, item_of, test_object
from aclog.analysis.rule_tests.recording import recorded
from aclog.analysis.rule_tests.tested_resource import resource_text
from aclog.analysis.rule_tests.who_can import WhoCan, who
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.index.masks import known_type
from aclog.authorizer.origin import FileOrigin

NOWHERE = FileOrigin(file="", line=0)
"""Of a case that is tried before it is written."""
_MOST_HOLDERS = 20
"""A longer list says nothing to a person, and is part of what the principals themselves can do."""


def tests_of_state(policy: Policy) -> Iterator[TestObject]:
    """Yield tests that hold, and of which one at least fails if any request is decided otherwise.

    Super users aside: what they may follows from the settings.
    """
    denies = [rule.acl for rule in policy.acls if rule.acl.permission_type != AclPermissionType.ALLOW]
    denied: dict[str, list[StandardAcl]] = {}
    for rule in denies:
        denied.setdefault(rule.principal, []).append(rule)
    everybody = denied_to(policy, denied.pop(WILDCARD_PRINCIPAL, ()))
    if everybody:
        yield test_object("everybody", CaseSubject(principal=WILDCARD_PRINCIPAL), {"cannot": everybody})
    yield from _holders(policy, denies)
    for each in recorded(policy):
        subject = each.subject
        listed = sorted(each.listed, key=_place)
        expected: TestObject = {"can_only": by_operation((item.operations, item_of(item)) for item in listed)}
        cannot = denied_to(policy, denied.get(subject.principal, ()))
        if cannot:
            expected["cannot"] = cannot
        name = subject.principal if subject.principal != WILDCARD_PRINCIPAL else "everybody else"
        yield test_object(name, subject, expected)


def denied_to(policy: Policy, rules: Iterable[StandardAcl]) -> dict[str, list[object]]:
    """Return what some rules name, all of whose requests are denied to their principals from any host."""
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
    """Return what a rule covers, LITERAL `*` as every name; None for a type or name that no request has."""
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
    """Return the operations that a rule names, without those that they imply, as a mask."""
    return REQUESTED if rule.operation == AclOperation.ALL else 1 << rule.operation & REQUESTED


def _place(listed: ListedAccess) -> tuple[int, str, bool]:
    resource = listed.resource
    return resource.resource_type, resource.name, resource.pattern_type != PatternType.LITERAL


def _holders(policy: Policy, denies: Sequence[StandardAcl]) -> Iterator[TestObject]:
    """Yield who can read and write what is denied to some, where these are few."""
    protected = {
        resource: None for rule in denies if (resource := resource_of_rule(rule)) is not None and resource.name
    }
    found: dict[str, list[str]] = {}
    for resource in sorted(protected, key=resource_text):
        for operation in (AclOperation.READ, AclOperation.WRITE):
            case = WhoCan(test="", origin=NOWHERE, operations=1 << operation, resource=resource, expected=())
            (query,) = case.queries(policy.settings)
            holders = sorted(who(list(allowed(policy, query)), policy.settings))
            if 0 < len(holders) <= _MOST_HOLDERS and WILDCARD_PRINCIPAL not in holders:
                found[f"{operation.name} {resource_text(resource)}"] = holders
    if found:
        yield {"name": "what is denied to others", "who_can": found}
