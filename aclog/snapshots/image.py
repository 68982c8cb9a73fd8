"""The image: all metadata at one offset, immutable."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

from attrs import evolve, field

from aclog.authorizer.acl import ChangePlace
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Generation
from aclog.credentials.scram import ScramImage
from aclog.credentials.tokens import TokensImage
from aclog.metalog.batches import BatchHeader, read_records
from aclog.metalog.codec import is_known_to_kafka, read_frame, read_tagged_fields
from aclog.metalog.control_records import KRaftVersion, KRaftVoters, SnapshotFooter, SnapshotHeader, decode_control
from aclog.metalog.errors import DecodeError, NewerKafkaError, ReplayError
from aclog.metalog.persistent_map import Map, MapMutation
from aclog.metalog.primitives import Buffer, read_compact_string, read_unsigned_varint
from aclog.metalog.records import (
    BrokerRecord,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    OpaqueRecord,
    RecordType,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from aclog.metalog.values import define, frozen
from aclog.snapshots.moments import Moment

if TYPE_CHECKING:
    from aclog.metalog.committed_log import LogReader

# The subject of an uninterpreted record: just enough of its fields to know what it replaces or removes.
#
# In Kafka's `common/metadata/*.json` the fields decoded here have been the first ones in every version so far, so
# records of later versions are read the same way.


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


# Records of an image that aclog does not interpret: kept as bytes, in log order, never silently dropped.
#
# A checkpoint that aclog writes must not lose a cluster's topics. Left out is only what can no longer matter: earlier
# values of one config, quota or producer id block, everything of a topic that was removed, and the registrations of a
# controller that was unregistered. Removing a topic also removes its configs, as Kafka's MetadataDelta does; the
# RemoveTopicRecord itself goes as well, since Kafka refuses to remove a topic that it has never seen. A
# ClearElrRecord for all topics keeps its place; a Kafka node that loads it from a checkpoint has no topics yet to
# apply it to, and keeps their eligible leader replicas until it clears them again.


@frozen(kw_only=True)
class OpaqueChange:
    """A record's value, and its effect on earlier records."""

    effect: Effect
    value: bytes = field(repr=False)


class Entry(NamedTuple):
    """A record that was kept: its place in the order, and its value."""

    sequence: int
    value: bytes


class Chain(NamedTuple):
    """The records of one subject as a linked list, newest first, so that appending costs the same at any length."""

    entry: Entry
    before: "Chain | None"
    length: int
    size: int


_Latest: TypeAlias = Map[str, Entry]


@frozen(kw_only=True, eq=False, repr=False)
class OpaqueImage:
    """All uninterpreted records that still matter at one offset; `size` is the sum of their values in bytes."""

    EMPTY: ClassVar["OpaqueImage"]

    count: int = 0
    size: int = 0
    _next_sequence: int = field(default=0, alias="next_sequence")
    _chains: Map[Subject, Chain] = field(factory=Map, alias="chains")
    _latest: Map[Subject, _Latest] = field(factory=Map, alias="latest")
    _topic_names: Map[bytes, str] = field(factory=Map, alias="topic_names")

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"OpaqueImage(count={self.count}, size={self.size})"

    def values(self) -> Iterator[bytes]:
        """Yield the values of the records in log order; a replaced record has the place of its last value."""
        entries = [each for group in self._latest.values() for each in group.values()]
        for chain in self._chains.values():
            entries.extend(_links(chain))
        entries.sort()
        return (each.value for each in entries)

    def topic_names(self) -> Iterator[str]:
        """Yield the names of the topics, in no particular order."""
        return iter(self._topic_names.values())

    def has_controller(self, controller_id: int) -> bool:
        """Return whether a controller is registered."""
        return controller(controller_id) in self._chains

    def controllers(self) -> Iterator[tuple[int, bytes]]:
        """Yield the id of each registered controller and its newest RegisterControllerRecord, in no order."""
        for (kind, subject), chain in self._chains.items():
            if kind == CONTROLLER:
                yield subject, chain.entry.value

    def topics(self) -> Iterator[tuple[bytes, str]]:
        """Yield the uuid and the name of each topic, in no particular order."""
        return iter(self._topic_names.items())

    def apply(self, changes: Iterable[OpaqueChange]) -> Self:
        """Return the image after these records, in order."""
        editor = _Editor(
            count=self.count,
            size=self.size,
            next_sequence=self._next_sequence,
            chains=self._chains.mutate(),
            latest=self._latest.mutate(),
            topic_names=self._topic_names.mutate(),
        )
        for change in changes:
            editor.replay(change)
        return type(self)(
            count=editor.count,
            size=editor.size,
            next_sequence=editor.next_sequence,
            chains=editor.chains.finish(),
            latest=editor.latest.finish(),
            topic_names=editor.topic_names.finish(),
        )


OpaqueImage.EMPTY = OpaqueImage()


def _links(chain: Chain | None) -> Iterator[Entry]:
    while chain is not None:
        yield chain.entry
        chain = chain.before


@define(kw_only=True)
class _Editor:
    """An OpaqueImage while records are replayed onto it; owned by one call of `apply`."""

    count: int
    size: int
    next_sequence: int
    chains: MapMutation[Subject, Chain]
    latest: MapMutation[Subject, _Latest]
    topic_names: MapMutation[bytes, str]

    def replay(self, change: OpaqueChange) -> None:
        """Apply the next record; records come in log order."""
        entry = Entry(self.next_sequence, change.value)
        self.next_sequence += 1
        match change.effect:
            case Appended(subject=subject, topic_name=name):
                self._append(subject, entry)
                if name is not None:
                    self.topic_names[subject[1]] = name
            case Latest(group=group, key=key, removes=removes):
                self._replace(group, key, None if removes else entry)
            case Removed(subject=subject):
                self._remove(subject)

    def _append(self, subject: Subject, entry: Entry) -> None:
        before = self.chains.get(subject)
        count, size = (0, 0) if before is None else (before.length, before.size)
        self.chains[subject] = Chain(entry, before, count + 1, size + len(entry.value))
        self._account(1, len(entry.value))

    def _replace(self, group: Subject, key: str, entry: Entry | None) -> None:
        entries = self.latest.get(group, Map())
        before = entries.get(key)
        if before is not None:
            entries = entries.delete(key)
            self._account(-1, -len(before.value))
        if entry is not None:
            entries = entries.set(key, entry)
            self._account(1, len(entry.value))
        if entries:
            self.latest[group] = entries
        else:
            self.latest.pop(group, None)

    def _remove(self, subject: Subject) -> None:
        self._drop(subject)
        name = self.topic_names.pop(subject[1], None) if subject[0] == "topic" else None
        if name is not None:
            # ClearElrRecords of this topic name it instead of giving its uuid.
            self._drop(named_topic(name))
            configs = config_group(TOPIC_CONFIG, name)
            for key in self.latest.get(configs, Map()):
                self._replace(configs, key, None)

    def _drop(self, subject: Subject) -> None:
        chain = self.chains.pop(subject, None)
        if chain is not None:
            self._account(-chain.length, -chain.size)

    def _account(self, count: int, size: int) -> None:
        self.count += count
        self.size += size


# The finalized feature levels of an image (org.apache.kafka.image.FeaturesImage).


METADATA_VERSION = "metadata.version"
"""The feature that determines which record versions a log may contain."""

TRANSACTIONS_SINCE = 13
"""The feature level of metadata.version 3.6-IV1, the first with transactions in the log."""

NEWEST_METADATA_VERSION = 33
"""The newest metadata.version of Kafka 4.4.0 (4.4-IV2); the meaning of a higher one is unknown here."""


@frozen(kw_only=True)
class FeaturesImage:
    """Feature names and their levels at one offset; features at level 0 are absent."""

    EMPTY: ClassVar["FeaturesImage"]

    _records: Map[str, FeatureLevelRecord] = field(factory=Map, alias="records")

    def __len__(self) -> int:
        return len(self._records)

    def level(self, name: str) -> int:
        """Return the finalized level of a feature, 0 if it has none."""
        record = self._records.get(name)
        return 0 if record is None else record.feature_level

    def records(self) -> Iterator[FeatureLevelRecord]:
        """Return the records of this image: metadata.version first, as Kafka writes them, then by name."""
        return (
            self._records[name] for name in sorted(self._records, key=lambda name: (name != METADATA_VERSION, name))
        )

    def apply(self, changes: Iterable[FeatureLevelRecord]) -> Self:
        """Return the image after these changes, in order."""
        records = self._records.mutate()
        for change in changes:
            # Kafka removes a feature by finalizing it at level 0.
            if change.feature_level:
                records[change.name] = change
            else:
                records.pop(change.name, None)
        return type(self)(records=records.finish())


FeaturesImage.EMPTY = FeaturesImage()


# The registered brokers of an image (org.apache.kafka.image.ClusterImage, ClusterDelta).


_FENCED = {1: True, -1: False}
"""BrokerRegistrationFencingChange: what a registration becomes; 0 changes nothing."""

_DIRECTORIES_SINCE, _CORDONED_SINCE, _MIGRATION_SINCE = 17, 30, 8
"""The metadata.version since which RegisterBrokerRecord has version 3, 4 and 2; those before are not supported."""


def register_broker_version(metadata_version: int) -> int:
    """Return the version in which Kafka 4.3.1 writes a RegisterBrokerRecord (MetadataVersion); the newest for 0."""
    if metadata_version == 0 or metadata_version >= _CORDONED_SINCE:
        return 4
    if metadata_version >= _DIRECTORIES_SINCE:
        return 3
    return 2 if metadata_version >= _MIGRATION_SINCE else 1


@frozen(kw_only=True)
class ClusterImage:
    """The registration of every broker at one offset: its newest RegisterBrokerRecord with all changes since."""

    EMPTY: ClassVar["ClusterImage"]

    _brokers: Map[int, RegisterBrokerRecord] = field(factory=Map, alias="brokers")

    def __len__(self) -> int:
        return len(self._brokers)

    def get(self, broker_id: int) -> RegisterBrokerRecord | None:
        """Return the registration of a broker; None if it is not registered."""
        return self._brokers.get(broker_id)

    def brokers(self) -> Iterator[RegisterBrokerRecord]:
        """Return all registrations by ascending id."""
        return (self._brokers[broker_id] for broker_id in sorted(self._brokers))

    def records(self, metadata_version: int) -> Iterator[RegisterBrokerRecord]:
        """Return the records of this image, as a cluster with this metadata.version contains them.

        What an older version cannot hold is left out (BrokerRegistration.toRecord).
        """
        version = register_broker_version(metadata_version)
        return (evolve(each, version=version) for each in self.brokers())

    def newest_levels(self, feature: str) -> Iterator[tuple[int, int]]:
        """Yield the id of each broker and the newest level of a feature that it supports; 0 if it registered none."""
        for broker in self.brokers():
            levels = (each.max_supported_version for each in broker.features if each.name == feature)
            yield broker.broker_id, next(levels, 0)

    def apply(self, changes: Iterable[tuple[int, BrokerRecord]]) -> Self:
        """Return the image after these (offset, record) pairs, in order.

        Raises:
            ReplayError: a record other than a registration is for a broker that is not registered, or registered with
                another epoch (ClusterControlManager.replay).

        """
        brokers = self._brokers.mutate()
        for offset, change in changes:
            _replay(brokers, change, offset)
        return type(self)(brokers=brokers.finish())


ClusterImage.EMPTY = ClusterImage()


def _replay(brokers: MapMutation[int, RegisterBrokerRecord], change: BrokerRecord, offset: int) -> None:
    match change:
        case RegisterBrokerRecord():
            brokers[change.broker_id] = change
        case UnregisterBrokerRecord():
            _registered(brokers, change, change.broker_id, change.broker_epoch, offset)
            del brokers[change.broker_id]
        case FenceBrokerRecord() | UnfenceBrokerRecord():
            broker = _registered(brokers, change, change.id, change.epoch, offset)
            brokers[change.id] = evolve(broker, fenced=isinstance(change, FenceBrokerRecord))
        case BrokerRegistrationChangeRecord():
            broker = _registered(brokers, change, change.broker_id, change.broker_epoch, offset)
            brokers[change.broker_id] = _changed(broker, change, offset)


def _registered(
    brokers: MapMutation[int, RegisterBrokerRecord], change: BrokerRecord, broker_id: int, epoch: int, offset: int
) -> RegisterBrokerRecord:
    broker = brokers.get(broker_id)
    if broker is None:
        raise ReplayError(f"{change.api_key.name} for broker {broker_id}, which is not registered", offset=offset)
    if broker.broker_epoch != epoch:
        raise ReplayError(
            f"{change.api_key.name} for broker {broker_id} with epoch {epoch}: expected {broker.broker_epoch}, that of "
            "its registration",
            offset=offset,
        )
    return broker


def _changed(broker: RegisterBrokerRecord, change: BrokerRegistrationChangeRecord, offset: int) -> RegisterBrokerRecord:
    if change.fenced not in {-1, 0, 1}:
        raise ReplayError(f"{change.api_key.name}: fenced is {change.fenced}: expected -1, 0 or 1", offset=offset)
    if change.in_controlled_shutdown not in {0, 1}:
        what = f"inControlledShutdown is {change.in_controlled_shutdown}: expected 0 or 1"
        raise ReplayError(f"{change.api_key.name}: {what}", offset=offset)
    cordoned = change.cordoned_log_dirs
    return evolve(
        broker,
        fenced=_FENCED.get(change.fenced, broker.fenced),
        in_controlled_shutdown=broker.in_controlled_shutdown or change.in_controlled_shutdown == 1,
        log_dirs=change.log_dirs or broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else cordoned,
    )


# The part of a log that an image covers, and how each batch advances it (MetadataProvenance).


NO_TIMESTAMP = -1
"""The timestamp of an image without any batch."""


class Provenance(NamedTuple):
    """The part of the log that an image covers, and the content of its control records.

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


# The image: all metadata at one offset, immutable, so that readers may keep one indefinitely (MetadataImage).


def _no_acls() -> AclsImage:
    return AclsImage.empty()


@define(eq=False)
class Image:
    """All metadata after a whole committed batch, outside of any open transaction.

    Immutable by convention: `frozen` would enforce it, but makes construction five times slower, and every update
    constructs an image.
    """

    EMPTY: ClassVar["Image"]

    acls: AclsImage = field(factory=_no_acls)
    scram: ScramImage = ScramImage.EMPTY
    tokens: TokensImage = TokensImage.EMPTY
    features: FeaturesImage = FeaturesImage.EMPTY
    cluster: ClusterImage = ClusterImage.EMPTY
    opaque: OpaqueImage = OpaqueImage.EMPTY
    provenance: Provenance = field(factory=Provenance)
    generation: Generation | None = None
    """The generation that decides, where the kind of the source implies it; in others nodes state it."""
    live_levels: Mapping[int, int | None] | None = None
    """By broker, the newest level of metadata.version that its software supports, as it answers itself; None if it did
    not answer. Of a source that queries brokers; in others registrations state it."""
    live_controllers: Mapping[int, int | None] | None = None
    """The same of the controllers; None if they are unknown, or no range concerns what they decide."""

    def __repr__(self) -> str:
        return f"Image(end_offset={self.end_offset}, acls={len(self.acls)})"

    @property
    def end_offset(self) -> int:
        """The offset after the last record in this image."""
        return self.provenance.end_offset

    @property
    def epoch(self) -> int:
        """The leader epoch of the last batch."""
        return self.provenance.epoch

    @property
    def timestamp(self) -> int:
        """When the last batch was appended, in ms since 1970; NO_TIMESTAMP for the empty image."""
        return self.provenance.timestamp

    def at(self, provenance: Provenance) -> "Image":
        """Return the same content with another provenance."""
        return evolve(self, provenance=provenance)

    def with_acls(self, acls: AclsImage) -> "Image":
        """Return the same image with its ACLs in another representation: merged, or with other semantics."""
        return evolve(self, acls=acls)


Image.EMPTY = Image()


# The age of a state that was read from a running cluster.


@frozen(kw_only=True)
class Freshness:
    """The last time a running cluster confirmed that nothing newer is committed than the known state.

    `seconds` have passed since the request to which the cluster responded: an upper bound, which includes the time in
    which this machine was suspended. `time` is the time of the request, in ms since 1970.
    """

    seconds: float
    time: int
    server: str
    """The address of the server that responded: the leader of a quorum, or a broker."""
    followed: bool = True
    """Whether the cluster is polled continuously; if not, the state was read once."""
    problem: str = ""
    """Why nothing newer has arrived since; empty if no problem is known."""


# The StateSource protocol: the sources from which commands and the shell read states.


# The StateSource protocol: the sources from which commands and the shell read states.


class StateSource(Protocol):
    """An open source of states: a log directory, a checkpoint, a file of ACLs, a live log."""

    @property
    def name(self) -> str:
        """The name of the source, for `/local/source` and messages."""
        ...

    @property
    def log(self) -> "LogReader | None":
        """The log that can be followed, or None."""
        ...

    @property
    def change_place(self) -> ChangePlace:
        """The target for changes of its ACLs: a log that `aclog acls` may write, or the cluster that was read."""
        ...

    def image(self) -> Image:
        """Return the newest committed state.

        Raises:
            MetadataError: the source is damaged or missing.

        """
        ...

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment in the past. A thread may call it while another one calls `image`.

        Raises:
            MetadataError: the moment is out of reach, or the source has a single state.

        """
        ...

    def freshness(self) -> Freshness | None:
        """Return the age of the newest state; None without a running cluster, or if none has responded yet."""
        ...

    def close(self) -> None:
        """Close files and connections, if any; closing twice is allowed."""
        ...


# The policy for a log that a newer Kafka wrote: a node stops, a read-only command warns and continues.


KAFKA_VERSION_CONFIG = "aclog.kafka.version"
"""The property of a node that selects the Kafka by whose rules it decides, and so the levels that it supports."""

_NEWEST_API_KEY = max(RecordType)


@define(kw_only=True)
class NewerKafka:
    """The policy, and its warnings so far: one for each unknown apiKey and each unknown metadata.version.

    An interpreted record type in an unknown version is refused under either policy, by its decoder.
    """

    strict: bool = True
    newest: int = NEWEST_METADATA_VERSION
    """The newest level of metadata.version that is accepted: a node's follows from aclog.kafka.version."""
    _warnings: dict[str, int] = field(factory=dict, init=False)

    def warnings(self) -> tuple[str, ...]:
        """Return the warnings, each with the first offset that it applies to."""
        return tuple(f"offset {offset}: {what}" for what, offset in self._warnings.items())

    def copy(self) -> "NewerKafka":
        """Return a copy for a replay that may be discarded."""
        copy = NewerKafka(strict=self.strict, newest=self.newest)
        copy.adopt(self)
        return copy

    def adopt(self, other: "NewerKafka") -> None:
        """Adopt the warnings of a copy."""
        self._warnings = dict(other._warnings)

    def check_opaque(self, record: OpaqueRecord, offset: int) -> None:
        """Check an uninterpreted record.

        Raises:
            NewerKafkaError: strict, and its apiKey is above those of Kafka 4.4.0.

        """
        # An unknown number below the newest is one that Kafka has abandoned, not one of the future.
        if record.api_key > _NEWEST_API_KEY and not is_known_to_kafka(record.api_key):
            self._warn_or_raise(
                f"a record of apiKey {record.api_key}, written by a newer Kafka: expected at most {_NEWEST_API_KEY}",
                offset,
            )

    def check_feature(self, record: FeatureLevelRecord, offset: int) -> None:
        """Check a feature level.

        Raises:
            NewerKafkaError: strict, and it is a metadata.version above `newest`.

        """
        if record.name == METADATA_VERSION and record.feature_level > self.newest:
            supported = record.feature_level <= NEWEST_METADATA_VERSION
            remedy = f", or {KAFKA_VERSION_CONFIG}=4.4 in the node's configuration" if supported else ""
            self._warn_or_raise(
                f"metadata.version {record.feature_level} of a newer Kafka: expected at most {self.newest}{remedy}",
                offset,
            )

    def _warn_or_raise(self, what: str, offset: int) -> None:
        if self.strict:
            raise NewerKafkaError(what, offset=offset)
        self._warnings.setdefault(what, offset)
