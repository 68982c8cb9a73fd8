"""A connection that opens while its opening is cancelled."""

import asyncio

import pytest

from aclog.client import connection as connection_module
from aclog.config.node_config import ClientSecurity
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum


def test_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else knows of it, and its socket would stay open."""
    opened, really_open = [], connection_module._open

    async def open_and_cancel(*given) -> connection_module.Connection:
        opened.append(await really_open(*given))
        task.cancel()
        return opened[-1]

    async def cancelled(leader: FakeLeader) -> None:
        nonlocal task
        task = asyncio.create_task(connection_module.connect(leader.address, ClientSecurity(), timeout=30))
        with pytest.raises(asyncio.CancelledError):
            await task

    task: asyncio.Task[connection_module.Connection]
    monkeypatch.setattr(connection_module, "_open", open_and_cancel)
    with FakeLeader(FakeQuorum()) as leader:
        asyncio.run(cancelled(leader))
    [connection] = opened
    assert connection.failure is not None
    assert connection._writer.transport.is_closing()
