"""What holds for every test: no deadlines, since a busy machine is no failure; and children heed an interrupt."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.kafka.quorum import KafkaQuorum

pytest_plugins = [
    "tests.support.runs.tiers",
    "tests.support.runs.schedule",
    "tests.support.kafka.quorum_reports",
]

settings.register_profile("aclog", deadline=None, print_blob=True)
settings.load_profile("aclog")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A test run in the background of a script is born ignoring SIGINT, and its children would be too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def topic_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaQuorum]:
    """A real Kafka of one node, which stays as it is: for all tests of a process that bring topics of their own."""
    with KafkaQuorum(tmp_path_factory.mktemp("topics"), nodes=1) as kafka:
        yield kafka
