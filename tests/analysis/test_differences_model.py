"""The engine beside the model: every representative cell of random pairs of policies, and of queries."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.comparison import allowed, differences
from aclog.analysis.policy import Policy, deciding
from aclog.analysis.regions import Direction, Query, Request, operations_of, witness
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType
from aclog.authorizer.settings import Settings
from tests.support.analysis.cells import Cells
from tests.support.analysis.claims import wrong_differences, wrong_regions
from tests.support.analysis.model import PolicyModel
from tests.support.analysis.policies import changed_rules, image_of, random_pair
from tests.support.analysis.queries import random_query
from tests.support.builders.acls import acl
from tests.support.models.reference import ALLOWED, ReferenceAuthorizer
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


@CAMPAIGN
@given(RANDOMS)
def test_the_difference_is_exact(random: Random) -> None:
    old, new = random_pair(random, odd=5)
    found = list(differences(old, new))
    assert wrong_differences(old, new, found) == []
    told = differences(old, new, changed=[rule for _, rule in changed_rules(old, new)])
    assert set(told) == set(found)


@CAMPAIGN
@given(RANDOMS)
def test_a_part_of_the_difference_is_exact(random: Random) -> None:
    old, new = random_pair(random, odd=5)
    query = random_query(random)
    assert wrong_differences(old, new, differences(old, new, query=query), within=query) == []


@CAMPAIGN
@given(RANDOMS)
def test_what_a_policy_allows_is_exact(random: Random) -> None:
    policy, _ = random_pair(random, odd=5)
    query = random_query(random)
    assert wrong_regions(policy, query, allowed(policy, query)) == []


@CAMPAIGN
@given(RANDOMS)
def test_a_witness_lies_in_its_region_and_flips(random: Random) -> None:
    old, new = random_pair(random, odd=5)
    before, after = PolicyModel(old), PolicyModel(new)
    for each in differences(old, new):
        request = witness(each.region)
        assert request in each.region
        assert request.operation in operations_of(each.region.operations)
        gained = each.direction is Direction.GAINED
        assert (before.allows(request), after.allows(request)) == (not gained, gained)


@CAMPAIGN
@given(RANDOMS)
def test_the_deciding_rule_is_that_of_the_reference(random: Random) -> None:
    policy, other = random_pair(random)
    if any(":" not in entry.acl.principal for entry in policy.acls):
        return  # throws
    rules = [entry.acl for entry in policy.acls]
    given_ = policy.settings
    reference = ReferenceAuthorizer(
        rules, given_.super_users, given_.allow_everyone, documented=given_.documented, cidr=given_.cidr
    )
    cells = list(Cells.of(policy, other).all())
    for kind, name, principal, host in random.sample(cells, min(len(cells), 40)):
        operation = random.choice([each for each in AclOperation if each > AclOperation.ALL])
        request = Request(
            principal=principal, host=host, operation=operation, resource_type=kind, resource_name=name
        )  # fmt: skip
        decision, text = reference.decide(principal, host, operation, kind, name)
        rule = deciding(policy, request)
        assert text == (f"MatchingAcl(acl={rule})" if isinstance(rule, StandardAcl) else rule)
        assert PolicyModel(policy).allows(request) is (decision == ALLOWED)


@pytest.mark.parametrize("other", ["0.0.0.0/0", "0.0.0.0/31", "0.0.0.0/32", "fe80::1/128"])
@pytest.mark.parametrize("permission", list(AclPermissionType)[2:])
def test_no_range_contains_0_0_0_0(other: str, permission: AclPermissionType) -> None:
    rules = [
        acl("t", "User:*", "0.0.0.0", AclOperation.ALL),
        acl("t", "User:*", "0.0.0.1", AclOperation.ALL),
        acl("t", "User:*", other, AclOperation.READ, permission_type=permission),
        acl("t", "User:*", "fe80::/120", AclOperation.READ),
        acl("t", "User:*", "fe80:0:0:0:0:0:0:1", AclOperation.READ, permission_type=AclPermissionType.DENY),
        acl("u", "User:*", other, AclOperation.READ),
        acl("u", "User:*", "0.0.0.0", AclOperation.READ),
    ]
    policy = Policy(image_of(rules), Settings(cidr=True))
    assert wrong_regions(policy, Query(), allowed(policy, Query())) == []
    nothing = Policy(image_of([]), Settings(allow_everyone=True))
    assert wrong_differences(nothing, policy, differences(nothing, policy)) == []
