"""What each lint finds, and what it leaves alone."""

import pytest
from attrs import evolve

from aclog.analysis.lint.finding import LintContext
from aclog.analysis.lint_report import lint
from aclog.analysis.policy import Policy
from aclog.analysis.regions import ExistingNames, Request
from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.authorizer.settings import Settings
from tests.support.analysis.policies import entry_of, image_of
from tests.support.builders.acls import record_of, removal_of


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


@pytest.mark.parametrize("host", ["localhost", "10.0.0.0/8"])
def test_a_rule_from_where_nobody_comes_opens_nothing(host):
    (found,) = ids(rule("*", "ALL", who="User:*", host=host))
    assert found & {"03", "04", "16"} == {"04" if "/" in host else "03"}
    (found,) = ids(rule("kafka-cluster", "ALTER", kind="CLUSTER", host=host))
    assert found & {"03", "04", "17"} == {"04" if "/" in host else "03"}
    assert "16" in ids(rule("*", "ALL", who="User:*", host="10.0.0.0/8"), cidr=True)[0]


def test_an_operation_that_nobody_asks_for_opens_nothing():
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


def found_by(lint_id, *rules, context=None, **settings):
    """The rules that one lint names, a set for each finding."""
    found = lint(Policy(image_of(rules), Settings(**settings)), context, select={lint_id})
    return [set(each.rules) for each in found]


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
    ("lint_id", "one", "expected"),
    [
        ("13", rule("*"), "User:a may READ every topic, but may join no consumer group"),
        ("13", rule("a.", prefixed=True), "User:a may READ topics 'a.'*, but may join no consumer group"),
        (
            "14",
            rule("tx", "WRITE", kind="TRANSACTIONAL_ID"),
            "User:a has WRITE on transactional id 'tx', but no WRITE on topics: its transactions are empty",
        ),
        (
            "03",
            rule(host="localhost", deny=True),
            "no client has the address 'localhost': it denies User:a READ on no topic",
        ),
        (
            "07",
            rule(who="Group:a", deny=True),
            "clients have the type User, never 'Group': it denies Group:a READ on no topic",
        ),
    ],
)
def test_what_is_lost_is_said_in_one_reading(lint_id, one, expected):
    (found,) = lint(Policy(image_of([one]), Settings()), select={lint_id})
    assert found.lost == expected


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
def test_a_name_that_covers_nothing_is_shared_by_nobody(lint_id, kind, operation):
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


def test_estates_without_anything_to_judge():
    assert ids() == []
    assert found_by("08", rule(who="nobody"), rule("x", kind="CLUSTER"), cidr=True, allow_everyone=True) == []
    assert list(lint(Policy(image_of([])), LintContext(topics=TOPICS), select={"13", "18", "21"})) == []


def test_progress_is_told_and_only_the_chosen_lints_run():
    steps = []
    policy = Policy(image_of([rule("*", prefixed=True)]))
    found = list(lint(policy, select={"01", "24", "26"}, progress=lambda done, of: steps.append((done, of))))
    assert [each.lint for each in found] == ["01", "24"]
    assert steps == [(0, 2), (1, 2), (2, 2)]


def test_rules_of_an_overlay_count_like_others():
    image = image_of([rule("a.", prefixed=True), rule("gone")])
    gone = next(entry for entry in image if entry.acl.resource_name == "gone")
    changed = image.apply([removal_of(gone), record_of(entry_of(rule("a.b")))])
    assert [each.rules for each in lint(Policy(changed), select={"08"})] == [(rule("a.b"),)]


def test_what_is_lost_names_the_rule_that_makes_another_needless():
    prefix, deny = rule("a.", prefixed=True), rule("p.", "ALL", deny=True, prefixed=True, who="User:*")
    one, overridden, dead = rule("a.b", "DESCRIBE"), rule("p.x"), rule("p.x", "WRITE", deny=True)
    policy = Policy(image_of([prefix, deny, one, overridden, dead]))
    told = {each.rules[0]: each.lost for each in lint(policy, select={"08", "09", "10"})}
    assert told == {
        one: "nothing: ALLOW READ topics 'a.'* to User:a grants User:a DESCRIBE on topic 'a.b' as well",
        overridden: "User:a may not READ topic 'p.x': DENY ALL topics 'p.'* to User:* takes precedence",
        dead: "nothing more is denied: DENY ALL topics 'p.'* to User:* denies it as well",
    }
