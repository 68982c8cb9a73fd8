"""Rules for everyone that reach far (27), and the narrow rules below them, which nobody should remove (08)."""

from random import Random

import pytest
from attrs import evolve

from aclog.analysis.comparison import differences
from aclog.analysis.lint.finding import LintContext
from aclog.analysis.lint.related import neutral_fix
from aclog.analysis.lint_report import lint
from aclog.analysis.policy import Policy
from aclog.authorizer.settings import Settings
from tests.support.analysis.lint import decides_without, dense_policy, ids, rule, without
from tests.support.analysis.policies import image_of

EVERYONE, ANONYMOUS = "User:*", "User:ANONYMOUS"


def told(*rules, context=None, select=("27",), **settings):
    """By the first rule of a finding: its severity and what is opened."""
    found = lint(Policy(image_of(rules), Settings(**settings)), context, select=set(select))
    return {each.rules[0]: (each.severity.value, each.lost) for each in found}


@pytest.mark.parametrize("who", [EVERYONE, ANONYMOUS])
@pytest.mark.parametrize(
    ("one", "severity", "reach"),
    [
        (rule("*"), "error", "READ every topic, including internal topics"),
        (rule("", "READ", prefixed=True), "error", "READ every topic, including internal topics"),
        (rule("*", "DESCRIBE"), "warning", "DESCRIBE every topic, including internal topics"),
        (rule("*", "DELETE"), "error", "DELETE every topic, including internal topics"),
        (rule("*", kind="GROUP"), "error", "READ every group"),
        (rule("*", "DESCRIBE_TOKENS", kind="USER"), "warning", "DESCRIBE_TOKENS every user"),
        (rule("__consumer_offsets"), "error", "READ the internal topic '__consumer_offsets'"),
        (rule("__transaction_state", "WRITE"), "error", "WRITE the internal topic '__transaction_state'"),
        (
            rule("__c", "WRITE", prefixed=True),
            "error",
            "WRITE topics whose names start with '__c', including __cluster_metadata, __consumer_offsets",
        ),
        (
            rule("__share_group_state", "DESCRIBE", prefixed=True),
            "warning",
            "DESCRIBE topics whose names start with '__share_group_state'",
        ),
        (rule("kafka-cluster", "CREATE", kind="CLUSTER"), "error", "CREATE the cluster"),
        (rule("*", "ALTER_CONFIGS", kind="CLUSTER"), "error", "ALTER_CONFIGS the cluster"),
        (rule("kafka", "DESCRIBE", kind="CLUSTER", prefixed=True), "warning", "DESCRIBE the cluster"),
        (rule("kafka-cluster", "IDEMPOTENT_WRITE", kind="CLUSTER"), "warning", "IDEMPOTENT_WRITE the cluster"),
        (rule("orders", "ALL"), "error", "do everything on topic 'orders'"),
        (
            rule("g-", "ALL", kind="GROUP", prefixed=True),
            "error",
            "do everything on groups whose names start with 'g-'",
        ),
    ],
)
def test_what_everyone_may_do_is_a_finding_by_its_reach(who, one, severity, reach):
    one = evolve(one, principal=who)
    ((found, said),) = told(one).values()
    client = "every client" if who == EVERYONE else "every unauthenticated client"
    assert (found, said.startswith(f"{client} may {reach}")) == (severity, True), said


def test_a_host_makes_it_a_warning_and_is_named():
    one = rule("*", "WRITE", who=ANONYMOUS, host="10.0.0.7")
    assert told(one) == {
        one: (
            "warning",
            "every unauthenticated client from 10.0.0.7 may WRITE every topic, including internal topics",
        )
    }


@pytest.mark.parametrize(
    ("host", "severity"),
    [
        ("10.0.0.0/8", "warning"),
        ("0.0.0.0/0", "error"),
        ("10.0.0.0/0", "error"),
        ("::/0", "error"),
        ("::/1", "warning"),
    ],
)
def test_a_range_of_all_addresses_is_no_restriction(host, severity):
    ((found, said),) = told(rule("*", who=EVERYONE, host=host), cidr=True).values()
    assert (found, f" from {host} " in said) == (severity, True)


@pytest.mark.parametrize(
    "one",
    [
        rule("orders", who=EVERYONE),
        rule("orders", "WRITE", who=ANONYMOUS),
        rule("a.", who=EVERYONE, prefixed=True),
        rule("*", who="User:a"),
        rule("*", "ALL", who=EVERYONE, deny=True),
        rule("__consumer_offsets", who="User:a"),
        rule("__consumer_offset", who=EVERYONE),
        rule("__consumer_offsets.", who=EVERYONE, prefixed=True),
        rule("__consumer_offsets", kind="GROUP", who=EVERYONE),
        rule("kafka-clusters", "DESCRIBE", kind="CLUSTER", who=EVERYONE),
        rule("other", "ALL", kind="CLUSTER", who=EVERYONE),
        rule("", "ALL", kind="GROUP", who=EVERYONE),
        rule("*", "WRITE", kind="GROUP", who=EVERYONE),
        rule("*", who=EVERYONE, host="localhost"),
        rule("*", who=EVERYONE, host="10.0.0.0/8"),
        rule("*", prefixed=True, who=EVERYONE),
    ],
)
def test_what_reaches_no_further_than_it_says_is_none(one):
    assert told(one) == {}


def test_what_another_lint_says_is_not_said_twice():
    for one in (
        rule("*", "WRITE", who=EVERYONE),
        rule("*", "ALL", kind="GROUP", who=EVERYONE),
        rule("kafka-cluster", "ALTER", kind="CLUSTER", who=ANONYMOUS),
    ):
        assert len(ids(one)[0] & {"16", "17", "27"}) == 1
        assert told(one) == {}


def test_settings_and_denies_count():
    anonymous, deny = rule("*", who=ANONYMOUS), rule("*", "ALL", who=EVERYONE, deny=True)
    assert told(anonymous, super_users=frozenset({ANONYMOUS})) == {}
    assert told(anonymous, deny) == {}
    describe = rule("kafka-cluster", "DESCRIBE", kind="CLUSTER", who=ANONYMOUS)
    brokers = LintContext(broker_principals=frozenset({ANONYMOUS}))
    assert told(describe, anonymous, context=brokers).keys() == {anonymous}
    assert told(rule("*", who=EVERYONE, host="10.0.0.0/8"), cidr=True) != {}
    some = rule("pii.", "ALL", who="User:a", deny=True, prefixed=True)
    ((_, said),) = told(anonymous, some).values()
    assert said.endswith(", except what DENY rules deny")


NARROW = [rule(f"t{number}", who=f"User:{number}") for number in range(5)]


@pytest.mark.parametrize("allow_everyone", [False, True])
def test_below_a_wide_rule_for_everyone_that_one_is_the_suspect(allow_everyone):
    wide = rule("*", who=EVERYONE)
    policy = Policy(image_of([wide, *NARROW]), Settings(allow_everyone=allow_everyone))
    found = list(lint(policy, select={"08"}))
    assert {each.rules for each in found} == {(one,) for one in NARROW}
    for each in found:
        assert (
            each.lost
            == "nothing today; the suspect is ALLOW User:* READ on every topic: without it this rule is needed"
        )
        assert (each.fix, each.neutral) == ((), False)
        assert each.advice.startswith("Keep it")
    assert neutral_fix(policy, found) == ()


def test_several_wide_rules_are_named_together():
    one, read, write = rule("t", "ALL"), rule("*", who=EVERYONE), rule("", "ALL", prefixed=True, who=EVERYONE)
    (found,) = (each for each in lint(Policy(image_of([one, read, write])), select={"08"}) if each.rules == (one,))
    assert "ALLOW User:* ALL on topics whose names start with '' and ALLOW User:* READ on every topic" in found.lost


def test_what_a_narrow_rule_covers_as_well_can_go():
    wide, prefix, one = rule("*", who=EVERYONE), rule("t", prefixed=True), rule("t1")
    policy = Policy(image_of([wide, prefix, one]))
    found = {each.rules[0]: each for each in lint(policy, select={"08"})}
    assert (found[one].neutral, found[prefix].neutral) == (True, False)
    assert {change.acl for change in neutral_fix(policy, found.values())} == {one}


def test_a_wide_rule_that_another_wide_one_covers_can_go():
    wide, other = rule("*", who=EVERYONE, host="10.0.0.1"), rule("*", who=EVERYONE)
    policy = Policy(image_of([wide, other]))
    assert {change.acl for change in neutral_fix(policy, lint(policy, select={"08"}))} == {wide}


@pytest.mark.parametrize("seed", range(40))
def test_no_advice_of_08_changes_a_decision_with_the_wide_rules_or_without_them(seed):
    policy = dense_policy(Random(seed))
    found = list(lint(policy))
    wide = {each.rules[0] for each in found if each.lint in ("16", "27")}
    for each in found:
        if each.lint == "08":
            assert decides_without(policy, each.rules[0])
            assert (each.fix == ()) is not each.neutral
    removed = [change.acl for change in neutral_fix(policy, found)]
    rest = without(policy, *wide)
    closed = Policy(rest.acls, evolve(rest.settings, allow_everyone=False))
    assert not any(differences(closed, without(closed, *removed)))
