"""Opens a log directory for writing: creates it, recovers from a crash, continues or begins a leader epoch.

All of this happens under the writer's lock.
"""

import os
from contextlib import ExitStack, closing
from pathlib import Path

from attrs import evolve

from aclog.metalog.batches import read_header
from aclog.metalog.clock import current_time_ms
from aclog.metalog.control_records import LeaderChange, LeaderChangeVoter, control_batch
from aclog.metalog.filelog.appender import SEGMENT_BYTES, Fsync
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.creation import create_directory, create_log
from aclog.metalog.filelog.epochs import write_epochs
from aclog.metalog.filelog.file_log import FileLog
from aclog.metalog.filelog.file_names import find_segments, list_segments
from aclog.metalog.filelog.locks import WriterLock
from aclog.metalog.filelog.mark import Mark, publish_durably
from aclog.metalog.filelog.mirror_properties import refuse_mirror
from aclog.metalog.filelog.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from aclog.metalog.filelog.tail_recovery import RecoveredEnd, recover_end
from aclog.metalog.log import EpochStart


def open_log(
    directory: Path | str,
    *,
    create: bool = False,
    force: bool = False,
    new_epoch: bool = False,
    node_id: int = 1,
    timestamp: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    fsync: Fsync = os.fsync,
) -> FileLog:
    """Open a log directory for writing; this process is its only writer until the log is closed.

    `create` makes a new log if there is none: its epoch 1 begins with a LeaderChange of `node_id`. An existing log
    stays in its epoch, or begins the next one with `new_epoch`; an epoch begins at `timestamp` (ms since 1970, default
    now). `force` is required next to Kafka's meta.properties. Bytes above the high-water mark that are not a whole
    batch are truncated; whole batches there are kept (`log.notes`). A node's log must contain what its committed mark
    says (committed_mark.py).

    Raises:
        LockedError: another process writes to it, or a Kafka node is running on it.
        LogError: there is no log, or it is a mirror, or cannot be written; or committed records are missing.
        DecodeError: committed bytes are damaged, with path, position and offset.
        EncodeError: a node id or a timestamp that the format cannot represent.

    """
    directory = Path(directory)
    refuse_mirror(directory)
    if committed := read_committed(directory):
        committed.check_exists()
    if create:
        create_directory(directory)
    else:
        find_segments(directory)
    with ExitStack() as stack:
        # The lock comes before anything is read: another writer could still be changing the tail.
        lock = stack.enter_context(closing(WriterLock.acquire(directory, force=force)))
        # Checked again under the lock: another process may have created the log, or written to it, in the meantime.
        committed = read_committed(directory)
        if create and not list_segments(directory):
            create_log(directory)
        found = recover_end(directory, stack, segment_bytes, fsync, committed=committed)
        if new_epoch or _has_no_leader(directory, found):
            begun = current_time_ms() if timestamp is None else timestamp
            found = _begin_epoch(directory, found, node_id, begun)
        log = FileLog(
            directory=directory,
            notes=found.notes,
            leader_epoch=found.epochs[-1].epoch,
            lock=lock,
            marks=found.marks,
            segments=found.segments,
            appender=found.appender,
            high_watermark=found.end_offset,
            last_crc=found.last_crc,
            committed=committed,
        )
        stack.pop_all()
    return log


def _has_no_leader(directory: Path, found: RecoveredEnd) -> bool:
    """Return whether nobody who wrote to this directory led its last epoch: it is new, or was a mirror."""
    begun = found.epochs and found.epochs[-1].epoch == found.latest_epoch
    return not begun or read_quorum_state(directory) is None


def _begin_epoch(directory: Path, found: RecoveredEnd, node_id: int, timestamp: int) -> RecoveredEnd:
    """Begin the next leader epoch: update the mark file first, so that it is never behind leader-epoch-checkpoint."""
    state = read_quorum_state(directory) or QuorumState(leader_id=node_id, leader_epoch=0, voters=(node_id,))
    epoch = max(found.latest_epoch, state.leader_epoch) + 1
    leader = state.leader_id if state.leader_id >= 0 else node_id
    voters = tuple(LeaderChangeVoter(voter_id=voter) for voter in state.voters or (leader,))
    change = LeaderChange(leader_id=leader, voters=voters, granting_voters=(LeaderChangeVoter(voter_id=leader),))
    batch = control_batch(change, base_offset=found.end_offset, leader_epoch=epoch, timestamp=timestamp)
    # The order matters. If leader-epoch-checkpoint had an epoch that the mark file lacks, the mark would look stale
    # (as if Kafka had led since) and be ignored. A crash between any two of these steps leaves an epoch without
    # batches, which the next open skips.
    publish_durably(found.marks, Mark(epoch=epoch, offset=found.end_offset))
    write_quorum_state(directory, state.led_by(leader, epoch))
    epochs = (*found.epochs, EpochStart(epoch=epoch, start_offset=found.end_offset))
    write_epochs(directory, epochs)
    found.segments.epochs = epochs
    found.appender.write([batch])
    publish_durably(found.marks, Mark(epoch=epoch, offset=found.end_offset + 1))
    crc = read_header(batch).crc
    return evolve(found, epochs=epochs, latest_epoch=epoch, end_offset=found.end_offset + 1, last_crc=crc)
