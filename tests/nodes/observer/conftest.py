"""One quorum in memory, and its leader on a socket."""

from collections.abc import Iterator

import pytest

from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum


@pytest.fixture
def quorum() -> FakeQuorum:
    """A quorum without records."""
    return FakeQuorum(epoch=3)


@pytest.fixture
def leader(quorum: FakeQuorum) -> Iterator[FakeLeader]:
    """The quorum's leader."""
    with FakeLeader(quorum) as node:
        yield node
