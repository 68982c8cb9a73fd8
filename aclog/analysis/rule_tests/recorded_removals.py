"""Tests that what was taken away stays so."""

from collections.abc import Iterable, Iterator

from attrs import frozen

from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.recorded_objects import TestObject, test_object
from aclog.analysis.rule_tests.recorded_state import denied_to
from aclog.authorizer.acl import AclPermissionType, StandardAcl


@frozen(kw_only=True)
class Removal:
    """An ACL that a log removed."""

    acl: StandardAcl
    when: str
    """For people: offset and time of its record."""


def tests_of_removals(policy: Policy, removals: Iterable[Removal]) -> Iterator[TestObject]:
    """Yield tests that nobody can again what removed ACLs allowed, where all of that is denied today."""
    found: dict[str, dict[StandardAcl, str]] = {}
    last: dict[str, str] = {}
    for removal in removals:
        if removal.acl.permission_type == AclPermissionType.ALLOW and policy.acls.find(removal.acl) is None:
            found.setdefault(removal.acl.principal, {})[removal.acl] = removal.when
            last[removal.acl.principal] = removal.when
    for principal, rules in sorted(found.items()):
        cannot = denied_to(policy, rules)
        if cannot:
            name = f"taken from {principal}, last at {last[principal]}"
            yield test_object(name, CaseSubject(principal=principal), {"cannot": cannot})
