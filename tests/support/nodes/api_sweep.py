"""Asks a listener every API that it advertises, in every version, for all that the API can tell."""

from collections.abc import Awaitable, Callable
from typing import Any

from aclog.client.connection import Connection
from aclog.client.errors import UnreachableError
from aclog.metalog.errors import DecodeError
from aclog.protocol.api_keys import (
    ALTER_CLIENT_QUOTAS,
    API_VERSIONS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_DELEGATION_TOKEN,
    ENVELOPE,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from aclog.protocol.error_codes import NOT_CONTROLLER
from aclog.protocol.messages import build

NOT_READY = "AUTHORIZER_NOT_READY"
_LOGINS = (SASL_HANDSHAKE, SASL_AUTHENTICATE)


def full_request(api_key: int, version: int) -> Any:
    """A request that asks for as much as it can; DecodeError for an Envelope that kio does not know."""
    if api_key == ENVELOPE:
        raise DecodeError("an Envelope is built by hand")
    return build(api_key, version, "request", **_fields(api_key, version))


def _fields(api_key: int, version: int) -> dict[str, Any]:
    """What each API is asked; null and empty lists, which most need no more than, mean all."""
    codes = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    texts = ("resource_name_filter", "principal_filter", "host_filter")
    operations = dict.fromkeys(("include_cluster_authorized_operations", "include_topic_authorized_operations"), True)
    requests: dict[int, dict[str, Any]] = {
        API_VERSIONS: {"client_software_name": "sweep", "client_software_version": "1"},
        DESCRIBE_CLUSTER: {"include_cluster_authorized_operations": True, "endpoint_type": 1},
        DESCRIBE_ACLS: dict.fromkeys(codes, 1) | dict.fromkeys(texts),
        DESCRIBE_DELEGATION_TOKEN: {"owners": None},
        DESCRIBE_CLIENT_QUOTAS: {"components": (), "strict": False},
    }
    if api_key == DESCRIBE_CONFIGS:
        resource = build(api_key, version, "request", "DescribeConfigsResource", resource_type=4, resource_name="1")
        return {"resources": (resource,)}
    if api_key == ALTER_CLIENT_QUOTAS:
        return {"entries": (build(api_key, version, "request", "EntryData"),)}
    if api_key == METADATA:
        return {"topics": (build(METADATA, version, "request", "MetadataRequestTopic", name="orders"),)} | operations
    return requests.get(api_key, {})


async def swept(log_in: Callable[[], Awaitable[Connection]], but: frozenset[int]) -> dict[tuple[int, int], Any]:
    """The answer to each API and version that a server advertises, except those left out; None: it closed."""
    async with await log_in() as asking:
        apis = [each for each in asking.apis.values() if each.api_key not in (*_LOGINS, ENVELOPE, *but)]
    answers = {}
    for api in apis:
        for version in range(api.min_version, api.max_version + 1):
            async with await log_in() as connection:
                try:
                    answers[api.api_key, version] = await connection.ask(full_request(api.api_key, version))
                except UnreachableError:
                    answers[api.api_key, version] = None
    return answers


def refused_as_not_ready(answer: Any) -> bool:
    """Whether an answer is the error for a node that has not replayed its log, and nothing else; or no answer.

    A standby that is starting sends those who want the active controller on.
    """
    if answer is None or getattr(answer, "error_code", None) == NOT_CONTROLLER:
        return True
    parts = (answer,) if hasattr(answer, "error_code") else getattr(answer, "results", None) or answer.entries
    return bool(parts) and all(
        each.error_code == -1 and (getattr(each, "error_message", None) or NOT_READY).startswith(NOT_READY)
        for each in parts
    )
