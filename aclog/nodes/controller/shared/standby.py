"""A standby controller: it follows the shared log and takes part in the election."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from attrs import define, field

from aclog.metalog.errors import LogError
from aclog.nodes.controller.shared.election_state import ElectionState
from aclog.nodes.controller.shared.fenced_log import Candidacy, SharedLog, SharedReader
from aclog.nodes.controller.shared.followed_log import FollowedLog
from aclog.nodes.observer.follower import Follower
from aclog.snapshots.publisher import Publisher

_POLL_SECONDS = 0.05
"""Polling interval for the follower's progress."""
_WARN_SECONDS = 5.0

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class Standby:
    """Owned by the node's event loop; the work is done in threads. Created once the high-water mark is known."""

    shared: SharedLog
    election: ElectionState
    publisher: Publisher
    reader: SharedReader
    directory: Path
    """The checkpoint directory."""
    on_read: Callable[[int], None]
    """Receives, on the event loop, the number of bytes read."""
    may_lead: Callable[[], bool] = lambda: True
    """Whether this node may stand for election."""
    _first_mark: int = field(init=False)
    """The high-water mark at startup. A controller joins the election only after replaying up to it; if elected
    earlier, it would leave the cluster without an active controller during its replay."""
    _candidacy: Candidacy | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._first_mark = self.reader.high_watermark()

    async def run(self) -> None:
        """Follow until this node is elected or stops.

        The follower has ended before this returns: the term that follows stages on the same image.

        Raises:
            MetadataError: The log cannot be replayed, or can never be followed again.
            ConfigError: The node cannot join the election as configured.

        """
        follower: Follower | None = None
        try:
            while not (self.election.elected or self.election.stopping):
                # Nothing to follow in an empty log, and no checkpoint either: the first leader bootstraps it.
                if follower is None and self._log_begun:
                    follower = self._follow()
                if self.reader.failure is not None:
                    raise self.reader.failure  # the follower would retry for ever, and answer from what it has
                if follower is not None and follower.wait_ended(0):
                    raise follower.failure or LogError(f"{self.shared.name}: the follower has ended")
                if self._candidacy is None and self._caught_up and self.may_lead():
                    self._candidacy = await asyncio.to_thread(
                        self.shared.join_election, self.election.elect, self.election.depose
                    )
                await self.election.wait(_POLL_SECONDS)
        finally:
            if follower is not None:
                await asyncio.to_thread(_stop_follower, follower)

    async def resign(self) -> None:
        """Leave the election until the next `run`, so that another controller can be elected."""
        if self._candidacy is not None:
            candidacy, self._candidacy = self._candidacy, None
            await asyncio.to_thread(candidacy.close)

    @property
    def _log_begun(self) -> bool:
        """Whether a first leader has begun to write its bootstrap records after its epoch's first record."""
        return self.reader.high_watermark() > 1

    @property
    def _caught_up(self) -> bool:
        return self.publisher.applier.next_offset >= self._first_mark or not self._log_begun

    def _follow(self) -> Follower:
        loop = asyncio.get_running_loop()
        log = FollowedLog(
            reader=self.reader,
            directory=self.directory,
            on_read=lambda size: loop.call_soon_threadsafe(self.on_read, size),
        )
        follower = Follower(log=log, publisher=self.publisher, notify=_log.warning)
        follower.start()
        return follower


def _stop_follower(follower: Follower) -> None:
    follower.stop(0)
    while not follower.wait_ended(_WARN_SECONDS):
        _log.warning("%s: waiting for a read to complete", follower.log.name)
