"""Differential tests with the real AclAuthorizer of Kafka 3.9 on the same store: equal ACLs, bytes and decisions."""

from random import Random

import pytest

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.zookeeper.znodes import TREES, decode_acls, encode_acls, name_problem
from tests.support.builders.acls import acl
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper import estates
from tests.support.zookeeper.differential import compare, ours_create, ours_delete, rules_of
from tests.support.zookeeper.server import zookeeper_client


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.tier("test")), 1, 2])
def test_generated_acls_written_by_both_give_equal_decisions(java, connect, seed):
    letters = compare(connect, java, Random(seed), requests=1500)
    assert letters["A"] > 20
    assert letters["D"] > 20


NAMES = [
    "a", "a b", " ", "%", "%2F", "*", "**", "é", "\uffef", "\ud7ff", "\uf900", "a:b", "~", "...", "a.", "a" * 3000,
    "", "/", "a/b", ".", "..", "\0", "a\nb", "\x1f", "\x7f", "\x85", "\x9f", "\ue000", "\uf8ff", "\ufff0", "\uffff",
    "😀", "a😀",
]  # fmt: skip


@pytest.mark.parametrize("pattern_type", [PatternType.LITERAL, PatternType.PREFIXED], ids=["literal", "prefixed"])
def test_the_same_names_are_accepted(real, ours, pattern_type):
    rules = [acl(name, pattern_type=pattern_type) for name in NAMES]
    theirs = real.create(rules)
    assert [error is None for error in theirs] == [name_problem(name) is None for name in NAMES]
    mine = ours_create(ours, [acl(name, pattern_type=pattern_type, principal="User:bob") for name in NAMES])
    assert [error is None for error in mine] == [error is None for error in theirs]
    wait_until(lambda: rules_of(ours) == real.acls(), "one view")
    assert len(real.acls()) == 2 * sum(error is None for error in theirs)


ENTRIES = [
    {"host": ""}, {"host": "example.org"}, {"host": "10.0.0.0/8"}, {"host": "é"}, {"principal": ":"},
    {"principal": "User:a:b"}, {"principal": "User:😀"}, {"principal": 'User:"\\\u2028\x00\x7f</'},
    {"principal": "nocolon"}, {"principal": ""}, {"operation": AclOperation.UNKNOWN}, {"operation": AclOperation.ALL},
    {"operation": AclOperation.TWO_PHASE_COMMIT}, {"permission_type": 0}, {"resource_type": 0}, {"pattern_type": 0},
    {"resource_type": ResourceType.CLUSTER, "name": "kafka-cluster"},
    {"resource_type": ResourceType.CLUSTER, "name": "kafka-cluster", "pattern_type": PatternType.PREFIXED},
    {"resource_type": ResourceType.USER, "name": "User:x"}, {"resource_type": ResourceType.DELEGATION_TOKEN},
    {"resource_type": ResourceType.TRANSACTIONAL_ID}, {"resource_type": ResourceType.GROUP},
]  # fmt: skip


def test_the_same_acls_are_accepted(real, ours):
    for changes in ENTRIES:  # one by one: in one request, Kafka fails a resource's valid ACLs along with invalid ones
        (theirs,) = real.create([acl(**changes)])
        (mine,) = ours_create(ours, [acl(**{"principal": "User:z", **changes})])
        assert (mine is None) == (theirs is None), (changes, mine, theirs)
    wait_until(lambda: rules_of(ours) == real.acls(), "one view")


def test_a_node_with_one_acl_has_the_same_bytes(real, ours, connect):
    random = Random(4)
    rules = [estates.rule(random, estates.TYPES) for _ in range(200)]
    one_each = list({(rule.resource_type, rule.resource_name, rule.pattern_type): rule for rule in rules}.values())
    assert not any(real.create(one_each))
    with zookeeper_client(connect) as client:
        nodes = {
            f"{tree.root}/{kind}/{name}": client.get(f"{tree.root}/{kind}/{name}")[0]
            for tree in TREES
            for kind in client.get_children(tree.root)
            for name in client.get_children(f"{tree.root}/{kind}")
        }
    assert len(nodes) == len(one_each)
    different = {
        (data, ours)
        for path, data in nodes.items()
        if data != (ours := encode_acls(decode_acls(data, path=path))) and rb"\u" not in data.lower()
    }
    assert not different


def test_change_events_have_the_same_bytes_in_the_same_order(real, ours, connect):
    rules = [acl(), acl(pattern_type=PatternType.PREFIXED), acl("g é:", resource_type=ResourceType.GROUP)]
    for rule in rules:
        assert real.create([rule]) == [None]
        wait_until(lambda rule=rule: rule in rules_of(ours), "the rule")
        assert ours_delete(ours, [AclBindingFilter(resource_name=rule.resource_name)]) == [{rule}]
        wait_until(lambda: real.acls() == set(), "the removal")
    with zookeeper_client(connect) as client:
        literal, extended = (
            [client.get(f"{tree.changes}/{name}")[0] for name in sorted(client.get_children(tree.changes))]
            for tree in TREES
        )
    assert literal == [b"TOPIC:orders"] * 2 + ["GROUP:g é:".encode()] * 2
    theirs, mine = extended
    assert theirs == mine


FILTERS = [
    AclBindingFilter(),
    AclBindingFilter(resource_name="foo"),
    AclBindingFilter(resource_type=ResourceType.TOPIC, resource_name="foobar", pattern_type=PatternType.MATCH),
    AclBindingFilter(resource_type=ResourceType.TOPIC, resource_name="*", pattern_type=PatternType.LITERAL),
    AclBindingFilter(resource_type=ResourceType.TOPIC, resource_name="foo", pattern_type=PatternType.ANY),
    AclBindingFilter(principal="User:a"),
    AclBindingFilter(host="10.0.0.1", operation=AclOperation.READ),
    AclBindingFilter(permission_type=2),
    AclBindingFilter(resource_type=ResourceType.GROUP, resource_name="none", pattern_type=PatternType.LITERAL),
]


@pytest.mark.parametrize("number", range(len(FILTERS)))
def test_filters_list_and_delete_the_same(real, ours, number):
    random = Random(number)
    rules = {estates.rule(random, [ResourceType.TOPIC, ResourceType.GROUP]) for _ in range(60)}
    assert not any(ours_create(ours, list(rules)))
    wait_until(lambda: real.acls() == rules, "all rules")
    wanted = FILTERS[number]
    taken = {rule.acl for rule in ours.acls(wanted)}
    assert real.acls(wanted) == taken
    half, rest = FILTERS[5], wanted
    mine = ours_delete(ours, [half, rest])
    wait_until(lambda: real.acls() == rules - mine[0] - mine[1], "the removal")
    assert not any(ours_create(ours, list(rules)))
    wait_until(lambda: real.acls() == rules, "all rules again")
    assert real.delete([half, rest]) == mine
