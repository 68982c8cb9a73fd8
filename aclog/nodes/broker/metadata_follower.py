"""A broker's way to its state: it follows the controllers' log (BrokerServer's part of SharedServer)."""

import asyncio
import logging
from collections.abc import Callable

from attrs import define, field

from aclog.metalog.errors import LogError, MetadataError
from aclog.nodes.config.node_config import HostPort, NodeConfig
from aclog.nodes.observer.follower import Follower
from aclog.nodes.observer.quorum_log import QuorumLog
from aclog.snapshots.publisher import Publisher

_CLOSE_SECONDS = 10.0

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class MetadataFollower:
    """Owned by a broker's event loop; the work is done in threads."""

    config: NodeConfig
    publisher: Publisher
    cluster_id: str
    on_failure: Callable[[MetadataError], None]
    """Told once, on the event loop, when the log cannot be replayed any further: the node must stop."""
    _log_reader: QuorumLog | None = field(default=None, init=False)
    _follower: Follower | None = field(default=None, init=False)
    _watch: "asyncio.Task[None] | None" = field(default=None, init=False)

    async def start(self) -> None:
        """Begin to follow; returns before anything is replayed."""
        self._log_reader = QuorumLog(
            servers=self.config.controller_quorum,
            security=self.config.controller_client,
            client_id=str(self.config.node_id),
            cluster_id=self.cluster_id,
        )
        self._follower = Follower(log=self._log_reader, publisher=self.publisher, notify=_log.warning)
        self._follower.start()
        self._watch = asyncio.create_task(self._wait_ended(self._follower))

    @property
    def leader(self) -> HostPort | None:
        """Where the active controller is, as far as is known."""
        return None if self._log_reader is None else self._log_reader.leader

    @property
    def high_watermark(self) -> int:
        """All below is committed, as far as is known; -1 while nothing is."""
        return -1 if self._log_reader is None else self._log_reader.high_watermark()

    async def stop(self) -> None:
        """Follow no more; a second stop is nothing."""
        if self._watch is not None:
            self._watch.cancel()
        if self._follower is not None and self._log_reader is not None:
            await asyncio.to_thread(self._stop, self._follower, self._log_reader)

    @staticmethod
    def _stop(follower: Follower, log: QuorumLog) -> None:
        follower.stop(0)
        log.close()
        follower.wait_ended(_CLOSE_SECONDS)

    async def _wait_ended(self, follower: Follower) -> None:
        while not await asyncio.to_thread(follower.wait_ended, 0.5):
            pass
        error = follower.failure
        if error is not None:
            self.on_failure(error if isinstance(error, MetadataError) else LogError(f"replay broke off: {error!r}"))
