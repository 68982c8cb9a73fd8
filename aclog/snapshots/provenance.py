"""Which part of a log an image holds, and how each batch moves it on (MetadataProvenance)."""

from typing import NamedTuple

from aclog.metalog.batches import BatchHeader, read_records
from aclog.metalog.control_records import KRaftVersion, KRaftVoters, SnapshotFooter, SnapshotHeader, decode_control
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.primitives import Buffer

NO_TIMESTAMP = -1
"""The timestamp of an image that no batch went into."""


class Provenance(NamedTuple):
    """Which part of the log an image holds, and what its control records said. Named, as one is made for every batch.

    `end_offset` is exclusive; `epoch` and `timestamp` (ms since 1970) are those of the last batch. `voters` is the
    last KRaftVoters record, which a checkpoint must repeat where `kraft_version` is not 0.
    """

    end_offset: int = 0
    epoch: int = 0
    timestamp: int = NO_TIMESTAMP
    kraft_version: int = 0
    voters: KRaftVoters | None = None


def check_follows(before: Provenance, header: BatchHeader, position: int) -> None:
    """Check what no CRC covers: that the batch at `position` follows the one before it.

    Raises:
        ReplayError: its offset leaves a gap or goes back, or its epoch goes back.

    """
    if header.base_offset != before.end_offset:
        what = f"a batch begins at offset {header.base_offset}: expected {before.end_offset}"
    elif header.leader_epoch < before.epoch:
        what = f"leader epoch {header.leader_epoch} after epoch {before.epoch}: expected none that goes back"
    else:
        return
    raise ReplayError(what, position=position, offset=header.base_offset)


def after_data(before: Provenance, header: BatchHeader) -> Provenance:
    """Where the log stands after a data batch."""
    _, _, _, kraft_version, voters = before
    end_offset = header.base_offset + header.record_count
    return Provenance(end_offset, header.leader_epoch, header.max_timestamp, kraft_version, voters)


def after_control(before: Provenance, header: BatchHeader, buffer: Buffer, position: int) -> Provenance:
    """Where the log stands after the control batch at `position`.

    Raises:
        DecodeError: a damaged control record.
        ReplayError: a record that stands in checkpoints only.

    """
    kraft_version, voters = before.kraft_version, before.voters
    for record in read_records(buffer, position, header):
        offset = header.base_offset + record.offset_delta
        try:
            control = decode_control(record.key or b"", record.value)
        except DecodeError as e:
            raise in_value(e, offset) from None
        match control:
            case KRaftVersion():
                kraft_version = control.kraft_version
            case KRaftVoters():
                voters = control
            case SnapshotHeader() | SnapshotFooter():
                raise ReplayError(f"{type(control).__name__} in a log: expected in a checkpoint only", offset=offset)
            case _:  # a LeaderChange says no more than the batch's epoch
                pass
    return Provenance(
        end_offset=header.base_offset + header.record_count,
        epoch=header.leader_epoch,
        timestamp=header.max_timestamp,
        kraft_version=kraft_version,
        voters=voters,
    )


def in_value(error: DecodeError, offset: int) -> DecodeError:
    """An error whose position is one in a record's value, told as one of the record at `offset`."""
    if error.position is None:
        return error.at(offset=offset)
    return type(error)(f"{error.what} (byte {error.position} of the record's value)", offset=offset)
