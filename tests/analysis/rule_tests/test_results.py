"""Coverage and mutants beside brute force: every cell looked at, every case run on every mutant."""

from random import Random

from attrs import evolve
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy, deciding, is_allowed
from aclog.analysis.regions import Request
from aclog.analysis.rule_tests.case import changed_policy, with_ids
from aclog.analysis.rule_tests.expectations import (
    Can,
    Cannot,
    CanOnly,
    Decides,
    Reason,
    WhoCan,
    parse_rule_text,
    rule_text,
)
from aclog.analysis.rule_tests.recording import recorded
from aclog.analysis.rule_tests.results import coverage, mutant_count, mutants, mutation_results, nearest_change
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.authorizer.settings import Settings
from tests.analysis.rule_tests.test_case import PLACE, random_operations, random_resource, random_subject
from tests.support.analysis.cells import Cells
from tests.support.analysis.claims import asked_operations
from tests.support.analysis.model import EVERY_OPERATION, PolicyModel
from tests.support.analysis.policies import image_of, random_pair
from tests.support.builders.acls import acl
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


def random_cases(random: Random, policy: Policy):
    """Cases that hold."""
    for _ in range(random.randint(0, 8)):
        common = {"subject": random_subject(random), "resource": random_resource(random), **PLACE}
        operation = random.choice([AclOperation.READ, AclOperation.DESCRIBE, AclOperation.WRITE])
        if common["subject"].principal != "User:*" and common["resource"].pattern_type == PatternType.LITERAL:
            request = Request(
                principal=common["subject"].principal,
                host=common["subject"].host or "10.9.9.9",
                operation=operation,
                resource_type=common["resource"].resource_type,
                resource_name=common["resource"].name,
            )
            decision = "ALLOWED" if is_allowed(policy, request) else "DENIED"
            yield Decides(request=request, decision=decision, **PLACE)
            rule = deciding(policy, request)
            if rule is not None:
                expected = parse_rule_text(rule_text(rule))
                yield Reason(operation=operation, expected=expected, **common)
        mask = random.choice([1 << operation, random_operations(random)])
        yield from (kind(operations=mask, **common) for kind in (Can, Cannot))
        yield WhoCan(operations=mask, resource=common["resource"], expected=("User:a",), **PLACE)


@CAMPAIGN
@given(RANDOMS)
@example(random=Random(1385))  # a DENY for everybody becomes the reason of what nobody was allowed before
def test_a_mutant_survives_exactly_if_every_case_holds_with_it(random: Random) -> None:
    policy = with_ids(random_pair(random, odd=0, most=7)[0])
    cases = [case for case in random_cases(random, policy) if case.run(policy).passed]
    results = list(mutation_results(policy, cases))
    expected = []
    before = PolicyModel(policy)
    for rule in sorted((entry.acl for entry in policy.acls), key=str):
        for mutant in mutants(rule):
            changes = [RuleChange(added=False, acl=rule)]
            if mutant.becomes is not None and policy.acls.find(mutant.becomes) is None:
                changes.append(RuleChange(added=True, acl=mutant.becomes))
            changed = changed_policy(policy, changes)
            after = PolicyModel(changed)
            differs = any(
                before.allowed(principal, host, kind, name) != after.allowed(principal, host, kind, name)
                for kind, name, principal, host in Cells.of(policy, changed).all()
            )
            expected.append(any(not case.run(changed).passed for case in cases) if differs else None)
    assert [None if each is None else each.killed for each in results] == expected
    assert len(results) == mutant_count(policy)


@CAMPAIGN
@given(RANDOMS)
def test_what_is_recorded_kills_every_mutant(random: Random) -> None:
    policy = with_ids(random_pair(random, odd=0, most=10)[0])
    cases = [CanOnly(subject=each.subject, listed=each.listed, **PLACE) for each in recorded(policy)]
    assert all(case.run(policy).passed for case in cases)
    assert [each.mutant for each in mutation_results(policy, cases) if each is not None and not each.killed] == []


def spoken_of(rule: StandardAcl, cidr: bool) -> tuple[PolicyModel, int]:
    """A model of one rule as an ALLOW, and the operations of which it speaks: a DENY implies none."""
    alone = image_of([evolve(rule, permission_type=AclPermissionType.ALLOW)])
    every = rule.operation == AclOperation.ALL or rule.permission_type == AclPermissionType.ALLOW
    return PolicyModel(Policy(alone, Settings(cidr=cidr))), EVERY_OPERATION if every else 1 << rule.operation


@CAMPAIGN
@given(RANDOMS)
def test_a_rule_is_covered_exactly_if_it_matches_a_request_of_a_case(random: Random) -> None:
    policy = random_pair(random, odd=0, most=8)[0]
    policy = Policy(policy.acls, evolve(policy.settings, documented=False))
    kinds = random.choices([Can, Cannot], k=random.randint(0, 3))
    asked = [
        {
            "subject": random_subject(random),
            "operations": random_operations(random),
            "resource": random_resource(random),
        }
        for _ in kinds
    ]
    cases = [kind(**each, **PLACE) for kind, each in zip(kinds, asked, strict=True)]
    cells = Cells.of(policy)
    for case in cases:
        cells.named[case.resource.resource_type].add(case.resource.name)
        cells.named_principals |= {case.subject.principal, *case.subject.but} - {"User:*"}
        cells.named_hosts |= {case.subject.host} - {None}
    queries = [query for case in cases for query in case.queries(policy.settings)]
    requests = [
        (kind, name, principal, host, mask)
        for kind, name, principal, host in cells.all()
        for query in queries
        if (mask := asked_operations(query, kind, name, principal, host))
    ]
    uncovered = set()
    for rule in (entry.acl for entry in policy.acls):
        model, operations = spoken_of(rule, policy.settings.cidr)
        if not any(
            model.allowed(principal, host, kind, name) & operations & mask
            for kind, name, principal, host, mask in requests
        ):
            uncovered.add(rule)
    found = coverage(policy, cases)
    assert (found.rules, set(found.uncovered)) == (len(policy.acls), uncovered)


@CAMPAIGN
@given(RANDOMS)
def test_a_change_that_is_offered_makes_what_was_recorded_hold_again(random: Random) -> None:
    policy = with_ids(random_pair(random, odd=0, most=10)[0])
    policy = Policy(policy.acls, evolve(policy.settings, allow_everyone=False))
    cases = [CanOnly(subject=each.subject, listed=each.listed, **PLACE) for each in recorded(policy)]
    for rule in [entry.acl for entry in policy.acls if entry.acl.permission_type == AclPermissionType.ALLOW]:
        changed = changed_policy(policy, [RuleChange(added=False, acl=rule)])
        for case in cases:
            if not case.run(changed).passed:
                changes = nearest_change(case, changed)
                assert not changes or case.run(changed_policy(changed, changes)).passed


def test_the_nearest_change_undoes_a_rule_too_many_or_too_few():
    kept, other = acl("orders", "User:a"), acl("pay", "User:a", "10.0.0.1")
    small, large = (Policy(image_of(rules)) for rules in ([kept], [kept, other]))
    for before, after, added in (small, large, False), (large, small, True):
        (own, _) = recorded(before)
        case = CanOnly(subject=own.subject, listed=own.listed, **PLACE)
        assert nearest_change(case, after) == (RuleChange(added=added, acl=other),)
