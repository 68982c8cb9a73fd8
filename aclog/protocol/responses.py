"""ApiVersions, Envelope, and responses to requests that fail."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from attrs import field
from kio.schema.errors import ErrorCode

from aclog.authorizer.settings import Generation, KafkaPrincipal
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import (
    compact_bytes,
    compact_string,
    read_compact_bytes,
    read_compact_string,
    read_unsigned_varint,
)
from aclog.metalog.values import frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.headers import tagged_fields
from aclog.protocol.messages import build, build_response, encode_response, message_type

# The API versions that nodes serve, and the ApiVersions response (KIP-35, KIP-511, KIP-584).


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
    ApiVersion(api_keys.SASL_HANDSHAKE, 0, 1),
    ApiVersion(api_keys.API_VERSIONS, 0, 4),
    ApiVersion(api_keys.DESCRIBE_ACLS, 1, 3),
    ApiVersion(api_keys.CREATE_ACLS, 1, 3),
    ApiVersion(api_keys.DELETE_ACLS, 1, 3),
    ApiVersion(api_keys.SASL_AUTHENTICATE, 0, 2),
    ApiVersion(api_keys.CREATE_DELEGATION_TOKEN, 1, 3),
    ApiVersion(api_keys.RENEW_DELEGATION_TOKEN, 1, 2),
    ApiVersion(api_keys.EXPIRE_DELEGATION_TOKEN, 1, 2),
    ApiVersion(api_keys.DESCRIBE_CONFIGS, 1, 4),
    ApiVersion(api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, 0),
    ApiVersion(api_keys.DESCRIBE_QUORUM, 0, 2),
    ApiVersion(api_keys.DESCRIBE_CLUSTER, 0, 2),
    ApiVersion(api_keys.UNREGISTER_BROKER, 0, 0),
)


def _sorted(*more: ApiVersion) -> tuple[ApiVersion, ...]:
    return tuple(sorted((*_EVERYWHERE, *more), key=lambda each: each.api_key))


BROKER_APIS = _sorted(
    ApiVersion(api_keys.METADATA, 0, 13),
    ApiVersion(api_keys.DESCRIBE_DELEGATION_TOKEN, 1, 3),
    ApiVersion(api_keys.LIST_GROUPS, 0, 5),
    ApiVersion(api_keys.DESCRIBE_CLIENT_QUOTAS, 0, 1),
    ApiVersion(api_keys.ALTER_CLIENT_QUOTAS, 0, 1),
    ApiVersion(api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0),
)
"""The APIs of a broker's listeners, of Kafka 4.3; served_by has those of 4.4."""

CONTROLLER_APIS = _sorted(
    ApiVersion(api_keys.FETCH, 4, 18),
    ApiVersion(api_keys.ENVELOPE, 0, 1),
    ApiVersion(api_keys.FETCH_SNAPSHOT, 0, 1),
    ApiVersion(api_keys.BROKER_REGISTRATION, 0, 4),
    ApiVersion(api_keys.BROKER_HEARTBEAT, 0, 2),
)
"""The APIs of a controller's listeners. Fetch is advertised as by Kafka's controllers, but versions below 13 fail."""


def served_by(apis: Iterable[ApiVersion], generation: Generation) -> tuple[ApiVersion, ...]:
    """Return the APIs of a kind of listener as a node of a generation of Kafka serves them."""
    if generation is Generation.V4_3:
        return tuple(apis)
    newer = {
        api_keys.API_VERSIONS: ApiVersion(api_keys.API_VERSIONS, 0, 5),
        api_keys.UNREGISTER_CONTROLLER: ApiVersion(api_keys.UNREGISTER_CONTROLLER, 0, 0),
    }
    older = (api for api in apis if api.api_key not in newer)
    return tuple(sorted((*older, *newer.values()), key=lambda each: each.api_key))


def api_versions_response(version: int, apis: Iterable[ApiVersion], features: Features, error_code: int = 0) -> bytes:
    """Return the body of the ApiVersions response (versions 0 to 5).

    Features are included since version 3. Before version 4, features with minimum 0 are omitted because older clients
    reject 0 (KAFKA-17011).

    Raises:
        DecodeError: A version above 5; respond with `unsupported_api_versions_response`.
        EncodeError: A number is out of range.

    """
    entry = message_type(api_keys.API_VERSIONS, version, "response", "ApiVersion")
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
    return encode_response(message_type(api_keys.API_VERSIONS, version, "response")(**fields))


def _feature_fields(version: int, features: Features) -> dict[str, Any]:
    supported = message_type(api_keys.API_VERSIONS, version, "response", "SupportedFeatureKey")
    finalized = message_type(api_keys.API_VERSIONS, version, "response", "FinalizedFeatureKey")
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
    own = [api for api in _EVERYWHERE if api.api_key == api_keys.API_VERSIONS]
    return api_versions_response(0, own, Features(), error_code=ErrorCode.unsupported_version)


# Envelope: a request that a broker forwards for a client (KIP-590; EnvelopeRequest, DefaultPrincipalData).
#
# Version 0 is Kafka's. Version 1 is KIP-801's: the same fields, but the response may carry AUTHORIZER_NOT_READY.
# Kafka, and hence kio, has neither that version nor that error, so the codec is written by hand.


AUTHORIZER_NOT_READY = 10801
"""KIP-801's error: the controller has not replayed its log yet; retry."""


@frozen(kw_only=True)
class EnvelopeRequest:
    """A request with its header, and the client's principal (encode_principal) and address (4 or 16 bytes)."""

    request_data: bytes = field(repr=False)
    request_principal: bytes | None
    client_host_address: bytes


@frozen(kw_only=True)
class EnvelopeResponse:
    """The embedded response with its header; None if the envelope itself failed."""

    response_data: bytes | None = field(default=None, repr=False)
    error_code: int = 0


def encode_envelope_request(request: EnvelopeRequest) -> bytes:
    """Encode the body of an EnvelopeRequest (versions 0 and 1)."""
    principal = _nullable(request.request_principal)
    return compact_bytes(request.request_data) + principal + compact_bytes(request.client_host_address) + b"\0"


def decode_envelope_request(buffer: bytes, position: int) -> EnvelopeRequest:
    """Decode the body of an EnvelopeRequest (versions 0 and 1).

    Raises:
        DecodeError: Truncated, or null in a required field.

    """
    data, position = read_compact_bytes(buffer, position)
    principal, position = _read_nullable(buffer, position)
    address, position = read_compact_bytes(buffer, position)
    tagged_fields(buffer, position)
    return EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=address)


def encode_envelope_response(version: int, response: EnvelopeResponse) -> bytes:
    """Encode the body of an EnvelopeResponse; in version 0 AUTHORIZER_NOT_READY becomes UNKNOWN_SERVER_ERROR."""
    code = response.error_code
    if version == 0 and code == AUTHORIZER_NOT_READY:
        code = error_codes.UNKNOWN_SERVER_ERROR
    return _nullable(response.response_data) + code.to_bytes(2, "big", signed=True) + b"\0"


def decode_envelope_response(buffer: bytes, position: int) -> EnvelopeResponse:
    """Decode the body of an EnvelopeResponse (versions 0 and 1).

    Raises:
        DecodeError: Truncated.

    """
    data, position = _read_nullable(buffer, position)
    after = position + 2
    if after > len(buffer):
        raise DecodeError("truncated error code", position=position)
    tagged_fields(buffer, after)
    code = int.from_bytes(buffer[position:after], "big", signed=True)
    return EnvelopeResponse(response_data=data, error_code=code)


def _nullable(data: bytes | None) -> bytes:
    return b"\0" if data is None else compact_bytes(data)


def _read_nullable(buffer: bytes, position: int) -> tuple[bytes | None, int]:
    length, after = read_unsigned_varint(buffer, position)
    return (None, after) if length == 0 else read_compact_bytes(buffer, position)


def encode_principal(principal: KafkaPrincipal, *, token_authenticated: bool = False) -> bytes:
    """Encode a principal, and whether it authenticated with a delegation token (DefaultPrincipalData version 0).

    Raises:
        EncodeError: A type or name exceeds 32,767 bytes.

    """
    names = compact_string(principal.type) + compact_string(principal.name)
    return b"\0\0" + names + (b"\1" if token_authenticated else b"\0") + b"\0"


def decode_principal(data: bytes) -> tuple[KafkaPrincipal, bool]:
    """Decode a principal, and whether it authenticated with a delegation token.

    Raises:
        DecodeError: Truncated, not UTF-8, or not version 0; Kafka responds with PRINCIPAL_DESERIALIZATION_FAILURE.

    """
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version != 0:
        raise DecodeError(f"principal data of version {version}: expected 0", position=0)
    kind, position = read_compact_string(data, 2)
    name, position = read_compact_string(data, position)
    if position >= len(data):
        raise DecodeError("truncated before token_authenticated", position=position)
    tagged_fields(data, position + 1)
    return KafkaPrincipal(type=kind, name=name), data[position] != 0


# The responses of each API to a request that fails as a whole (AbstractRequest.getErrorResponse).


MAX_MESSAGE = 8192
"""The most characters of an error message, which may quote long names: a string has at most 32,767 bytes."""


_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=1)

_Fields: TypeAlias = dict[str, Any]


def error_response(request: Any, api_key: int, version: int, code: int, *, message: str | None = None) -> bytes:
    """Return the encoded body of the response to a request that fails as a whole.

    `request` is the decoded message, which determines the entries of the response (None for Envelope, ApiVersions).
    `message` is used if the schema has an error message; callers pass None for unknown server errors, which Kafka does
    not explain to clients. A code that Kafka does not define becomes -1, except in Envelope version 1.

    Raises:
        DecodeError: kio does not have the API or version.

    """
    if api_key == api_keys.ENVELOPE:
        return encode_envelope_response(version, EnvelopeResponse(error_code=code))
    if api_key == api_keys.API_VERSIONS and code == error_codes.UNSUPPORTED_VERSION:
        return unsupported_api_versions_response()
    text = None if message is None else message[:MAX_MESSAGE]
    shape = _SHAPES.get(api_key, _top_level)
    return build_response(api_key, version, **shape(request, version, code, text))


def _top_level(_request: Any, _version: int, code: int, _message: str | None) -> _Fields:
    return {"error_code": code}


def _top_level_with_message(_request: Any, _version: int, code: int, message: str | None) -> _Fields:
    return {"error_code": code, "error_message": message}


def _fetch(request: Any, version: int, code: int, _message: str | None) -> _Fields:
    """Before version 13 every partition carries the error as well."""
    if version >= 13:
        return {"error_code": code, "session_id": request.session_id}

    def partitions(topic: Any) -> tuple[Any, ...]:
        return tuple(
            build(
                api_keys.FETCH, version, "response", "PartitionData",
                partition_index=each.partition, error_code=code, high_watermark=-1, records=b"",
            )
            for each in topic.partitions
        )  # fmt: skip

    topics = tuple(
        build(
            api_keys.FETCH, version, "response", "FetchableTopicResponse", topic=each.topic, partitions=partitions(each)
        )
        for each in request.topics
    )
    session_id = request.session_id if version >= 7 else 0
    return {"error_code": code, "session_id": session_id, "responses": topics}


def _metadata(request: Any, version: int, code: int, _message: str | None) -> _Fields:
    """One entry per topic; the top-level error code of version 13 stays 0, as in Kafka."""
    topics = tuple(
        build(
            api_keys.METADATA, version, "response", "MetadataResponseTopic",
            name=each.name or "", topic_id=getattr(each, "topic_id", None), error_code=code,
        )
        for each in request.topics or ()
    )  # fmt: skip
    return {"topics": topics}


def _create_acls(request: Any, version: int, code: int, message: str | None) -> _Fields:
    result = build(
        api_keys.CREATE_ACLS, version, "response", "AclCreationResult", error_code=code, error_message=message
    )
    return {"results": (result,) * len(request.creations)}


def _delete_acls(request: Any, version: int, code: int, message: str | None) -> _Fields:
    result = build(
        api_keys.DELETE_ACLS, version, "response", "DeleteAclsFilterResult", error_code=code, error_message=message
    )
    return {"filter_results": (result,) * len(request.filters)}


def _create_token(_request: Any, _version: int, code: int, _message: str | None) -> _Fields:
    times = dict.fromkeys(("issue_timestamp", "expiry_timestamp", "max_timestamp"), _NO_TIME)
    anonymous = {"principal_type": "User", "principal_name": "ANONYMOUS"}
    requester = {f"token_requester_{name}": value for name, value in anonymous.items()}
    return {"error_code": code, **anonymous, **requester, **times}


def _describe_quorum(_request: Any, _version: int, code: int, message: str | None) -> _Fields:
    """Kafka uses the default message of the error code here, not the exception's."""
    text = "Cluster authorization failed." if code == error_codes.CLUSTER_AUTHORIZATION_FAILED else message
    return {"error_code": code, "error_message": text}


def _client_quotas(_request: Any, _version: int, code: int, message: str | None) -> _Fields:
    return {"error_code": code, "error_message": message, "entries": None}


def _alter_client_quotas(request: Any, version: int, code: int, message: str | None) -> _Fields:
    """One entry per quota entity."""

    def entity(each: Any) -> tuple[Any, ...]:
        return tuple(
            build(
                api_keys.ALTER_CLIENT_QUOTAS, version, "response", "EntityData",
                entity_type=part.entity_type, entity_name=part.entity_name,
            )
            for part in each.entity
        )  # fmt: skip

    entries = tuple(
        build(
            api_keys.ALTER_CLIENT_QUOTAS, version, "response", "EntryData",
            error_code=code, error_message=message, entity=entity(each),
        )
        for each in request.entries
    )  # fmt: skip
    return {"entries": entries}


def _describe_configs(request: Any, version: int, code: int, message: str | None) -> _Fields:
    """One result per resource."""
    results = tuple(
        build(
            api_keys.DESCRIBE_CONFIGS, version, "response", "DescribeConfigsResult", error_code=code,
            error_message=message, resource_type=each.resource_type, resource_name=each.resource_name,
        )
        for each in request.resources
    )  # fmt: skip
    return {"results": results}


def _describe_scram(request: Any, version: int, code: int, message: str | None) -> _Fields:
    """One entry per user without its name, as in Kafka, and the error at the top level."""
    result = build(
        api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, version, "response", "DescribeUserScramCredentialsResult",
        error_code=code, error_message=message,
    )  # fmt: skip
    return {"error_code": code, "error_message": message, "results": (result,) * len(request.users or ())}


def _alter_scram(request: Any, version: int, code: int, message: str | None) -> _Fields:
    """One entry per user in the request, sorted."""
    users = {each.name for each in (*request.deletions, *request.upsertions)}
    results = tuple(
        build(
            api_keys.ALTER_USER_SCRAM_CREDENTIALS, version, "response", "AlterUserScramCredentialsResult",
            user=user, error_code=code, error_message=message,
        )
        for user in sorted(users)
    )  # fmt: skip
    return {"results": results}


_SHAPES: dict[int, Callable[[Any, int, int, str | None], _Fields]] = {
    api_keys.FETCH: _fetch,
    api_keys.METADATA: _metadata,
    api_keys.DESCRIBE_ACLS: _top_level_with_message,
    api_keys.UNREGISTER_BROKER: _top_level_with_message,
    api_keys.UNREGISTER_CONTROLLER: _top_level_with_message,
    api_keys.CREATE_ACLS: _create_acls,
    api_keys.DELETE_ACLS: _delete_acls,
    api_keys.SASL_AUTHENTICATE: _top_level_with_message,
    api_keys.CREATE_DELEGATION_TOKEN: _create_token,
    api_keys.DESCRIBE_CLIENT_QUOTAS: _client_quotas,
    api_keys.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
    api_keys.DESCRIBE_CONFIGS: _describe_configs,
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: _describe_scram,
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: _alter_scram,
    api_keys.DESCRIBE_QUORUM: _describe_quorum,
    api_keys.DESCRIBE_CLUSTER: _top_level_with_message,
}
