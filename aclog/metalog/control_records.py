"""Control records: what the raft layer itself writes into the log and into checkpoints.

Key: int16 version 0, int16 type. Value: a message with its own schema (LeaderChangeMessage, SnapshotHeaderRecord,
SnapshotFooterRecord, KRaftVersionRecord, VotersRecord), whose first field is its version, 0 in all of Kafka 4.3.
Mirrors org.apache.kafka.common.record.internal.ControlRecordUtils and ControlRecordType.
"""

import struct
from enum import IntEnum
from types import MappingProxyType
from typing import ClassVar, TypeAlias
from uuid import UUID

from aclog.metalog.batches import BatchHeader, build_control_batch, locate_records
from aclog.metalog.codec import INT16, INT32, INT64, STRING, UINT16, UUID_BYTES, StructType, array_of, field_of
from aclog.metalog.errors import DecodeError, NewerKafkaError
from aclog.metalog.primitives import Buffer
from aclog.metalog.records import TaggedFields
from aclog.metalog.values import frozen

_KEY = struct.Struct(">hh")
_VERSION = struct.Struct(">h")


class ControlType(IntEnum):
    """The types of control records in a metadata log (ControlRecordType)."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@frozen(kw_only=True)
class LeaderChangeVoter:
    """A voter in a LeaderChange."""

    voter_id: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class LeaderChange:
    """The first record of a leader epoch: the leader, the voters, and who voted for the leader."""

    control_type: ClassVar[ControlType] = ControlType.LEADER_CHANGE
    version: int = 0
    leader_id: int
    voters: tuple[LeaderChangeVoter, ...]
    granting_voters: tuple[LeaderChangeVoter, ...]
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class SnapshotHeader:
    """The first record of a checkpoint; the timestamp is that of the last batch it includes, ms since 1970."""

    control_type: ClassVar[ControlType] = ControlType.SNAPSHOT_HEADER
    version: int = 0
    last_contained_log_timestamp: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class SnapshotFooter:
    """The last record of a checkpoint: a file without it is truncated."""

    control_type: ClassVar[ControlType] = ControlType.SNAPSHOT_FOOTER
    version: int = 0
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class KRaftVersion:
    """The finalized kraft.version; 1 means that the voter set is in the log (KIP-853)."""

    control_type: ClassVar[ControlType] = ControlType.KRAFT_VERSION
    version: int = 0
    kraft_version: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class Endpoint:
    """A listener of a voter."""

    name: str
    host: str
    port: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class SupportedVersions:
    """The range of kraft.version that a voter supports."""

    min_supported_version: int
    max_supported_version: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class Voter:
    """A voter of the quorum: its node id, the id of its metadata log directory, its endpoints."""

    voter_id: int
    voter_directory_id: UUID
    endpoints: tuple[Endpoint, ...]
    kraft_version_feature: SupportedVersions
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class KRaftVoters:
    """The voter set of the quorum from this offset on (KIP-853)."""

    control_type: ClassVar[ControlType] = ControlType.KRAFT_VOTERS
    version: int = 0
    voters: tuple[Voter, ...]
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class OpaqueControlRecord:
    """A control record of an unknown type, kept verbatim."""

    control_type: int
    key: bytes
    value: bytes


ControlRecord: TypeAlias = (
    LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | KRaftVoters | OpaqueControlRecord
)

_VERSION_FIELD = ("version", INT16)
_LEADER_VOTERS = array_of(StructType(make=LeaderChangeVoter, fields=(("voter_id", INT32),)))
_ENDPOINT = StructType(make=Endpoint, fields=(("name", STRING), ("host", STRING), ("port", UINT16)))
_SUPPORTED = StructType(
    make=SupportedVersions, fields=(("min_supported_version", INT16), ("max_supported_version", INT16))
)
_VOTER = StructType(
    make=Voter,
    fields=(
        ("voter_id", INT32),
        ("voter_directory_id", UUID_BYTES),
        ("endpoints", array_of(_ENDPOINT)),
        ("kraft_version_feature", field_of(_SUPPORTED)),
    ),
)

_SCHEMAS = MappingProxyType(
    {
        ControlType.LEADER_CHANGE: StructType(
            make=LeaderChange,
            fields=(
                _VERSION_FIELD,
                ("leader_id", INT32),
                ("voters", _LEADER_VOTERS),
                ("granting_voters", _LEADER_VOTERS),
            ),
        ),
        ControlType.SNAPSHOT_HEADER: StructType(
            make=SnapshotHeader, fields=(_VERSION_FIELD, ("last_contained_log_timestamp", INT64))
        ),
        ControlType.SNAPSHOT_FOOTER: StructType(make=SnapshotFooter, fields=(_VERSION_FIELD,)),
        ControlType.KRAFT_VERSION: StructType(make=KRaftVersion, fields=(_VERSION_FIELD, ("kraft_version", INT16))),
        ControlType.KRAFT_VOTERS: StructType(make=KRaftVoters, fields=(_VERSION_FIELD, ("voters", array_of(_VOTER)))),
    }
)


def decode_control(key: bytes, value: bytes) -> ControlRecord:
    """Decode the control record of a key and a value; an unknown type is kept as an OpaqueControlRecord.

    Raises:
        DecodeError: a malformed key, or a value that does not match its type (position in the value).
        NewerKafkaError: a version above 0, which only a newer Kafka writes.

    """
    if len(key) != _KEY.size:
        raise DecodeError(f"a control record's key of {len(key)} bytes: expected {_KEY.size}", position=0)
    key_version, code = _KEY.unpack(key)
    # Kept rather than refused: an unknown control record changes nothing that is interpreted here.
    if key_version or code not in frozenset(ControlType):
        return OpaqueControlRecord(control_type=code, key=key, value=value)
    kind = ControlType(code)
    if len(value) >= _VERSION.size and _VERSION.unpack_from(value)[0]:
        raise NewerKafkaError(
            f"{kind.name} of a version above 0, written by a newer Kafka: expected version 0", position=0
        )
    record: ControlRecord
    record, end = _SCHEMAS[kind].read(value, 0)
    if end != len(value):
        raise DecodeError(f"{len(value) - end} trailing bytes after {kind.name}", position=end)
    return record


def decode_control_batch(buffer: Buffer, position: int, header: BatchHeader) -> tuple[ControlRecord, ...]:
    """Decode the records of the whole control batch at `position`, whose header has been read and CRC checked.

    Raises:
        DecodeError: see decode_control and batches.read_records; with the position in the buffer and the offset.

    """
    records = []
    for start, record in locate_records(buffer, position, header):
        try:
            records.append(decode_control(record.key or b"", record.value))
        except DecodeError as e:
            raise e.at(offset=header.base_offset + record.offset_delta, base=start) from None
    return tuple(records)


def encode_control(record: ControlRecord) -> tuple[bytes, bytes]:
    """Return the (key, value) of a control record.

    Raises:
        EncodeError: a field that the format cannot represent.

    """
    if isinstance(record, OpaqueControlRecord):
        return record.key, record.value
    return _KEY.pack(0, record.control_type), _SCHEMAS[record.control_type].write(record)


def control_batch(*records: ControlRecord, base_offset: int, leader_epoch: int, timestamp: int) -> bytes:
    """Return the bytes of a control batch of these records; `timestamp` is ms since 1970.

    A checkpoint begins with (SnapshotHeader, KRaftVersion, KRaftVoters) at offset 0, or with SnapshotHeader alone if
    kraft.version is 0, and ends with (SnapshotFooter). A leader epoch begins with (LeaderChange).

    Raises:
        EncodeError: no records, or a field that the format cannot represent.

    """
    pairs = [encode_control(record) for record in records]
    return build_control_batch(pairs, base_offset=base_offset, leader_epoch=leader_epoch, timestamp=timestamp)


def snapshot_header_records(
    *, last_contained_log_timestamp: int, kraft_version: int, voters: KRaftVoters | None
) -> tuple[ControlRecord, ...]:
    """Return the control records at the start of a checkpoint (RecordsSnapshotWriter).

    With kraft.version 1 Kafka takes the voter set from the newest checkpoint alone: a cluster that starts from a
    checkpoint without voters never elects a leader.
    """
    header = SnapshotHeader(last_contained_log_timestamp=last_contained_log_timestamp)
    # RecordsSnapshotWriter writes the other two records only for kraft.version 1 and above.
    if not kraft_version or voters is None:
        return (header,)
    return header, KRaftVersion(kraft_version=kraft_version), voters
