from pathlib import Path

import pytest

from tests.support.builders.log_backends import Place


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a log of any kind can be stored; a Kafka is started only for tests that need one."""
    return Place(directory=tmp_path, kafka=lambda: request.getfixturevalue("topic_kafka"))
