"""A second connection to the leader, for historical reads and snapshots: a Fetch that waits would delay them."""

import asyncio
import time
from typing import Any

from attrs import define, field

from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import LoginError
from aclog.nodes.observer.fetch_messages import FetchResponse, Position
from aclog.nodes.observer.fetcher import Fetcher, fetch


@define(eq=False)
class SideConnection:
    """Opened on demand to the fetcher's leader. Runs on the fetcher's event loop; hold `lock` while using it."""

    fetcher: Fetcher
    lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _connection: Connection | None = field(default=None, init=False)

    async def connected(self) -> Connection:
        """Return the connection, opened if necessary; raises MetadataError if that is not possible now."""
        leader = self.fetcher.leader
        if self._connection is not None and self._connection.address != leader:
            await self.close()
        if self._connection is None:
            if leader is None:
                raise self.fetcher.buffer.error or LogError(f"{self.fetcher.buffer.name}: no leader is known")
            self._connection = await self.fetcher.connect(leader)
        return self._connection

    async def fetch(self, offset: int, max_bytes: int) -> FetchResponse:
        """Fetch committed batches.

        Raises:
            MetadataError: there is no leader, or it responds with an error.

        """
        connection, fetcher = await self.connected(), self.fetcher
        # Committed batches cannot diverge, so the epoch before `offset` need not be known: the leader's own passes
        # its check of the last fetched epoch.
        epoch = fetcher.state.leader_epoch
        position = Position(
            offset=offset, last_fetched_epoch=epoch if offset else 0, leader_epoch=epoch, high_watermark=-1
        )
        response = await fetch(
            connection, position, fetcher.options, max_bytes=max_bytes, cluster_id=fetcher.cluster_id
        )
        if response.error:
            raise LogError(f"{connection.address}: responds with error {response.error}")
        return response

    async def ask(self, message: Any) -> Any:
        """Send a request and return its response. Raises as Connection.ask."""
        return await (await self.connected()).ask(message, self.fetcher.options.response_seconds)

    @property
    def deadline(self) -> float:
        """When to give up an operation that starts now, on the clock of time.monotonic()."""
        return time.monotonic() + self.fetcher.options.read_seconds

    async def retry(self, error: MetadataError, deadline: float) -> None:
        """Disconnect and back off, before the caller tries again.

        Raises:
            MetadataError: `error`, after the deadline or if a retry cannot help.

        """
        await self.close()
        hopeless = isinstance(error, LoginError | ConfigError) or self.fetcher.buffer.failure is not None
        if hopeless or time.monotonic() >= deadline:
            raise error
        await asyncio.sleep(self.fetcher.options.retry_backoff)

    async def close(self) -> None:
        """Close the connection; the next use opens a new one."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()
