"""The flags of kafka-acls.sh, as values (org.apache.kafka.tools.AclCommand, AclCommandOptions).

Kafka's pattern filter is a ResourcePattern here: its text is the same.
"""

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    code_name,
)
from aclog.cli.typed_text import typed_text
from aclog.metalog.errors import ConfigError

CLUSTER = ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


@frozen(kw_only=True)
class ResourceFlags:
    """Which resources are meant."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    delegation_tokens: Sequence[str] = ()
    user_principals: Sequence[str] = ()
    cluster: bool = False
    pattern_type: PatternType = PatternType.LITERAL

    def patterns(self) -> list[ResourcePattern]:
        """The resources that are named; all but transactional ids are trimmed, as Kafka does it.

        Raises:
            ConfigError: a name that is not UTF-8.

        """
        named = [
            *((ResourceType.TOPIC, name.strip()) for name in self.topics),
            *((ResourceType.GROUP, name.strip()) for name in self.groups),
            *((ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_ids),
            *((ResourceType.DELEGATION_TOKEN, name.strip()) for name in self.delegation_tokens),
            *((ResourceType.USER, name.strip()) for name in self.user_principals),
        ]
        patterns = [
            ResourcePattern(resource_type=kind, name=typed_text(name), pattern_type=self.pattern_type)
            for kind, name in named
        ]
        if self.cluster and self.pattern_type is PatternType.LITERAL:
            patterns.append(CLUSTER)
        return list(dict.fromkeys(patterns))


@frozen(kw_only=True)
class Entry:
    """A rule without its resource (AccessControlEntry)."""

    principal: str
    host: str
    operation: int
    permission_type: int

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={code_name(AclOperation, self.operation)}, "
            f"permissionType={code_name(AclPermissionType, self.permission_type)})"
        )


@frozen(kw_only=True)
class EntryFlags:
    """Who may, or may not, do what from where; hosts default to `*` where a principal is given."""

    operations: Sequence[AclOperation] = ()
    allow_principals: Sequence[str] = ()
    deny_principals: Sequence[str] = ()
    allow_hosts: Sequence[str] = ()
    deny_hosts: Sequence[str] = ()
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    def entries(self, operations: Iterable[AclOperation]) -> list[Entry]:
        """Each principal, operation and host of the allowed, then of the denied."""
        operations = tuple(operations)
        return [
            *_entries(self.allow_principals, operations, self.allow_hosts, AclPermissionType.ALLOW),
            *_entries(self.deny_principals, operations, self.deny_hosts, AclPermissionType.DENY),
        ]


def _entries(
    principals: Sequence[str], operations: Sequence[AclOperation], hosts: Sequence[str], permission: AclPermissionType
) -> Iterator[Entry]:
    for principal in dict.fromkeys(map(parse_principal, principals)):
        for operation in dict.fromkeys(operations):
            for host in dict.fromkeys(typed_text(host.strip()) for host in hosts or [WILDCARD]):
                yield Entry(principal=principal, host=host, operation=operation, permission_type=permission)


def parse_principal(text: str) -> str:
    """A principal as `Type:name`, trimmed (SecurityUtils.parseKafkaPrincipal).

    Raises:
        ConfigError: there is no colon, or it is not UTF-8.

    """
    principal = typed_text(text.strip())
    if ":" not in principal:
        raise ConfigError(f"expected a string in format principalType:principalName but got {principal}")
    return principal
