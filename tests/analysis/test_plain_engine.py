"""The engine beside a plain one that evaluates each principal with all cells of `User:*`, on every class of hosts."""

from functools import partial
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.comparison import allowed, denied, differences
from aclog.analysis.engine.host_classes import mask_of, partition, runs_of
from aclog.analysis.policy import Policy
from aclog.analysis.regions import EVERYONE, Literal, Query, Subtree, everyone_but, only
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from tests.support.analysis import naive_engine
from tests.support.analysis.policies import ADDRESSES, NO_ADDRESSES, RANGES, image_of, random_pair
from tests.support.analysis.queries import random_query
from tests.support.builders.acls import acl
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


@CAMPAIGN
@given(RANDOMS)
def test_a_difference_is_that_of_the_plain_engine(random: Random) -> None:
    old, new = random_pair(random, odd=5, most=random.choice([4, 12, 40]))
    query = random_query(random)
    for restriction in (Query(), query):
        plain = naive_engine.naive_differences(old, new, restriction)
        assert list(differences(old, new, query=restriction)) == plain


@CAMPAIGN
@given(RANDOMS)
def test_what_a_policy_allows_and_denies_is_that_of_the_plain_engine(random: Random) -> None:
    policy, _ = random_pair(random, odd=5, most=random.choice([4, 12, 40]))
    query = random_query(random)
    assert list(allowed(policy, query)) == naive_engine.naive_allowed(policy, query)
    assert list(denied(policy, query)) == naive_engine.naive_denied(policy, query)


@CAMPAIGN
@given(RANDOMS)
def test_the_regions_of_unnamed_principals_are_those_of_the_whole_answer(random: Random) -> None:
    old, new = random_pair(random, odd=5, most=random.choice([4, 12, 40]))
    query = random_query(random)
    assert set(allowed(new, query, unnamed=True)) == {
        region for region in allowed(new, query) if region.principals.complement
    }
    assert set(differences(old, new, query=query, unnamed=True)) == {
        each for each in differences(old, new, query=query) if each.region.principals.complement
    }


@CAMPAIGN
@given(st.sets(st.sampled_from([*ADDRESSES, *RANGES, *NO_ADDRESSES])), st.booleans(), RANDOMS)
def test_a_partition_is_that_of_the_plain_engine(hosts: set[str], cidr: bool, random: Random) -> None:
    classes, plain = partition(hosts, cidr=cidr), naive_engine.partition(hosts, cidr=cidr)
    assert classes.count == plain.count
    for host in (*hosts, "*", "192.0.2.1"):
        assert classes.matched(host, cidr=cidr) == plain.matched(host, cidr=cidr)
    for mask in (0, (1 << classes.count) - 1, *(random.randrange(1 << classes.count) for _ in range(8))):
        assert classes.hosts(mask) == plain.hosts(mask)
        assert mask_of(runs_of(mask)) == mask
        for each in classes.hosts(mask):
            assert classes.classes_of(each) == plain.classes_of(each)


def _estate(principals: int, rules: list[StandardAcl]) -> Policy:
    own = (acl(f"own-{number}", f"User:u{number}") for number in range(principals))
    return Policy(image_of([*rules, *own]))


def test_a_principal_that_repeats_what_everyone_may_do_shares_the_answer() -> None:
    everyone = [acl(f"t{number}", "User:*") for number in range(3)]
    policy = _estate(2, [*everyone, acl("t1", "User:same")])
    (region,) = (region for region in allowed(policy, Query(), unnamed=True))
    assert region.principals == EVERYONE
    assert list(allowed(policy, Query())) == naive_engine.naive_allowed(policy, Query())


@pytest.mark.parametrize("count", [3, 40], ids=["small tree", "ground"])
def test_a_principal_with_more_shares_everyones_region_and_has_one_for_the_rest(count: int) -> None:
    describe = partial(acl, operation=AclOperation.DESCRIBE)
    everyone = [describe(f"t{number:02}", "User:*") for number in range(count)]
    own = [describe("t0", "User:more", pattern_type=PatternType.PREFIXED), describe("other", "User:more")]
    denied_one = [describe("t01", "User:less", permission_type=AclPermissionType.DENY)]
    policy = Policy(image_of([*everyone, *own, *denied_one]))
    names = tuple(Literal(name=f"t{number:02}") for number in range(count))
    assert {(each.principals, each.names) for each in allowed(policy, Query())} == {
        (everyone_but("User:less"), names),
        (only("User:less"), (names[0], *names[2:])),
        (only("User:more"), (Literal(name="other"), Subtree(prefix="t0"))),
    }
