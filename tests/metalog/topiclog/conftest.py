from tests.support.kafka.quorum_reports import pytest_runtest_makereport  # noqa: F401
