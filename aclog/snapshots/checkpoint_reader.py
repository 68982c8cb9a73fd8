"""Reads checkpoints: a snapshot file is accepted whole or refused (FileRawSnapshotReader, RecordsSnapshotReader)."""

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
"""Written by `kafka-storage format` next to a log: records for the log's first transaction, not in any log yet."""


def read_checkpoint(path: Path | str, *, newer: NewerKafka | None = None) -> Image:
    """Return the image in a checkpoint file, whose name has its end offset and epoch.

    The file must begin with a SnapshotHeader and end with a SnapshotFooter, and every batch must have the epoch of the
    name, which no CRC covers. `newer` is the policy for a newer Kafka's records; the default is to refuse them.

    Raises:
        CheckpointError: the file is not a complete checkpoint, or does not match its name.

    """
    path = Path(path)
    end_offset, epoch = _parse_name(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot read: {error.strerror or error}") from error
    try:
        return decode_checkpoint(data, end_offset=end_offset, epoch=epoch, newer=newer)
    except DecodeError as error:
        raise CheckpointError(str(error.at(path=str(path)))) from error


def _parse_name(path: Path) -> tuple[int, int]:
    if path.name == BOOTSTRAP_NAME:
        # Not in Kafka's naming scheme for snapshots, as it is not a state at an offset.
        return 0, 0
    found = parse_checkpoint_name(path.name)
    if found is not None:
        return found
    if path.name.endswith(PARTIAL_SUFFIX):
        raise CheckpointError(f"{path}: an unfinished checkpoint: expected a file without {PARTIAL_SUFFIX}")
    raise CheckpointError(
        f"{path}: not a checkpoint file name: expected <20 digits of end offset>-<10 digits of epoch>.checkpoint"
    )


def decode_checkpoint(data: bytes, *, end_offset: int, epoch: int, newer: NewerKafka | None = None) -> Image:
    """Return the image in the bytes of a checkpoint with this end offset and epoch.

    Raises:
        DecodeError: damaged or truncated, not a checkpoint, or of another epoch; positions are in `data`.

    """
    batches = _checked_batches(data, epoch)
    (first_at, first), (last_at, last) = batches[0], batches[-1]
    opening = _control_records(data, first_at, first)
    if not opening or not isinstance(opening[0], SnapshotHeader):
        raise DecodeError("no SnapshotHeader: every checkpoint begins with one", position=0)
    closing = _control_records(data, last_at, last)
    if len(closing) != 1 or not isinstance(closing[0], SnapshotFooter):
        raise DecodeError("no SnapshotFooter: the checkpoint is truncated", position=last_at)
    kraft = next((r.kraft_version for r in opening if isinstance(r, KRaftVersion)), 0)
    voters = next((r for r in opening if isinstance(r, KRaftVoters)), None)
    timestamp = opening[0].last_contained_log_timestamp
    # The applier expects contiguous offsets, so replay runs with the checkpoint's own offsets (from the header on);
    # afterwards the image gets the end offset that the file name states.
    start = Provenance(
        end_offset=first.record_count, epoch=epoch, timestamp=timestamp, kraft_version=kraft, voters=voters
    )
    content = _replay(data, first.size, last_at, start=Image(provenance=start), newer=newer)
    provenance = Provenance(end_offset=end_offset, epoch=epoch, timestamp=timestamp, kraft_version=kraft, voters=voters)
    return content.at(provenance)


def _replay(data: bytes, position: int, end: int, start: Image, newer: NewerKafka | None) -> Image:
    """Replay what is between header and footer; it has the form of a log, except that offsets begin at 0."""
    applier = Applier(image=start, newer=newer or NewerKafka())
    image = applier.apply(data, position, end)
    if applier.in_transaction:
        raise DecodeError("the checkpoint ends inside a transaction: checkpoints have none", position=end)
    return image


def _checked_batches(data: bytes, epoch: int) -> list[tuple[int, BatchHeader]]:
    """Return every batch's position and header: whole, of this epoch, dense offsets, control batches at both ends."""
    batches = list(iter_batches(data))
    whole = batches[-1][0] + batches[-1][1].size if batches else 0
    if len(batches) < 2 or whole != len(data):
        raise DecodeError("truncated: expected a header, whole batches and a footer", position=whole)
    offset = 0
    for number, (position, header) in enumerate(batches):
        # Neither is covered by the CRC: offsets are checked by continuity, the epoch against the file name.
        if header.base_offset != offset or header.leader_epoch != epoch:
            raise DecodeError(
                f"a batch at offset {header.base_offset} of epoch {header.leader_epoch}: "
                f"expected offset {offset}, and epoch {epoch} as in the checkpoint's name",
                position=position,
            )
        if header.is_control != (number in {0, len(batches) - 1}):
            what = (
                "a control batch between data batches"
                if header.is_control
                else "no footer: the checkpoint is truncated"
            )
            raise DecodeError(f"{what}: expected control batches at both ends, and only there", position=position)
        offset = header.end_offset
    return batches


def _control_records(data: bytes, position: int, header: BatchHeader) -> list[ControlRecord]:
    check_crc(data, position, header)
    return [decode_control(record.key or b"", record.value) for record in read_records(data, position, header)]
