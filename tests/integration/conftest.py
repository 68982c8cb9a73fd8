"""A real Kafka 4.3.1 that can be started on a changed copy of the small fixture."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.server import KafkaServer, copy_of, free_port, port_lock, with_properties

SMALL = Path(__file__).parents[1] / "data" / "kafka-4.3.1-small"
CONTROLLER_PORT = 20093
"""The voter set in the fixture's log names it."""


@pytest.fixture
def stopped_kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    """A Kafka on a copy of the fixture, not started yet; `with` starts and stops it.

    What it logs stays in pytest's temporary directory, `kafka/server.log`.
    """
    home, port = tmp_path / "kafka", free_port()
    copy_of(SMALL, home)
    listeners = f"SASL_PLAINTEXT://localhost:{port},CONTROLLER://localhost:{CONTROLLER_PORT}"
    properties = with_properties(
        (SMALL / "expected" / "server.properties").read_text(encoding="utf-8"),
        listeners=listeners,
        advertised_listeners=listeners,
    )
    with port_lock(CONTROLLER_PORT):
        yield KafkaServer(home, properties, port=port)
