"""Permissions: what is allowed and the rules behind it, beside asking the authorizer about every cell."""

from itertools import product

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy
from aclog.analysis.regions import EVERYONE, REQUESTED, Query, Request, everyone_but, only
from aclog.analysis.who_can import DEFAULT_ALLOW, SUPER_USER, permissions
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from tests.analysis.test_holders import FRESH, HOSTS, NAMES, PRINCIPALS, may, pattern, policies
from tests.support.builders.acls import acl
from tests.support.runs.profiles import examples

OPERATIONS = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.CREATE)
TOPIC = ResourceType.TOPIC
queries = st.builds(
    Query,
    resources=st.sampled_from(
        (
            (pattern(TOPIC, "ab"),),
            (pattern(TOPIC, "*a"),),
            (pattern(TOPIC, "a", PatternType.PREFIXED),),
            (pattern(TOPIC, "", PatternType.PREFIXED),),
            (pattern(TOPIC, "", PatternType.PREFIXED), pattern(ResourceType.GROUP, "ab")),
        )
    ),
    operations=st.sampled_from((1 << AclOperation.READ, REQUESTED)),
    principals=st.sampled_from((EVERYONE, only("User:a"), everyone_but("User:a"))),
    host=st.sampled_from((None, "10.0.0.1")),
)


def cells(query):
    resource = query.resources[0]
    names = (*NAMES, *(f"{name}{FRESH}" for name in NAMES))
    prefixed = resource.pattern_type == PatternType.PREFIXED
    covered = [each for each in names if (each.startswith(resource.name) if prefixed else each == resource.name)]
    for principal, host, operation, name in product(PRINCIPALS, HOSTS, OPERATIONS, covered):
        if principal in query.principals and query.host in (None, host) and query.operations >> operation & 1:
            yield Request(principal=principal, host=host, operation=operation, resource_type=TOPIC, resource_name=name)


def without(policy, gone):
    """Return the policy without some rules."""
    kept = [rule for rule in policy.acls if rule.acl not in gone]
    return Policy(AclsImage.from_acls(StandardAclWithId(id=None, acl=rule.acl) for rule in kept), policy.settings)


def is_allowed(policy, request):
    asked = request.resource_type, request.resource_name, 1 << request.operation
    return may(policy, request.principal, request.host, *asked)


@settings(max_examples=examples(100))
@given(policies, queries)
def test_what_is_allowed_and_why(policy, query):
    found = list(permissions(policy, query))
    strict = Policy(policy.acls, evolve(policy.settings, allow_everyone=False))
    for request in cells(query):
        said = [each for each in found if request in each.region]
        assert bool(said) == is_allowed(policy, request), request
        kinds = {each.rules[0] if isinstance(each.rules[0], str) else "rule" for each in said}
        if request.principal in policy.settings.super_users:
            assert kinds == {SUPER_USER}
        elif said:
            assert kinds == {"rule" if is_allowed(strict, request) else DEFAULT_ALLOW}


@settings(max_examples=examples(60))
@given(policies, queries)
def test_the_rules_of_a_permission_are_all_that_give_it(policy, query):
    strict = Policy(policy.acls, evolve(policy.settings, allow_everyone=False))
    for permission in permissions(strict, query):
        if SUPER_USER in permission.rules:
            continue
        for rule in permission.rules:
            assert rule.permission_type == AclPermissionType.ALLOW
            assert rule.resource_type == permission.region.resource_type
        bare = without(strict, set(permission.rules))
        for request in cells(query):
            # without them a principal of the region keeps nothing of it, but for rules of its own in `everyone but`
            own = {rule.acl for rule in strict.acls if rule.acl.principal == request.principal}
            if request in permission.region and not (permission.region.principals.complement and own):
                assert not is_allowed(bare, request)


@settings(max_examples=examples(60))
@given(policies, queries)
def test_without_its_denies_a_permission_is_all_that_its_rules_give(policy, query):
    strict = Policy(policy.acls, evolve(policy.settings, allow_everyone=False))
    for permission in permissions(strict, query):
        if SUPER_USER in permission.rules:
            continue
        denies = {rule.acl for rule in strict.acls if rule.acl.permission_type != AclPermissionType.ALLOW}
        rules = [StandardAclWithId(id=None, acl=rule) for rule in permission.rules if isinstance(rule, StandardAcl)]
        given_ = Policy(AclsImage.from_acls(rules), strict.settings)
        for request in cells(query):
            if is_allowed(given_, request) and not is_allowed(strict, request):
                taken = without(strict, denies - set(permission.denies))
                assert not is_allowed(taken, request), (request, permission.denies)


@pytest.mark.parametrize(
    ("host", "cidr", "matches"),
    [
        ("10.0.0.9", False, True),
        ("10.0.0.0/8", True, True),
        ("10.0.0.0/8", False, False),
        ("10.0.0.0/99", True, False),
        ("::1", False, False),  # not as Kafka writes it
        ("web.example", True, False),
        ("", True, False),
    ],
)
def test_a_rule_from_a_host_that_no_client_has_neither_gives_nor_takes(host, cidr, matches):
    allow, write = acl("ab"), acl("ab", host=host, operation=AclOperation.WRITE)
    deny = acl("ab", host=host, permission_type=AclPermissionType.DENY)
    policy = Policy(
        AclsImage.from_acls(StandardAclWithId(id=None, acl=each) for each in (allow, write, deny)), Settings(cidr=cidr)
    )
    query = Query(resources=(pattern(TOPIC, "ab"),), operations=REQUESTED, principals=only("User:app"))
    found = list(permissions(policy, query))
    assert found
    assert any(write in each.rules for each in found) == matches
    assert any(deny in each.denies for each in found) == matches
