"""Lint 26: what a prefix covered at first and covers now, told from when rules and topics came into being."""

from aclog.analysis.lint.single import MANY_MORE, TopicTimes, grown_reach, judged_rules
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclPermissionType, PatternType, ResourceType
from tests.support.builders.acls import acl

PREFIXED = PatternType.PREFIXED


def judged(rule, added, spans, **options):
    return list(grown_reach([(rule, added)], TopicTimes(spans), **options))


def prefix(name, **fields):
    return acl(name, "User:a", pattern_type=PREFIXED, **fields)


def names(finding):
    return [(change.added, change.acl.resource_name, change.acl.pattern_type) for change in finding.fix]


def test_topics_of_another_owner_that_came_later():
    spans = {"pay.in": [(5, None)], "pay-old": [(5, 40)], "payroll.x": [(20, None)], "zoo": [(1, None)]}
    [found] = judged(prefix("pay"), 10, spans)
    assert (found.lint, found.severity.value) == ("26", "warning")
    assert found.lost == "grants User:a READ on 2 topics now, 2 at first; of other owners: payroll.x"
    assert names(found) == [(True, "pay-", PREFIXED), (True, "pay.", PREFIXED), (False, "pay", PREFIXED)]


def test_those_that_were_there_at_first_were_meant():
    spans = {"pay.in": [(5, None)], "payroll.x": [(10, None)], "pay.out": [(50, None)]}
    assert judged(prefix("pay"), 10, spans) == []


def test_a_pattern_that_was_ahead_of_its_topics_begins_with_the_first_of_them():
    spans = {"pay.in": [(30, None)], "payroll.x": [(31, None)]}
    [found] = judged(prefix("pay"), 10, spans)
    assert "of other owners: payroll.x" in found.lost
    assert judged(prefix("pay"), 10, {"pay.in": [(30, None)], "pay.out": [(99, None)]}) == []
    assert judged(prefix("pay"), 10, {}) == []


def test_a_topic_that_is_gone_is_not_covered_now():
    spans = {"pay.in": [(5, None)], "payroll.x": [(20, 30)]}
    assert judged(prefix("pay"), 10, spans) == []
    again = {"pay.in": [(5, None)], "payroll.x": [(2, 8), (20, None)]}
    assert len(judged(prefix("pay"), 10, again)) == 1


def test_notably_more_topics_of_the_same_owner():
    few = {f"pay.{number}": [(5 if number == 0 else 20, None)] for number in range(MANY_MORE)}
    assert judged(prefix("pay."), 10, few) == []
    many = few | {"pay.one-more": [(20, None)]}
    [found] = judged(prefix("pay."), 10, many)
    assert found.lost == f"grants User:a READ on {MANY_MORE + 1} topics now, 1 at first"
    assert found.fix == ()
    three = many | {f"pay.old{number}": [(5, None)] for number in range(2)}
    assert judged(prefix("pay."), 10, three) == []  # seven times as many


def test_separators_say_where_an_owner_ends():
    spans = {"pay/in": [(5, None)], "pay/out": [(20, None)]}
    assert len(judged(prefix("pay"), 10, spans)) == 1  # two names without a separator: two owners
    assert judged(prefix("pay"), 10, spans, separators="/") == []
    assert len(judged(prefix("pay"), 10, spans, separators="")) == 1


def test_a_topic_without_a_separator_is_kept_by_its_name():
    spans = {"pay": [(5, None)], "payroll": [(20, None)]}
    [found] = judged(prefix("pay"), 10, spans)
    assert names(found) == [(True, "pay", PatternType.LITERAL), (False, "pay", PREFIXED)]


def test_only_what_allows_a_prefix_of_topics_is_judged():
    wanted = prefix("pay")
    others = [
        prefix("pay", permission_type=AclPermissionType.DENY),
        prefix("pay", resource_type=ResourceType.GROUP),
        acl("pay", "User:a"),
        acl("*", "User:a"),
    ]
    rules = AclsImage.from_acls(StandardAclWithId(id=None, acl=each) for each in (*others, wanted))
    assert [rule.acl for rule in judged_rules(Policy(rules))] == [wanted]


def test_the_last_name_of_all_is_seen():
    spans = {"a": [(1, None)], "pay.in": [(5, None)], "payroll.x": [(20, None)]}
    assert TopicTimes(spans).below("pay") == ["pay.in", "payroll.x"]
    assert TopicTimes(spans).below("zoo") == []
