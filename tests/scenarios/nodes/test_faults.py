"""A short campaign of tests.scenarios.nodes.faults."""

from tests.scenarios.nodes import faults


def test_what_was_acknowledged_survives_kills_and_bad_networks(tmp_path, zygote):
    report = faults.run(tmp_path, zygote, kills=4, seed=7)
    assert "controller killed 4" in report
