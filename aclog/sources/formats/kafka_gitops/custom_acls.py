"""Custom ACLs of kafka-gitops, which state every field (CustomAclDetails)."""

from aclog.authorizer.acl import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.formats.named_value import named_value
from aclog.sources.formats.node import Node
from aclog.sources.formats.statement import Statement

_TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN,
)
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
_OPERATIONS = tuple(each for each in AclOperation if AclOperation.ALL <= each <= AclOperation.IDEMPOTENT_WRITE)
_PERMISSIONS = (AclPermissionType.DENY, AclPermissionType.ALLOW)
"""What the Kafka client of the tool knows, 2.4; but not the pattern MATCH, on which Kafka fails."""

_KEYS = ("name", "type", "pattern", "principal", "host", "operation", "permission")


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
        resource_type=named_value(acl.required("type", what), f"the type of {what}", _TYPES),
        name=acl.required("name", what).text("name"),
        pattern_type=named_value(acl.required("pattern", what), f"the pattern of {what}", _PATTERNS),
        operation=named_value(acl.required("operation", what), f"the operation of {what}", _OPERATIONS),
        permission_type=_permission(acl, what),
        host=WILDCARD if host is None else host.text("host"),
    )


def _permission(acl: Node, what: str) -> AclPermissionType:
    if "permission" not in acl.mapping():
        return AclPermissionType.ALLOW
    return named_value(acl.required("permission", what), f"the permission of {what}", _PERMISSIONS)
