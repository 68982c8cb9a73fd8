"""Cases beside a model that looks at every rule, over a member of each class of principals, hosts and names."""

from random import Random

from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy, deciding, is_allowed
from aclog.analysis.regions import Query
from aclog.analysis.rule_tests.case import CaseSubject, changed_policy, parse_resource
from aclog.analysis.rule_tests.expectations import Can, Cannot, WhoCan
from aclog.analysis.rule_tests.results import nearest_change
from aclog.authorizer.acl import FileOrigin, ResourcePattern, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType, is_legal_topic
from aclog.authorizer.settings import Settings
from tests.support.analysis.cells import Cells
from tests.support.analysis.claims import asked_operations
from tests.support.analysis.model import EVERY_OPERATION, PolicyModel
from tests.support.analysis.policies import ADDRESSES, NAMES, image_of, random_pair
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
PLACE = {"test": "t", "origin": FileOrigin(file="t.yaml", line=1)}


def random_subject(random: Random) -> CaseSubject:
    who = random.choice(["User:a", "User:b", "User:c", "User:nobody", "User:*"])
    but = tuple(random.sample(["User:a", "User:b"], random.randrange(2))) if who == "User:*" else ()
    return CaseSubject(principal=who, but=but, host=random.choice([None, *ADDRESSES]))


def random_resource(random: Random, kind: ResourceType | None = None) -> ResourcePattern:
    kind = kind or random.choice([ResourceType.TOPIC] * 3 + [ResourceType.GROUP, ResourceType.CLUSTER])
    if kind == ResourceType.CLUSTER:
        return parse_resource("cluster")
    return ResourcePattern(
        resource_type=kind,
        name=random.choice(NAMES),
        pattern_type=random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
    )


def random_operations(random: Random) -> int:
    return random.choice([EVERY_OPERATION, 1 << AclOperation.READ, random.getrandbits(16) & EVERY_OPERATION or 8])


def asked_cells(policy: Policy, query: Query):
    """What of each class is asked for, and what of that is allowed."""
    model, cells = PolicyModel(policy), Cells.of(policy)
    for resource in query.resources:
        cells.named[resource.resource_type].add(resource.name)
    cells.named_principals |= {*query.principals.named}
    cells.named_hosts |= {query.host} - {None}
    for kind, name, principal, host in cells.all():
        asked = asked_operations(query, kind, name, principal, host)
        if asked:
            yield kind, name, asked, model.allowed(principal, host, kind, name) & asked


def counts(resource: ResourcePattern, name: str) -> bool:
    """Whether `can` is about a name: that of a topic must be legal, unless no name that is asked for is."""
    if resource.resource_type != ResourceType.TOPIC:
        return True
    longer = resource.pattern_type == PatternType.PREFIXED
    return is_legal(name) or not is_legal(resource.name + "x" * longer)


def is_legal(name: str) -> bool:
    # The model's names end in a character that no topic may have: any other one is as good.
    return is_legal_topic(name.replace("\uf8ff", "x"))


def test_a_topic_that_cannot_exist_does_not_pass_for_want_of_names() -> None:
    policy = Policy(image_of([]))
    for name, pattern in (("bill in", PatternType.LITERAL), ("*", PatternType.LITERAL), ("é", PatternType.PREFIXED)):
        resource = ResourcePattern(resource_type=ResourceType.TOPIC, name=name, pattern_type=pattern)
        case = Can(subject=CaseSubject(principal="User:a"), operations=EVERY_OPERATION, resource=resource, **PLACE)
        (failure,) = case.run(policy).failures
        assert "not a legal topic name" in failure.actual


def test_the_name_star_is_among_all_names_and_longer_ones_that_begin_so_are_not() -> None:
    policy = Policy(image_of([star_closed()]), Settings(allow_everyone=True))
    case = Can(
        subject=CaseSubject(principal="User:a"),
        operations=1 << AclOperation.READ,
        resource=parse_resource("group:*"),
        **PLACE,
    )
    (failure,) = case.run(policy).failures
    assert failure.request.resource_name == "*"


def star_closed() -> StandardAcl:
    """Return a rule that closes names which begin with a star, where all without rules are open."""
    return StandardAcl(
        resource_type=ResourceType.GROUP,
        resource_name="*",
        pattern_type=PatternType.PREFIXED,
        principal="User:b",
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )


@CAMPAIGN
@given(RANDOMS)
def test_can_and_cannot_hold_exactly_if_they_hold_in_every_cell(random: Random) -> None:
    policy, _ = random_pair(random, odd=4, most=14)
    subject, operations, resource = random_subject(random), random_operations(random), random_resource(random)
    case = {"subject": subject, "operations": operations, "resource": resource, **PLACE}
    (query,) = Can(**case).queries(policy.settings)
    cells = list(asked_cells(policy, query))
    can, cannot = Can(**case).run(policy), Cannot(**case).run(policy)
    assert can.passed is all(asked == allowed for _, name, asked, allowed in cells if counts(resource, name))
    assert cannot.passed is not any(allowed for _, _, _, allowed in cells)
    for outcome, verdict in (can, False), (cannot, True):
        for failure in outcome.failures:
            assert is_allowed(policy, failure.request) is verdict
            assert failure.decided_by == deciding(policy, failure.request)


@CAMPAIGN
@given(RANDOMS)
def test_the_nearest_change_makes_a_case_hold(random: Random) -> None:
    policy, _ = random_pair(random, odd=0, most=14)
    case = {"subject": random_subject(random), "operations": random_operations(random)}
    case |= {"resource": random_resource(random), **PLACE}
    for each in Can(**case), Cannot(**case):
        if not each.run(policy).passed:
            changes = nearest_change(each, policy)
            for left_out in changes if len(changes) > 1 else ():
                less = [change for change in changes if change != left_out]
                assert not each.run(changed_policy(policy, less)).passed
            assert not changes or each.run(changed_policy(policy, changes)).passed


@CAMPAIGN
@given(RANDOMS)
def test_who_can_is_exactly_those_who_can(random: Random) -> None:
    policy, _ = random_pair(random, odd=3, most=14)
    operation, resource = 1 << random.choice([AclOperation.READ, AclOperation.DESCRIBE]), random_resource(random)
    model, cells = PolicyModel(policy), Cells.of(policy)
    cells.named[resource.resource_type].add(resource.name)
    host = random.choice([None, *ADDRESSES])
    cells.named_hosts |= {host} - {None}
    query = Query(resources=(resource,), operations=operation, host=host)
    able, unable = set(), set()
    for kind, name, principal, address in cells.all():
        asked = asked_operations(query, kind, name, principal, address)
        if asked and principal not in policy.settings.super_users:
            (able if model.allowed(principal, address, kind, name) & asked else unable).add(principal)
    strangers = {each for each in able if each.endswith(":somebody-else")}
    expected = {"User:*", *(f"not {each}" for each in unable - able)} if strangers else able
    case = WhoCan(operations=operation, resource=resource, expected=tuple(expected), host=host, **PLACE)
    assert case.run(policy).passed, case.run(policy).failures
    for one in expected:
        less = evolve(case, expected=tuple(expected - {one}))
        assert not less.run(policy).passed
    more = evolve(case, expected=(*expected, "User:nobody-at-all"))
    assert not more.run(policy).passed
