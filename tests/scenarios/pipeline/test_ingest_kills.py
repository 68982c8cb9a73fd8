"""The campaign of ingest_kills with one kill and small logs; `make campaign-ingest` kills twenty times."""

import pytest

from tests.scenarios.pipeline import ingest_kills

pytestmark = pytest.mark.server

SMALL = ingest_kills.Pace(lines=30, pause=0.02, rotations=2)


@pytest.mark.slow(20)
@pytest.mark.timeout(1200)
def test_each_line_is_taken_once_although_the_command_is_killed(tmp_path):
    outcome = ingest_kills.run(tmp_path, kills=1, seed=3, pace=SMALL)
    assert outcome.once, str(outcome)
    assert outcome.appends > 1, "one before the kill, and one after it"
