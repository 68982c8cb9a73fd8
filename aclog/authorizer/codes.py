"""Kafka's codes of resource types, pattern types, operations and permissions, and its reserved names.

They are the enums of org.apache.kafka.common.acl and .resource.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from aclog.metalog.native import regex


class NamedCode(IntEnum):
    """A code of Kafka's that prints as its name, not as a number."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, format_spec: str) -> str:
        return format(self.name, format_spec)


class ResourceType(NamedCode):
    """The type of a resource (ResourceType; USER since KIP-373)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(NamedCode):
    """How a resource name is compared (KIP-290); ANY and MATCH belong in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(NamedCode):
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


class AclPermissionType(NamedCode):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


WILDCARD = "*"
"""As a resource name, a host, or the name in `User:*`: any (ResourcePattern.WILDCARD_RESOURCE)."""

WILDCARD_PRINCIPAL = "User:*"
"""As the principal of an ACL, matches every principal of every type (StandardAuthorizerData.WILDCARD_PRINCIPAL)."""

ANONYMOUS_PRINCIPAL = "User:ANONYMOUS"
"""Of a client that did not authenticate (KafkaPrincipal.ANONYMOUS)."""

CLUSTER_NAME = "kafka-cluster"
"""The only name a CLUSTER resource may have (Resource.CLUSTER_NAME)."""

SUPPORTED_OPERATIONS: Mapping[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""Each type also supports ALL (AclEntry.supportedOperations of Kafka 4.3.1)."""


# Legal topic names (Kafka's Topic.validate).


LONGEST_TOPIC: Final = 249
"""In characters (Topic.MAX_NAME_LENGTH)."""

_LEGAL_TOPIC = regex(rf"[a-zA-Z0-9._-]{{1,{LONGEST_TOPIC}}}")


def is_legal_topic(name: str, *, is_prefix: bool = False) -> bool:
    """Return whether a name is a legal topic name; with `is_prefix`, whether one begins so."""
    if is_prefix and len(name) < LONGEST_TOPIC:
        name += "x"  # a dot is no topic, but the beginning of some
    return _LEGAL_TOPIC.fullmatch(name) is not None and name not in (".", "..")
