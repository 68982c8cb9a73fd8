"""The responses of each API to a request that fails as a whole (AbstractRequest.getErrorResponse)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from aclog.nodes.wire import api_keys
from aclog.nodes.wire.api_keys import API_VERSIONS
from aclog.nodes.wire.api_versions import unsupported_api_versions_response
from aclog.nodes.wire.envelope import EnvelopeResponse, encode_envelope_response
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from aclog.nodes.wire.message_builder import build, build_response

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
    if api_key == API_VERSIONS and code == UNSUPPORTED_VERSION:
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
    nobody = {"principal_type": "User", "principal_name": "ANONYMOUS"}
    requester = {f"token_requester_{name}": value for name, value in nobody.items()}
    return {"error_code": code, **nobody, **requester, **times}


def _describe_quorum(_request: Any, _version: int, code: int, message: str | None) -> _Fields:
    """Kafka uses the default message of the error code here, not the exception's."""
    text = "Cluster authorization failed." if code == CLUSTER_AUTHORIZATION_FAILED else message
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
