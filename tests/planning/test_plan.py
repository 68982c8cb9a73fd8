"""What an apply that goes on may find: any part of its own steps, and all of them."""

import pytest

from aclog.authorizer.acls_image import RuleChange, content_of
from aclog.authorizer.settings import Settings
from aclog.planning.applying import check_base
from aclog.planning.plan import (
    Base,
    Batching,
    Origin,
    PlaceAddress,
    PlaceKind,
    PlaceState,
    Plan,
    PlanPlace,
    RefusedError,
    Sent,
    touched,
)
from aclog.planning.planner import ordered
from tests.support.builders.acls import acl

RULES = [acl(f"topic-{number}") for number in range(4)]
ALL = frozenset(range(4))


def plan_to_remove(*removed):
    steps = ordered([RuleChange(added=False, acl=each) for each in removed], Batching.RULE)
    place = PlanPlace(
        address=PlaceAddress(kind=PlaceKind.BOOTSTRAP_SERVER, value="localhost:9092"),
        identity="a",
        batching=Batching.RULE,
    )
    base = Base(rules=len(RULES), end_offset=None, exists=True, touched=touched(map(content_of, removed)))
    return Plan(
        place=place,
        base=base,
        settings=Settings(),
        settings_known=True,
        settings_by_place=False,
        origin=Origin(at="", who=""),
        steps=steps,
    )


def state_of(acls):
    return PlaceState(contents={content_of(each) for each in acls})


def test_any_part_of_the_steps_may_be_made_also_when_nothing_is_left():
    plan = plan_to_remove(*RULES)
    for made in range(len(RULES) + 1):
        left = {each.acl for each in plan.steps[made:]}
        remaining = check_base(plan, state_of(left), "it", Sent(unsure=ALL))
        assert (remaining.completed, {each.acl for each in remaining.steps}) == (made, left)


def test_no_rules_at_all_are_not_taken_for_steps_that_were_made():
    with pytest.raises(RefusedError, match="returned no ACLs"):
        check_base(plan_to_remove(*RULES[1:]), state_of([]), "it", Sent(unsure=ALL))
    with pytest.raises(RefusedError, match="returned no ACLs"):
        check_base(plan_to_remove(*RULES), state_of([]), "it", Sent())
