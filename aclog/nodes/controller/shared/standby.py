"""A controller that shares its log, while another one is active: it follows, and stands for election."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from attrs import define, field

from aclog.metalog.errors import LogError
from aclog.nodes.controller.shared.fenced_log import Candidacy, SharedLog, SharedReader
from aclog.nodes.controller.shared.followed_log import FollowedLog
from aclog.nodes.controller.shared.leadership import Leadership
from aclog.nodes.observer.follower import Follower
from aclog.snapshots.publisher import Publisher

_LOOK_SECONDS = 0.05
"""How often it is seen how far the follower has come."""
_END_SECONDS = 5.0

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class Standby:
    """Owned by the node's event loop; the work is done in threads. Made when the log's mark is known."""

    shared: SharedLog
    leadership: Leadership
    publisher: Publisher
    reader: SharedReader
    directory: Path
    """Where the checkpoints are."""
    on_read: Callable[[int], None]
    """Told, on the event loop, how many bytes were read."""
    _first_mark: int = field(init=False)
    """What was committed at the start: nobody stands for election who would keep the others waiting for its replay."""
    _candidacy: Candidacy | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._first_mark = self.reader.high_watermark()

    async def run(self) -> None:
        """Follow until this node is elected or stops; no thread touches the image afterwards.

        Raises:
            MetadataError: the log cannot be replayed.
            ConfigError: the node cannot stand as it is configured.

        """
        follower: Follower | None = None
        try:
            while not (self.leadership.elected or self.leadership.stopping):
                if follower is None and self._begun:
                    follower = self._follow()
                if follower is not None and follower.wait_ended(0):
                    raise follower.failure or LogError(f"{self.shared.name}: following has ended")
                if self._candidacy is None and self._caught_up:
                    self._candidacy = await asyncio.to_thread(
                        self.shared.stand, self.leadership.elect, self.leadership.depose
                    )
                await self.leadership.wait(_LOOK_SECONDS)
        finally:
            if follower is not None:
                await asyncio.to_thread(_end, follower)

    async def resign(self) -> None:
        """Stand no more until the next `run`, so that another may be elected."""
        if self._candidacy is not None:
            candidacy, self._candidacy = self._candidacy, None
            await asyncio.to_thread(candidacy.close)

    @property
    def _begun(self) -> bool:
        """Whether there is more than an epoch's first record: the first leader's bootstrap, at least a part of it."""
        return self.reader.high_watermark() > 1

    @property
    def _caught_up(self) -> bool:
        return self.publisher.applier.next_offset >= self._first_mark or not self._begun

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


def _end(follower: Follower) -> None:
    follower.stop(0)
    while not follower.wait_ended(_END_SECONDS):
        _log.warning("%s: waiting for a read to end", follower.log.name)
