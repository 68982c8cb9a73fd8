"""Filters of removals: each ACL by exactly one, no other ACL by any, and few of them where whole groups go."""

from random import Random

import pytest

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.index.queries import filter_matches
from aclog.targets.removal_filters import removal_filters
from tests.support.analysis.policies import distinct, random_rule


def rule(name, principal, *, operation=AclOperation.READ, host="*"):
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=3,
    )


@pytest.mark.parametrize("seed", range(40))
def test_exactly_those_to_be_removed(seed):
    random = Random(seed)
    rules = distinct([random_rule(random, odd=0) for _ in range(random.choice((5, 40, 200)))])
    groups = [lambda each: each.principal, lambda each: each.resource_name, str, lambda _: 0]
    of = random.choice(groups)
    gone = {of(each) for each in random.sample(rules, random.randint(1, min(len(rules), 4)))}
    removed = [each for each in rules if of(each) in gone]
    filters = removal_filters(removed, {content_of(each) for each in rules})
    assert sorted(map(str, (acl for each in filters for acl in each.acls))) == sorted(map(str, removed))
    for each in filters:
        matched = {other for other in rules if filter_matches(each.filter, other)}
        assert set(each.acls) <= matched <= set(removed)


def test_a_principal_that_leaves_is_one_filter():
    rules = [rule(f"hot-{topic}", f"User:u{user}") for user in range(50) for topic in range(20)]
    present = set(map(content_of, rules))
    assert len(removal_filters(rules[:200], present)) == 10
    by_topic = [each for each in rules if each.resource_name in {"hot-3", "hot-4"}]
    assert len(removal_filters(by_topic, present)) == 2
    assert len(removal_filters(rules[:20:2], present)) == 10  # half of a principal's: no filter on it is exact


def test_what_was_not_read_has_a_filter_of_its_own():
    rules = [rule(f"hot-{topic}", "User:u") for topic in range(4)]
    assert len(removal_filters(rules, set())) == 4
    assert len(removal_filters(rules, set(map(content_of, rules[:2])))) == 3


class Unread(set):
    def __iter__(self):
        raise AssertionError("every ACL of the cluster is read")


def test_the_cluster_is_not_searched_where_there_is_nothing_to_group():
    rules = [rule("t-1", "User:a"), rule("t-2", "User:b")]
    assert [each.acls for each in removal_filters(rules, Unread(map(content_of, rules)))] == [(each,) for each in rules]


def test_no_filter_is_wider_than_a_principal_or_a_name():
    rules = [rule(f"t-{n}", f"User:{n}") for n in range(20)]
    assert len(removal_filters(rules, set(map(content_of, rules)))) == 20
