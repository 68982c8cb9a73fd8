"""A short form of the campaign of `aclog apply` on a real Kafka: one node, which is killed as well."""

import pytest

from tests.scenarios.planning.kafka_faults import run

pytestmark = [pytest.mark.server, pytest.mark.slow(15)]
FAULTS = ("a rule changed before", "rights taken", "broker killed")


def test_kafkas_log_has_what_the_plan_said_and_nothing_else(tmp_path):
    assert "and nothing else" in run(tmp_path, nodes=1, rounds=len(FAULTS), seed=5, faults=FAULTS)
