"""The part of a log that an image covers, and how each batch advances it (MetadataProvenance)."""

from typing import NamedTuple

from aclog.metalog.batches import BatchHeader, read_records
from aclog.metalog.control_records import KRaftVersion, KRaftVoters, SnapshotFooter, SnapshotHeader, decode_control
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.primitives import Buffer

NO_TIMESTAMP = -1
"""The timestamp of an image without any batch."""


class Provenance(NamedTuple):
    """The part of the log that an image covers, and what its control records say.

    `end_offset` is exclusive; `epoch` and `timestamp` (ms since 1970) are those of the last batch. `voters` is the last
    KRaftVoters record, which a checkpoint must repeat unless `kraft_version` is 0. A named tuple, as one is created for
    every batch.
    """

    end_offset: int = 0
    epoch: int = 0
    timestamp: int = NO_TIMESTAMP
    kraft_version: int = 0
    voters: KRaftVoters | None = None


def check_follows(before: Provenance, header: BatchHeader, position: int) -> None:
    """Check what no CRC covers: that the batch at `position` follows the one before it.

    Raises:
        ReplayError: a gap or overlap in offsets, or a leader epoch that decreases.

    """
    if header.base_offset != before.end_offset:
        what = f"a batch begins at offset {header.base_offset}: expected {before.end_offset}"
    elif header.leader_epoch < before.epoch:
        what = f"leader epoch {header.leader_epoch} after epoch {before.epoch}: epochs never decrease"
    else:
        return
    raise ReplayError(what, position=position, offset=header.base_offset)


def after_data(before: Provenance, header: BatchHeader) -> Provenance:
    """Return the provenance after a data batch."""
    _, _, _, kraft_version, voters = before
    end_offset = header.base_offset + header.record_count
    # Without the constructor in Python, as this runs for every batch.
    return tuple.__new__(Provenance, (end_offset, header.leader_epoch, header.max_timestamp, kraft_version, voters))


def after_control(before: Provenance, header: BatchHeader, buffer: Buffer, position: int) -> Provenance:
    """Return the provenance after the control batch at `position`.

    Raises:
        DecodeError: a damaged control record.
        ReplayError: a record that is only valid in checkpoints.

    """
    kraft_version, voters = before.kraft_version, before.voters
    for record in read_records(buffer, position, header):
        offset = header.base_offset + record.offset_delta
        try:
            control = decode_control(record.key or b"", record.value)
        except DecodeError as e:
            raise error_in_value(e, offset) from None
        match control:
            case KRaftVersion():
                kraft_version = control.kraft_version
            case KRaftVoters():
                voters = control
            case SnapshotHeader() | SnapshotFooter():
                raise ReplayError(f"{type(control).__name__} in a log: only valid in a checkpoint", offset=offset)
            case _:  # a LeaderChange adds nothing to the batch's epoch
                pass
    return Provenance(
        end_offset=header.base_offset + header.record_count,
        epoch=header.leader_epoch,
        timestamp=header.max_timestamp,
        kraft_version=kraft_version,
        voters=voters,
    )


def error_in_value(error: DecodeError, offset: int) -> DecodeError:
    """Return an error with a position in a record's value as an error of the record at `offset`."""
    if error.position is None:
        return error.at(offset=offset)
    return type(error)(f"{error.what} (byte {error.position} of the record's value)", offset=offset)
