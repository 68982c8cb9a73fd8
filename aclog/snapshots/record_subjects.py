"""The subject of an uninterpreted record: just enough of its fields to know what it replaces or removes.

In Kafka's `common/metadata/*.json` the fields decoded here have been the first ones in every version so far, so records
of later versions are read the same way.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import frozen

from aclog.metalog.codec import read_frame
from aclog.metalog.errors import DecodeError
from aclog.metalog.fields import read_tagged_fields
from aclog.metalog.primitives import read_compact_string, read_unsigned_varint
from aclog.metalog.records import OpaqueRecord, RecordType

Subject: TypeAlias = tuple[str, Any]
"""What records are grouped by: ("topic", its uuid's bytes), ("log", None) if none, ..."""

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Entity types and names, such as ("user", "alice"); None is the default entity of that type."""

WHOLE_LOG: Subject = ("log", None)
CONTROLLER = "controller"
"""The first part of a controller's subject."""
TOPIC_CONFIG = 2
"""ConfigResource.Type.TOPIC: the resource type in a ConfigRecord of a topic."""

_SHORT_FRAME = 3
"""Bytes of frame version, apiKey and version if the version is below 128; every apiKey here is."""

_REGISTRATION_HEAD = 4 + 16 + 1
"""Bytes of a controller's id, its incarnation and whether it can migrate, which precede its endpoints."""

_LEAST_ENTITY = 3
"""Smallest size of a quota entity in bytes: its type, its name, its tagged fields."""


@frozen(kw_only=True)
class Appended:
    """The record is kept next to earlier ones; `topic_name` is set for a TopicRecord only."""

    subject: Subject
    topic_name: str | None = None


@frozen(kw_only=True)
class Latest:
    """The record replaces the one before with the same group and key; with `removes`, it only deletes it."""

    group: Subject
    key: str
    removes: bool = False


@frozen(kw_only=True)
class Removed:
    """The record deletes its subject: all of its records, and this record itself."""

    subject: Subject


Effect: TypeAlias = Appended | Latest | Removed


def effect_of(record: OpaqueRecord) -> Effect:
    """Return the effect of an uninterpreted record on earlier ones.

    Raises:
        DecodeError: the fields that identify its subject are damaged, with the position in the record's value.

    """
    read = _READERS.get(record.api_key)
    if read is None:
        return Appended(subject=WHOLE_LOG)
    at = _SHORT_FRAME if record.version < 0x80 else read_frame(record.value)[2]
    return read(record.value, at)


def config_group(resource_type: int, resource_name: str) -> Subject:
    """Return the group of all ConfigRecords of one resource."""
    return "config", (resource_type, resource_name)


def named_topic(name: str) -> Subject:
    """Return the subject of records that identify a topic by name instead of uuid (ClearElrRecord)."""
    return "topic name", name


def removed_controller(controller_id: int) -> Effect:
    """Return the effect of an UnregisterControllerRecord: it deletes all registrations of the controller."""
    return Removed(subject=controller(controller_id))


def controller(controller_id: int) -> Subject:
    """Return the subject of all registrations of a controller."""
    return CONTROLLER, controller_id


def controller_levels(value: bytes) -> dict[str, int]:
    """Return, by feature, the newest level that a RegisterControllerRecord states for the controller's software.

    Raises:
        DecodeError: truncated or malformed.

    """
    at = read_frame(value)[2] + _REGISTRATION_HEAD
    count, at = _count(value, at)
    for _ in range(count):  # endpoints
        for _ in "name", "host":
            _, at = read_compact_string(value, at)
        _, at = read_tagged_fields(value, at + 4)
    count, at = _count(value, at)
    levels = {}
    for _ in range(count):
        name, at = read_compact_string(value, at)
        if at + 4 > len(value):
            raise DecodeError("truncated levels of 4 bytes", position=at)
        levels[name] = int.from_bytes(value[at + 2 : at + 4], signed=True)
        _, at = read_tagged_fields(value, at + 4)
    return levels


def _count(value: bytes, at: int) -> tuple[int, int]:
    """Read the length of an array that is not null; each element takes a byte at least."""
    count, end = read_unsigned_varint(value, at)
    if not 0 < count <= len(value) - end + 1:
        raise DecodeError(f"an array of {count - 1} elements, but only {len(value) - end} bytes remain", position=at)
    return count - 1, end


def _register_controller(value: bytes, at: int) -> Effect:
    if at + 4 > len(value):
        raise DecodeError("truncated controller id of 4 bytes", position=at)
    return Appended(subject=controller(int.from_bytes(value[at : at + 4], signed=True)))


def _topic(value: bytes, at: int) -> Effect:
    name, at = read_compact_string(value, at)
    return Appended(subject=("topic", _topic_id(value, at)), topic_name=name)


def _partition(value: bytes, at: int) -> Effect:
    # The partition id (int32) precedes the topic id.
    return Appended(subject=("topic", _topic_id(value, at + 4)))


def _remove_topic(value: bytes, at: int) -> Effect:
    return Removed(subject=("topic", _topic_id(value, at)))


def _clear_elr(value: bytes, at: int) -> Effect:
    name, _ = read_compact_string(value, at)
    return Appended(subject=named_topic(name) if name else WHOLE_LOG)


def _producer_ids(_value: bytes, _at: int) -> Effect:
    return Latest(group=("producer ids", None), key="")


def _config(value: bytes, at: int) -> Effect:
    resource_type = _byte(value, at)
    resource_name, at = read_compact_string(value, at + 1)
    name, at = read_compact_string(value, at)
    length, _ = read_unsigned_varint(value, at)
    # A null value (length 0) removes the config, as in Kafka.
    return Latest(group=config_group(resource_type, resource_name), key=name, removes=length == 0)


def _client_quota(value: bytes, at: int) -> Effect:
    entity, key, at = read_quota_key(value, at)
    return Latest(group=("quota", frozenset(entity)), key=key, removes=_byte(value, at + 8) != 0)


def read_quota_key(value: bytes, at: int) -> tuple[QuotaEntity, str, int]:
    """Read the body of a ClientQuotaRecord from `at`: the entity, the quota's key, and the position after them.

    Raises:
        DecodeError: truncated or malformed.

    """
    count, at = read_unsigned_varint(value, at)
    if count == 0:
        raise DecodeError("a null array of quota entities", position=at - 1)
    if _LEAST_ENTITY * (count - 1) > len(value) - at:
        raise DecodeError(f"{count - 1} quota entities, but only {len(value) - at} bytes remain", position=at)
    entity = []
    for _ in range(count - 1):
        entity_type, at = read_compact_string(value, at)
        entity_name, at = _nullable_string(value, at)
        _, at = read_tagged_fields(value, at)
        entity.append((entity_type, entity_name))
    key, at = read_compact_string(value, at)
    return tuple(entity), key, at


def _nullable_string(value: bytes, at: int) -> tuple[str | None, int]:
    if _byte(value, at) == 0:
        return None, at + 1
    return read_compact_string(value, at)


def _byte(value: bytes, at: int) -> int:
    if at >= len(value):
        raise DecodeError("truncated record", position=at)
    return value[at]


def _topic_id(value: bytes, at: int) -> bytes:
    if at + 16 > len(value):
        raise DecodeError("truncated uuid of 16 bytes", position=at)
    return value[at : at + 16]


_READERS: MappingProxyType[int, Callable[[bytes, int], Effect]] = MappingProxyType(
    {
        RecordType.TOPIC_RECORD: _topic,
        RecordType.PARTITION_RECORD: _partition,
        RecordType.CONFIG_RECORD: _config,
        RecordType.PARTITION_CHANGE_RECORD: _partition,
        RecordType.REMOVE_TOPIC_RECORD: _remove_topic,
        RecordType.CLIENT_QUOTA_RECORD: _client_quota,
        RecordType.PRODUCER_IDS_RECORD: _producer_ids,
        RecordType.REGISTER_CONTROLLER_RECORD: _register_controller,
        RecordType.CLEAR_ELR_RECORD: _clear_elr,
    }
)
