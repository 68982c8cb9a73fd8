"""The schemas of the metadata records that aclog interprets, by type and version (Kafka's common/metadata/*.json)."""

from types import MappingProxyType
from typing import Any

from aclog.metalog.fields import (
    BOOL,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID_BYTES,
    FieldType,
    StructType,
    TaggedField,
    array_of,
)
from aclog.metalog.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    RecordType,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)

_STRINGS, _UUIDS = array_of(STRING), array_of(UUID_BYTES)
_ENDPOINTS = array_of(
    StructType(
        make=BrokerEndpoint,
        fields=(("name", STRING), ("host", STRING), ("port", UINT16), ("security_protocol", INT16)),
    )
)
_BROKER_FEATURES = array_of(
    StructType(
        make=BrokerFeature,
        fields=(("name", STRING), ("min_supported_version", INT16), ("max_supported_version", INT16)),
    )
)


def _only(make: Any, *fields: tuple[str, FieldType], tagged: tuple[TaggedField, ...] = ()) -> tuple[StructType, ...]:
    """Return the schema of a record that has version 0 only."""
    return (StructType(make=make, fields=fields, tagged=tagged),)


def _register_broker(version: int) -> StructType:
    fields: list[tuple[str, FieldType, int]] = [
        ("broker_id", INT32, 0),
        ("is_migrating_zk_broker", BOOL, 2),
        ("incarnation_id", UUID_BYTES, 0),
        ("broker_epoch", INT64, 0),
        ("end_points", _ENDPOINTS, 0),
        ("features", _BROKER_FEATURES, 0),
        ("rack", NULLABLE_STRING, 0),
        ("fenced", BOOL, 0),
        ("in_controlled_shutdown", BOOL, 1),
    ]
    tagged = (
        (TaggedField(tag=0, name="log_dirs", kind=_UUIDS, default=()), 3),
        (TaggedField(tag=1, name="cordoned_log_dirs", kind=_UUIDS), 4),
    )
    return StructType(
        make=_of_version(RegisterBrokerRecord, version),
        fields=tuple((name, kind) for name, kind, since in fields if version >= since),
        tagged=tuple(each for each, since in tagged if version >= since),
    )


def _registration_change(version: int) -> StructType:
    tagged = (
        TaggedField(tag=0, name="fenced", kind=INT8, default=0),
        TaggedField(tag=1, name="in_controlled_shutdown", kind=INT8, default=0),
        TaggedField(tag=2, name="log_dirs", kind=_UUIDS, default=()),
        TaggedField(tag=3, name="cordoned_log_dirs", kind=_UUIDS),
    )
    return StructType(
        make=_of_version(BrokerRegistrationChangeRecord, version),
        fields=(("broker_id", INT32), ("broker_epoch", INT64)),
        tagged=tagged[: version + 1],
    )


def _of_version(make: Any, version: int) -> Any:
    def made(**fields: Any) -> Any:
        """Make the record in this version."""
        return make(version=version, **fields)

    return made


SCHEMAS = MappingProxyType(
    {
        RecordType.REGISTER_BROKER_RECORD: tuple(map(_register_broker, range(5))),
        RecordType.UNREGISTER_BROKER_RECORD: _only(
            UnregisterBrokerRecord, ("broker_id", INT32), ("broker_epoch", INT64)
        ),
        RecordType.FENCE_BROKER_RECORD: _only(FenceBrokerRecord, ("id", INT32), ("epoch", INT64)),
        RecordType.UNFENCE_BROKER_RECORD: _only(UnfenceBrokerRecord, ("id", INT32), ("epoch", INT64)),
        RecordType.DELEGATION_TOKEN_RECORD: _only(
            DelegationTokenRecord,
            ("owner", STRING),
            ("requester", STRING),
            ("renewers", _STRINGS),
            ("issue_timestamp", INT64),
            ("max_timestamp", INT64),
            ("expiration_timestamp", INT64),
            ("token_id", STRING),
        ),
        RecordType.USER_SCRAM_CREDENTIAL_RECORD: _only(
            UserScramCredentialRecord,
            ("name", STRING),
            ("mechanism", INT8),
            ("salt", BYTES),
            ("stored_key", BYTES),
            ("server_key", BYTES),
            ("iterations", INT32),
        ),
        RecordType.FEATURE_LEVEL_RECORD: _only(FeatureLevelRecord, ("name", STRING), ("feature_level", INT16)),
        RecordType.BROKER_REGISTRATION_CHANGE_RECORD: tuple(map(_registration_change, range(4))),
        RecordType.ACCESS_CONTROL_ENTRY_RECORD: _only(
            AccessControlEntryRecord,
            ("id", UUID_BYTES),
            ("resource_type", INT8),
            ("resource_name", STRING),
            ("pattern_type", INT8),
            ("principal", STRING),
            ("host", STRING),
            ("operation", INT8),
            ("permission_type", INT8),
        ),
        RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD: _only(RemoveAccessControlEntryRecord, ("id", UUID_BYTES)),
        RecordType.NO_OP_RECORD: _only(NoOpRecord),
        RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD: _only(
            RemoveUserScramCredentialRecord, ("name", STRING), ("mechanism", INT8)
        ),
        RecordType.BEGIN_TRANSACTION_RECORD: _only(
            BeginTransactionRecord, tagged=(TaggedField(tag=0, name="name", kind=STRING),)
        ),
        RecordType.END_TRANSACTION_RECORD: _only(EndTransactionRecord),
        RecordType.ABORT_TRANSACTION_RECORD: _only(
            AbortTransactionRecord, tagged=(TaggedField(tag=0, name="reason", kind=STRING),)
        ),
        RecordType.REMOVE_DELEGATION_TOKEN_RECORD: _only(RemoveDelegationTokenRecord, ("token_id", STRING)),
        RecordType.UNREGISTER_CONTROLLER_RECORD: _only(UnregisterControllerRecord, ("controller_id", INT32)),
    }
)
"""The schemas of every record type that aclog interprets: one for each version that Kafka 4.3.1 has, from 0."""


def record_version(record: Any) -> int:
    """Return the version of an interpreted record: its own, or 0 if its type has no other."""
    return getattr(record, "version", 0)


def schema_of(record: Any) -> StructType:
    """Return the schema of an interpreted record in its version."""
    return SCHEMAS[record.api_key][record_version(record)]
