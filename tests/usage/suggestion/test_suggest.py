"""Suggested rules keep every allowed access and give nothing new, by an engine that knows nothing of suggestions."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.usage.access_counter import COUNTED
from aclog.usage.suggestion.suggest import Wanted, suggest
from aclog.usage.suggestion.suggested_rule import Why

PRINCIPALS = [f"User:{name}" for name in "abcdef"]
NAMES = ["pay.in", "pay.out", "pay.log.x", "pay.log.y", "bill.in", "*", "pay"]
HOSTS = ["10.0.0.1", "10.0.0.2"]
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DELETE, AclOperation.CREATE]


def rule(principal="User:a", name="pay.in", operation=AclOperation.READ, *, host="*", prefixed=False, denies=False):
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=AclPermissionType.DENY if denies else AclPermissionType.ALLOW,
    )


RULES = st.builds(
    rule,
    st.sampled_from([*PRINCIPALS, "User:*"]),
    st.sampled_from([*NAMES, "pay.", "p", "pay.log."]),
    st.sampled_from([*OPERATIONS, AclOperation.ALL]),
    host=st.sampled_from(["*", "*", *HOSTS]),
    prefixed=st.booleans(),
    denies=st.sampled_from([False, False, False, True]),
)
ACCESSES = st.tuples(
    st.sampled_from(PRINCIPALS), st.sampled_from(HOSTS), st.sampled_from(OPERATIONS), st.sampled_from(NAMES)
)


def policy(rules) -> Policy:
    return Policy(AclsImage.from_acls(StandardAclWithId(id=None, acl=each) for each in dict.fromkeys(rules)))


def counted(accesses) -> pa.Table:
    rows = [
        {"principal": p, "host": h, "operation": o.name, "resourceType": "TOPIC", "resourceName": n, "version": 0,
         "count": 2, "first": at, "last": at + 5}
        for at, (p, h, o, n) in enumerate(dict.fromkeys(accesses))
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=COUNTED)


def _decided(of: Policy, access) -> bool:
    principal, host, operation, name = access
    return of.acls.verdict(principal, host, operation, ResourceType.TOPIC, name).name == "ALLOW"


@settings(max_examples=250, deadline=None)
@given(
    rules=st.lists(RULES, max_size=14), accesses=st.lists(ACCESSES, max_size=40), least=st.sampled_from([None, 1, 2, 3])
)
def test_nothing_is_lost_and_nothing_is_new(rules, accesses, least):
    present = policy(rules)
    found = suggest(counted(accesses), present, Wanted(least=least))
    suggested = policy(each.rule for each in found.rules)
    distinct = list(dict.fromkeys(accesses))
    allowed = [access for access in distinct if _decided(present, access)]
    assert all(_decided(suggested, access) for access in allowed)
    assert (found.accesses, found.denied) == (2 * len(allowed), 2 * (len(distinct) - len(allowed)))
    for principal in [*PRINCIPALS, "User:nobody"]:
        for host in [*HOSTS, "10.9.9.9"]:
            for operation in OPERATIONS:
                for name in [*NAMES, "pay.log.z", "pay.new", "q"]:
                    access = (principal, host, operation, name)
                    assert _decided(present, access) or not _decided(suggested, access), access
    assert all(each.rule in set(rules) for each in found.rules if each.why is Why.DENY)


def told(present, accesses, **wanted) -> dict:
    found = suggest(counted(accesses), policy(present), Wanted(**wanted))
    return {
        (
            each.rule.principal,
            each.rule.resource_name,
            each.rule.pattern_type.name,
            each.rule.operation.name,
            each.rule.host,
        ): each
        for each in found.rules
    }


READ, WRITE = AclOperation.READ, AclOperation.WRITE


def test_used_names_become_rules_of_their_own():
    accesses = [("User:a", "10.0.0.1", READ, "pay.in"), ("User:a", "10.0.0.1", AclOperation.DESCRIBE, "pay.in")]
    found = told([rule(name="pay.", prefixed=True, operation=AclOperation.ALL)], accesses)
    (key,) = found
    assert key == ("User:a", "pay.in", "LITERAL", "READ", "*")  # DESCRIBE is implied
    (only,) = found.values()
    assert (only.times.count, only.times.first, only.times.last, only.intent) == (4, 0, 6, "consume")
    assert only.replaces == (rule(name="pay.", prefixed=True, operation=AclOperation.ALL),)


def test_enough_names_become_their_prefix():
    present = [rule(name="*", operation=WRITE)]
    names = ["pay.a.1", "pay.a.2", "pay.b.1", "pay.b.2", "bill.x"]
    accesses = [("User:a", "10.0.0.1", WRITE, name) for name in names]
    keys = {(name, pattern) for _, name, pattern, _, _ in told(present, accesses, least=2)}
    assert keys == {("pay.a.", "PREFIXED"), ("pay.b.", "PREFIXED"), ("bill.x", "LITERAL")}
    keys = {(name, pattern) for _, name, pattern, _, _ in told(present, accesses, least=3)}
    assert keys == {("pay.", "PREFIXED"), ("bill.x", "LITERAL")}
    assert all(pattern == "LITERAL" for _, _, pattern, _, _ in told(present, accesses, least=None))


def test_no_prefix_beyond_the_present_set():
    accesses = [("User:a", "10.0.0.1", WRITE, f"pay.{n}") for n in range(3)]
    literals = [rule(name=f"pay.{n}", operation=WRITE) for n in range(3)]
    assert all(pattern == "LITERAL" for _, _, pattern, _, _ in told(literals, accesses, least=2))


def test_no_prefix_over_what_only_others_write():
    present = [rule(principal="User:*", name="*", operation=AclOperation.ALL)]
    accesses = [("User:a", "10.0.0.1", READ, f"pay.{n}") for n in range(3)] + [
        ("User:b", "10.0.0.1", WRITE, "pay.secret")
    ]
    assert ("User:a", "pay.", "PREFIXED", "READ", "*") not in told(present, accesses, least=3)
    accesses.append(("User:a", "10.0.0.1", WRITE, "pay.secret"))
    assert ("User:a", "pay.", "PREFIXED", "READ", "*") in told(present, accesses, least=3)


def test_hosts_are_those_of_the_present_set():
    present = [rule(host="10.0.0.1"), rule(host="10.0.0.2", name="pay.out"), rule(name="pay.out")]
    accesses = [("User:a", host, READ, name) for host in HOSTS for name in ("pay.in", "pay.out")]
    assert {(name, host) for _, name, _, _, host in told(present, accesses)} == {
        ("pay.in", "10.0.0.1"),
        ("pay.out", "*"),
    }


def test_needed_denies_stay():
    present = [
        rule(name="pay.", prefixed=True),
        rule(name="pay.log.", prefixed=True, denies=True),
        rule(name="bill.", prefixed=True, denies=True),
        rule(principal="User:b", name="pay.log.", prefixed=True, denies=True),
        rule(name="pay.log.", prefixed=True, operation=WRITE, denies=True),
    ]
    accesses = [("User:a", "10.0.0.1", READ, f"pay.{n}") for n in range(5)]
    found = told(present, accesses)
    assert [each.rule for each in found.values() if each.why is Why.DENY] == [present[1]]


def test_a_rule_for_everybody_stays_one_if_most_used_it():
    present = [rule(principal="User:*"), rule(principal="User:*", name="pay.out")]
    accesses = [(principal, "10.0.0.1", READ, "pay.in") for principal in PRINCIPALS[:5]]
    accesses.append(("User:a", "10.0.0.1", READ, "pay.out"))
    assert {(key[0], key[1]) for key in told(present, accesses)} == {
        ("User:*", "pay.in"),
        ("User:a", "pay.out"),
    }
    mine = told(present, accesses, principals=frozenset({"User:a"}))
    assert {(key[0], key[1]) for key in mine} == {("User:a", "pay.in"), ("User:a", "pay.out")}


def test_refusals():
    with pytest.raises(ConfigError, match="open to all"):
        suggest(counted([]), Policy(AclsImage.empty(), Settings(allow_everyone=True)), Wanted())
    assert not suggest(counted([]), Policy(AclsImage.empty()), Wanted()).rules
