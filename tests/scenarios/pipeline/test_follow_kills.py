"""The campaign of follow_kills with two kills; `make campaign-follow` kills twenty times, on files and on a topic."""

import pytest

from tests.scenarios.pipeline import follow_kills

pytestmark = pytest.mark.server


@pytest.mark.slow(60)
@pytest.mark.timeout(1200)
def test_each_access_of_files_is_decided_once(tmp_path):
    outcome = follow_kills.run(tmp_path, kills=2, seed=3)
    assert outcome.once, str(outcome)
    assert outcome.batches > 1


@pytest.mark.slow(60)
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not (follow_kills.JARS / ".ready").exists(), reason="make build/spark-kafka/.ready has the package")
def test_each_access_of_a_topic_is_decided_once(tmp_path, topic_kafka):
    outcome = follow_kills.run(tmp_path, kills=2, seed=3, bootstrap=topic_kafka.bootstrap)
    assert outcome.once, str(outcome)
    assert outcome.batches > 1
