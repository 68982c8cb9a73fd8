"""A keeper that writes as often as its interval says, whatever that costs."""

import pytest

from aclog.nodes.usage_index import keeper


@pytest.fixture(autouse=True)
def no_rest(monkeypatch):
    """Do not rest after an interval for a multiple of its work."""
    monkeypatch.setattr(keeper, "_REST", 1)
    monkeypatch.setattr(keeper, "_LEAST_REST", 0)
