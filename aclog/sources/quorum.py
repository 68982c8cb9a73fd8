"""States of running quorums, by following their logs (aclog.snapshots.state_source)."""

import atexit

from attrs import define, field

from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.observer.quorum_log import QuorumLog
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.recovery import Progress, Recovered, recover_log
from aclog.sources.paths import Notify

_KNOWN_SECONDS = 30.0
"""How long to look for a leader who tells the high-water mark."""
_READ_BYTES = 16 << 20


@define(eq=False)
class QuorumSource:
    """The log of a running quorum; its newest image follows it from one question to the next."""

    controllers: tuple[HostPort, ...]
    security: ClientSecurity
    notify: Notify
    progress: Progress | None = None
    _log: QuorumLog | None = field(default=None, init=False)
    _newest: Recovered | None = field(default=None, init=False)

    writable_log: None = field(default=None, init=False)
    """Nothing that is changed as a directory."""

    @property
    def name(self) -> str:
        """The controllers that were given."""
        return ",".join(map(str, self.controllers))

    @property
    def log(self) -> QuorumLog:
        """The log, which is followed live.

        Raises:
            MetadataError: nobody can be followed there.

        """
        if self._log is None:
            log = QuorumLog(servers=self.controllers, security=self.security)
            try:
                log.wait_known(_KNOWN_SECONDS)
            except BaseException:
                log.close()
                raise
            self._log = log
            atexit.register(log.close)  # a command does not close what it ends with
        return self._log

    def image(self) -> Image:
        """The newest committed state.

        Raises:
            MetadataError: it cannot be followed, or not be replayed.

        """
        log = self.log
        newest = self._newest
        while newest is None or newest.applier.next_offset < log.high_watermark():
            if newest is None or newest.applier.next_offset < log.start_offset():
                self._newest = newest = self._recover(None)
            else:
                newest.applier.apply(log.read(newest.applier.next_offset, _READ_BYTES))
        return newest.applier.image

    def image_at(self, moment: Moment) -> Image:
        """The state at a moment, as far back as the quorum's log reaches. Raises as `image`."""
        return self._recover(moment).image

    def close(self) -> None:
        """Let go of the connection; a second close is nothing."""
        if self._log is not None:
            self._log.close()

    def _recover(self, moment: Moment | None) -> Recovered:
        newer = NewerKafka(strict=False)
        found = recover_log(self.log, self.log.checkpoints(), moment, newer=newer, progress=self.progress)
        for note in found.notes:
            self.notify(note)
        return found
