"""Generated ACLs: shapes K and S, after Kafka's own AuthorizerBenchmark, and a large cluster."""

from collections.abc import Iterator
from uuid import UUID

import numpy as np
from attrs import evolve

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.codec import encode_record
from aclog.metalog.columns import AclColumns, read_acls
from aclog.metalog.records import AccessControlEntryRecord

STEM = "resource-stem-"
HOST = "127.0.0.1"


def user(number: int) -> str:
    return "User:test-user" + (str(number) if number else "")


def is_denied(number: int, percent: int) -> bool:
    """Return whether a number is denied: pseudo-random, and the same in every run (and in Rival.java)."""
    return (number * 2_654_435_761 >> 12) % 100 < percent


def rules(resources: int, *, per_resource: int = 10, deny_percent: int = 50, wildcards: bool) -> Iterator[StandardAcl]:
    """Yield shape K if `wildcards`, else S: `per_resource` users may READ each resource, some are also denied it."""
    number = 0
    for r in range(resources):
        kind = ResourceType.GROUP if r % 10 == 0 else ResourceType.TOPIC
        pattern = PatternType.PREFIXED if r % 5 == 0 else PatternType.LITERAL
        for u in range(per_resource):
            yield from _pair(
                kind, STEM + str(r), pattern, principal=user(u), host="*", denied=is_denied(number, deny_percent)
            )
            number += 1
    if not wildcards:
        return
    for h in range(10):
        host = f"127.0.{h // 256}.{h % 256 + 2}"
        denied = h * 2 < deny_percent // 5
        yield from _pair(ResourceType.TOPIC, STEM, PatternType.PREFIXED, principal=user(0), host=host, denied=denied)
    for h in range(resources // 10):
        host = f"10.{h // 65536}.{h // 256 % 256}.{h % 256}"
        denied = is_denied(h, deny_percent)
        yield from _pair(ResourceType.TOPIC, "*", PatternType.LITERAL, principal=user(0), host=host, denied=denied)


def _pair(kind: int, name: str, pattern: int, *, principal: str, host: str, denied: bool) -> Iterator[StandardAcl]:
    acl = StandardAcl(
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )
    yield acl
    if denied:
        yield evolve(acl, permission_type=AclPermissionType.DENY)


def with_id(number: int, acl: StandardAcl) -> StandardAclWithId:
    """Return an ACL with a pseudo-random, reproducible id."""
    return StandardAclWithId(id=id_of(number), acl=acl)


def id_of(number: int) -> UUID:
    """Return the id of the rule with this number."""
    return UUID(int=(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128))


def record(rule: StandardAclWithId) -> AccessControlEntryRecord:
    acl = rule.acl
    return AccessControlEntryRecord(
        id=rule.id or UUID(int=0),
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def columns(acls: Iterator[StandardAcl]) -> AclColumns:
    """Encode ACLs as records in one buffer, and read them as columns."""
    values = [encode_record(record(with_id(number, acl))) for number, acl in enumerate(acls)]
    ends = np.cumsum([len(value) for value in values])
    starts = np.concatenate(([0], ends[:-1]))
    return read_acls(b"".join(values), starts, ends)[0]


def million(count: int = 1_000_000) -> Iterator[StandardAcl]:
    """Yield the ACLs of a large cluster: one per resource, 30% of them prefixed, with a fifth as many principals."""
    for r in range(count):
        scrambled = r * 2_654_435_761 % 4_294_967_296
        yield StandardAcl(
            resource_type=ResourceType.GROUP if r % 7 == 0 else ResourceType.TOPIC,
            resource_name=f"{('payments', 'orders', 'clicks', 'audit')[r % 4]}.{scrambled:010d}",
            pattern_type=PatternType.PREFIXED if scrambled % 10 < 3 else PatternType.LITERAL,
            principal=f"User:service-{scrambled % (count // 5 + 1)}",
            host="*",
            operation=AclOperation(3 + scrambled % 10),
            permission_type=AclPermissionType.DENY if scrambled % 50 == 0 else AclPermissionType.ALLOW,
        )


def as_json(acl: StandardAcl) -> dict[str, str]:
    """Return an ACL as a line of `--acls`."""
    return {
        "resourceType": ResourceType(acl.resource_type).name,
        "resourceName": acl.resource_name,
        "patternType": PatternType(acl.pattern_type).name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": AclOperation(acl.operation).name,
        "permissionType": AclPermissionType(acl.permission_type).name,
    }
