"""Rules of each principal, and of each of its resources, in a stable order."""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import groupby

from attrs import astuple, frozen

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl


@frozen(kw_only=True)
class Grant:
    """Rules of one principal that differ in their operation only."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    host: str
    permission_type: AclPermissionType
    operations: tuple[AclOperation, ...]


def sort_key(rule: StandardAcl) -> tuple[str, str, str, str, str, str, str]:
    """Return a key that sorts rules as `acls list` does."""
    return (
        ResourceType(rule.resource_type).name,
        rule.resource_name,
        PatternType(rule.pattern_type).name,
        rule.principal,
        rule.host,
        AclOperation(rule.operation).name,
        AclPermissionType(rule.permission_type).name,
    )


def by_principal(rules: Iterable[StandardAcl]) -> Iterator[tuple[str, list[StandardAcl]]]:
    """Yield each principal and its rules, sorted."""
    for principal, found in groupby(sorted(rules, key=lambda rule: (rule.principal, sort_key(rule))), _principal):
        yield principal, list(found)


def grants(rules: Iterable[StandardAcl]) -> Iterator[Grant]:
    """Yield the rules of one principal, those put together that differ in their operation only."""
    found: dict[tuple[int, str, int, str, int], list[AclOperation]] = {}
    for rule in sorted(rules, key=sort_key):
        key = (rule.resource_type, rule.resource_name, rule.pattern_type, rule.host, rule.permission_type)
        found.setdefault(key, []).append(AclOperation(rule.operation))
    for (resource_type, name, pattern_type, host, permission), operations in found.items():
        yield Grant(
            resource_type=ResourceType(resource_type),
            resource_name=name,
            pattern_type=PatternType(pattern_type),
            host=host,
            permission_type=AclPermissionType(permission),
            operations=tuple(operations),
        )


def digest(rule: StandardAcl) -> str:
    """Return 16 hexadecimal digits that tell a rule from all others."""
    return hashlib.sha256("\0".join(map(str, astuple(rule))).encode()).hexdigest()[:16]


def _principal(rule: StandardAcl) -> str:
    return rule.principal
