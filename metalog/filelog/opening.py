"""Open a log directory for writing: create it, recover what a crash left, begin or go on with a leader epoch.

Only the holder of the writer's lock ever gets here, so only it ever cuts a tail.
"""

import os
import time
from contextlib import ExitStack, closing
from pathlib import Path

from attrs import evolve, frozen

from metalog.control import LeaderChange, LeaderChangeVoter, control_batch
from metalog.errors import LogError
from metalog.filelog.appender import Appender, Fsync
from metalog.filelog.creation import create_directory, create_log
from metalog.filelog.epochs import EPOCHS_FILE, read_epochs, write_epochs
from metalog.filelog.file_log import FileLog
from metalog.filelog.locks import WriterLock
from metalog.filelog.mark import Mark, MarkFile, create_mark_file, open_valid_mark_file
from metalog.filelog.names import find_segments, list_segments
from metalog.filelog.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from metalog.filelog.retention import unlink_deleted_segments
from metalog.filelog.segments import Segments
from metalog.filelog.tail import Tail, find_tail
from metalog.group_commit import MAX_BATCH_BYTES
from metalog.log import EpochStart

SEGMENT_BYTES = MAX_BATCH_BYTES
"""Where a segment is rolled unless another size is asked for: the smallest metadata.log.segment.bytes of a Kafka."""


@frozen(kw_only=True)
class _Recovered:
    """A log directory whose end is known and durable: what it ends with, and the open files to go on with."""

    marks: MarkFile
    segments: Segments
    appender: Appender
    epochs: tuple[EpochStart, ...]
    latest_epoch: int
    end_offset: int
    notes: tuple[str, ...]


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
    """Open a log directory for writing; this process is then its one writer until the log is closed.

    `create` makes a new log where there is none: its epoch 1 begins with a LeaderChange of `node_id`. An existing log
    stays in its epoch, or begins the next one with `new_epoch`; an epoch begins at `timestamp` (ms since 1970), now by
    default. `force` is needed beside a Kafka's meta.properties. Bytes above the high-water mark that are not a whole
    batch are cut; whole batches there are kept (`log.notes`).

    Raises:
        LockedError: somebody else writes to it, or a Kafka runs on it.
        LogError: no log is there, or it cannot be written.
        DecodeError: committed bytes are damaged, with path, position and offset.
        EncodeError: a node id or a timestamp that the format cannot hold.

    """
    directory = Path(directory)
    if create:
        create_directory(directory)
    else:
        find_segments(directory)
    with ExitStack() as stack:
        lock = stack.enter_context(closing(WriterLock.acquire(directory, force=force)))
        if create and not list_segments(directory):
            create_log(directory)
        found = _recover(directory, stack, segment_bytes, fsync)
        if new_epoch or not found.epochs or found.latest_epoch > found.epochs[-1].epoch:
            begun = time.time_ns() // 1_000_000 if timestamp is None else timestamp
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
        )
        stack.pop_all()
    return log


def _recover(directory: Path, stack: ExitStack, segment_bytes: int, fsync: Fsync) -> _Recovered:
    """Find the end, cut what was torn, make all of it durable, and only then publish it.

    Whole batches above the published mark are kept. They stand in the order in which offsets were given out, and
    nobody was told that they failed: a failed write is cut back at once, and who waited when the process died learned
    nothing. Cutting them could lose what was acknowledged, since a power loss may leave an old mark behind.
    """
    unlink_deleted_segments(directory)
    epochs = read_epochs(directory)
    if epochs is None:
        raise LogError(f"{directory / EPOCHS_FILE}: not there: nothing can be appended without the leader epochs")
    marks = open_valid_mark_file(directory, writable=True)
    mark = stack.enter_context(closing(marks)).read() if marks else None
    segments = Segments.open(directory, epochs)
    tail = find_tail(segments.files(), mark.offset if mark else None, epochs)
    appender = Appender.open(tail.path, tail.position, segment_bytes=segment_bytes, fsync=fsync)
    stack.callback(appender.close)
    begun = tuple(start for start in epochs if start.start_offset < tail.end_offset)
    latest = max([0, *(start.epoch for start in epochs), mark.epoch if mark else 0])
    if marks is None:
        marks = stack.enter_context(closing(create_mark_file(directory, Mark(epoch=latest, offset=tail.end_offset))))
    else:
        _publish(marks, Mark(epoch=latest, offset=tail.end_offset))
    return _Recovered(
        marks=marks,
        segments=segments,
        appender=appender,
        epochs=begun,
        latest_epoch=latest,
        end_offset=tail.end_offset,
        notes=_notes(tail),
    )


def _notes(tail: Tail) -> tuple[str, ...]:
    if not tail.torn_bytes:
        return ()
    where = f"{tail.path}: byte {tail.position}, offset {tail.end_offset}"
    return (f"{where}: a torn tail of {tail.torn_bytes} bytes was cut ({tail.problem})",)


def _begin_epoch(directory: Path, found: _Recovered, node_id: int, timestamp: int) -> _Recovered:
    """Begin the next leader epoch: the mark file first, so that it is never behind leader-epoch-checkpoint."""
    state = read_quorum_state(directory) or QuorumState(leader_id=node_id, leader_epoch=0, voters=(node_id,))
    epoch = max(found.latest_epoch, state.leader_epoch) + 1
    leader = state.leader_id if state.leader_id >= 0 else node_id
    voters = tuple(LeaderChangeVoter(voter_id=voter) for voter in state.voters or (leader,))
    change = LeaderChange(leader_id=leader, voters=voters, granting_voters=(LeaderChangeVoter(voter_id=leader),))
    batch = control_batch(change, base_offset=found.end_offset, leader_epoch=epoch, timestamp=timestamp)
    _publish(found.marks, Mark(epoch=epoch, offset=found.end_offset))
    write_quorum_state(directory, state.led_by(leader, epoch))
    epochs = (*found.epochs, EpochStart(epoch=epoch, start_offset=found.end_offset))
    write_epochs(directory, epochs)
    found.segments.epochs = epochs
    found.appender.write([batch])
    _publish(found.marks, Mark(epoch=epoch, offset=found.end_offset + 1))
    return evolve(found, epochs=epochs, latest_epoch=epoch, end_offset=found.end_offset + 1)


def _publish(marks: MarkFile, mark: Mark) -> None:
    marks.publish(mark)
    marks.sync()
