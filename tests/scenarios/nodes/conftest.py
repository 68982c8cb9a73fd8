"""What the scenarios share."""

import pytest

from tests.support.processes.node_zygote import NodeZygote


@pytest.fixture(scope="session")
def zygote():
    """Where nodes are forked from."""
    with NodeZygote() as found:
        yield found
