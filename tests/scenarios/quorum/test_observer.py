"""A short campaign of tests.scenarios.quorum.observer; `make campaign-observer` runs 10,000 changes and 20 faults."""

from pathlib import Path

import pytest

from tests.scenarios.quorum import observer

pytestmark = pytest.mark.server


@pytest.mark.slow(20)
def test_an_observer_and_a_mirror_are_what_kafka_is_while_its_leaders_die(tmp_path: Path) -> None:
    plan = observer.Plan(changes=300, points=6, faults=1, kinds=("killed",))
    report = observer.run(tmp_path, plan)
    assert "leader killed 1" in report
    assert "at 6 quiesced points" in report
    assert "which begin at 0, 0, 0" in report
