"""One JVM with the real StandardAuthorizer per test process."""

from collections.abc import Iterator

import pytest

from tests.support.kafka.oracle import OracleProcess


@pytest.fixture(scope="session")
def oracle() -> Iterator[OracleProcess]:
    with OracleProcess() as process:
        yield process
