"""Questions on all names that begin with a prefix, beside a brute force over names that begin so."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Query, contains
from aclog.analysis.timeline import NamesDifferError, decide_set, explained
from aclog.analysis.who_can import permissions, with_extents
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType, is_legal_topic
from aclog.authorizer.explain import ExplainOptions
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from tests.support.analysis.cells import NO_OTHER
from tests.support.analysis.model import PolicyModel
from tests.support.analysis.policies import ADDRESSES, NAMES, PRINCIPALS, image_of, random_pair
from tests.support.builders.acls import acl
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
READ, TOPIC, GROUP = AclOperation.READ, ResourceType.TOPIC, ResourceType.GROUP
CLIENTS = sorted({each for each in PRINCIPALS if each != "User:*"})
ALICE = RequestContext(principal="User:alice", host="127.0.0.1")


def prefixed(kind: ResourceType, prefix: str) -> ResourcePattern:
    return ResourcePattern(resource_type=kind, name=prefix, pattern_type=PatternType.PREFIXED)


def asked(prefix: str, kind: ResourceType = TOPIC) -> Action:
    return Action(operation=READ, resource_pattern=prefixed(kind, prefix))


def names_below(policy: Policy, prefix: str) -> list[str]:
    """A name of each class that rules can tell apart below a prefix: what they name, and one beside it each way."""
    named = {entry.acl.resource_name for entry in policy.acls if entry.acl.resource_name.startswith(prefix)}
    ways = ("", "Q", NO_OTHER)  # a character that a topic may have, and one that it may not
    return sorted({text + more for text in (prefix, *named) for more in ways if text + more})


def that_count(kind: ResourceType, names: list[str]) -> list[str]:
    """Those that a resource can have; all if it can have none of them."""
    legal = [name for name in names if kind != TOPIC or is_legal_topic(name)]
    return legal or names


@CAMPAIGN
@given(RANDOMS)
def test_a_prefix_is_decided_only_if_all_of_its_names_are_decided_alike(random):
    policy, _ = random_pair(random, most=14)
    kind, operation = random.choice([TOPIC, TOPIC, GROUP]), random.choice([READ, AclOperation.DESCRIBE])
    prefix = random.choice(["", *NAMES])
    context = RequestContext(principal=random.choice(CLIENTS), host=random.choice(ADDRESSES))
    model = PolicyModel(policy)

    def is_allowed(name: str) -> bool:
        return bool(model.allowed(context.principal, context.host, kind, name) >> operation & 1)

    found = {name: is_allowed(name) for name in that_count(kind, names_below(policy, prefix))}
    try:
        answer = decide_set(policy, context, Action(operation=operation, resource_pattern=prefixed(kind, prefix)))
    except NamesDifferError:
        assert set(found.values()) == {True, False}
    except InvalidRequestError:
        assert not any(found.values())
    else:
        allowed = answer.decision.result is AuthorizationResult.ALLOWED
        assert set(found.values()) == {allowed}
        assert answer.example.startswith(prefix)
        assert is_allowed(answer.example) is allowed


@CAMPAIGN
@given(RANDOMS)
def test_who_can_on_a_prefix_says_on_all_of_its_names_or_on_some(random):
    policy, _ = random_pair(random, most=14)
    kind, prefix = random.choice([TOPIC, TOPIC, GROUP]), random.choice(["", *NAMES])
    resource = prefixed(kind, prefix)
    names, model = names_below(policy, prefix), PolicyModel(policy)
    found = list(with_extents(permissions(policy, Query(resources=(resource,), operations=1 << READ)), (resource,)))
    for principal in CLIENTS:
        for host in ADDRESSES:
            theirs = [
                each.region for each in found if principal in each.region.principals and host in each.region.hosts
            ]
            for name in names:
                may = bool(model.allowed(principal, host, kind, name) >> READ & 1)
                assert may is any(contains(region.names, name) for region in theirs)
    for each in found:
        has_all = all(contains(each.region.names, name) for name in that_count(kind, names))
        assert each.extent is not None
        assert each.extent.is_all is has_all


DENY_SECRET = acl("pii-secret", "User:alice", permission_type=AclPermissionType.DENY)
ALL_PII = acl("pii-", "User:alice", pattern_type=PatternType.PREFIXED)


def policy_of(*rules, **more) -> Policy:
    return Policy(image_of(rules), Settings(**more))


def test_names_that_differ_are_refused_with_an_example_of_each():
    with pytest.raises(NamesDifferError) as caught:
        decide_set(policy_of(ALL_PII, DENY_SECRET), ALICE, asked("pii-"))
    assert str(caught.value) == (
        "TOPIC pii-*: the decision differs between names: User:alice READ is ALLOWED on 'pii-' and DENIED "
        "on 'pii-secret': check one name, or who can READ pii-*"
    )


def test_a_name_that_no_topic_can_have_makes_no_difference():
    glob = acl("pii-*", "User:alice", permission_type=AclPermissionType.DENY)
    assert decide_set(policy_of(ALL_PII, glob), ALICE, asked("pii-")).decision
    rule = acl("pii-*", "User:alice")
    assert not decide_set(policy_of(rule), ALICE, asked("pii-")).decision, "the rule is on no topic"


def test_a_star_alone_is_every_name_and_a_rule_on_it_covers_every_topic():
    everything = acl("*", "User:alice"), acl("*", "User:alice", resource_type=GROUP)
    assert decide_set(policy_of(*everything), ALICE, asked("")).decision
    with pytest.raises(NamesDifferError, match=r"DENIED on '\*"):  # a group may begin with a star
        decide_set(policy_of(*everything), ALICE, asked("", GROUP))
    assert decide_set(policy_of(*everything, documented=True), ALICE, asked("", GROUP)).decision


def test_super_users_and_open_names_are_decided_too():
    assert decide_set(policy_of(DENY_SECRET, super_users=frozenset({"User:alice"})), ALICE, asked("pii-")).decision
    assert decide_set(policy_of(allow_everyone=True), ALICE, asked("pii-")).decision
    with pytest.raises(NamesDifferError):
        decide_set(policy_of(acl("pii-x", "User:bob"), allow_everyone=True), ALICE, asked("pii-"))


@pytest.mark.parametrize("operation", [AclOperation.ALL, AclOperation.ANY, AclOperation.UNKNOWN, 99, -1])
def test_only_operations_of_requests_are_asked_of_a_prefix(operation):
    with pytest.raises(ConfigError, match="expected a request operation"):
        decide_set(policy_of(), ALICE, Action(operation=operation, resource_pattern=prefixed(TOPIC, "pii-")))


def test_an_explanation_of_a_prefix_has_every_rule_below_it_and_advises_a_rule_on_the_prefix():
    bob = acl("pii-x", "User:bob")
    found = explained(policy_of(bob, DENY_SECRET), ALICE, asked("pii-"), ExplainOptions(host_given=False))
    assert {each.rule.acl for each in found.rules} == {bob, DENY_SECRET}
    removed, added = found.remedy.changes
    assert (removed.add, removed.acl) == (False, DENY_SECRET)
    assert (added.add, added.acl) == (True, ALL_PII)
    whole = explained(policy_of(), ALICE, asked(""), ExplainOptions(host_given=False))
    assert [each.acl for each in whole.remedy.changes] == [acl("*", "User:alice")]
    assert whole.remedy.notes == ()
