"""A keeper that writes as often as its interval says, whatever that costs."""

import pytest

from aclog.server import usage_index


@pytest.fixture(autouse=True)
def no_rest(monkeypatch):
    """Do not rest after an interval for a multiple of its work."""
    monkeypatch.setattr(usage_index, "_REST", 1)
    monkeypatch.setattr(usage_index, "_LEAST_REST", 0)
