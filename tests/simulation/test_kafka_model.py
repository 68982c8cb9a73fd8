"""The modelled Kafka of the simulated cluster does what a real Kafka does, script by script."""

import json
import os
import subprocess
import sys

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.simulation.kafka_contract import SCRIPTS, Clients
from tests.support.kafka.topics import new_topic


@pytest.fixture(scope="module")
def of_model():
    """What each script has observed on the model, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.simulation.kafka_contract"]
    run = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_real_kafka_does_the_same(topic_kafka, of_model, name):
    settings = new_topic(topic_kafka)
    common = {**settings.properties, "log_level": 2}

    def delete_before(offset: int) -> None:
        admin = AdminClient(common)
        admin.delete_records([TopicPartition(settings.topic, 0, offset)])[TopicPartition(settings.topic, 0)].result(30)

    clients = Clients(
        producer=lambda properties: Producer({**common, **properties}),
        consumer=lambda properties: Consumer({**common, **properties}),
        topic=settings.topic,
        delete_before=delete_before,
    )
    assert json.loads(json.dumps(SCRIPTS[name](clients))) == of_model[name]
