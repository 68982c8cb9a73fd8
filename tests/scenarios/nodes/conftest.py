"""What the scenarios share."""

import pytest

from tests.support.node_zygote import NodeZygote


@pytest.fixture(scope="session")
def zygote():
    """Where nodes are forked from."""
    with NodeZygote() as found:
        yield found
