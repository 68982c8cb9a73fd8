"""A short run of tests.scenarios.nodes.load."""

import pytest

from tests.scenarios.nodes.load import Load, run

pytestmark = pytest.mark.server

GROWTH_MB = 40
"""What a node may take beyond what it took before: buffers of so many connections, and what Python keeps."""


def test_others_are_served_beside_slow_and_half_open_connections_in_bounded_memory(tmp_path, zygote):
    load = Load(connections=60, requests=2500, slow=2, half=20)
    for figures in run(tmp_path, zygote, load):
        assert len(figures.all_seconds) >= load.requests
        for memory in figures.memory.values():
            assert max(memory) < memory[0] + GROWTH_MB, figures.text("load")
