"""DescribeAcls, CreateAcls and DeleteAcls requests to a server, ours or Kafka's."""

from collections.abc import Iterable, Sequence
from typing import Any

from aclog.authorizer.acl import AclBindingFilter, ResourceType, StandardAcl, StandardAclWithId
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.metalog.codec import ACL_CONTENT, encode_acl
from aclog.metalog.errors import DecodeError
from aclog.metalog.uuids import ZERO
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.wire.acl_listing import FIRST_COMPACT, decode_listing
from aclog.nodes.wire.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from aclog.nodes.wire.message_builder import build
from aclog.nodes.wire.messages import encode_request

_OLDEST, _WITH_USERS, _NEWEST = 1, 3, 3
"""Version 1 brought pattern types (KIP-290), version 2 only another encoding, version 3 USER resources (KIP-373)."""


def version_for(connection: Connection, api_key: int, resource_types: Iterable[int]) -> int:
    """Return the version in which to send a request about ACLs on resources of these types.

    A server that does not know USER resources may take one for something else, so it is never sent any.

    Raises:
        ConfigError: the server is too old.

    """
    oldest = _WITH_USERS if ResourceType.USER in resource_types else _OLDEST
    return connection.version(api_key, oldest, _NEWEST)


async def describe_acls(
    connection: Connection, wanted: AclBindingFilter, timeout: float | None = None
) -> list[StandardAcl]:
    """Return the ACLs that match the filter; `timeout` in seconds overrides the connection's.

    Raises:
        RequestError: the server refuses; has its code and message.
        UnreachableError, DecodeError: as Connection.ask; also a response with bytes after its last ACL.
        ConfigError: the server is too old.

    """
    version = version_for(connection, DESCRIBE_ACLS, [wanted.resource_type])
    request = build(DESCRIBE_ACLS, version, "request", **_filter_fields(wanted))
    response = await connection.ask(request, timeout, whole=True)
    if response.error_code:
        raise RequestError(int(response.error_code), response.error_message)
    return [
        StandardAcl(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            pattern_type=resource.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    ]


async def acl_contents(connection: Connection, wanted: AclBindingFilter, timeout: float | None = None) -> set[bytes]:
    """Return the contents of the ACLs that match the filter, as AccessControlEntryRecords have them behind the id.

    Ten times as fast as describe_acls, and raises as it.
    """
    version = version_for(connection, DESCRIBE_ACLS, [wanted.resource_type])
    if version < FIRST_COMPACT:
        acls = await describe_acls(connection, wanted, timeout)
        return {encode_acl(acl, ZERO)[ACL_CONTENT:] for acl in acls}
    request = encode_request(build(DESCRIBE_ACLS, version, "request", **_filter_fields(wanted)))
    payload, position = await connection.send(DESCRIBE_ACLS, version, request, timeout)
    try:
        listing = decode_listing(payload, position)
    except DecodeError as error:
        connection.give_up(UnreachableError(f"{connection.address}: closed after a malformed response: {error}"))
        raise error.at(path=str(connection.address)) from None
    if listing.error_code:
        raise RequestError(listing.error_code, listing.error_message)
    return listing.contents


async def create_acls(
    connection: Connection, acls: Sequence[StandardAcl], timeout: float | None = None
) -> list[AclCreateResult]:
    """Create ACLs; return one result for each, in order, once they are committed. For the rest see describe_acls."""
    version = version_for(connection, CREATE_ACLS, [acl.resource_type for acl in acls])
    creations = tuple(
        build(
            CREATE_ACLS,
            version,
            "request",
            "AclCreation",
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in acls
    )
    response = await connection.ask(build(CREATE_ACLS, version, "request", creations=creations), timeout)
    return [AclCreateResult(error=_error(each)) for each in response.results]


async def delete_acls(
    connection: Connection, filters: Sequence[AclBindingFilter], timeout: float | None = None
) -> list[AclDeleteResult]:
    """Delete the ACLs that match the filters; return one result for each filter. For the rest see describe_acls."""
    version = version_for(connection, DELETE_ACLS, [each.resource_type for each in filters])
    wanted = tuple(
        build(DELETE_ACLS, version, "request", "DeleteAclsFilter", **_filter_fields(each)) for each in filters
    )
    response = await connection.ask(build(DELETE_ACLS, version, "request", filters=wanted), timeout)
    return [
        AclDeleteResult(deleted=tuple(map(_deleted, each.matching_acls)), error=_error(each))
        for each in response.filter_results
    ]


def _filter_fields(wanted: AclBindingFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }


def _deleted(each: Any) -> StandardAclWithId:
    acl = StandardAcl(
        resource_type=each.resource_type,
        resource_name=each.resource_name,
        pattern_type=each.pattern_type,
        principal=each.principal,
        host=each.host,
        operation=each.operation,
        permission_type=each.permission_type,
    )
    return StandardAclWithId(id=None, acl=acl)


def _error(result: Any) -> RequestError | None:
    return RequestError(int(result.error_code), result.error_message) if result.error_code else None
