"""Refusals and what would allow them, against the engine: every access decided with the rules that are added."""

from functools import lru_cache
from itertools import product

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.usage.counting import COUNTED
from aclog.usage.decisions.intervals import Rules
from aclog.usage.denied import attempts_of, least, refusals
from tests.support.builders.images import with_ids
from tests.support.runs.profiles import examples

NAMES = ["f", "foo", "foo-changelog", "*", "kafka-cluster"]
HOSTS = ["10.0.0.1", "10.0.0.2"]
PRINCIPALS = ["User:a", "User:b"]
KINDS = [ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID]
OPERATIONS = [
    AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS, AclOperation.ALL,
]  # fmt: skip
RULES = st.builds(
    StandardAcl,
    resource_type=st.sampled_from(KINDS),
    resource_name=st.sampled_from(NAMES),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from([*PRINCIPALS, "User:*"]),
    host=st.sampled_from([*HOSTS, "*", "*"]),
    operation=st.sampled_from(OPERATIONS),
    permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)
ACCESSES = st.tuples(
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from([AclOperation.READ, AclOperation.DESCRIBE, *OPERATIONS]),
    st.sampled_from(KINDS),
    st.sampled_from(NAMES),
)
ASKED_AS = st.sampled_from([Settings(), Settings(allow_everyone=True), Settings(super_users=frozenset({"User:b"}))])


def counted(accesses) -> pa.Table:
    """COUNTED; the n-th access was seen n + 1 times, at n us."""
    rows = [
        (principal, host, operation.name, kind.name, name, 0, number + 1, number, number)
        for number, (principal, host, operation, kind, name) in enumerate(accesses)
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(COUNTED)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, COUNTED, strict=True)], COUNTED)


@lru_cache(100)
def image_of(acls) -> AclsImage:
    return AclsImage.from_acls(with_ids(acls))


def is_allowed(acls, access, asked_as) -> bool:
    principal, host, operation, kind, name = access
    if principal in asked_as.super_users:
        return True
    verdict = image_of(tuple(acls)).verdict(principal, host, operation, resource_type=kind, name=name)
    return verdict.name == "ALLOW" or (verdict.name == "NO_CANDIDATE" and asked_as.allow_everyone)


def denies(rule, access) -> bool:
    """Whether a DENY matches, by deciding with it alone."""
    if rule.permission_type != AclPermissionType.DENY:
        return False
    principal, host, operation, kind, name = access
    return image_of((rule,)).verdict(principal, host, operation, resource_type=kind, name=name).name == "DENY"


@settings(max_examples=examples(60))
@given(
    acls=st.lists(RULES, max_size=5, unique=True), accesses=st.lists(ACCESSES, max_size=8, unique=True), how=ASKED_AS
)
def test_added_rules_mend_exactly_what_no_deny_is_in_the_way_of(acls, accesses, how):
    image = AclsImage.from_acls(with_ids(acls))
    found = refusals(counted(accesses), Rules.of_image(image), how)
    refused = [access for access in accesses if not is_allowed(acls, access, how)]
    assert len(found.refusals) == len(refused)
    assert found.refused == sum(number + 1 for number, access in enumerate(accesses) if access in refused)
    attempts = attempts_of(found.refusals)
    assert sum(attempt.accesses for attempt in attempts) == found.refused
    added = {rule for attempt in attempts for rule in attempt.missing}
    assert added.isdisjoint(acls)
    held_back = {a for a in refused if any(denies(rule, a) for rule in acls)}
    without_rule = {a for a in refused if a[4] == "*" or a[2] == AclOperation.ALL}
    more = [*acls, *added]
    mended = set(refused) - held_back - without_rule
    for access in product(PRINCIPALS, HOSTS, OPERATIONS, KINDS[1:], NAMES):
        before, after = (is_allowed(rules, access, how) for rules in (acls, more))
        if access in mended:
            assert (before, after) == (False, True)
        elif before != after:  # what a rule for something refused implies
            assert not before
            assert any(
                each[:2] + each[3:] == access[:2] + access[3:] and least([each[2], access[2]]) == [each[2]]
                for each in mended
            )
    for rule in added:
        rest = [*acls, *(added - {rule})]
        assert any(not is_allowed(rest, access, how) for access in mended), "a rule more than needed"
    told = {attempt.denies for attempt in attempts if attempt.denies}
    assert bool(told) == bool(held_back)


def test_a_describe_and_what_follows_it_are_one_attempt():
    topic = ("User:a", "10.0.0.1", AclOperation.DESCRIBE, ResourceType.TOPIC, "t")
    accesses = [topic, (*topic[:2], AclOperation.WRITE, *topic[3:]), ("User:a", "10.0.0.2", *topic[2:])]
    (attempt,) = attempts_of(refusals(counted(accesses), Rules.of_image(AclsImage.from_acls([])), Settings()).refusals)
    assert (attempt.attempts, attempt.accesses, attempt.first, attempt.last) == (2 + 3, 6, 0, 2)
    assert attempt.intent == "produce"
    assert [(rule.host, rule.operation) for rule in attempt.missing] == [
        ("10.0.0.1", AclOperation.WRITE),
        ("10.0.0.2", AclOperation.DESCRIBE),
    ]


def test_what_no_rule_may_be_for_implies_nothing():
    described = ("User:a", "10.0.0.1", AclOperation.DESCRIBE, ResourceType.TOPIC, "t")
    accesses = [described, (*described[:2], AclOperation.ALL, *described[3:])]
    found = refusals(counted(accesses), Rules.of_image(AclsImage.from_acls([])), Settings())
    missing = [rule.operation for attempt in attempts_of(found.refusals) for rule in attempt.missing]
    assert missing == [AclOperation.DESCRIBE]


def test_intents():
    def intents(*asked):
        accesses = [("User:a", "10.0.0.1", operation, kind, name) for operation, kind, name in asked]
        found = refusals(counted(accesses), Rules.of_image(AclsImage.from_acls([])), Settings())
        return {(each.resource_name, each.intent) for each in attempts_of(found.refusals)}

    read, write, topic = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
    assert intents((read, topic, "t"), (write, topic, "t")) == {("t", "consume"), ("t", "produce")}
    assert intents((AclOperation.DESCRIBE, topic, "t")) == {("t", None)}
    transaction = (AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "x")
    assert intents((write, topic, "t"), transaction) == {("t", "transact"), ("x", "transact")}
    streams = (read, ResourceType.GROUP, "app"), (write, topic, "app-store-changelog"), (read, topic, "in")
    assert intents(*streams) == {("app", "consume"), ("app-store-changelog", "stream"), ("in", "consume")}
    assert intents((AclOperation.CREATE, topic, "t")) == {("t", "admin")}
