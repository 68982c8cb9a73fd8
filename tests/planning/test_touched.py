"""The region that a plan touches: no rule outside of it has to do with anything that the plan changes on its way."""

from collections.abc import Iterable
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.settings import Settings
from aclog.planning.plan import Batching, TouchedRegion
from aclog.planning.planner import ordered
from tests.support.analysis.cells import Cells
from tests.support.analysis.model import PolicyModel
from tests.support.analysis.policies import image_of
from tests.support.planning.changes import close_rule, random_change, random_settings
from tests.support.planning.walk import states_of
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


@CAMPAIGN
@given(RANDOMS, st.booleans())
def test_rules_outside_of_it_change_nothing_that_the_plan_changes(random: Random, allow_everyone: bool) -> None:
    base, changes = random_change(random, odd=random.choice([0, 10]))
    chosen = random_settings(random, allow_everyone=allow_everyone)
    steps = ordered(changes, Batching.RULE)
    region = TouchedRegion.of([step.acl for step in steps], allow_everyone=allow_everyone)
    known = {*base, *(step.acl for step in steps)}
    others = [close_rule(random, odd=10) for _ in range(8)]
    outside = {rule for rule in others if rule not in known and not region.among([content_of(rule)])}
    alone, beside = (models(states_of(held, steps), chosen) for held in (base, [*base, *outside]))
    cells = Cells.of(*(Policy(image_of(list({*known, *outside})), chosen),))
    for kind, name, principal, host in cells.all():
        one = [model.allowed(principal, host, kind, name) for model in alone]
        other = [model.allowed(principal, host, kind, name) for model in beside]
        if len(set(one)) > 1 or len(set(other)) > 1:
            assert one == other, (kind, name, principal, host)


def models(states: Iterable[Iterable[StandardAcl]], chosen: Settings) -> list[PolicyModel]:
    return [PolicyModel(Policy(image_of(list(state)), chosen)) for state in states]
