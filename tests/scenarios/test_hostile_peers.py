"""Servers that lie to commands, in a short form of `make campaign-hostile`."""

import pytest

from tests.scenarios.hostile_peers import CASES, run
from tests.support.runs.profiles import examples


@pytest.mark.slow(20)
@pytest.mark.parametrize("what", sorted(CASES))
def test_no_more_is_claimed_than_is_true(what):
    outcomes, kinds, wrong = run(what, seed=1, cases=examples(30))
    assert wrong == []
    assert outcomes["exit 0"]
    assert outcomes["exit 2"]
    assert len(kinds) > 5
