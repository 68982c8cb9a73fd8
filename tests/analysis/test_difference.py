"""The engine: exact differences and exact answers, judged cell by cell by a model written apart."""

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.comparison import allowed, differences
from aclog.analysis.policy import Policy, deciding
from aclog.analysis.regions import (
    EVERYONE,
    EVERYWHERE,
    REQUESTED,
    Difference,
    Direction,
    Hosts,
    Literal,
    Query,
    Region,
    Subtree,
    everyone_but,
    only,
    witness,
)
from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from tests.support.analysis.claims import wrong_differences, wrong_regions
from tests.support.analysis.policies import ADDRESSES, NAMES, PRINCIPALS, image_of, random_pair
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
READ, WRITE, DESCRIBE = (1 << code for code in (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE))


def rule(
    name: str,
    principal: str = "User:a",
    *,
    prefixed: bool = False,
    operation: AclOperation = AclOperation.READ,
    deny: bool = False,
    host: str = "*",
) -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
    )


def policy(*rules: StandardAcl, **options: bool | frozenset[str]) -> Policy:
    return Policy(image_of(rules), Settings(**options))  # type: ignore[arg-type]


def topics(direction: Direction, operations: int, **sets: object) -> Difference:
    region = {"principals": only("User:a"), "hosts": EVERYWHERE} | sets
    return Difference(
        direction=direction,
        region=Region(resource_type=ResourceType.TOPIC, operations=operations, **region),  # type: ignore[arg-type]
    )


def found(old: Policy, new: Policy) -> list[Difference]:
    differing = list(differences(old, new))
    assert wrong_differences(old, new, differing) == []
    return differing


@CAMPAIGN
@given(RANDOMS)
def test_differences_are_exact(random: Random) -> None:
    old, new = random_pair(random, most=random.choice([6, 12, 25]), odd=random.choice([0, 3, 10]))
    found(old, new)


@CAMPAIGN
@given(RANDOMS)
def test_answers_to_queries_are_exact(random: Random) -> None:
    old, new = random_pair(random, odd=random.choice([0, 3, 10]))
    query = random_query(random)
    assert wrong_differences(old, new, differences(old, new, query=query), within=query) == []
    assert wrong_regions(new, query, allowed(new, query)) == []


def random_query(random: Random) -> Query:
    resources = (
        ResourcePattern(
            resource_type=random.choice([2, 2, 3, 4, 7]),
            name=random.choice([*NAMES, ""]),
            pattern_type=random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        )
        for _ in range(random.randint(1, 3))
    )
    some = random.sample(PRINCIPALS[:6], 2)
    return Query(
        resources=tuple(resources),
        operations=random.choice([REQUESTED, READ, WRITE | DESCRIBE]),
        principals=random.choice([EVERYONE, only(*some), everyone_but(*some)]),
        host=random.choice([None, None, *ADDRESSES]),
    )


@CAMPAIGN
@given(RANDOMS)
def test_a_witness_lies_in_its_region_and_its_decision_flips(random: Random) -> None:
    old, new = random_pair(random)
    for each in differences(old, new):
        request = witness(each.region)
        assert request in each.region
        reasons = deciding(old, request), deciding(new, request)
        allows = [reason is not None and _allows(reason) for reason in reasons]
        assert allows == [each.direction is Direction.LOST, each.direction is Direction.GAINED]


def _allows(reason: StandardAcl | str) -> bool:
    if isinstance(reason, str):
        return reason in ("SuperUser", "DefaultAllow")
    return reason.permission_type == AclPermissionType.ALLOW


@CAMPAIGN
@given(RANDOMS)
def test_rules_that_are_known_to_differ_need_no_comparison(random: Random) -> None:
    old, new = random_pair(random)
    before, after = ({entry.acl for entry in each.acls} for each in (old, new))
    assert list(differences(old, new, changed=before ^ after)) == list(differences(old, new))


def test_an_operation_comes_with_those_it_implies() -> None:
    assert found(policy(), policy(rule("t"))) == [
        topics(Direction.GAINED, READ | DESCRIBE, names=(Literal(name="t"),)),
    ]


def test_what_was_allowed_before_is_not_gained() -> None:
    old, new = policy(rule("t")), policy(rule("t"), rule("t", operation=AclOperation.WRITE))
    assert found(old, new) == [topics(Direction.GAINED, WRITE, names=(Literal(name="t"),))]


def test_a_rule_that_another_one_covers_changes_nothing() -> None:
    old = policy(rule("a", prefixed=True))
    assert found(old, policy(rule("a", prefixed=True), rule("abc"))) == []


def test_a_prefix_leaves_out_what_a_deny_takes() -> None:
    denied = rule("orders.pii.", prefixed=True, deny=True, operation=AclOperation.ALL)
    assert found(policy(denied), policy(denied, rule("orders.", prefixed=True))) == [
        topics(
            Direction.GAINED,
            READ | DESCRIBE,
            names=(Subtree(prefix="orders.", except_prefixes=("orders.pii.",)),),
        )
    ]


def test_literals_fold_up_into_the_prefix_above() -> None:
    """User:a reads two topics already: with the prefix it gains all others."""
    old = policy(rule("a.1"), rule("a.2"))
    assert found(old, policy(rule("a.1"), rule("a.2"), rule("a.", prefixed=True))) == [
        topics(
            Direction.GAINED,
            READ | DESCRIBE,
            names=(Subtree(prefix="a.", except_literals=("a.1", "a.2")),),
        )
    ]


def test_principals_with_the_same_change_are_one_region() -> None:
    users = [f"User:{n}" for n in range(5)]
    assert found(policy(), policy(*(rule("t", user) for user in users))) == [
        topics(Direction.GAINED, READ | DESCRIBE, names=(Literal(name="t"),), principals=only(*users)),
    ]


def test_everyone_is_one_region_but_for_those_who_had_it() -> None:
    had = rule("t", "User:b")
    assert found(policy(had), policy(had, rule("t", "User:*"))) == [
        topics(Direction.GAINED, READ | DESCRIBE, names=(Literal(name="t"),), principals=everyone_but("User:b")),
    ]


def test_a_super_user_loses_nothing_to_a_deny() -> None:
    everything = rule("*", "User:*", deny=True, operation=AclOperation.ALL)
    had, users = rule("t", "User:root"), frozenset({"User:root"})
    assert found(policy(had, super_users=users), policy(had, everything, super_users=users)) == []


def test_a_new_super_user_gains_all_but_what_it_had() -> None:
    old, new = policy(rule("t")), policy(rule("t"), super_users=frozenset({"User:a"}))
    on_topics = [each.region for each in found(old, new) if each.region.resource_type == ResourceType.TOPIC]
    assert {(each.operations, each.names) for each in on_topics} == {
        (READ | DESCRIBE, (Subtree(prefix="", except_literals=("t",)),)),
        (REQUESTED & ~(READ | DESCRIBE), (Subtree(prefix=""),)),
    }


def test_the_first_rule_on_an_open_resource_closes_it_to_all_others() -> None:
    changed = found(policy(allow_everyone=True), policy(rule("t"), allow_everyone=True))
    lost = [each.region for each in changed if each.direction is Direction.LOST]
    assert len(lost) == len(changed)
    assert {each.principals for each in lost} == {EVERYONE, everyone_but("User:a")}
    assert {each.names for each in lost} == {(Literal(name="t"),)}


def test_opening_to_everyone_opens_what_no_rule_covers() -> None:
    rules = rule("a.", prefixed=True), rule("t")
    opened = [
        each.region
        for each in found(policy(*rules), policy(*rules, allow_everyone=True))
        if each.region.resource_type == ResourceType.TOPIC
    ]
    assert [(each.principals, each.operations, each.names) for each in opened] == [
        (EVERYONE, REQUESTED, (Subtree(prefix="", except_prefixes=("a.",), except_literals=("t",)),)),
    ]


def test_a_wildcard_does_not_cover_longer_names_that_begin_with_a_star() -> None:
    every = rule("*", "User:a")
    assert [each.region.names for each in found(policy(), policy(every))] == [
        (Subtree(prefix="", except_prefixes=("*",)), Literal(name="*")),
    ]
    assert [each.region.names for each in found(policy(documented=True), policy(every, documented=True))] == [
        (Subtree(prefix=""),),
    ]


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (["10.0.0.0/30"], Hosts(entries=("10.0.0.0/30",))),
        (["10.0.0.0/30", "10.0.0.4/30"], Hosts(entries=("10.0.0.0/29",))),
        (["10.0.0.1", "10.0.0.1/32"], Hosts(entries=("10.0.0.1",))),
        (["fe80::/10"], Hosts(entries=("fe80::/10",))),
        # No range contains 0.0.0.0, so one that begins there is all the others.
        (["0.0.0.0/0"], Hosts(entries=("0.0.0.0/0",))),
        (["0.0.0.0/8"], Hosts(entries=("0.0.0.0/8",))),
        (["0.0.0.0/0", "0.0.0.0"], Hosts(entries=("0.0.0.0", "0.0.0.0/0"))),
        (["0.0.0.0/31"], Hosts(entries=("0.0.0.1",))),
        (["0.0.0.0/30"], Hosts(entries=("0.0.0.0/30",))),
        (["0.0.0.1", "0.0.0.2"], Hosts(entries=("0.0.0.1", "0.0.0.2"))),
    ],
)
def test_ranges_count_where_they_are_enabled(hosts: Iterable[str], expected: Hosts) -> None:
    rules = [rule("t", host=host) for host in hosts]
    assert [each.region.hosts for each in found(policy(cidr=True), policy(*rules, cidr=True))] == [expected]
    if all("/" in host for host in hosts):
        assert found(policy(), policy(*rules)) == []


def test_enabling_ranges_is_a_change_of_the_rules_that_have_one() -> None:
    rules = rule("t", host="10.0.0.0/8"), rule("u")
    assert [each.region.names for each in found(policy(*rules), policy(*rules, cidr=True))] == [(Literal(name="t"),)]


def test_an_address_with_a_scope_is_told_apart_from_the_range_around_it() -> None:
    scoped = "fe80:0:0:0:0:0:0:1%1"
    rules = rule("t", host="fe80::/10"), rule("t", host=scoped, deny=True)
    assert [each.region.hosts for each in found(policy(cidr=True), policy(*rules, cidr=True))] == [
        Hosts(entries=("fe80::/10",)),  # DESCRIBE, which a DENY of READ leaves alone
        Hosts(entries=("fe80::/10",), except_addresses=(scoped,)),
    ]


def test_where_kafka_throws_nobody_is_allowed() -> None:
    colonless = rule("t", "nobody")
    assert [each.direction for each in found(policy(rule("t")), policy(rule("t"), colonless))] == [Direction.LOST]


@pytest.mark.parametrize("name", ["kafka-cluster", "*"])
def test_the_cluster_has_one_name(name: str) -> None:
    on_cluster = StandardAcl(
        resource_type=ResourceType.CLUSTER,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal="User:a",
        host="*",
        operation=AclOperation.CREATE,
        permission_type=AclPermissionType.ALLOW,
    )
    assert [each.region.names for each in found(policy(), policy(on_cluster))] == [(Literal(name="kafka-cluster"),)]


def test_a_name_is_in_a_region_once() -> None:
    denied = policy(rule("ab"), rule("ab", "User:*", deny=True), rule("a", prefixed=True))
    found = [each.region.names for each in differences(policy(rule("ab")), denied) if each.direction is Direction.LOST]
    assert found == [(Literal(name="ab"),)]
