"""Kafka's own clients, Kafka Streams too, on a real Kafka: they work with the least rules of their intent, no fewer."""

from uuid import uuid4

import pytest

from tests.support.kafka.intent_trials import KINDS
from tests.support.kafka.intents import outcomes
from tests.support.kafka.shared import SharedKafka

SLOW = "stream, KIP-1071"
"""Without CREATE such an application is not refused but waits; its trials are recorded (tests/analysis)."""


@pytest.mark.server
@pytest.mark.slow(20)
@pytest.mark.timeout(300)
def test_the_least_rules_are_enough_and_none_of_them_can_go(topic_kafka: SharedKafka) -> None:
    found = outcomes(topic_kafka, [kind for kind in KINDS if kind != SLOW], f"intents-{uuid4().hex[:8]}")
    works = {each["trial"]: each["error"] for each in found if "with all" in each["trial"]}
    assert works == dict.fromkeys(works, "")
    left = [each for each in found if each["trial"] not in works and not each["error"].startswith("refused: ")]
    # On a busy machine a client may give up before it is refused: once more, and then it must be.
    if late := {each["trial"].partition(":")[0] for each in left if "imeout" in each["error"]}:
        again = outcomes(topic_kafka, [kind for kind in KINDS if kind in late], f"intents-{uuid4().hex[:8]}")
        refused = {each["trial"] for each in again if each["error"].startswith("refused: ")}
        left = [each for each in left if each["trial"] not in refused]
    assert left == []
