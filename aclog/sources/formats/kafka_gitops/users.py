"""What the roles of users of kafka-gitops give (RoleService)."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from aclog.authorizer.acl import CLUSTER_NAME, WILDCARD, AclOperation, ResourceType
from aclog.sources.formats.node import Node
from aclog.sources.formats.statement import Statement

_ROLES: Mapping[str, tuple[tuple[ResourceType, AclOperation], ...]] = MappingProxyType(
    {
        "reader": ((ResourceType.TOPIC, AclOperation.READ), (ResourceType.GROUP, AclOperation.READ)),
        "writer": ((ResourceType.TOPIC, AclOperation.WRITE),),
        "operator": (
            (ResourceType.CLUSTER, AclOperation.DESCRIBE),
            (ResourceType.TOPIC, AclOperation.DESCRIBE),
            (ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS),
            (ResourceType.GROUP, AclOperation.READ),
            (ResourceType.GROUP, AclOperation.DESCRIBE),
        ),
    }
)
"""On everything of the type."""


def user_statements(name: str, user: Node) -> Iterator[Statement]:
    """Yield the statements of a user's roles. Raises ConfigError: an unknown key or role, with file and line."""
    user.check_keys(("principal", "roles"), f"user {name}")
    roles = user.mapping().get("roles")
    for role in () if roles is None else roles.items("roles"):
        given = _ROLES.get(role.text("role").lower())
        if given is None:
            known = ", ".join(_ROLES)
            raise role.error(f"user {name} has the role {role.raw[:60]!r}: expected one of {known}")
        for resource_type, operation in given:
            on = CLUSTER_NAME if resource_type == ResourceType.CLUSTER else WILDCARD
            yield Statement(where=role, resource_type=resource_type, name=on, operation=operation)
