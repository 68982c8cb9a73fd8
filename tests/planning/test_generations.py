"""Plans and grants where several generations of Kafka may decide: they hold for each, beside the plain model of it."""

from random import Random

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import RuleChange, content_of
from aclog.authorizer.settings import Generation, Settings
from aclog.planning.effect import transient_denials
from aclog.planning.granting import AccessRequest, grant, revoke
from aclog.planning.plan import (
    Batching,
    Origin,
    PlaceAddress,
    PlaceKind,
    PlaceState,
    Plan,
    PlanPlace,
    RefusedError,
    parse_plan,
    plan_lines,
)
from aclog.planning.planner import Circumstances, PlannedChange, make_plan
from aclog.planning.report import PlanReport, document_of
from aclog.snapshots.deciding_kafka import DecidingKafka, kafka_of_levels
from tests.planning.granting.test_granting import ALLOW, World, lost_of_the_rest, random_asked, random_place
from tests.support.builders.acls import acl
from tests.support.planning.changes import random_change, random_settings
from tests.support.planning.walk import states_of, walk
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
RANGE, NARROW = "10.0.0.0/8", "10.0.0.0/30"
DIFFERING = kafka_of_levels({1: 30, 2: 33}, [RANGE])


def plan_of(
    changes: list[RuleChange],
    there: list[StandardAcl],
    decided_by: Settings,
    kafka: DecidingKafka | None = DIFFERING,
    batching: Batching = Batching.RULE,
) -> tuple[Plan, PlanReport]:
    """The plan of a change, written and read again, and its report."""
    change = PlannedChange(
        added=tuple(each.acl for each in changes if each.added),
        removed=tuple(each.acl for each in changes if not each.added),
    )
    state = PlaceState(contents=frozenset(map(content_of, there)))
    found = Circumstances(
        place=PlanPlace(address=PlaceAddress(kind=PlaceKind.LOG, value="/log"), identity=None, batching=batching),
        state=state,
        settings=decided_by,
        settings_known=True,
        settings_by_place=False,
        origin=Origin(at="now", who="me"),
        journal=None,
        kafka=kafka,
    )
    made = make_plan(change, found)
    assert parse_plan([line.encode() for line in plan_lines(made)], "PLAN") == made
    return made, PlanReport(name="log", state=state, plan=made, change=change, kafka=kafka)


def ranged(random: Random, rules: list[StandardAcl]) -> list[StandardAcl]:
    """The same rules, some of them from ranges."""
    found = {rule: random.choice(["*", "10.0.0.1", RANGE, NARROW, RANGE]) for rule in rules}
    return list(dict.fromkeys(evolve(rule, host=host) for rule, host in found.items()))


def random_ranged_change(random: Random) -> tuple[list[StandardAcl], list[RuleChange]]:
    base, changes = random_change(random)
    gone = {each.acl for each in changes if not each.added}
    kept, removed = (ranged(random, [rule for rule in base if (rule in gone) is is_gone]) for is_gone in (False, True))
    removed = [rule for rule in removed if rule not in kept]
    come = ranged(random, [each.acl for each in changes if each.added])
    added = [rule for rule in come if rule not in kept and rule not in removed]
    asked = [RuleChange(added=False, acl=rule) for rule in removed]
    return [*kept, *removed], [*asked, *(RuleChange(added=True, acl=rule) for rule in added)]


@CAMPAIGN
@given(RANDOMS, st.sampled_from(Batching))
def test_what_is_denied_for_a_moment_by_any_of_them_is_listed(random: Random, batching: Batching) -> None:
    """Beside every state between two batches, as each generation decides it."""
    there, changes = random_ranged_change(random)
    decided_by = random_settings(random, allow_everyone=True)
    made, _ = plan_of(changes, there, decided_by, batching=batching)
    listed = {str(each["text"]).partition(" (on Kafka")[0] for each in made.transient}
    for generation in Generation:
        own = decided_by.of_generation(generation)
        regions = transient_denials(made.steps, map(content_of, there), own)
        states = list(states_of(there, made.steps))
        found = walk(states, own, regions)
        assert found.misclaimed == []
        assert found.openings == {}  # whatever decides, nothing is allowed on the way that both ends deny
        assert {str(region) for region in regions} <= listed


def test_a_change_without_a_range_is_planned_as_before() -> None:
    there, changes = [acl("a", "User:b")], [RuleChange(added=True, acl=acl("a", "User:c"))]
    made, report = plan_of(changes, there, Settings(allow_everyone=True))
    known, _ = plan_of(changes, there, Settings(allow_everyone=True), kafka=None)
    assert made == known
    assert not [line for line in plan_lines(made) if "generations" in line]
    assert "may decide" not in "".join(document_of(report).points)


def test_what_only_one_of_them_gives_or_takes_is_marked() -> None:
    there = [acl("a", "User:old", RANGE), acl("a", "User:b")]
    changes = [
        RuleChange(added=True, acl=acl("a", "User:c", RANGE)),
        RuleChange(added=True, acl=acl("a", "User:d")),
        RuleChange(added=False, acl=acl("a", "User:old", RANGE)),
    ]
    made, report = plan_of(changes, there, Settings())
    assert made.generations == (Generation.V4_3, Generation.V4_4)
    document = document_of(report)
    assert (
        "Kafka 4.3 or Kafka 4.4 may decide: the brokers differ: broker 1 runs Kafka 4.3, broker 2 runs Kafka 4.4; "
        "differences between them are marked"
    ) in document.points
    effect, steps = document.sections
    assert [item.text for item in effect.items] == [
        "GAINED  User:d: READ, DESCRIBE on TOPIC a, from any host",
        f"GAINED  User:c: READ, DESCRIBE on TOPIC a, from {RANGE} (on Kafka 4.4 only)",
        f"LOST  User:old: READ, DESCRIBE on TOPIC a, from {RANGE} (on Kafka 4.4 only)",
    ]
    (deleted,) = [item for item in steps.items if item.text.startswith("- ")]
    assert deleted.details[0].endswith(" (on Kafka 4.3 only)")
    assert deleted.details[0].startswith("no effect: ")
    assert deleted.details[1].startswith("LOST  User:old")
    assert deleted.details[1].endswith(" (on Kafka 4.4 only)")


def test_a_moment_that_only_one_of_them_denies_is_marked() -> None:
    """On 4.4 the first rule lets a client in whom on 4.3 only the second one does."""
    changes = [
        RuleChange(added=True, acl=acl("a", "User:*", RANGE)),
        RuleChange(added=True, acl=acl("a", "User:c", "10.0.0.1")),
    ]
    made, _ = plan_of(changes, [], Settings(allow_everyone=True))
    assert {each.get("generation") for each in made.transient} == {"4.3"}
    alone, _ = plan_of(changes, [], Settings(allow_everyone=True, cidr=True), kafka=None)
    assert alone.transient == ()


@CAMPAIGN
@given(RANDOMS)
def test_a_grant_lets_a_client_work_on_each_of_them(random: Random) -> None:
    asked = random_asked(random)
    rules, options = random_place(random, asked, odd=0)
    rules = ranged(random, rules)
    contents = {content_of(rule) for rule in rules}
    each = {generation: options.of_generation(generation) for generation in Generation}
    try:
        found = grant(asked, contents, options, tuple(Generation))
    except RefusedError:
        assert any(is_refused(asked, contents, own) for own in each.values())
        return
    assert not any(is_refused(asked, contents, own) for own in each.values())
    for own in each.values():
        world = World(rules, asked, own)
        asks = world.alone(asked.rules())
        most, now = world.masks([*rules, *asked.rules()]), world.masks([*rules, *found.added])
        for cell, ask, best, given_ in zip(world.cells, asks, most, now, strict=True):
            if asked.principal in ("User:*", cell[2]):
                assert not ask & best & ~given_
        for left_out in found.added if not options.allow_everyone else ():
            fewer = [rule for rule in found.added if rule != left_out]
            assert any(lacks(rules, fewer, asked, one) for one in each.values())


def is_refused(asked: AccessRequest, contents: set[bytes], own: Settings) -> bool:
    try:
        grant(asked, contents, own)
    except RefusedError:
        return True
    return False


def lacks(rules: list[StandardAcl], added: list[StandardAcl], asked: AccessRequest, own: Settings) -> bool:
    """Whether somebody who asks lacks something with these rules that all rules would give."""
    world = World(rules, asked, own)
    asks = world.alone(asked.rules())
    most, now = world.masks([*rules, *asked.rules()]), world.masks([*rules, *added])
    return any(
        ask & best & ~given_
        for cell, ask, best, given_ in zip(world.cells, asks, most, now, strict=True)
        if asked.principal in ("User:*", cell[2])
    )


@CAMPAIGN
@given(RANDOMS)
def test_a_revocation_says_what_any_of_them_still_allows(random: Random) -> None:
    asked = random_asked(random)
    rules, options = random_place(random, asked, odd=0)
    rules = ranged(random, rules)
    contents = {content_of(rule) for rule in rules}
    both = revoke(asked, contents, options, tuple(Generation))
    end = [*(rule for rule in rules if rule not in both.removed), *both.added]
    for generation in Generation:
        own = options.of_generation(generation)
        alone = revoke(asked, contents, own)
        assert alone.removed == both.removed
        assert not lost_of_the_rest(World(rules, asked, own), rules, end, asked, both)
        if both.added == alone.added:
            told = [each.permission for each in both.still if each.only in (None, generation)]
            assert sorted(map(repr, told)) == sorted(repr(each.permission) for each in alone.still)


def test_a_range_that_an_old_kafka_does_not_match_is_not_granted() -> None:
    asked = evolve(random_asked(Random(1)), principal="User:a", hosts=(RANGE,))
    with pytest.raises(RefusedError, match=r"Kafka 4\.3 may decide: "):
        grant(asked, set(), Settings(), tuple(Generation))
    assert all(rule.permission_type == ALLOW for rule in grant(asked, set(), Settings(cidr=True)).added)
