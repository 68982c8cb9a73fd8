"""`aclog mirror`: a quorum's log, carried over into a directory until somebody says stop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

from aclog.metalog.filelog.mirror_log import MirrorLog, open_mirror
from aclog.metalog.filelog.mirror_properties import LogEnd
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.observer.errors import CommittedRecordsLostError, OtherClusterError
from aclog.nodes.observer.fetch_messages import EpochEnd
from aclog.nodes.observer.fetch_options import ObserverOptions
from aclog.nodes.observer.mirror import QuorumMirror
from aclog.nodes.observer.quorum_log import QuorumLog
from aclog.terminal.notices import note
from aclog.terminal.progress import progress

_OPTIONS = ObserverOptions(read_seconds=5.0)
"""A read is not waited for longer, so that a trouble is soon told."""
_ONCE_PATIENCE_SECONDS = 30.0


def mirror_quorum(controllers: tuple[HostPort, ...], security: ClientSecurity, directory: Path, *, once: bool) -> None:
    """Mirror until SIGINT or SIGTERM; `once`: up to the high-water mark that is met first. Ends with a note.

    Raises:
        LockedError: another process mirrors into the directory.
        CommittedRecordsLostError, OtherClusterError: the quorum has another history than the mirror, which stays as it
            is.
        LogError: the directory is no mirror, or cannot be written; or the quorum is out of reach, or refuses.
        DecodeError: the mirror is damaged.

    """
    with open_mirror(directory) as mirror:
        for text in mirror.notes:
            note(text)
        began = mirror.end
        log = QuorumLog(
            servers=controllers,
            security=security,
            client_id="aclog-mirror",
            cluster_id=mirror.cluster_id,
            options=_OPTIONS,
            after=None if began is None else EpochEnd(epoch=began.epoch, end_offset=began.end_offset),
        )
        with log, _stopped_by_signals(log) as stop, progress(f"mirroring into {directory.name}") as advance:
            mirroring = QuorumMirror(
                quorum=log,
                mirror=mirror,
                stop=stop,
                notify=note,
                advance=advance,
                patience=_ONCE_PATIENCE_SECONDS if once else None,
            )
            with _telling_what_to_do(mirror):
                mirroring.run(once=once)
        note(_summary(mirroring, began))


@contextmanager
def _telling_what_to_do(mirror: MirrorLog) -> Iterator[None]:
    """Add to errors that no second try can overcome."""
    try:
        yield
    except CommittedRecordsLostError as error:
        raise CommittedRecordsLostError(
            f"{error}; {mirror.name} is left as it is: find out what was lost, or mirror into another directory"
        ) from None
    except OtherClusterError as error:
        raise OtherClusterError(
            f"{error}, which {mirror.name} is a mirror of; mirror another cluster into another directory"
        ) from None


def _summary(mirroring: QuorumMirror, began: LogEnd | None) -> str:
    mirror = mirroring.mirror
    if mirror.end is None:
        return f"{mirror.name}: nothing is mirrored yet"
    since = "" if began is None else f" since offset {began.end_offset}"
    what = f"{mirroring.batches} batches, {mirroring.size} bytes{since}"
    return f"{mirror.name}: {what}; ends at offset {mirror.end.end_offset}, epoch {mirror.end.epoch}"


@contextmanager
def _stopped_by_signals(log: QuorumLog) -> Iterator[threading.Event]:
    """Set by SIGINT or SIGTERM; a second signal ends the process as if nobody handled it.

    The log is closed then, whatever is waited for: the download of a snapshot may take long. A thread does both, and is
    told by a queue, since a handler that set an event could meet its lock held by the very thread it interrupts.
    """
    stop, signals = threading.Event(), SimpleQueue[int]()
    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def close() -> None:
        """Wait for a signal, then end the mirror."""
        signals.get()
        stop.set()
        log.close()

    def handle(number: int, _frame: FrameType | None) -> None:
        """Tell of the first one; the next of its kind does what it did before."""
        signals.put(number)
        signal.signal(number, before[number])

    closer = threading.Thread(target=close, name="mirror-closer", daemon=True)
    closer.start()
    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signals.put(0)
        closer.join()
