"""Custom ACLs of kafka-gitops, which state every field (CustomAclDetails)."""

from enum import IntEnum
from typing import TypeVar

from aclog.authorizer.acl import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.formats.node import Node
from aclog.sources.formats.statement import Statement

TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN,
)
PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
OPERATIONS = tuple(each for each in AclOperation if AclOperation.ALL <= each <= AclOperation.IDEMPOTENT_WRITE)
PERMISSIONS = (AclPermissionType.DENY, AclPermissionType.ALLOW)
"""What the Kafka client of the tool knows, 2.4; but not the pattern MATCH, on which Kafka fails."""

_KEYS = ("name", "type", "pattern", "principal", "host", "operation", "permission")

_Enum = TypeVar("_Enum", bound=IntEnum)


def custom_acl(name: str, acl: Node) -> Statement:
    """Return the statement of a custom ACL; its principal is the caller's to find.

    Raises:
        ConfigError: a key is missing or unknown, or its value is none of Kafka's names; with file and line.

    """
    what = f"custom ACL {name}"
    acl.check_keys(_KEYS, what)
    host = acl.mapping().get("host")
    return Statement(
        where=acl,
        resource_type=_named(acl, "type", TYPES, what),
        name=acl.required("name", what).text("name"),
        pattern_type=_named(acl, "pattern", PATTERNS, what),
        operation=_named(acl, "operation", OPERATIONS, what),
        permission_type=_permission(acl, what),
        host=WILDCARD if host is None else host.text("host"),
    )


def _permission(acl: Node, what: str) -> AclPermissionType:
    if "permission" not in acl.mapping():
        return AclPermissionType.ALLOW
    return _named(acl, "permission", PERMISSIONS, what)


def _named(acl: Node, key: str, values: tuple[_Enum, ...], what: str) -> _Enum:
    node = acl.required(key, what)
    text = node.text(key)
    for value in values:
        if value.name == text:
            return value
    raise node.error(f"{what} has the {key} {text[:60]!r}: expected one of {', '.join(each.name for each in values)}")
