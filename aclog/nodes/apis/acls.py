"""DescribeAcls, CreateAcls and DeleteAcls, alike on brokers and controllers (kafka.server.AclApis)."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from attrs import define

from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.interface import Authorizer
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.request import MalformedRequestError, Request, RequestError
from aclog.nodes.offload import MANY, committed, offload_if
from aclog.nodes.wire.acl_responses import create_acls_body, delete_acls_chunks, describe_acls_chunks
from aclog.nodes.wire.error_codes import SECURITY_DISABLED

_MANY_RULES = 2_000
"""Beyond so many, they are searched offload_if the event loop."""

_T = TypeVar("_T")


@define
class AclApis:
    """Lists rules from the authorizer's image, and has its mutator change them."""

    auth: AuthHelper

    async def describe_acls(self, request: Request) -> bytes:
        """The rules that the filter takes."""
        wanted = _filter(request.body)
        authorizer = self._authorized(request, AclOperation.DESCRIBE)
        pieces = describe_acls_chunks(request.header.api_version, authorizer.acls(wanted))
        if authorizer.acl_count() > _MANY_RULES:
            # A filter may look at all rules for none that it takes: there is no piece between which others have a turn.
            return await asyncio.to_thread(b"".join, pieces)
        return await _joined(pieces)

    async def create_acls(self, request: Request) -> bytes:
        """Create rules; answered when they are committed."""
        acls = await creations_of(request)
        authorizer = self._authorized(request, AclOperation.ALTER)
        results = await committed(authorizer.create_acls(request.context, acls))
        return await offload_if(len(results) > MANY, create_acls_body, request.header.api_version, results)

    async def delete_acls(self, request: Request) -> bytes:
        """Delete what the filters take; answered when that is committed."""
        filters = await filters_of(request)
        authorizer = self._authorized(request, AclOperation.ALTER)
        results = await committed(authorizer.delete_acls(request.context, filters))
        return await _joined(delete_acls_chunks(request.header.api_version, results))

    def _authorized(self, request: Request, operation: int) -> Authorizer:
        self.auth.authorize_cluster_operation(request, operation)
        if self.auth.authorizer is None:
            raise RequestError(SECURITY_DISABLED, "No Authorizer is configured.")
        return self.auth.authorizer


async def creations_of(request: Request) -> list[StandardAcl]:
    """The rules that a CreateAcls request holds. Raises MalformedRequestError where Kafka takes it for none."""
    return await _all(_creation, request.body.creations)


async def filters_of(request: Request) -> list[AclBindingFilter]:
    """The filters that a DeleteAcls request holds. Raises MalformedRequestError where Kafka takes it for none."""
    return await _all(_filter, request.body.filters)


async def _all(convert: Callable[[Any], _T], entries: Sequence[Any]) -> list[_T]:
    return await offload_if(len(entries) > MANY, lambda: [convert(each) for each in entries])


async def _joined(pieces: Iterator[bytes]) -> bytes:
    """The pieces of an answer, with a turn for others on the event loop between any two."""
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
    """Kafka takes a request with the code 0 for none; other codes that it does not know go on."""
    if (
        found.resource_type == ResourceType.UNKNOWN
        or found.pattern_type == PatternType.UNKNOWN
        or found.operation == AclOperation.UNKNOWN
        or found.permission_type == AclPermissionType.UNKNOWN
    ):
        raise MalformedRequestError("an ACL or a filter with the code 0, UNKNOWN")
