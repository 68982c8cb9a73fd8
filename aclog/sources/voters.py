"""How many voters the quorum of a log has: with one, whatever its log holds is committed."""

from aclog.metalog.batches import decode_batch
from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.filelog import FileLogReader
from aclog.metalog.filelog.epochs import read_epochs
from aclog.metalog.filelog.reader import UNCOMMITTED_TAIL
from aclog.snapshots.image import Image


def notes_of(log: FileLogReader, image: Image) -> tuple[str, ...]:
    """What is to be said of a log, whose newest state is `image`, without what a sole voter makes void.

    Raises:
        LogError, DecodeError: the log cannot be read where its last epoch begins.

    """
    if not any(note.endswith(UNCOMMITTED_TAIL) for note in log.notes) or not _has_one_voter(log, image):
        return log.notes
    return tuple(note for note in log.notes if not note.endswith(UNCOMMITTED_TAIL))


def _has_one_voter(log: FileLogReader, image: Image) -> bool:
    """Whether the newest voters that the log tells of are one; False where it tells of none.

    A KRaftVoters record says who they are (KIP-853), in a static quorum the LeaderChange that began the last epoch.
    """
    voters = image.provenance.voters
    if voters is not None:
        return len(voters.voters) == 1
    leader = _last_leader_change(log)
    return leader is not None and len(leader.voters) == 1


def _last_leader_change(log: FileLogReader) -> LeaderChange | None:
    *_, start = read_epochs(log.directory) or [None]
    if start is None or not log.start_offset() <= start.start_offset < log.high_watermark():
        return None
    batch = decode_batch(log.read(start.start_offset, max_bytes=1))
    if not batch.header.is_control:
        return None
    control = decode_control(batch.records[0].key or b"", batch.records[0].value)
    return control if isinstance(control, LeaderChange) else None
