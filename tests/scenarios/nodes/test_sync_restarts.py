"""A short form of the campaign of `aclog sync` beside brokers that restart."""

import pytest

from tests.scenarios.nodes.sync_restarts import run

pytestmark = [pytest.mark.server, pytest.mark.slow(15)]


def test_nothing_is_recorded_as_removed_that_was_not(tmp_path, zygote):
    report = run(tmp_path, zygote, restarts=2, writers=4, seed=7)
    assert "no removal recorded that was not one" in report
