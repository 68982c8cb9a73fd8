"""Copies what a quorum commits into a directory of segments."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from aclog.cli.follow import FollowerStatus, serving
from aclog.cli.signals import on_signals
from aclog.cli.snapshot import complete_image_files, make_image_file
from aclog.client.errors import CommittedRecordsLostError, OtherClusterError
from aclog.client.fetching import EpochEnd, LogIdentity, ObserverOptions
from aclog.client.quorum_log import QuorumLog, QuorumMirror
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.filelog.files import LogEnd
from aclog.metalog.filelog.mirror import MirrorLog, open_mirror
from aclog.metalog.values import frozen
from aclog.terminal.notices import progress
from aclog.terminal.output import note

_OPTIONS = ObserverOptions(read_seconds=5.0)
"""A short read timeout, so that errors are reported soon."""
_ONCE_PATIENCE_SECONDS = 30.0


@frozen(kw_only=True)
class MirrorOptions:
    """The quorum, the mirror, and how to run; `give_up_after` is in seconds without a usable leader."""

    controllers: tuple[HostPort, ...]
    security: ClientSecurity
    directory: Path
    once: bool
    http: HostPort | None
    give_up_after: float | None

    @property
    def patience(self) -> float | None:
        """Seconds without a usable leader after which to give up; None is never."""
        return _ONCE_PATIENCE_SECONDS if self.once and self.give_up_after is None else self.give_up_after


def mirror_quorum(options: MirrorOptions) -> None:
    """Mirror until SIGINT or SIGTERM, or with `once` up to the first high-water mark; print a note at the end.

    Raises:
        LockedError: another process mirrors into the directory.
        CommittedRecordsLostError, OtherClusterError: the history of the quorum differs from that of the mirror, which
            is left unchanged.
        ConfigError: the HTTP endpoint cannot listen.
        LogError: the directory is not a mirror, or cannot be written; or the quorum refuses, or is unreachable for too
            long.
        DecodeError: the mirror is damaged.

    """
    status = FollowerStatus()
    with open_mirror(options.directory) as mirror, serving(options.http, status):
        for text in mirror.notes:
            note(text)
        complete_image_files(options.directory)
        began = mirror.end
        log = QuorumLog(
            servers=options.controllers,
            security=options.security,
            client_id="aclog-mirror",
            cluster_id=mirror.cluster_id,
            options=_OPTIONS,
            # The quorum checks this end against its history (Fetch, DivergingEpoch): a mismatch means lost records.
            after=None if began is None else EpochEnd(epoch=began.epoch, end_offset=began.end_offset),
            identity=LogIdentity.of(*mirror.outer_batches()),
            notify=note,
        )
        with (
            log,
            _stopped_by_signals(log) as stop,
            progress(f"mirroring into {options.directory.name}", "records") as advance,
        ):
            mirroring = QuorumMirror(
                quorum=log,
                mirror=mirror,
                stop=stop,
                notify=note,
                advance=advance,
                patience=options.patience,
                succeeded=status.succeeded,
                failed=status.failed,
                checkpointed=partial(make_image_file, bar=False),  # the mirror has one
            )
            status.gauge("aclog_lag_records", "Committed records known that are not mirrored yet.").set_function(
                lambda: mirroring.lag
            )
            with _advising(mirror):
                mirroring.run(once=options.once)
        note(_summary(mirroring, began))


@contextmanager
def _advising(mirror: MirrorLog) -> Iterator[None]:
    """Add advice to errors that a retry cannot overcome."""
    try:
        yield
    except CommittedRecordsLostError as error:
        raise CommittedRecordsLostError(
            f"{error}; {mirror.name} is left unchanged: find out what was lost, or mirror into another directory"
        ) from None
    except OtherClusterError as error:
        raise OtherClusterError(
            f"{error}, which {mirror.name} is a mirror of; use another directory for another cluster"
        ) from None


def _summary(mirroring: QuorumMirror, began: LogEnd | None) -> str:
    mirror = mirroring.mirror
    if mirror.end is None:
        return f"{mirror.name}: nothing mirrored yet"
    since = "" if began is None else f" since offset {began.end_offset}"
    what = f"{mirroring.batches} batches, {mirroring.size} bytes{since}"
    return f"{mirror.name}: {what}; ends at offset {mirror.end.end_offset}, epoch {mirror.end.epoch}"


@contextmanager
def _stopped_by_signals(log: QuorumLog) -> Iterator[threading.Event]:
    """Yield an event that SIGINT or SIGTERM sets; a second signal has its previous action.

    A signal also closes the log, which ends any wait: downloading a snapshot may take long. Both are done by a thread
    that reads a queue: a handler that set the event itself could deadlock on the event's lock, which the thread it
    interrupts may hold.
    """
    stop, signalled = threading.Event(), SimpleQueue[None]()

    def close() -> None:
        """Wait for a signal, then stop the mirror."""
        signalled.get()
        stop.set()
        log.close()

    closer = threading.Thread(target=close, name="mirror-closer", daemon=True)
    closer.start()
    try:
        with on_signals(lambda: signalled.put(None)):
            yield stop
    finally:
        signalled.put(None)  # wakes the thread if there was no signal
        closer.join()
