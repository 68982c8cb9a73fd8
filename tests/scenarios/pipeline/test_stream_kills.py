"""The campaign of stream_kills with three kills; `make campaign-streams` kills twenty times, also while it starts."""

import pytest

from tests.scenarios.pipeline import stream_kills

pytestmark = pytest.mark.server


@pytest.mark.slow(60)
@pytest.mark.timeout(1200)
def test_a_killed_stream_writes_each_record_once(tmp_path):
    outcome = stream_kills.run(tmp_path, kills=3, seed=3)
    assert outcome.exactly_once, str(outcome)
    assert outcome.segments > 3
