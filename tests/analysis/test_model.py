"""The model that judges the engine, beside the authorizer; and the judge itself, beside wrong claims."""

from random import Random

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Difference, Direction, Hosts, Literal, Subtree, only
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from tests.support.analysis.cells import Cells
from tests.support.analysis.claims import wrong_differences
from tests.support.analysis.differ import brute_force
from tests.support.analysis.model import EVERY_OPERATION, PolicyModel
from tests.support.analysis.policies import random_pair
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


def authorized(policy: Policy, principal: str, host: str, kind: int, name: str) -> int:
    """The operations that the authorizer allows, as a mask; none where it throws."""
    context = RequestContext(principal=principal, host=host)
    mask = 0
    for operation in AclOperation:
        if EVERY_OPERATION >> operation & 1:
            action = Action(operation=operation, resource_pattern=ResourcePattern(resource_type=kind, name=name))
            try:
                allowed = policy.authorizer.authorize(context, [action]) == [AuthorizationResult.ALLOWED]
            except InvalidRequestError:
                allowed = False
            mask |= allowed << operation
    return mask


@CAMPAIGN
@given(RANDOMS)
def test_the_model_decides_as_the_authorizer(random: Random) -> None:
    policies = random_pair(random, odd=10)
    cells = list(Cells.of(*policies).all())
    for policy in policies:
        model = PolicyModel(policy)
        for kind, name, principal, host in random.sample(cells, min(len(cells), 200)):
            expected = authorized(policy, principal, host, kind, name)
            assert model.allowed(principal, host, kind, name) == expected, (principal, host, kind, name)


@CAMPAIGN
@given(RANDOMS)
def test_the_stand_in_is_exact_and_less_is_not(random: Random) -> None:
    old, new = random_pair(random, most=6)
    if old.settings.cidr or new.settings.cidr:
        return
    found = list(brute_force(old, new))
    assert wrong_differences(old, new, found) == []
    if found:
        left_out = random.choice(found)
        assert wrong_differences(old, new, [each for each in found if each != left_out])


def _an_allow() -> tuple[Policy, Policy, Difference]:
    """Two policies with exactly one difference."""
    random = Random(1)
    while True:
        old, new = random_pair(random, most=2, odd=0)
        if not old.settings.cidr and not new.settings.cidr:
            found = list(brute_force(old, new))
            if len(found) == 1 and isinstance(found[0].region.names[0], Subtree) and found[0].region.principals.named:
                return old, new, found[0]


@pytest.mark.parametrize("fault", ["direction", "operation", "principal", "hosts", "name", "exception"])
def test_a_wrong_claim_is_seen(fault: str) -> None:
    old, new, right = _an_allow()
    region = right.region
    part = region.names[0]
    assert isinstance(part, Subtree)
    with_a_hole = evolve(part, except_literals=(*part.except_literals, part.prefix + "q"))
    other = {Direction.GAINED: Direction.LOST, Direction.LOST: Direction.GAINED}
    wrong = {
        "direction": evolve(right, direction=other[right.direction]),
        "operation": evolve(right, region=evolve(region, operations=region.operations & region.operations - 1)),
        "principal": evolve(right, region=evolve(region, principals=only("User:nobody"))),
        "hosts": evolve(right, region=evolve(region, hosts=Hosts(entries=("192.0.2.1",), complement=True))),
        "name": evolve(right, region=evolve(region, names=(*region.names, Literal(name="zz")))),
        "exception": evolve(right, region=evolve(region, names=(with_a_hole,))),
    }
    assert wrong_differences(old, new, [right]) == []
    assert wrong_differences(old, new, [wrong[fault]])
