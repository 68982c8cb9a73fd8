"""What is recorded of a policy: it holds, and any other decision fails it."""

from collections.abc import Iterator
from random import Random

import pytest
from attrs import evolve

from aclog.analysis.comparison import differences
from aclog.analysis.policy import Policy
from aclog.analysis.rule_tests.expectations import CanOnly
from aclog.analysis.rule_tests.recording import recorded
from aclog.authorizer.acl import FileOrigin, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from tests.support.analysis.policies import ADDRESSES, RANGES, distinct, image_of, random_rule, random_settings

ORIGIN = FileOrigin(file="recorded.yaml", line=1)


def cases_of(policy: Policy) -> list[CanOnly]:
    return [CanOnly(test="", origin=ORIGIN, subject=each.subject, listed=each.listed) for each in recorded(policy)]


def random_policy(random: Random, *, most: int = 16) -> Policy:
    cidr = random.random() < 0.4
    rules = distinct([random_rule(random, cidr=cidr) for _ in range(random.randint(1, most))])
    return Policy(image_of(rules), random_settings(random, cidr=cidr, plain=0.4))


def mutants(rules: list[StandardAcl]) -> Iterator[tuple[str, list[StandardAcl]]]:
    """Each rule removed, flipped, and widened in every direction."""
    for rule in rules:
        rest = [each for each in rules if each != rule]
        yield "removed", rest
        for changed in changes(rule):
            if changed not in rest:
                yield f"{rule} -> {changed}", distinct([*rest, changed])


def changes(rule: StandardAcl) -> Iterator[StandardAcl]:
    deny = rule.permission_type != AclPermissionType.ALLOW
    yield evolve(rule, permission_type=AclPermissionType.ALLOW if deny else AclPermissionType.DENY)
    yield evolve(rule, host="*")
    yield from (evolve(rule, host=host) for host in (ADDRESSES[1], RANGES[0]))
    yield evolve(rule, principal="User:*")
    yield evolve(rule, principal="User:new")
    yield evolve(rule, operation=AclOperation.ALL)
    yield evolve(rule, pattern_type=PatternType.PREFIXED)
    yield evolve(rule, resource_name="*", pattern_type=PatternType.LITERAL)
    yield evolve(rule, resource_name=rule.resource_name[:-1] or "z", pattern_type=PatternType.PREFIXED)
    yield evolve(rule, resource_name=rule.resource_name + "z")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sample(3)
def test_it_holds_and_every_other_decision_fails_it(seed: int) -> None:
    random = Random(f"recorded {seed}")
    policy = random_policy(random)
    cases = cases_of(policy)
    assert not [(case.text, failure.actual) for case in cases for failure in case.run(policy).failures]
    rules = [entry.acl for entry in policy.acls]
    counted = 0
    for name, changed in mutants(rules):
        mutant = Policy(image_of(changed), policy.settings)
        differs = any(True for _ in differences(policy, mutant))
        counted += differs
        killed = any(not case.run(mutant).passed for case in cases)
        assert killed is differs, (name, policy.settings)
    assert counted
