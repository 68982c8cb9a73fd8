"""Short campaigns of tests.scenarios.nodes.faults; `make campaigns` kills the controller 60 times."""

import pytest

from tests.scenarios.nodes import faults

pytestmark = pytest.mark.server


@pytest.mark.parametrize("short_log", [pytest.param(False, marks=pytest.mark.tier("test")), True])
def test_what_was_acknowledged_survives_kills_and_bad_networks(tmp_path, zygote, short_log):
    report = faults.run(tmp_path, zygote, kills=3, seed=7, short_log=short_log)
    assert "controller killed 3" in report
    assert not short_log or "the log begins at 0" not in report
