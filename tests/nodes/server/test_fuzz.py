"""A few thousand malformed inputs; `python -m tests.scenarios.wire_fuzz` sends many more."""

import random

import pytest

from tests.scenarios.wire_fuzz import campaign


@pytest.mark.process
def test_malformed_input_harms_nobody():
    outcome = campaign(frames=4000, seed=random.randrange(1 << 30))
    assert outcome.connections_end == 1, outcome
    assert outcome.memory_end - outcome.memory_warm < 16 << 20, outcome
    assert outcome.tasks_end < 10, outcome
    assert outcome.errors == 0, outcome
    assert outcome.answered > 100, outcome
