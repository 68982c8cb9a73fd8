"""Texts of Kafka's metadata shell (org.apache.kafka.image.node), reproduced to the character.

They are the contents of `/image/...`, with the unbalanced parentheses of delegation tokens, so that scripts for Kafka's
shell work with this one. Secrets are `***` unless requested.
"""

from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord

HIDDEN = "***"
"""Replaces a secret."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FROM_LEVEL_1_ON = (
    "3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 "
    "3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 "
    "4.2-IV1 4.3-IV0 4.4-IV0"
)
_METADATA_VERSIONS = MappingProxyType(dict(enumerate(_FROM_LEVEL_1_ON.split(), start=1)))


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
