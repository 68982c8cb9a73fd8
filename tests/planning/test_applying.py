"""Somebody else changes a rule while an apply is down: what the plan meets is refused, all else is left as it is."""

from pathlib import Path
from random import Random

import pytest

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import content_of
from aclog.planning.applying import region_of
from aclog.planning.plan import Batching, Plan, RefusedError
from tests.support.planning.cases import Case, random_case
from tests.support.planning.changes import close_rule
from tests.support.planning.killed_applies import KilledApply
from tests.support.planning.memory_place import Fuse, Killed


@pytest.mark.parametrize("allow_everyone", [False, True])
def test_a_change_that_the_plan_meets_is_refused_and_any_other_is_kept(tmp_path: Path, allow_everyone: bool) -> None:
    first = Random().randrange(10**9)
    refused = kept = 0
    for seed in range(first, first + 40):
        random, case = Random(seed), random_case(seed, allow_everyone=allow_everyone)
        apply = KilledApply(case=case, home=tmp_path, random=random)
        plan = apply.plan()
        if plan.is_empty:
            continue
        apply.fuse = Fuse(random.randrange(12))
        try:
            apply.apply(plan)
        except Killed:
            rule = other_rule(random, case, plan, apply.place.rules)
            shrunk = rule in apply.place.rules and len(case.there) - 1 < 0.8 * len(case.there)
            apply.place.rules ^= {rule}
            apply.fuse = Fuse()
            if apply.is_done(plan):
                continue
            if case.batching is Batching.ALL and apply.place.applied:
                apply.apply(plan)  # all of it was made: only the journal lacks its end
                assert apply.place.rules == case.end ^ {rule}, f"seed {seed}"
            elif shrunk or region_of(plan).among([content_of(rule)]):
                check_refused(apply, plan)
                refused += 1
            else:
                apply.apply(plan)
                assert apply.place.rules == case.end ^ {rule}, f"seed {seed}"
                kept += 1
    assert refused
    assert kept


def other_rule(random: Random, case: Case, plan: Plan, there: frozenset[StandardAcl]) -> StandardAcl:
    """A rule that is there, or might be, and has no part in the plan."""
    mine = {*(step.acl for step in plan.steps), *plan.adopt, *plan.release, *case.target, *case.owned}
    theirs = sorted(there - mine, key=str)
    while random.random() < 0.7 or not theirs:
        rule = close_rule(random)
        if rule not in mine:
            return rule
    return random.choice(theirs)


def check_refused(apply: KilledApply, plan: Plan) -> None:
    there, journal = apply.place.rules, apply.entries()
    with pytest.raises(RefusedError):
        apply.apply(plan)
    assert apply.place.rules == there
    assert apply.entries() == journal
