"""Who can and what can, beside the model and Kafka's recorded answers: all that is allowed, and by which rule."""

from collections import defaultdict
from random import Random

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy, deciding
from aclog.analysis.regions import Query, Request, only, witness
from aclog.analysis.who_can import permissions
from aclog.authorizer.codes import CLUSTER_NAME, AclOperation, ResourceType
from aclog.authorizer.settings import Settings, parse_allow_everyone, parse_super_users
from tests.support.analysis.claims import wrong_regions
from tests.support.analysis.policies import image_of, random_pair
from tests.support.analysis.queries import random_query
from tests.support.models.golden import NUMBERS, load
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


@CAMPAIGN
@given(RANDOMS)
def test_what_is_allowed_is_complete_and_has_its_reasons(random: Random) -> None:
    policy, _ = random_pair(random, odd=5, most=20)
    query = random_query(random)
    found = list(permissions(policy, query))
    assert wrong_regions(policy, query, [each.region for each in found]) == []
    for each in found:
        for part in each.region.names:
            request = witness(evolve(each.region, names=(part,)))
            assert deciding(policy, request) in each.rules, request


LARGE = {"037", "038", "045"}
"""Estates of thousands of rules, of which others are tried."""


@pytest.mark.parametrize("number", [number for number in NUMBERS if number not in LARGE])
@pytest.mark.sample(6)
def test_what_a_principal_can_is_what_kafka_allowed(number: str) -> None:
    estate = load(number)
    chosen = Settings(
        super_users=parse_super_users(estate.super_users), allow_everyone=parse_allow_everyone(estate.allow_everyone)
    )
    policy = Policy(image_of(estate.acls), chosen)
    asked = defaultdict(list)
    for request, answer in zip(estate.requests, estate.answers, strict=True):
        one_of_13 = request.operation > AclOperation.ALL and request.resource_type > ResourceType.ANY
        if request.resource_name and one_of_13 and answer.letter in "AD":
            asked[request.principal].append((request, answer))
    for principal, requests in asked.items():
        found = list(permissions(policy, Query(principals=only(principal))))
        for request, answer in requests:
            if request.resource_type == ResourceType.CLUSTER and request.resource_name != CLUSTER_NAME:
                continue
            one = Request(
                principal=principal,
                host=request.host,
                operation=request.operation,
                resource_type=request.resource_type,
                resource_name=request.resource_name or "",
            )
            giving = {rule for each in found if one in each.region for rule in each.rules}
            assert bool(giving) is (answer.letter == "A"), one
            texts = {rule if isinstance(rule, str) else f"MatchingAcl(acl={rule})" for rule in giving}
            assert not giving or answer.rule in texts, one
