"""The campaign of follow_kills with two kills; `make campaign-follow` kills twenty times, into tables also."""

import pytest

from aclog.pipeline.output_directory import OutFormat
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


@pytest.mark.slow(80)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("form", [OutFormat.DELTA, OutFormat.ICEBERG])
def test_each_access_is_in_a_table_once(tmp_path, form):
    ready = follow_kills.BUILD.parent / form.value / ".ready"
    if not ready.exists():
        pytest.skip(f"make check-{form.value} has the package, of 500 MB")
    outcome = follow_kills.run(tmp_path, kills=2, seed=3, form=form)
    assert outcome.once, str(outcome)
    assert outcome.batches > 1
