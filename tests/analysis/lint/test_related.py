"""Lints of ACLs beside others: what each finds, and what it leaves alone."""

import pytest
from attrs import evolve

from aclog.analysis.lint.finding import LintContext
from aclog.analysis.lint_report import lint
from aclog.analysis.policy import Policy
from aclog.analysis.regions import ExistingNames, Request
from aclog.authorizer.codes import AclOperation, ResourceType
from tests.support.analysis.lint import found_by, rule
from tests.support.analysis.policies import image_of

TOPICS = ExistingNames.of(["orders", "pay.in", "payroll.out", "big.a"])


def test_a_consumer_without_a_group_and_a_transaction_without_a_topic():
    read, also, group = rule(), rule("b"), rule("g", kind="GROUP")
    assert found_by("13", read, also) == [{read, also}]
    assert found_by("13", read, group) == found_by("13", read, evolve(group, principal="User:*")) == []
    assert found_by("13", evolve(read, principal="User:*")) == []
    assert found_by("13", read, super_users=frozenset({"User:a"})) == []
    transaction = rule("tx", "WRITE", kind="TRANSACTIONAL_ID")
    assert found_by("14", transaction) == [{transaction}]
    assert found_by("14", transaction, rule(operation="WRITE")) == []
    describe = rule("tx", "DESCRIBE", kind="TRANSACTIONAL_ID")
    assert found_by("14", describe, rule(operation="WRITE")) == [{describe}]


def test_idempotent_write_is_a_leftover_since_2_8():
    leftover = rule("kafka-cluster", "IDEMPOTENT_WRITE", kind="CLUSTER")
    assert found_by("15", leftover, rule(operation="WRITE")) == [{leftover}]
    assert found_by("15", leftover, rule(operation="READ")) == []
    assert found_by("15", leftover, rule(operation="WRITE"), rule(operation="WRITE", deny=True)) == []
    assert found_by("15", leftover, rule(operation="WRITE", host="10.0.0.1")) == []
    assert found_by("15", evolve(leftover, host="10.0.0.1"), rule("*", "ALL")) == [{evolve(leftover, host="10.0.0.1")}]
    assert found_by("15", leftover, rule(operation="WRITE"), rule(who="nobody")) == [{leftover}]
    everyone = evolve(leftover, principal="User:*")
    assert found_by("15", everyone, rule(operation="WRITE", who="User:*")) == [{everyone}]
    assert found_by("15", leftover, rule(operation="WRITE"), context=LintContext(broker_version=(2, 7, 2))) == []


@pytest.mark.parametrize(
    ("lint_id", "kind", "operation"), [("19", "GROUP", "READ"), ("20", "TRANSACTIONAL_ID", "WRITE")]
)
def test_a_name_that_several_principals_hold(lint_id, kind, operation):
    one, other = rule("g", operation, kind=kind), rule("g", operation, kind=kind, who="User:b")
    prefix = rule("g", operation, kind=kind, who="User:c", prefixed=True)
    assert found_by(lint_id, one, other) == [{one, other}]
    assert found_by(lint_id, one, prefix) == [{one, prefix}]
    assert found_by(lint_id, prefix, evolve(prefix, principal="User:d"))[0] == {
        prefix,
        evolve(prefix, principal="User:d"),
    }
    assert found_by(lint_id, one, evolve(one, host="10.0.0.1")) == []
    assert (
        found_by(lint_id, one, evolve(other, principal="User:*"), rule("h", operation, kind=kind, who="User:b")) == []
    )
    many = [evolve(one, principal=f"User:{number}") for number in range(1000)]
    (found,) = found_by(lint_id, *many)
    assert len(found) == 10


@pytest.mark.parametrize(
    ("lint_id", "kind", "operation"), [("19", "GROUP", "READ"), ("20", "TRANSACTIONAL_ID", "WRITE")]
)
def test_a_name_that_covers_nothing_is_not_shared(lint_id, kind, operation):
    # Kafka took such rules before KAFKA-14733, so upgraded clusters hold them.
    empty = rule("", operation, kind=kind)
    assert found_by(lint_id, empty) == []
    assert found_by(lint_id, empty, evolve(empty, principal="User:b"), evolve(empty, host="")) == []


def test_rules_that_close_a_resource_to_those_who_used_it():
    used = Request(
        principal="User:b",
        host="10.0.0.1",
        operation=AclOperation.WRITE,
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
    )
    known, one = LintContext(accesses=(used,)), rule(operation="WRITE")
    assert found_by("22", one, context=known, allow_everyone=True) == [{one}]
    assert found_by("22", one, context=known) == []
    assert found_by("22", one, evolve(one, principal="User:b"), context=known, allow_everyone=True) == []
    assert found_by("22", rule("other"), context=known, allow_everyone=True) == []
    supers = frozenset({"User:b"})
    assert found_by("22", one, context=known, allow_everyone=True, super_users=supers) == []


def test_many_literals_below_one_prefix():
    many = [rule(f"big.n{number}") for number in range(10)]
    (found,) = lint(Policy(image_of([*many, rule("big.b", "WRITE"), rule("other")])), select={"25"})
    assert set(found.rules) == set(many)
    assert found.fix[0].acl == rule("big.", prefixed=True)
    assert {change.acl for change in found.fix[1:]} == set(many)
    assert found_by("25", *many[1:]) == []
    (told,) = lint(Policy(image_of(many)), LintContext(topics=TOPICS), select={"25"})
    assert told.lost.endswith("a prefix covers 1 more existing topic")


def test_the_impact_names_the_rule_that_makes_another_redundant():
    prefix, deny = rule("a.", prefixed=True), rule("p.", "ALL", deny=True, prefixed=True, who="User:*")
    one, overridden, dead = rule("a.b", "DESCRIBE"), rule("p.x"), rule("p.x", "WRITE", deny=True)
    policy = Policy(image_of([prefix, deny, one, overridden, dead]))
    told = {each.rules[0]: each.lost for each in lint(policy, select={"08", "09", "10"})}
    assert told == {
        one: "redundant: User:a already has DESCRIBE on topic 'a.b', by ALLOW User:a READ on TOPIC PREFIXED 'a.' from "
        "*",
        overridden: "User:a may not READ topic 'p.x': DENY User:* ALL on topics whose names start with 'p.' takes "
        "precedence",
        dead: "nothing more is denied: DENY User:* ALL on topics whose names start with 'p.' denies it as well",
    }
