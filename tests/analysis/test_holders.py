"""Intents: who holds one, beside asking the authorizer for every principal, host and name that make a difference."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.analysis.intents import Intent, needs_of
from aclog.analysis.policy import Policy
from aclog.analysis.regions import operations_of
from aclog.analysis.who_can import holders
from aclog.authorizer.acl import ResourcePattern, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from tests.support.builders.acls import acl
from tests.support.runs.profiles import examples

PRINCIPALS = ("User:a", "User:b", "Group:g", "User:nobody")
HOSTS = ("10.0.0.1", "10.0.0.9", "0:0:0:0:0:0:0:1", "192.0.2.7")
NAMES = ("a", "ab", "abc", "a-", "a-b", "*", "*a", "b")
FRESH = "\u4e2d"
KINDS = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)

rules = st.builds(
    acl,
    name=st.sampled_from((*NAMES, *NAMES, "")),
    principal=st.sampled_from((*PRINCIPALS[:3] * 2, "User:*", "User:*", "User:*", "no colon")),
    host=st.sampled_from(("*", "*", "*", "*", "here", "10.0.0.1", "10.0.0.0/30", "0:0:0:0:0:0:0:1")),
    operation=st.sampled_from(
        (AclOperation.ALL, AclOperation.ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)
    ),
    resource_type=st.sampled_from(KINDS),
    pattern_type=st.sampled_from((*(PatternType.LITERAL, PatternType.PREFIXED) * 4, *PatternType)),
    permission_type=st.sampled_from((*(AclPermissionType.ALLOW,) * 7, *(AclPermissionType.DENY,) * 3, 0)),
)
policies = st.builds(
    lambda found, cidr, everyone, supers: Policy(
        AclsImage.from_acls(StandardAclWithId(id=None, acl=each) for each in dict.fromkeys(found)),
        Settings(cidr=cidr, allow_everyone=everyone, super_users=frozenset(supers)),
    ),
    st.lists(rules, max_size=9),
    st.booleans(),
    st.booleans(),
    st.sets(st.sampled_from(PRINCIPALS[:2]), max_size=1),
)


def pattern(kind, name, pattern_type=PatternType.LITERAL):
    return ResourcePattern(resource_type=kind, name=name, pattern_type=pattern_type)


RESOURCES = (
    (Intent.PRODUCE, [pattern(ResourceType.TOPIC, "ab")]),
    (Intent.PRODUCE, [pattern(ResourceType.TOPIC, "a", PatternType.PREFIXED)]),
    (Intent.CONSUME, [pattern(ResourceType.TOPIC, "ab")]),
    (Intent.CONSUME, [pattern(ResourceType.TOPIC, "ab"), pattern(ResourceType.GROUP, "a")]),
    (Intent.CONSUME, []),
    (Intent.TRANSACT, [pattern(ResourceType.TOPIC, "*a")]),
    (Intent.TRANSACT, [pattern(ResourceType.TRANSACTIONAL_ID, "a"), pattern(ResourceType.GROUP, "b")]),
    (Intent.STREAM, [pattern(ResourceType.GROUP, "a")]),
    (Intent.STREAM, [pattern(ResourceType.GROUP, "a"), pattern(ResourceType.TRANSACTIONAL_ID, "a-1")]),
    (Intent.ADMIN, [pattern(ResourceType.TOPIC, "ab"), pattern(ResourceType.TOPIC, "b")]),
)


def may(policy, principal, host, kind, name, mask):
    context = RequestContext(principal=principal, host=host)
    asked = [Action(operation=each, resource_pattern=pattern(kind, name)) for each in operations_of(mask)]
    try:
        found = policy.authorizer.authorize(context, asked)
    except InvalidRequestError:  # Kafka's authorizer throws on an ACL whose principal has no colon
        return False
    return all(each is AuthorizationResult.ALLOWED for each in found)


def holds(policy, need, principal, host):
    texts = {*NAMES, *(f"{name}{FRESH}" for name in ("", *NAMES)), *(each.name for each in need.patterns)} - {""}
    texts |= {f"{each.name}{FRESH}" for each in need.patterns}
    covered = [
        name
        for name in texts
        if any(
            name.startswith(p.name) if p.pattern_type == PatternType.PREFIXED else name == p.name for p in need.patterns
        )
    ]
    found = [may(policy, principal, host, need.resource_type, name, need.operations) for name in covered]
    return all(found) if need.every else any(found)


@settings(max_examples=examples(150))
@given(policies, st.sampled_from(RESOURCES))
def test_who_holds_an_intent(policy, question):
    needs = needs_of(*question)
    found = list(holders(policy, needs))
    for principal, host in product(PRINCIPALS, HOSTS):
        said = [each for each in found if principal in each.principals and any(host in hosts for hosts in each.hosts)]
        assert len(said) == all(holds(policy, need, principal, host) for need in needs), (principal, host)
        for holder in said:
            for need, grants in zip(needs, holder.grants, strict=True):
                here = [grant for grant in grants if host in grant.hosts]
                assert here
                for grant, name in product(here, NAMES):
                    if any(name in part for part in grant.names):
                        assert may(policy, principal, host, need.resource_type, name, need.operations)


def test_a_resource_that_an_intent_has_no_use_for_is_refused():
    with pytest.raises(ConfigError, match="intent produce: expected resources of type TOPIC, not GROUP"):
        needs_of(Intent.PRODUCE, [pattern(ResourceType.GROUP, "g")])
    for groups in ([], [pattern(ResourceType.GROUP, "g", PatternType.PREFIXED)]):
        with pytest.raises(ConfigError, match="intent stream: expected one literal --group: the application id"):
            needs_of(Intent.STREAM, groups)
