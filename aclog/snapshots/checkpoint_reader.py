"""Checkpoints, read: a snapshot file is taken whole or refused (FileRawSnapshotReader, RecordsSnapshotReader)."""

from pathlib import Path

from aclog.metalog.batches import BatchHeader, check_crc, iter_batches, read_records
from aclog.metalog.control_records import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    decode_control,
)
from aclog.metalog.errors import CheckpointError, DecodeError
from aclog.metalog.filelog.file_names import PARTIAL_SUFFIX, parse_checkpoint_name
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.provenance import Provenance

BOOTSTRAP_NAME = "bootstrap.checkpoint"
"""What `kafka-storage format` writes beside a log: records for the log's first transaction, not yet in any log."""


def read_checkpoint(path: Path | str, *, newer: NewerKafka | None = None) -> Image:
    """The image in a checkpoint file, whose name says its end offset and epoch.

    The file must begin with a SnapshotHeader and end with a SnapshotFooter, and every batch must carry the epoch of
    the name, which no CRC covers. `newer` says what to do about a newer Kafka's; the default is to refuse it.

    Raises:
        CheckpointError: anything that makes the file less than a whole checkpoint, or than what its name says.

    """
    path = Path(path)
    end_offset, epoch = _name_of(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot read: {error.strerror or error}") from error
    try:
        return decode_checkpoint(data, end_offset=end_offset, epoch=epoch, newer=newer)
    except DecodeError as error:
        raise CheckpointError(str(error.at(path=str(path)))) from error


def _name_of(path: Path) -> tuple[int, int]:
    if path.name == BOOTSTRAP_NAME:
        return 0, 0
    found = parse_checkpoint_name(path.name)
    if found is not None:
        return found
    if path.name.endswith(PARTIAL_SUFFIX):
        raise CheckpointError(f"{path}: a checkpoint that was never finished: expected one without {PARTIAL_SUFFIX}")
    raise CheckpointError(
        f"{path}: not a checkpoint's name: expected <20 digits of end offset>-<10 digits of epoch>.checkpoint"
    )


def decode_checkpoint(data: bytes, *, end_offset: int, epoch: int, newer: NewerKafka | None = None) -> Image:
    """The image in the bytes of a checkpoint of this end offset and epoch.

    Raises:
        DecodeError: damaged or cut, not a checkpoint, or of another epoch; positions are in `data`.

    """
    batches = _checked_batches(data, epoch)
    (first_at, first), (last_at, last) = batches[0], batches[-1]
    opening = _control_records(data, first_at, first)
    if not opening or not isinstance(opening[0], SnapshotHeader):
        raise DecodeError("no SnapshotHeader: expected every checkpoint to begin with one", position=0)
    closing = _control_records(data, last_at, last)
    if len(closing) != 1 or not isinstance(closing[0], SnapshotFooter):
        raise DecodeError("no SnapshotFooter: the checkpoint is cut, expected it to end with one", position=last_at)
    kraft = next((r.kraft_version for r in opening if isinstance(r, KRaftVersion)), 0)
    voters = next((r for r in opening if isinstance(r, KRaftVoters)), None)
    timestamp = opening[0].last_contained_log_timestamp
    start = Provenance(
        end_offset=first.record_count, epoch=epoch, timestamp=timestamp, kraft_version=kraft, voters=voters
    )
    content = _replay(data, first.size, last_at, Image(provenance=start), newer)
    provenance = Provenance(end_offset=end_offset, epoch=epoch, timestamp=timestamp, kraft_version=kraft, voters=voters)
    return content.at(provenance)


def _replay(data: bytes, position: int, end: int, start: Image, newer: NewerKafka | None) -> Image:
    """What stands between the header and the footer; it has a log's form, but for its offsets."""
    applier = Applier(image=start, newer=newer or NewerKafka())
    image = applier.apply(data, position, end)
    if applier.in_transaction:
        raise DecodeError("the checkpoint ends inside a transaction: expected no transaction in one", position=end)
    return image


def _checked_batches(data: bytes, epoch: int) -> list[tuple[int, BatchHeader]]:
    """Every batch's place and header: whole, of this epoch, offsets dense, control at both ends."""
    batches = list(iter_batches(data))
    whole = batches[-1][0] + batches[-1][1].size if batches else 0
    if len(batches) < 2 or whole != len(data):
        raise DecodeError("cut: expected a header, whole batches and a footer to the end", position=whole)
    offset = 0
    for number, (position, header) in enumerate(batches):
        if header.base_offset != offset or header.leader_epoch != epoch:
            raise DecodeError(
                f"a batch at offset {header.base_offset} of epoch {header.leader_epoch}: "
                f"expected offset {offset}, and epoch {epoch} as in the checkpoint's name",
                position=position,
            )
        if header.is_control != (number in {0, len(batches) - 1}):
            what = "control records amid the others" if header.is_control else "no footer: the checkpoint is cut"
            raise DecodeError(f"{what}: expected control records at both ends, and only there", position=position)
        offset = header.end_offset
    return batches


def _control_records(data: bytes, position: int, header: BatchHeader) -> list[ControlRecord]:
    check_crc(data, position, header)
    return [decode_control(record.key or b"", record.value) for record in read_records(data, position, header)]
