"""A client of a node's ACL APIs for tests with many of them: asyncio, by the project's own Connection."""

from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeAlias

from attrs import define, frozen

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.client.connection import Connection, connect
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.protocol.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from aclog.protocol.messages import build
from aclog.protocol.session import SecurityProtocol
from tests.support.nodes.cluster import HOST
from tests.support.nodes.server_properties import password

VERSION = 3
EVERYTHING = AclBindingFilter()

Outcome: TypeAlias = tuple[int, str | None]
"""An error's code, 0 for none, and its message."""


@frozen
class Described:
    """An answer to DescribeAcls."""

    code: int
    message: str | None
    acls: frozenset[StandardAcl]
    count: int
    """How many rules were listed: more than there are different ones if one was listed twice."""


def by_principal(principal: str) -> AclBindingFilter:
    """All rules of a principal."""
    return AclBindingFilter(principal=principal)


def exactly(rule: StandardAcl) -> AclBindingFilter:
    """The one rule."""
    return AclBindingFilter(
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission_type,
    )


def login(user: str, secret: str | None = None, mechanism: str = "PLAIN") -> ClientSecurity:
    """How a user of the tests' nodes logs in."""
    return ClientSecurity(
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism=mechanism,
        username=user,
        password=password(user) if secret is None else secret,
    )


@define(eq=False)
class AclClient:
    """One connection; see Connection for what its methods raise."""

    connection: Connection

    @classmethod
    async def open(cls, port: int, user: str = "admin", *, timeout: float = 60, **how: str) -> Self:
        """Logged in; raises as aclog.client.connection.connect."""
        return cls(await connect(HostPort(host=HOST, port=port), login(user, **how), timeout=timeout))

    async def create(self, acls: Iterable[StandardAcl]) -> list[Outcome]:
        """CreateAcls: an outcome for each."""
        creations = tuple(
            build(
                CREATE_ACLS,
                VERSION,
                "request",
                "AclCreation",
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                resource_pattern_type=each.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission_type,
            )
            for each in acls
        )
        answer = await self.connection.ask(build(CREATE_ACLS, VERSION, "request", creations=creations))
        return [_outcome(each) for each in answer.results]

    async def delete(self, filters: Sequence[AclBindingFilter]) -> list[tuple[Outcome, int]]:
        """DeleteAcls: an outcome for each filter, and how many rules it has deleted."""
        entries = tuple(
            build(
                DELETE_ACLS,
                VERSION,
                "request",
                "DeleteAclsFilter",
                resource_type_filter=each.resource_type,
                resource_name_filter=each.resource_name,
                pattern_type_filter=each.pattern_type,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission_type,
            )
            for each in filters
        )
        answer = await self.connection.ask(build(DELETE_ACLS, VERSION, "request", filters=entries))
        return [(_outcome(each), len(each.matching_acls)) for each in answer.filter_results]

    async def describe(self, acl_filter: AclBindingFilter = EVERYTHING) -> Described:
        """DescribeAcls."""
        answer = await self.describe_as_sent(acl_filter)
        acls = [_rule(resource, each) for resource in answer.resources for each in resource.acls]
        return Described(*_outcome(answer), frozenset(acls), len(acls))

    async def describe_as_sent(self, acl_filter: AclBindingFilter = EVERYTHING) -> Any:
        """DescribeAcls; the answer as kio's message."""
        return await self.connection.ask(
            build(
                DESCRIBE_ACLS,
                VERSION,
                "request",
                resource_type_filter=acl_filter.resource_type,
                resource_name_filter=acl_filter.resource_name,
                pattern_type_filter=acl_filter.pattern_type,
                principal_filter=acl_filter.principal,
                host_filter=acl_filter.host,
                operation=acl_filter.operation,
                permission_type=acl_filter.permission_type,
            )
        )

    async def close(self) -> None:
        """Close the connection."""
        await self.connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _outcome(answer: Any) -> Outcome:
    return int(answer.error_code), answer.error_message


def _rule(resource: Any, each: Any) -> StandardAcl:
    return StandardAcl(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        pattern_type=resource.pattern_type,
        principal=each.principal,
        host=each.host,
        operation=each.operation,
        permission_type=each.permission_type,
    )
