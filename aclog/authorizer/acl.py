"""ACLs and what they are made of, with Kafka's names and codes (org.apache.kafka.common.acl, .resource)."""

from enum import IntEnum
from functools import lru_cache
from uuid import UUID

from attrs import frozen


class ResourceType(IntEnum):
    """What a rule is about (ResourceType; USER since KIP-373)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a resource name is compared (KIP-290); ANY and MATCH stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What is done to the resource."""

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
    """Whether a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@lru_cache(1024)
def code_name(kind: type[IntEnum], code: int) -> str:
    """The upper-case enum name of a code; `UNKNOWN` for a code that this Kafka does not know, as fromCode has it."""
    try:
        return kind(code).name
    except ValueError:
        return "UNKNOWN"


WILDCARD = "*"
"""As a resource name, a host, or the name in `User:*`: any (ResourcePattern.WILDCARD_RESOURCE)."""

WILDCARD_PRINCIPAL = "User:*"
"""Matches every principal of every type (facts: rule 6 in docs/semantics.md)."""

CLUSTER_NAME = "kafka-cluster"
"""The only name a CLUSTER resource may have (Resource.CLUSTER_NAME)."""


@frozen(kw_only=True)
class ResourcePattern:
    """What a rule covers: a type, a name, and how the name is compared. Codes are raw, as in the log."""

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
    """A rule without its id (org.apache.kafka.metadata.authorizer.StandardAcl). Codes are raw, as in the log."""

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
    """A rule and its id (StandardAclWithId); `id` is None where the source has none."""

    id: UUID | None
    acl: StandardAcl


@frozen(kw_only=True)
class AclBindingFilter:
    """Which rules (AclBindingFilter): None and the ANY codes match everything.

    `pattern_type` MATCH takes the LITERAL patterns of that name and of `*` and the PREFIXED ones that are its prefix.
    """

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission_type: int = AclPermissionType.ANY
