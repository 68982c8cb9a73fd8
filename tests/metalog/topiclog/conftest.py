from tests.support.kafka_quorum_reports import pytest_runtest_makereport  # noqa: F401
