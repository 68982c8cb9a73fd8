"""The state source of a running quorum, whose log is followed by Fetch (aclog.snapshots.state_source)."""

import atexit
from datetime import datetime

from attrs import define, field

from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.cluster_settings import ClusterSettings
from aclog.authorizer.premises import Premise
from aclog.metalog.errors import LogError, StaleError
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.observer.fetch_options import ObserverOptions
from aclog.nodes.observer.quorum_log import QuorumLog
from aclog.snapshots.freshness import Freshness
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, milliseconds, moment_text
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.recovery import Progress, Recovered, recover_log
from aclog.sources.event_loop import run
from aclog.sources.gaps import newer_gaps
from aclog.sources.live_settings import controller_settings
from aclog.sources.max_age import check_age
from aclog.sources.notify import Notify
from aclog.terminal.age import STALE_SECONDS
from aclog.terminal.timestamps import utc_text

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
    command_config: str | None = None
    """The file that `security` comes from."""
    max_age: float | None = None
    """In seconds: an older state is not returned."""
    _log: QuorumLog | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    _newest: Recovered | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The controllers that were given."""
        return ",".join(map(str, self.controllers))

    @property
    def change_place(self) -> ChangePlace:
        """These controllers."""
        return ChangePlace(bootstrap_controller=self.name, command_config=self.command_config)

    @property
    def log(self) -> QuorumLog:
        """The log, connected to on first use.

        Raises:
            MetadataError: no controller can be followed, or the source is closed.

        """
        if self._closed:
            raise LogError(f"{self.name}: closed")
        if self._log is None:
            options = ObserverOptions(wait_for_servers=False)
            log = QuorumLog(servers=self.controllers, security=self.security, options=options)
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
        """Return the newest committed state that is known; `freshness` says how old it may be.

        Raises:
            StaleError: it is older than `max_age`.
            MetadataError: the log cannot be followed or replayed, or the source is closed.

        """
        image = self._caught_up()
        if self.max_age is None:
            return image
        found = self.freshness()
        # What was confirmed while the first replay ran: the age is that of what is returned.
        image = self._caught_up()
        check_age(found, self.max_age)
        return image

    def cluster_settings(self) -> ClusterSettings:
        """Return what the controllers answer of the settings of those brokers that are not fenced now.

        Asked on each call. Raises as `image`.
        """
        registered = list(self._caught_up().cluster.brokers())
        alive = [broker.broker_id for broker in registered if not broker.fenced]
        brokers = alive or [broker.broker_id for broker in registered]
        return run(controller_settings(self.controllers, self.security, brokers))

    def gaps(self) -> tuple[Premise, ...]:
        """Return what the newest state lacks, as a newer Kafka wrote it."""
        return () if self._newest is None else newer_gaps(self._newest.applier.newer)

    def freshness(self) -> Freshness | None:
        """Return when the leader last answered; None before the first state."""
        return None if self._log is None else self._log.freshness()

    def _caught_up(self) -> Image:
        log = self.log
        newest = self._newest
        while newest is None or newest.applier.next_offset < log.high_watermark():
            # The leader may have deleted the next offset by retention: start again from its newest snapshot.
            if newest is None or newest.applier.next_offset < log.start_offset():
                self._newest = newest = self._recover(None)
            else:
                newest.applier.apply(log.read(newest.applier.next_offset, _READ_BYTES))
        if log.failure is not None:  # the log that was followed is gone: its last state is nobody's state
            raise log.failure.with_traceback(None)
        return newest.applier.image

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment, as far back as the quorum's log reaches.

        Raises:
            StaleError: a time that a cluster which no longer answers has not confirmed.
            MetadataError: as `image`.

        """
        self._refuse_unconfirmed(moment)
        image = self._recover(moment).image
        if self.max_age is not None:
            check_age(self.freshness(), self.max_age)
        return image

    def close(self) -> None:
        """Close the connection; images remain valid. Idempotent."""
        self._closed = True
        if self._log is not None:
            self._log.close()
            atexit.unregister(self._log.close)  # a process may open many sources

    def _refuse_unconfirmed(self, moment: Moment) -> None:
        """Refuse a time after which a silent cluster may have changed: nobody knows its state then."""
        found = self.freshness()
        if found is None or found.seconds < STALE_SECONDS or not isinstance(moment, datetime):
            return
        if milliseconds(moment) > found.time:
            raise StaleError(
                f"{found.server}: as of {moment_text(moment)}: the state is unknown: nothing was confirmed since "
                f"{utc_text(found.time)}{f': {found.problem}' if found.problem else ''}"
            )

    def _recover(self, moment: Moment | None) -> Recovered:
        newer = NewerKafka(strict=False)
        found = recover_log(self.log, self.log.checkpoints(), moment, newer=newer, progress=self.progress)
        for note in found.notes:
            self.notify(note)
        return found
