"""The state source of a running quorum, whose log is followed by Fetch (aclog.snapshots.state_source)."""

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
"""How long to wait for a leader that knows the high-water mark."""
_READ_BYTES = 16 << 20


@define(eq=False)
class QuorumSource:
    """The log of a running quorum; each `image` continues from the one before."""

    controllers: tuple[HostPort, ...]
    security: ClientSecurity
    notify: Notify
    progress: Progress | None = None
    _log: QuorumLog | None = field(default=None, init=False)
    _newest: Recovered | None = field(default=None, init=False)

    writable_log: None = field(default=None, init=False)
    """None: there is no directory that `aclog acls` could change."""

    @property
    def name(self) -> str:
        """The controllers that were given."""
        return ",".join(map(str, self.controllers))

    @property
    def log(self) -> QuorumLog:
        """The log, connected to on first use.

        Raises:
            MetadataError: no controller can be followed.

        """
        if self._log is None:
            log = QuorumLog(servers=self.controllers, security=self.security)
            try:
                log.wait_known(_KNOWN_SECONDS)
            except BaseException:
                log.close()
                raise
            self._log = log
            # Commands do not close their source: the fetcher thread must end before the interpreter is torn down.
            atexit.register(log.close)
        return self._log

    def image(self) -> Image:
        """Return the newest committed state.

        Raises:
            MetadataError: the log cannot be followed or replayed.

        """
        log = self.log
        newest = self._newest
        while newest is None or newest.applier.next_offset < log.high_watermark():
            # The leader may have deleted the next offset by retention: start again from its newest snapshot.
            if newest is None or newest.applier.next_offset < log.start_offset():
                self._newest = newest = self._recover(None)
            else:
                newest.applier.apply(log.read(newest.applier.next_offset, _READ_BYTES))
        return newest.applier.image

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment, as far back as the quorum's log reaches. Raises as `image`."""
        return self._recover(moment).image

    def close(self) -> None:
        """Close the connection; idempotent."""
        if self._log is not None:
            self._log.close()

    def _recover(self, moment: Moment | None) -> Recovered:
        newer = NewerKafka(strict=False)
        found = recover_log(self.log, self.log.checkpoints(), moment, newer=newer, progress=self.progress)
        for note in found.notes:
            self.notify(note)
        return found
