"""The order of a change, and which resource patterns overlap, beside plain definitions."""

from itertools import groupby, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import ResourcePattern, StandardAcl, resource_of
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.planning.plan import Batching, PatternSet, Stage, Step, overlapping
from aclog.planning.planner import ordered
from tests.support.builders.acls import acl
from tests.support.planning.changes import random_change

RANDOMS = st.integers(0, 2**32 - 1).map(Random)
DENY = AclPermissionType.DENY
PREFIXED = PatternType.PREFIXED
NAMES = ["a", "ab", "abc", "b", "*", "*a", "*ab", "", "ac", "B", "é"]


def adding(*acls: StandardAcl) -> list[RuleChange]:
    return [RuleChange(added=True, acl=each) for each in acls]


def acls_of(steps: tuple[Step, ...]) -> list[StandardAcl]:
    return [step.acl for step in steps]


def test_denies_come_first_and_go_last() -> None:
    come, gone = acl("a", permission_type=DENY), acl("b", permission_type=DENY)
    changes = [
        RuleChange(added=False, acl=gone),
        RuleChange(added=False, acl=acl("b")),
        *adding(acl("a"), come),
    ]
    for batching in Batching.ALL, Batching.RULE:
        steps = ordered(changes, batching)
        assert acls_of(steps) == [come, acl("a"), acl("b"), gone]
        assert [step.stage for step in steps] == list(Stage)
    assert [step.batch for step in ordered(changes, Batching.ALL)] == [0, 0, 0, 0]
    assert [step.batch for step in ordered(changes, Batching.RULE)] == [0, 1, 2, 3]


def test_the_widest_comes_first_and_goes_last() -> None:
    widest_first = [
        acl("*", "User:*", operation=AclOperation.ALL),
        acl("*", "User:*", operation=AclOperation.READ),
        acl("*", "Group:*", operation=AclOperation.ALL),
        acl("*", "User:a", "10.0.0.1"),
        acl("a", pattern_type=PREFIXED),
        acl("ab", pattern_type=PREFIXED),
        acl("ba", pattern_type=PREFIXED),
        acl("a"),
        acl("aa", "User:*"),
        acl("a", "User:*", resource_type=ResourceType.GROUP),
    ]
    listed = sorted(widest_first, key=repr)
    assert acls_of(ordered(adding(*listed), Batching.RULE)) == widest_first
    gone = [RuleChange(added=False, acl=each) for each in listed]
    assert acls_of(ordered(gone, Batching.RULE)) == widest_first[::-1]


def test_a_rule_that_kafka_throws_on_counts_as_a_deny() -> None:
    odd = acl("a", "nocolon")
    assert acls_of(ordered(adding(acl("a"), odd), Batching.RULE)) == [odd, acl("a")]
    gone = [RuleChange(added=False, acl=odd), RuleChange(added=False, acl=acl("a"))]
    assert acls_of(ordered(gone, Batching.RULE)) == [acl("a"), odd]


@given(RANDOMS, st.sampled_from(Batching))
def test_the_order_depends_on_the_set_of_the_changes_alone(random: Random, batching: Batching) -> None:
    _, changes = random_change(random, odd=5)
    steps = ordered(changes, batching)
    random.shuffle(changes)
    assert ordered(changes, batching) == steps
    assert sorted(map(str, acls_of(steps))) == sorted(str(change.acl) for change in changes)
    assert {change.acl: change.added for change in changes} == {step.acl: step.adds for step in steps}
    numbers = [step.batch for step in steps]
    assert all(after in (before, before + 1) for before, after in pairwise([0, *numbers]))


@given(RANDOMS)
def test_on_zookeeper_a_resource_changes_at_once_unless_it_overlaps_another_that_changes(random: Random) -> None:
    _, changes = random_change(random)
    steps = ordered(changes, Batching.RESOURCE)
    patterns = {resource_of(step.acl) for step in steps}
    seen: dict[ResourcePattern, int] = {}
    for _, batch in groupby(steps, key=lambda step: step.batch):
        held = list(batch)
        resource = resource_of(held[0].acl)
        assert {resource_of(step.acl) for step in held} == {resource}
        seen[resource] = seen.get(resource, 0) + 1
        if any(meet(resource, other) for other in patterns - {resource}):
            assert len({step.stage for step in held}) == 1
        else:
            assert seen[resource] == 1
    staged = [step for step in steps if any(meet(resource_of(step.acl), p) for p in patterns - {resource_of(step.acl)})]
    assert [step.stage for step in staged] == sorted(step.stage for step in staged)


def patterns() -> st.SearchStrategy[ResourcePattern]:
    return st.builds(
        ResourcePattern,
        resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
        name=st.sampled_from(NAMES),
        pattern_type=st.sampled_from([PatternType.LITERAL, PREFIXED, 77]),
    )


def meet(one: ResourcePattern, other: ResourcePattern) -> bool:
    """Whether two patterns may cover a name in common; LITERAL `*` counts as covering all."""
    if one.resource_type != other.resource_type:
        return False
    examples = {name for each in (one, other) for name in (each.name, each.name + "\uf8ff")}
    return any(covers(one, name) and covers(other, name) for name in examples)


def covers(pattern: ResourcePattern, name: str) -> bool:
    if pattern.pattern_type != PatternType.LITERAL:
        return name.startswith(pattern.name)
    return pattern.name in ("*", name)


@given(st.sets(patterns(), max_size=6))
def test_patterns_that_overlap_another(chosen: set[ResourcePattern]) -> None:
    assert overlapping(chosen) == {one for one in chosen if any(meet(one, other) for other in chosen - {one})}


@given(st.sets(patterns(), max_size=6), patterns())
def test_a_pattern_that_meets_one_of_a_set(chosen: set[ResourcePattern], asked: ResourcePattern) -> None:
    found = PatternSet.of(chosen).meets(asked.resource_type, asked.name, asked.pattern_type)
    assert found is any(meet(asked, other) for other in chosen)
