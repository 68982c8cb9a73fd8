"""A pytest plugin: a test that fails tells where the logs of its Kafka are, also of one that outlives the test."""

from collections.abc import Iterator

import pytest

from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.shared import SharedKafka


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    """Keep the logs of every test Kafka that a failed test had as a fixture, and tell where in its report."""
    report = yield
    if report.when == "call" and report.failed:
        for fixture in getattr(item, "funcargs", {}).values():
            if isinstance(fixture, KafkaQuorum | SharedKafka):
                report.sections.append(("Kafka's logs and data are kept in", str(fixture.keep_logs(item.name))))
    return report
