"""The broker's follower of the controllers' log (BrokerServer's part of kafka.server.SharedServer)."""

import asyncio
import logging
from collections.abc import Callable

from attrs import define, field

from aclog.metalog.errors import LogError, MetadataError
from aclog.nodes.config.node_config import HostPort, NodeConfig
from aclog.nodes.observer.fetch_options import ObserverOptions
from aclog.nodes.observer.follower import Follower
from aclog.nodes.observer.quorum_log import QuorumLog
from aclog.nodes.storage.feature_levels import NEWEST
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
    """Called once, on the event loop, when the log cannot be replayed further: the node must stop."""
    _log_reader: QuorumLog | None = field(default=None, init=False)
    _follower: Follower | None = field(default=None, init=False)
    _watch: "asyncio.Task[None] | None" = field(default=None, init=False)

    async def start(self) -> None:
        """Start following; returns before anything is replayed."""
        self._log_reader = QuorumLog(
            servers=self.config.controller_quorum,
            security=self.config.controller_client,
            client_id=str(self.config.node_id),
            cluster_id=self.cluster_id,
            options=ObserverOptions(newest_level=NEWEST[self.config.generation]),
            notify=_log.warning,
        )
        self._follower = Follower(log=self._log_reader, publisher=self.publisher, notify=_log.warning)
        self._follower.start()
        self._watch = asyncio.create_task(self._wait_ended(self._follower))

    @property
    def leader(self) -> HostPort | None:
        """The active controller's address, if known."""
        return None if self._log_reader is None else self._log_reader.leader

    @property
    def high_watermark(self) -> int:
        """The known high-water mark; -1 while it is unknown."""
        return -1 if self._log_reader is None else self._log_reader.high_watermark()

    async def stop(self) -> None:
        """Stop following; idempotent."""
        if self._watch is not None:
            self._watch.cancel()
        if self._follower is not None and self._log_reader is not None:
            await asyncio.to_thread(self._stop, self._follower, self._log_reader)

    @staticmethod
    def _stop(follower: Follower, log: QuorumLog) -> None:
        follower.stop(0)
        log.close()  # interrupts a read in progress, so that the follower's thread can end
        follower.wait_ended(_CLOSE_SECONDS)

    async def _wait_ended(self, follower: Follower) -> None:
        while not await asyncio.to_thread(follower.wait_ended, 0.5):
            pass
        error = follower.failure
        if error is not None:
            self.on_failure(error if isinstance(error, MetadataError) else LogError(f"replay failed: {error!r}"))
