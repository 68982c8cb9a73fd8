"""What a plan says it denies on its way, beside every state between two batches and every representative request."""

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.authorizer.acls_image import content_of
from aclog.planning.effect import transient_denials
from aclog.planning.plan import Batching
from aclog.planning.planner import ordered
from tests.support.planning.changes import random_change, random_settings
from tests.support.planning.walk import states_of, walk
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


@CAMPAIGN
@given(RANDOMS, st.sampled_from(Batching), st.booleans())
def test_exactly_the_denials_on_the_way_are_listed(random: Random, batching: Batching, allow_everyone: bool) -> None:
    base, changes = random_change(random, odd=random.choice([0, 0, 10]))
    chosen = random_settings(random, allow_everyone=allow_everyone)
    steps = ordered(changes, batching)
    found = walk(list(states_of(base, steps)), chosen, transient_denials(steps, map(content_of, base), chosen))
    assert found.misclaimed == []
    assert found.openings == {}
    assert all(operations & ~found.denials.get(cell, 0) == 0 for cell, operations in found.flaps.items())
    if not allow_everyone or batching is Batching.ALL:
        assert found.denials == {}
