"""Parts of a campaign of seeds add up in its result file."""

from collections import Counter

import pytest

from tests.simulation.campaign import Part, parse, render
from tests.simulation.simulate import WORLDS

FIRST = Part(
    commit="abc",
    first=0,
    end=7,
    worlds=Counter({"files": 2, "topic": 2, "quorum": 1, "admin": 1, "usage": 1}),
    virtual_hours=0.25,
    cpu_hours=0.0005,
    failures=1,
)
SECOND = Part(commit="", first=7, end=9, worlds=Counter({"quorum": 1, "admin": 1}), virtual_hours=0.5, failures=1)


def test_a_result_file_is_read_as_it_was_written():
    parts = [FIRST, Part(commit="def+changes", first=7, end=7)]
    assert parse(render(parts)) == parts
    assert parse(render([])) == []
    assert render(parts).endswith("In all 7 seeds, 0.2 virtual hours, 0.00 CPU hours, 1 failures\n")


def test_chunks_add_up():
    part = FIRST.with_chunk(SECOND)
    assert (part.commit, part.first, part.end, part.failures) == ("abc", 0, 9, 2)
    assert part.worlds == Counter({"files": 2, "topic": 2, "quorum": 2, "admin": 2, "usage": 1})
    assert sum(part.worlds.values()) == part.end - part.first
    assert (part.virtual_hours, part.cpu_hours) == (0.75, 0.0005)
    assert set(part.worlds) == set(WORLDS)


def test_a_chunk_that_does_not_follow_is_refused():
    with pytest.raises(ValueError, match="a chunk of seeds begins at 7: expected 9"):
        FIRST.with_chunk(SECOND).with_chunk(SECOND)
