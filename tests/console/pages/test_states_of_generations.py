"""Which Kafka decides on what the console shows."""

import pytest

from aclog.authorizer.settings import Generation, Settings
from tests.console.pdp.test_deciders import RANGE, UNSTATED, run_by
from tests.support.web.consoles import console_of
from tests.support.web.points import HeldSource, image_of


def test_a_state_is_decided_by_the_kafka_that_its_brokers_run():
    for level, ranges in ((30, False), (33, True)):
        state = console_of(HeldSource(run_by(level)), settings=UNSTATED).states.now()
        assert (state.policy.settings.cidr, state.policy.acls.cidr) == (ranges, ranges)


@pytest.mark.parametrize("image", [image_of(RANGE), run_by(30, 33)])
def test_a_state_is_decided_by_each_kafka_while_that_is_not_known(image):
    state = console_of(HeldSource(image), settings=UNSTATED).states.now()
    assert [(each, policy.settings.cidr, policy.acls.cidr) for each, policy in state.policies.items()] == [
        (Generation.V4_3, False, False), (Generation.V4_4, True, True),
    ]  # fmt: skip
    known = console_of(HeldSource(image), settings=Settings()).states.now()
    assert [policy.settings.cidr for policy in known.policies.values()] == [False]
