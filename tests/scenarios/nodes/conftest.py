"""What the scenarios share."""

import pytest

from tests.support.processes.node_zygote import shared_zygote


@pytest.fixture(scope="session")
def zygote():
    """Where nodes are forked from."""
    return shared_zygote()
