"""A second connection to the leader, for what is asked beside following it: a fetch that waits would hold it up."""

import asyncio
import time
from typing import Any

from attrs import define, field

from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import LoginError
from aclog.nodes.observer.fetch_messages import FetchAnswer, Position
from aclog.nodes.observer.fetcher import Fetcher, fetch


@define(eq=False)
class SideConnection:
    """Opened when it is needed, to who the fetcher says leads; lives on the fetcher's event loop.

    `turn` is held by whoever uses it.
    """

    fetcher: Fetcher
    turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _connection: Connection | None = field(default=None, init=False)

    async def connected(self) -> Connection:
        """The connection; raises MetadataError if there can be none now."""
        leader = self.fetcher.leader
        if self._connection is not None and self._connection.address != leader:
            await self.close()
        if self._connection is None:
            if leader is None:
                raise self.fetcher.shared.trouble or LogError(f"{self.fetcher.shared.name}: no leader is known")
            self._connection = await self.fetcher.connect(leader)
        return self._connection

    async def fetch(self, offset: int, max_bytes: int) -> FetchAnswer:
        """The answer to a fetch of committed batches: they cannot diverge, so any epoch does that the leader has.

        Raises:
            MetadataError: there is no leader, or it answers with an error.

        """
        connection, fetcher = await self.connected(), self.fetcher
        epoch = fetcher.following.leader_epoch
        position = Position(
            offset=offset, last_fetched_epoch=epoch if offset else 0, leader_epoch=epoch, high_watermark=-1
        )
        answer = await fetch(connection, position, fetcher.options, max_bytes=max_bytes, cluster_id=fetcher.cluster_id)
        if answer.error:
            raise LogError(f"{connection.address}: answers error {answer.error}")
        return answer

    async def ask(self, message: Any) -> Any:
        """The answer to a request. Raises as Connection.ask."""
        return await (await self.connected()).ask(message, self.fetcher.options.answer_seconds)

    @property
    def deadline(self) -> float:
        """Until when to try, from now on: a time.monotonic()."""
        return time.monotonic() + self.fetcher.options.read_seconds

    async def retry(self, error: MetadataError, deadline: float) -> None:
        """Wait a little, to begin anew.

        Raises:
            MetadataError: `error`, if it is too late, or no use.

        """
        await self.close()
        hopeless = isinstance(error, LoginError | ConfigError) or self.fetcher.shared.failure is not None
        if hopeless or time.monotonic() >= deadline:
            raise error
        await asyncio.sleep(self.fetcher.options.first_pause)

    async def close(self) -> None:
        """Let go of the connection, until it is needed again."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()
