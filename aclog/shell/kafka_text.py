"""Texts of Kafka's metadata shell (org.apache.kafka.image.node), reproduced to the character.

They are the contents of `/image/...`, with the unbalanced parentheses of delegation tokens, so that scripts for Kafka's
shell work with this one. Secrets are `***` unless requested.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from aclog.metalog.records import DelegationTokenRecord, RegisterBrokerRecord, UserScramCredentialRecord
from aclog.metalog.uuids import uuid_text

HIDDEN = "***"
"""Replaces a secret."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FROM_LEVEL_1_ON = (
    "3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 "
    "3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 "
    "4.2-IV1 4.3-IV0 4.4-IV0 4.4-IV1 4.4-IV2"
)
_METADATA_VERSIONS = MappingProxyType(dict(enumerate(_FROM_LEVEL_1_ON.split(), start=1)))


_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def metadata_version_name(level: int) -> str | None:
    """Return the name of a level of metadata.version, such as `4.3-IV0` for 30; None if it is unknown."""
    return _METADATA_VERSIONS.get(level)


def metadata_version_text(level: int) -> str:
    """Return `/image/features/metadataVersion`, a Java Optional; a level without a name is shown as a number."""
    return f"Optional[{metadata_version_name(level) or level}]" if level else "Optional.empty"


def scram_text(record: UserScramCredentialRecord, *, show_secrets: bool) -> str:
    """Return `/image/scram/<mechanism>/<user>` (ScramCredentialData.toString)."""
    salt, stored, server = (
        secret.hex() if show_secrets else HIDDEN for secret in (record.salt, record.stored_key, record.server_key)
    )
    return f"ScramCredentialData(salt={salt}, storedKey={stored}, serverKey={server}, iterations={record.iterations})"


def token_text(record: DelegationTokenRecord) -> str:
    """Return `/image/delegationToken/<id>` (DelegationTokenData.toString). The secret HMAC is not in the log."""
    return (
        f"DelegationTokenDatatokenId={record.token_id}(owner={record.owner}(tokenRequester={record.requester}"
        f"(renewers={' '.join(record.renewers)}, issueTimestamp={record.issue_timestamp}, "
        f"maxTimestamp={record.max_timestamp}), expiryTimestamp={record.expiration_timestamp}"
    )


def broker_text(broker: RegisterBrokerRecord) -> str:
    """Return `/image/cluster/brokers/<id>` (BrokerRegistration.toString)."""
    listeners = ", ".join(
        f"Endpoint(listenerName='{at.name}', securityProtocol={_protocol(at.security_protocol)}, host='{at.host}', "
        f"port={at.port})"
        for at in sorted(broker.end_points, key=lambda at: at.name)
    )
    features = ", ".join(
        f"{each.name}: {each.min_supported_version}-{each.max_supported_version}"
        for each in sorted(broker.features, key=lambda each: each.name)
    )
    cordoned = broker.cordoned_log_dirs
    return (
        f"BrokerRegistration(id={broker.broker_id}, epoch={broker.broker_epoch}, "
        f"incarnationId={uuid_text(broker.incarnation_id)}, listeners=[{listeners}], supportedFeatures={{{features}}}, "
        f"rack={'Optional.empty' if broker.rack is None else f'Optional[{broker.rack}]'}, "
        f"fenced={_boolean(broker.fenced)}, inControlledShutdown={_boolean(broker.in_controlled_shutdown)}, "
        f"isMigratingZkBroker={_boolean(broker.is_migrating_zk_broker)}, directories={_ids(broker.log_dirs)}, "
        f"cordonedDirectories={'null' if cordoned is None else _ids(cordoned)})"
    )


def _protocol(number: int) -> str:
    return _SECURITY_PROTOCOLS[number] if 0 <= number < len(_SECURITY_PROTOCOLS) else str(number)


def _boolean(value: bool) -> str:
    return str(value).lower()


def _ids(values: Iterable[UUID]) -> str:
    return f"[{', '.join(map(uuid_text, values))}]"


def provenance_text(last_offset: int, epoch: int, timestamp: int) -> str:
    """Return `/image/provenance` (MetadataProvenance); `timestamp` is in ms since 1970, all are -1 for an empty log."""
    return f"offset {last_offset}, epoch {epoch}, time {zoned_time(timestamp)}"


def zoned_time(timestamp: int) -> str:
    """Format ms since 1970 like Java's ISO_ZONED_DATE_TIME in UTC; a time that Python cannot represent as a number."""
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return f"{timestamp}ms"
    fraction = f".{timestamp % 1000:03d}".rstrip("0") if timestamp % 1000 else ""
    return f"{time:%Y-%m-%dT%H:%M:%S}{fraction}Z[UTC]"
