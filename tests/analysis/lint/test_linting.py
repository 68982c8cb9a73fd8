"""What each lint finds, and what it leaves alone."""

import pytest
from attrs import evolve

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.linting import lint
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.authorizer.settings import Settings
from tests.support.analysis.policies import image_of


def rule(name="orders", operation="READ", *, kind="TOPIC", prefixed=False, deny=False, who="User:a", host="*"):
    return StandardAcl(
        resource_type=ResourceType[kind],
        resource_name=name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=who,
        host=host,
        operation=AclOperation[operation],
        permission_type=AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
    )


def ids(*rules, context=None, **settings):
    """The ids of the lints that find something about each rule."""
    policy = Policy(image_of(rules), Settings(**settings))
    found = list(lint(policy, context))
    return [{each.lint for each in found if one in each.rules} for one in rules]


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
