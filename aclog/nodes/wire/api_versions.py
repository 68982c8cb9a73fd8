"""The API versions that nodes serve, and the ApiVersions response (KIP-35, KIP-511, KIP-584)."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from attrs import field, frozen
from kio.schema.errors import ErrorCode

from aclog.authorizer.generation import Generation
from aclog.nodes.wire.api_keys import (
    ALTER_CLIENT_QUOTAS,
    ALTER_USER_SCRAM_CREDENTIALS,
    API_VERSIONS,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    CREATE_ACLS,
    CREATE_DELEGATION_TOKEN,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_QUORUM,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ENVELOPE,
    EXPIRE_DELEGATION_TOKEN,
    FETCH,
    FETCH_SNAPSHOT,
    LIST_GROUPS,
    METADATA,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    UNREGISTER_BROKER,
    UNREGISTER_CONTROLLER,
)
from aclog.nodes.wire.messages import encode_response, message_type


@frozen
class ApiVersion:
    """The served versions of an API, both ends included."""

    api_key: int
    min_version: int
    max_version: int

    def __contains__(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


@frozen(kw_only=True)
class Features:
    """The features in an ApiVersions response: supported (min, max) levels and finalized levels by name.

    `finalized_epoch` is the log offset of the image with these levels; -1 if unknown.
    """

    supported: Mapping[str, tuple[int, int]] = field(factory=dict)
    finalized: Mapping[str, int] = field(factory=dict)
    finalized_epoch: int = -1


_EVERYWHERE = (
    ApiVersion(SASL_HANDSHAKE, 0, 1),
    ApiVersion(API_VERSIONS, 0, 4),
    ApiVersion(DESCRIBE_ACLS, 1, 3),
    ApiVersion(CREATE_ACLS, 1, 3),
    ApiVersion(DELETE_ACLS, 1, 3),
    ApiVersion(SASL_AUTHENTICATE, 0, 2),
    ApiVersion(CREATE_DELEGATION_TOKEN, 1, 3),
    ApiVersion(RENEW_DELEGATION_TOKEN, 1, 2),
    ApiVersion(EXPIRE_DELEGATION_TOKEN, 1, 2),
    ApiVersion(DESCRIBE_CONFIGS, 1, 4),
    ApiVersion(ALTER_USER_SCRAM_CREDENTIALS, 0, 0),
    ApiVersion(DESCRIBE_QUORUM, 0, 2),
    ApiVersion(DESCRIBE_CLUSTER, 0, 2),
    ApiVersion(UNREGISTER_BROKER, 0, 0),
)


def _sorted(*more: ApiVersion) -> tuple[ApiVersion, ...]:
    return tuple(sorted((*_EVERYWHERE, *more), key=lambda each: each.api_key))


BROKER_APIS = _sorted(
    ApiVersion(METADATA, 0, 13),
    ApiVersion(DESCRIBE_DELEGATION_TOKEN, 1, 3),
    ApiVersion(LIST_GROUPS, 0, 5),
    ApiVersion(DESCRIBE_CLIENT_QUOTAS, 0, 1),
    ApiVersion(ALTER_CLIENT_QUOTAS, 0, 1),
    ApiVersion(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0),
)
"""The APIs of a broker's listeners, of Kafka 4.3; served_by has those of 4.4."""

CONTROLLER_APIS = _sorted(
    ApiVersion(FETCH, 4, 18),
    ApiVersion(ENVELOPE, 0, 1),
    ApiVersion(FETCH_SNAPSHOT, 0, 1),
    ApiVersion(BROKER_REGISTRATION, 0, 4),
    ApiVersion(BROKER_HEARTBEAT, 0, 2),
)
"""The APIs of a controller's listeners. Fetch is advertised as by Kafka's controllers, but versions below 13 fail."""


def served_by(apis: Iterable[ApiVersion], generation: Generation) -> tuple[ApiVersion, ...]:
    """Return the APIs of a kind of listener as a node of a generation of Kafka serves them."""
    if generation is Generation.V4_3:
        return tuple(apis)
    newer = {
        API_VERSIONS: ApiVersion(API_VERSIONS, 0, 5),
        UNREGISTER_CONTROLLER: ApiVersion(UNREGISTER_CONTROLLER, 0, 0),
    }
    kept = (api for api in apis if api.api_key not in newer)
    return tuple(sorted((*kept, *newer.values()), key=lambda each: each.api_key))


def api_versions_response(version: int, apis: Iterable[ApiVersion], features: Features, error_code: int = 0) -> bytes:
    """Return the body of the ApiVersions response (versions 0 to 5).

    Features are included since version 3. Before version 4, features with minimum 0 are omitted because older clients
    reject 0 (KAFKA-17011).

    Raises:
        DecodeError: A version above 5; respond with `unsupported_api_versions_response`.
        EncodeError: A number is out of range.

    """
    entry = message_type(API_VERSIONS, version, "response", "ApiVersion")
    fields: dict[str, Any] = {
        "error_code": ErrorCode(error_code),
        "api_keys": tuple(
            entry(api_key=api.api_key, min_version=api.min_version, max_version=api.max_version) for api in apis
        ),
    }
    if version >= 1:
        fields["throttle_time"] = timedelta(0)
    if version >= 3:
        fields |= _feature_fields(version, features)
    return encode_response(message_type(API_VERSIONS, version, "response")(**fields))


def _feature_fields(version: int, features: Features) -> dict[str, Any]:
    supported = message_type(API_VERSIONS, version, "response", "SupportedFeatureKey")
    finalized = message_type(API_VERSIONS, version, "response", "FinalizedFeatureKey")
    return {
        "supported_features": tuple(
            supported(name=name, min_version=least, max_version=most)
            for name, (least, most) in features.supported.items()
            if version >= 4 or least > 0
        ),
        "finalized_features_epoch": features.finalized_epoch,
        "finalized_features": tuple(
            finalized(name=name, min_version_level=level, max_version_level=level)
            for name, level in features.finalized.items()
            if level > 0
        ),
    }


def unsupported_api_versions_response() -> bytes:
    """Return the body of the response to an unsupported version of ApiVersions: version 0 with error 35.

    It lists the versions of ApiVersions itself, so that the client can retry with one of them (KIP-511).
    """
    own = [api for api in _EVERYWHERE if api.api_key == API_VERSIONS]
    return api_versions_response(0, own, Features(), error_code=ErrorCode.unsupported_version)
