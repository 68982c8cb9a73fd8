"""ACLs, resource patterns and filters, with Kafka's names and codes (org.apache.kafka.common.acl and .resource)."""

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

from attrs import frozen

from aclog.metalog.errors import ConfigError

_Enum = TypeVar("_Enum", bound=IntEnum)


class ResourceType(IntEnum):
    """The type of a resource (ResourceType; USER since KIP-373)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a resource name is compared (KIP-290); ANY and MATCH belong in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """An operation on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(IntEnum):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@lru_cache(1024)
def code_name(kind: type[IntEnum], code: int) -> str:
    """Return the enum name of a code; `UNKNOWN` for a code that Kafka 4.3.1 does not know, as its fromCode does."""
    try:
        return kind(code).name
    except ValueError:
        return "UNKNOWN"


def parse_name(values: Iterable[_Enum], text: str) -> _Enum:
    """Return the value with this name in any spelling: ALTER_CONFIGS, alter-configs, AlterConfigs (as kafka-acls.sh).

    Raises:
        ConfigError: no value has this name; the message lists all of them.

    """
    values = list(values)
    for value in values:
        if _folded(value.name) == _folded(text):
            return value
    raise ConfigError(f"{text[:40]!r} is not one of {', '.join(each.name for each in values)}")


def _folded(name: str) -> str:
    return name.strip().upper().replace("_", "").replace("-", "")


WILDCARD = "*"
"""As a resource name, a host, or the name in `User:*`: any (ResourcePattern.WILDCARD_RESOURCE)."""

WILDCARD_PRINCIPAL = "User:*"
"""As the principal of an ACL, matches every principal of every type (StandardAuthorizerData.WILDCARD_PRINCIPAL)."""

CLUSTER_NAME = "kafka-cluster"
"""The only name a CLUSTER resource may have (Resource.CLUSTER_NAME)."""


@frozen(kw_only=True)
class ResourcePattern:
    """A resource type, a name, and how the name is compared (ResourcePattern). Codes are raw, as in the log."""

    resource_type: int
    name: str
    pattern_type: int = PatternType.LITERAL

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={code_name(ResourceType, self.resource_type)}, name={self.name}, "
            f"patternType={code_name(PatternType, self.pattern_type)})"
        )


@frozen(kw_only=True)
class StandardAcl:
    """An ACL without its id (org.apache.kafka.metadata.authorizer.StandardAcl). Codes are raw, as in the log."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __str__(self) -> str:
        return (
            f"StandardAcl[resourceType={code_name(ResourceType, self.resource_type)}, "
            f"resourceName={self.resource_name}, patternType={code_name(PatternType, self.pattern_type)}, "
            f"principal={self.principal}, host={self.host}, operation={code_name(AclOperation, self.operation)}, "
            f"permissionType={code_name(AclPermissionType, self.permission_type)}]"
        )


@frozen(kw_only=True)
class StandardAclWithId:
    """An ACL and its id (StandardAclWithId); `id` is None if the source has no ids."""

    id: UUID | None
    acl: StandardAcl


@frozen(kw_only=True)
class AclBindingFilter:
    """A filter for ACLs (AclBindingFilter): None and the ANY codes match everything.

    `pattern_type` MATCH matches LITERAL patterns with that name or `*`, and PREFIXED ones that the name begins with.
    """

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission_type: int = AclPermissionType.ANY


def resource_of(acl: StandardAcl) -> ResourcePattern:
    """Return the resource of an ACL."""
    return ResourcePattern(resource_type=acl.resource_type, name=acl.resource_name, pattern_type=acl.pattern_type)
