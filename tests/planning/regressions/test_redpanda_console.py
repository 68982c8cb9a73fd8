"""A running consumer through edits of its rules, on a real Kafka (redpanda-data/console)."""

from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.kafka.running_consumer import RunningConsumer, add_user
from tests.support.kafka.server import ADMIN
from tests.support.kafka.topics import client_properties
from tests.support.planning.edits import edits, reads
from tests.support.planning.estate import Estate
from tests.support.processes.waiting import SECONDS

ROUNDS = 10
"""Of the consumer, before and after each edit."""


@pytest.fixture
def name():
    """What begins every name of this test: the Kafka is shared."""
    return f"edit-{uuid4().hex[:8]}"


@pytest.fixture
def place(topic_kafka, tmp_path, name):
    """The flags of the Kafka, which has the topic and the user."""
    login = tmp_path / "admin.properties"
    login.write_text("".join(f"{key}={value}\n".replace("{user}", "admin") for key, value in ADMIN.items()))
    add_user(topic_kafka.bootstrap, name)
    admin = AdminClient(client_properties(topic_kafka.bootstrap))
    for each in admin.create_topics([NewTopic(f"{name}-1", 1, 1)]).values():
        each.result(SECONDS)
    return "--bootstrap-server", topic_kafka.bootstrap, "--command-config", login


@pytest.fixture
def others(place, tmp_path, name):
    """Rules of another source: so many that those of other tests may come and go without being missed."""
    found = Estate(tmp_path / "others", place)
    found.wants(*(acl(f"{name}-other-{number}", f"User:{name}-other") for number in range(300)))
    planned = found.bring()
    yield planned.added()
    found.wants()
    found.bring("--max-deletes", "100%")


@pytest.fixture
def estate(place, tmp_path, others):
    """The user's own source."""
    return Estate(tmp_path / "source", place)


def test_redpanda_console_1220_a_consumer_goes_on_while_its_rules_are_edited(estate, others, topic_kafka, name):
    """To add two rules to a user's, the console deleted all of them and created all anew: its consumers failed."""
    estate.wants(*reads(name, *range(1, 6)))
    estate.bring()
    with RunningConsumer(topic_kafka.bootstrap, name, f"{name}-1", f"{name}-1") as consumer:
        consumer.wait_for_rounds(ROUNDS)
        for wanted in edits(name):
            estate.wants(*wanted)
            assert estate.plan().steps
            estate.apply().ok()
            consumer.wait_for_rounds(ROUNDS)
        assert consumer.refusals == []
        assert estate.rules() >= {*wanted, *others}
        # It would have noticed: as the console did it, between deleting and creating.
        rule = ("--allow-principal", f"User:{name}", "--operation", "READ", "--topic", f"{name}-1", "--force")
        aclog("acls", "remove", *estate.place, *rule).ok()
        consumer.wait_for_refusal()
