"""Recovery of the end of a log that is opened for writing: the torn tail is truncated, the rest made durable.

Only the holder of the writer's lock runs this, so nobody else ever truncates a log.
"""

from contextlib import ExitStack, closing
from pathlib import Path

from attrs import frozen

from aclog.metalog.batches import read_header
from aclog.metalog.errors import LogError
from aclog.metalog.filelog.appender import Appender, Fsync
from aclog.metalog.filelog.committed_mark import CommittedMark
from aclog.metalog.filelog.epochs import EPOCHS_FILE, read_epochs
from aclog.metalog.filelog.mark import Mark, MarkFile, create_mark_file, open_valid_mark_file, publish_durably
from aclog.metalog.filelog.retention import unlink_deleted_segments
from aclog.metalog.filelog.segments import Segments
from aclog.metalog.filelog.tail import Tail, find_tail
from aclog.metalog.log import EpochStart


@frozen(kw_only=True)
class RecoveredEnd:
    """A log directory whose end is known and durable, with the open files of its last segment and mark."""

    marks: MarkFile
    segments: Segments
    appender: Appender
    epochs: tuple[EpochStart, ...]
    latest_epoch: int
    end_offset: int
    last_crc: int | None
    """That of the last batch; None if it was not read, because the last segment is empty."""
    notes: tuple[str, ...]


def recover_end(
    directory: Path, stack: ExitStack, segment_bytes: int, fsync: Fsync, *, committed: CommittedMark | None = None
) -> RecoveredEnd:
    """Find the end, truncate a torn tail, make the rest durable, and only then publish its end as the mark.

    Whole batches above the published mark are kept. They are in the order in which offsets were assigned, and no caller
    was ever told that they failed: a failed write is truncated at once, and callers that waited when the process died
    got no answer. Truncating them could lose acknowledged records, since a power loss may leave an old mark behind.
    Nothing is changed if the log does not contain what `committed` says.
    """
    epochs = read_epochs(directory)
    if epochs is None:
        raise LogError(f"{directory / EPOCHS_FILE}: missing: nothing can be appended without the leader epochs")
    marks = open_valid_mark_file(directory, writable=True)
    mark = stack.enter_context(closing(marks)).read() if marks else None
    segments = Segments.open(directory, epochs)
    tail = find_tail(segments.files(), mark.offset if mark else None, epochs)
    if committed is not None:
        committed.check_end(tail.end_offset, epochs)
        _check_batch(committed, segments, tail)
    # A crash during retention leaves renamed segments; they are no longer part of the log.
    unlink_deleted_segments(directory)
    # This truncates the torn tail and fsyncs the segment. The mark below must not be published before: readers would
    # be shown batches that a power loss could still take away.
    appender = Appender.open(tail.path, tail.position, segment_bytes=segment_bytes, fsync=fsync)
    stack.callback(appender.close)
    # An epoch is entered in leader-epoch-checkpoint before its first batch is written: one without any batch is
    # dropped here, but its number counts for `latest`, so that it is never used again.
    begun = tuple(start for start in epochs if start.start_offset < tail.end_offset)
    latest = max([0, *(start.epoch for start in epochs), mark.epoch if mark else 0])
    if marks is None:
        marks = stack.enter_context(closing(create_mark_file(directory, Mark(epoch=latest, offset=tail.end_offset))))
    else:
        publish_durably(marks, Mark(epoch=latest, offset=tail.end_offset))
    return RecoveredEnd(
        marks=marks,
        segments=segments,
        appender=appender,
        epochs=begun,
        latest_epoch=latest,
        end_offset=tail.end_offset,
        last_crc=tail.last_crc,
        notes=_notes(tail),
    )


def _check_batch(committed: CommittedMark, segments: Segments, tail: Tail) -> None:
    end = committed.end_offset
    # At or below the start: a Kafka node's retention has removed that part of the log since.
    if committed.batch_crc is None or end <= segments.start_offset():
        return
    if end == tail.end_offset and tail.last_crc is not None:
        committed.check_batch(tail.last_crc)
        return
    header = read_header(segments.read(end - 1, tail.end_offset, 1))
    committed.check_batch(header.crc if header.end_offset == end else None)


def _notes(tail: Tail) -> tuple[str, ...]:
    if not tail.torn_bytes:
        return ()
    where = f"{tail.path}: byte {tail.position}, offset {tail.end_offset}"
    return (f"{where}: truncated a torn tail of {tail.torn_bytes} bytes ({tail.problem})",)
