"""Decisions of the real StandardAuthorizer, asked of a decision point; all of them by `make campaign-pdp`."""

import pytest

from tests.console.pdp.golden import differences


@pytest.mark.parametrize("number", ["001", "017", "042"])
def test_it_decides_as_kafka_does(number):
    asked, found = differences(number)
    assert asked > 500
    assert not found
