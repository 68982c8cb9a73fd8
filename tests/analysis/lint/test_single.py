"""Lints of single ACLs: what each finds, and what it leaves alone."""

import pytest
from attrs import evolve

from aclog.analysis.lint.finding import LintContext
from aclog.analysis.lint_report import lint
from aclog.analysis.policy import Policy
from aclog.analysis.regions import ExistingNames
from tests.support.analysis.lint import found_by, ids, rule
from tests.support.analysis.policies import image_of


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (rule("*", prefixed=True), "01"),
        (rule("orders-*"), "02"),
        (rule("orders-*", kind="GROUP", prefixed=True), "02"),
        (rule("/orders-.*/", kind="GROUP"), "02"),
        (rule(host="localhost"), "03"),
        (rule(host="::1"), "03"),
        (rule(host="10.0.0.0/33"), "03"),
        (rule(host=""), "03"),
        (rule(host="10.0.0.0/8"), "04"),
        (rule(who="a"), "05"),
        (rule(who="User: a"), "06"),
        (rule(who="Group:a"), "07"),
        (rule(operation="WRITE", kind="GROUP"), "12"),
        (rule(operation="IDEMPOTENT_WRITE"), "12"),
        (rule("*", "WRITE", who="User:*"), "16"),
        (rule("kafka-cluster", "ALTER", kind="CLUSTER"), "17"),
        (rule("kafka", "CLUSTER_ACTION", kind="CLUSTER", prefixed=True), "17"),
        (rule("!b", kind="GROUP"), "23"),
        (rule("!b", kind="GROUP", prefixed=True), "23"),
        (rule("bad name"), "24"),
        (rule("x" * 250), "24"),
        (rule(".."), "24"),
    ],
)
def test_a_rule_that_is_wrong_by_itself(one, expected):
    (found,) = ids(one)
    assert expected in found


@pytest.mark.parametrize(
    "one",
    [
        rule("*"),
        rule("..", prefixed=True),
        rule("orders", prefixed=True),
        rule(host="10.0.0.1"),
        rule(host="0:0:0:0:0:0:0:1"),
        rule(host="fe80:0:0:0:0:0:0:1%1"),
        rule(who="User:a:b"),
        rule("kafka-cluster", "DESCRIBE", kind="CLUSTER"),
        rule("kafka-cluste", "ALTER", kind="CLUSTER"),
        rule("kafka-cluster", "ALTER", kind="CLUSTER", deny=True),
        rule("*", "READ", who="User:*"),
        rule("x" * 249),
    ],
)
def test_a_rule_that_is_right(one):
    (found,) = ids(one)
    assert found & {"01", "02", "03", "04", "05", "06", "07", "12", "16", "17", "23", "24"} == set()


@pytest.mark.parametrize("host", ["localhost", "10.0.0.0/8"])
def test_a_rule_from_where_no_client_comes_opens_nothing(host):
    (found,) = ids(rule("*", "ALL", who="User:*", host=host))
    assert found & {"03", "04", "16"} == {"04" if "/" in host else "03"}
    (found,) = ids(rule("kafka-cluster", "ALTER", kind="CLUSTER", host=host))
    assert found & {"03", "04", "17"} == {"04" if "/" in host else "03"}
    assert "16" in ids(rule("*", "ALL", who="User:*", host="10.0.0.0/8"), cidr=True)[0]


def test_an_operation_that_no_request_has_opens_nothing():
    (found,) = ids(rule("*", "WRITE", kind="GROUP", who="User:*"))
    assert found & {"12", "16"} == {"12"}


def test_settings_and_context_silence_what_they_explain():
    assert ids(rule(host="10.0.0.0/8"), cidr=True) == [ids(rule())[0]]
    assert "07" not in ids(rule(who="Group:a"), context=LintContext(principal_types=frozenset({"User", "Group"})))[0]
    assert "07" not in ids(rule(who="Group:a"), context=LintContext(seen_principals=frozenset({"Group:b"})))[0]
    acts = rule("kafka-cluster", "CLUSTER_ACTION", kind="CLUSTER")
    assert "17" not in ids(acts, context=LintContext(broker_principals=frozenset({"User:a"})))[0]
    assert "17" not in ids(rule("*", "ALL", kind="CLUSTER"), super_users=frozenset({"User:a"}))[0]


@pytest.mark.parametrize(
    ("principal", "seen"),
    [
        ("User:Alice", "User:alice"),
        ("User:alice ", "User:alice"),
        ("User:CN=bob,OU=x", "User:CN=bob,OU=x,O=y"),
        ("User:CN=bob,OU=x,O=y", "User:CN=bob"),
    ],
)
def test_a_principal_that_nearly_is_one_that_was_seen(principal, seen):
    one = rule(who=principal)
    policy = Policy(image_of([one]))
    (found,) = lint(policy, LintContext(seen_principals=frozenset({seen})), select={"06"})
    assert [(change.added, change.acl) for change in found.fix] == [(True, evolve(one, principal=seen)), (False, one)]
    assert ids(one, context=LintContext(seen_principals=frozenset({seen, principal})))[0] & {"06"} == set()
    assert ids(one, context=LintContext(seen_principals=frozenset({"User:zoe"})))[0] & {"06"} == (
        {"06"} if principal.endswith(" ") else set()
    )


TOPICS = ExistingNames.of(["orders", "pay.in", "payroll.out", "big.a"])


def test_names_that_do_not_exist():
    known = LintContext(topics=TOPICS, groups=ExistingNames.of(["g"]))
    gone, none_below, no_group = rule("gone"), rule("goner", prefixed=True), rule("h", kind="GROUP")
    rules = [gone, none_below, no_group, rule(), rule("pay", prefixed=True), rule("*"), rule("g", kind="GROUP")]
    assert found_by("18", *rules, context=known) == [{gone}, {none_below}, {no_group}]
    assert found_by("18", *rules) == []
    assert found_by("18", rule("new", "CREATE"), rule("new!"), context=known) == []


def test_a_prefix_that_ends_inside_of_a_word():
    known = LintContext(topics=TOPICS)
    cut, inside = rule("pay", prefixed=True), rule("or", prefixed=True)
    assert found_by("21", cut, inside, context=known) == [{cut}, {inside}]
    right = rule("pay.", prefixed=True), rule("payroll", prefixed=True), rule("big.", prefixed=True), rule("pay")
    assert found_by("21", *right, rule("pay.i", prefixed=True), context=known) == []
    assert found_by("21", cut, context=evolve(known, separators="y")) == []
