"""A connection that opens while its opening is cancelled, or while its address is refused."""

import asyncio

import pytest

from aclog.client import connection as connection_module
from aclog.client.errors import StrangerError
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


def test_it_is_closed_if_its_address_is_refused_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    async def refuse_once_open(opening, address, security) -> None:
        opened.append(await opening)
        raise StrangerError(f"{address}: another protocol")

    async def refused(leader: FakeLeader) -> None:
        with pytest.raises(StrangerError):
            await connection_module.connect(leader.address, ClientSecurity(), timeout=30)

    monkeypatch.setattr(connection_module, "_PATIENCE_S", 0)  # the address is probed at once
    monkeypatch.setattr(connection_module, "_refuse_stranger", refuse_once_open)
    with FakeLeader(FakeQuorum()) as leader:
        asyncio.run(refused(leader))
    [connection] = opened
    assert connection.failure is not None
    assert connection._writer.transport.is_closing()
