"""States of a live quorum, for commands that read: the newest, or one of the past that the log still reaches."""

from collections.abc import Callable
from typing import TypeAlias

from attrs import define, field

from metalog.errors import LogError
from nodes.config.node_config import ClientSecurity, HostPort
from nodes.observer.options import ObserverOptions
from nodes.observer.quorum_log import QuorumLog
from snapshots.image import Image
from snapshots.newer_kafka import NewerKafka
from snapshots.recovery import Moment, Progress, Recovered, recover_log

Notify: TypeAlias = Callable[[str], None]
"""Told each note of a recovery once."""

CONNECT_SECONDS = 30.0
"""How long a leader is looked for at first."""

_READ_BYTES = 16 << 20


def open_quorum(
    servers: tuple[HostPort, ...],
    security: ClientSecurity,
    *,
    client_id: str = "aclog",
    timeout: float = CONNECT_SECONDS,
    options: ObserverOptions | None = None,
) -> QuorumLog:
    """A quorum's log, its high-water mark known; close it.

    Raises:
        LogError: no leader was found in `timeout` seconds, or it does not let us in.
        ConfigError: the security settings cannot be used, or the controllers are too old.
        DecodeError: what is there does not speak Kafka's protocol.

    """
    log = QuorumLog(servers=servers, security=security, client_id=client_id, options=options or ObserverOptions())
    try:
        log.wait_known(timeout)
    except BaseException:
        log.close()
        raise
    return log


@define(eq=False)
class QuorumSource:
    """A live quorum as a source of states (shell.source.StateSource); for one thread, and to be closed.

    The newest image follows the log from one question to the next.
    """

    log: QuorumLog
    notify: Notify = field(default=lambda _: None)
    progress: Progress | None = None
    writable_log: None = field(default=None, init=False)
    """Its controllers change it."""
    _newest: Recovered | None = field(default=None, init=False)
    _told: set[str] = field(factory=set, init=False)

    @property
    def name(self) -> str:
        """The servers."""
        return self.log.name

    def image(self) -> Image:
        """The newest committed state that was heard of.

        Raises:
            MetadataError: the quorum is out of reach, or its log cannot be replayed.

        """
        if self._newest is None:
            self._newest = self._recover(None)
            return self._newest.image
        applier = self._newest.applier
        try:
            while applier.next_offset < self.log.high_watermark():
                applier.apply(self.log.read(applier.next_offset, _READ_BYTES))
        except LogError:
            if applier.next_offset >= self.log.start_offset():
                raise
            self._newest = self._recover(None)  # the leader no longer has what comes next, but a snapshot
        return self._newest.applier.image

    def image_at(self, moment: Moment) -> Image:
        """The state at an end offset or a time, not before the newest snapshot's.

        Raises:
            MetadataError: the quorum is out of reach, or no longer reaches back so far.

        """
        return self._recover(moment).image

    def close(self) -> None:
        """Let go of the quorum; a second close is nothing."""
        self.log.close()

    def _recover(self, moment: Moment | None) -> Recovered:
        newer = NewerKafka(strict=False)
        found = recover_log(self.log, self.log.checkpoints(), moment, newer=newer, progress=self.progress)
        for note in found.notes:
            if note not in self._told:
                self._told.add(note)
                self.notify(note)
        return found
