"""The metadata records that aclog interprets, as frozen values, and `OpaqueRecord` for all others.

Field names and meanings are those of Kafka's `metadata/src/main/resources/common/metadata/*.json`. Enum fields
(resource type, operation, mechanism, ...) stay the raw int8 of the log, because a code that only a newer Kafka knows
must re-encode unchanged. `tagged_fields` holds unknown tagged fields as (tag, bytes) pairs in ascending tag order.
A record has version 0 only, unless it has a field `version`.
"""

from enum import IntEnum
from typing import ClassVar, TypeAlias
from uuid import UUID

from attrs import field

from aclog.metalog.native import maker
from aclog.metalog.values import frozen

TaggedFields: TypeAlias = tuple[tuple[int, bytes], ...]

FRAME_VERSION = 1
"""First byte of every record value (Kafka's MetadataRecordSerde / AbstractApiMessageSerde)."""


class RecordType(IntEnum):
    """The apiKeys of all metadata records of Kafka 4.4.0, of which 4.3.1 has those up to 28.

    `.name` is what DumpLogSegments prints.
    """

    REGISTER_BROKER_RECORD = 0
    UNREGISTER_BROKER_RECORD = 1
    TOPIC_RECORD = 2
    PARTITION_RECORD = 3
    CONFIG_RECORD = 4
    PARTITION_CHANGE_RECORD = 5
    FENCE_BROKER_RECORD = 7
    UNFENCE_BROKER_RECORD = 8
    REMOVE_TOPIC_RECORD = 9
    DELEGATION_TOKEN_RECORD = 10
    USER_SCRAM_CREDENTIAL_RECORD = 11
    FEATURE_LEVEL_RECORD = 12
    CLIENT_QUOTA_RECORD = 14
    PRODUCER_IDS_RECORD = 15
    BROKER_REGISTRATION_CHANGE_RECORD = 17
    ACCESS_CONTROL_ENTRY_RECORD = 18
    REMOVE_ACCESS_CONTROL_ENTRY_RECORD = 19
    NO_OP_RECORD = 20
    ZK_MIGRATION_STATE_RECORD = 21
    REMOVE_USER_SCRAM_CREDENTIAL_RECORD = 22
    BEGIN_TRANSACTION_RECORD = 23
    END_TRANSACTION_RECORD = 24
    ABORT_TRANSACTION_RECORD = 25
    REMOVE_DELEGATION_TOKEN_RECORD = 26
    REGISTER_CONTROLLER_RECORD = 27
    CLEAR_ELR_RECORD = 28
    UNREGISTER_CONTROLLER_RECORD = 29


@frozen(kw_only=True)
class AccessControlEntryRecord:
    """Adds an ACL (KIP-801). `id` is the ACL's uuid."""

    api_key: ClassVar[RecordType] = RecordType.ACCESS_CONTROL_ENTRY_RECORD
    id: UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    tagged_fields: TaggedFields = ()


acl_record = maker(
    AccessControlEntryRecord,
    *("id", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"),
    "tagged_fields",
)
"""Makes the record of the values in this order."""


@frozen(kw_only=True)
class RemoveAccessControlEntryRecord:
    """Removes the ACL with this id (KIP-801)."""

    api_key: ClassVar[RecordType] = RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD
    id: UUID
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class UserScramCredentialRecord:
    """Sets a user's SCRAM credential for one mechanism (1 SCRAM-SHA-256, 2 SCRAM-SHA-512), replacing any other."""

    api_key: ClassVar[RecordType] = RecordType.USER_SCRAM_CREDENTIAL_RECORD
    name: str
    mechanism: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class RemoveUserScramCredentialRecord:
    """Removes the user's credential for this mechanism; no effect if it does not exist."""

    api_key: ClassVar[RecordType] = RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD
    name: str
    mechanism: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class DelegationTokenRecord:
    """Sets a delegation token (KIP-48, KIP-373), replacing one of the same id (a renewal); times in ms since 1970."""

    api_key: ClassVar[RecordType] = RecordType.DELEGATION_TOKEN_RECORD
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class RemoveDelegationTokenRecord:
    """Removes a delegation token; no effect if it does not exist."""

    api_key: ClassVar[RecordType] = RecordType.REMOVE_DELEGATION_TOKEN_RECORD
    token_id: str
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class FeatureLevelRecord:
    """Sets the finalized level of a feature (such as metadata.version); level 0 removes it."""

    api_key: ClassVar[RecordType] = RecordType.FEATURE_LEVEL_RECORD
    name: str
    feature_level: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class NoOpRecord:
    """Written while the log is idle, so that followers see a live leader (KIP-835)."""

    api_key: ClassVar[RecordType] = RecordType.NO_OP_RECORD
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class BeginTransactionRecord:
    """Begins a metadata transaction: later records become visible together at the EndTransactionRecord (KIP-868)."""

    api_key: ClassVar[RecordType] = RecordType.BEGIN_TRANSACTION_RECORD
    name: str | None = None
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class EndTransactionRecord:
    """Commits the metadata transaction: everything since the BeginTransactionRecord becomes visible (KIP-868)."""

    api_key: ClassVar[RecordType] = RecordType.END_TRANSACTION_RECORD
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class AbortTransactionRecord:
    """Aborts the metadata transaction: everything since the BeginTransactionRecord is dropped (KIP-868)."""

    api_key: ClassVar[RecordType] = RecordType.ABORT_TRANSACTION_RECORD
    reason: str | None = None
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class BrokerEndpoint:
    """Where a broker's listener is reached; `security_protocol` is the id of Kafka's SecurityProtocol."""

    name: str
    host: str
    port: int
    security_protocol: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class BrokerFeature:
    """The levels of a feature that a broker supports."""

    name: str
    min_supported_version: int
    max_supported_version: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class RegisterBrokerRecord:
    """Registers a broker, replacing any registration of its id (KIP-631).

    Version 1 adds `in_controlled_shutdown`, 2 `is_migrating_zk_broker`, 3 `log_dirs`, 4 `cordoned_log_dirs`.
    """

    api_key: ClassVar[RecordType] = RecordType.REGISTER_BROKER_RECORD
    version: int = 4
    broker_id: int
    is_migrating_zk_broker: bool = False
    incarnation_id: UUID
    broker_epoch: int
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class UnregisterBrokerRecord:
    """Removes the registration of a broker (KIP-631)."""

    api_key: ClassVar[RecordType] = RecordType.UNREGISTER_BROKER_RECORD
    broker_id: int
    broker_epoch: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class FenceBrokerRecord:
    """Fences a broker (KIP-631); since metadata.version 3.3-IV2 Kafka writes a BrokerRegistrationChangeRecord."""

    api_key: ClassVar[RecordType] = RecordType.FENCE_BROKER_RECORD
    id: int
    epoch: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class UnfenceBrokerRecord:
    """Unfences a broker (KIP-631); since metadata.version 3.3-IV2 Kafka writes a BrokerRegistrationChangeRecord."""

    api_key: ClassVar[RecordType] = RecordType.UNFENCE_BROKER_RECORD
    id: int
    epoch: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class BrokerRegistrationChangeRecord:
    """Changes parts of a broker's registration (KIP-841).

    `fenced` is 1 to fence, -1 to unfence, 0 for no change. Version 1 adds `in_controlled_shutdown` (1, or 0 for no
    change), 2 `log_dirs` (empty for no change), 3 `cordoned_log_dirs` (None for no change).
    """

    api_key: ClassVar[RecordType] = RecordType.BROKER_REGISTRATION_CHANGE_RECORD
    version: int = 0
    broker_id: int
    broker_epoch: int
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class UnregisterControllerRecord:
    """Removes the registration of a controller (KIP-1312), from metadata.version 4.4-IV2 on."""

    api_key: ClassVar[RecordType] = RecordType.UNREGISTER_CONTROLLER_RECORD
    controller_id: int
    tagged_fields: TaggedFields = ()


@frozen(kw_only=True)
class OpaqueRecord:
    """A record that aclog does not interpret: `value` is the whole record value, frame included, kept verbatim."""

    api_key: int
    version: int
    value: bytes = field(repr=False)


BrokerRecord: TypeAlias = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | BrokerRegistrationChangeRecord
)
"""The records that change which brokers are registered, and how."""

MetadataRecord: TypeAlias = (
    AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
    | FeatureLevelRecord
    | NoOpRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | BrokerRecord
    | UnregisterControllerRecord
    | OpaqueRecord
)
