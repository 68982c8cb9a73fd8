"""DescribeAcls, CreateAcls and DeleteAcls for brokers and controllers (kafka.server.AclApis)."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from attrs import define

from aclog.authorizer.acl import AclBindingFilter, AclOperation, StandardAcl
from aclog.authorizer.interface import Authorizer
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.request import MalformedRequestError, Request, RequestError
from aclog.nodes.offload import MANY, committed, offload_if
from aclog.nodes.wire.acl_requests import CreateAclsRequest
from aclog.nodes.wire.acl_responses import create_acls_body, delete_acls_chunks, describe_acls_chunks
from aclog.nodes.wire.error_codes import SECURITY_DISABLED

_MANY_ACLS = 2_000
"""With more ACLs than this, DescribeAcls searches them in a thread."""

_T = TypeVar("_T")


@define
class AclApis:
    """Lists ACLs from the authorizer's image and changes them through its mutator."""

    auth: AuthHelper

    async def describe_acls(self, request: Request) -> bytes:
        """Return the ACLs that match the filter."""
        wanted = _filter(request.body)
        authorizer = self._authorized(request, AclOperation.DESCRIBE)
        pieces = describe_acls_chunks(request.header.api_version, authorizer.acls(wanted))
        if authorizer.acl_count() > _MANY_ACLS:
            # A filter that matches nothing scans all ACLs without yielding a chunk, so the loop would get no turn.
            return await asyncio.to_thread(b"".join, pieces)
        return await _joined(pieces)

    async def create_acls(self, request: Request) -> bytes:
        """Create ACLs; responds once they are committed."""
        acls = await creations_of(request)
        authorizer = self._authorized(request, AclOperation.ALTER)
        results = await committed(authorizer.create_acls(request.context, acls))
        version = request.header.api_version
        if len(results) > MANY:
            return await asyncio.to_thread(create_acls_body, version, results)
        return create_acls_body(version, results)

    async def delete_acls(self, request: Request) -> bytes:
        """Delete the ACLs that match the filters; responds once that is committed."""
        filters = await filters_of(request)
        authorizer = self._authorized(request, AclOperation.ALTER)
        results = await committed(authorizer.delete_acls(request.context, filters))
        many = len(results) > MANY or sum(len(each.deleted) for each in results) > MANY
        return await offload_if(many, b"".join, delete_acls_chunks(request.header.api_version, results))

    def _authorized(self, request: Request, operation: int) -> Authorizer:
        self.auth.authorize_cluster_operation(request, operation)
        if self.auth.authorizer is None:
            raise RequestError(SECURITY_DISABLED, "No Authorizer is configured.")
        return self.auth.authorizer


async def creations_of(request: Request) -> Sequence[StandardAcl]:
    """Return the ACLs of a CreateAcls request.

    Raises:
        MalformedRequestError: Kafka rejects the request while parsing it.

    """
    body = request.body
    if isinstance(body, CreateAclsRequest):
        for each in body.creations:
            _refuse_unknown(each)
        return body.creations
    return await _all(_creation, body.creations)


async def filters_of(request: Request) -> list[AclBindingFilter]:
    """Return the filters of a DeleteAcls request.

    Raises:
        MalformedRequestError: Kafka rejects the request while parsing it.

    """
    return await _all(_filter, request.body.filters)


async def _all(convert: Callable[[Any], _T], entries: Sequence[Any]) -> list[_T]:
    return await offload_if(len(entries) > MANY, lambda: [convert(each) for each in entries])


async def _joined(pieces: Iterator[bytes]) -> bytes:
    """Join the chunks of a response, yielding to the event loop after each."""
    found = []
    for piece in pieces:
        found.append(piece)
        await asyncio.sleep(0)
    return b"".join(found)


def _creation(each: Any) -> StandardAcl:
    acl = StandardAcl(
        resource_type=each.resource_type,
        resource_name=each.resource_name,
        pattern_type=each.resource_pattern_type,
        principal=each.principal,
        host=each.host,
        operation=each.operation,
        permission_type=each.permission_type,
    )
    _refuse_unknown(acl)
    return acl


def _filter(each: Any) -> AclBindingFilter:
    wanted = AclBindingFilter(
        resource_type=each.resource_type_filter,
        resource_name=each.resource_name_filter,
        pattern_type=each.pattern_type_filter,
        principal=each.principal_filter,
        host=each.host_filter,
        operation=each.operation,
        permission_type=each.permission_type,
    )
    _refuse_unknown(wanted)
    return wanted


def _refuse_unknown(found: StandardAcl | AclBindingFilter) -> None:
    """Reject code 0 (UNKNOWN), on which Kafka's request classes throw; other unknown codes pass."""
    if not (found.resource_type and found.pattern_type and found.operation and found.permission_type):
        raise MalformedRequestError("ACL or filter with a field of code 0 (UNKNOWN)")
