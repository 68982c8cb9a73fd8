"""ACLs, resource patterns and filters, with Kafka's names and codes (org.apache.kafka.common.acl and .resource)."""

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable
from aclog.metalog.uuids import uuid_text

_Enum = TypeVar("_Enum", bound=IntEnum)


class NamedCode(IntEnum):
    """A code of Kafka's that prints as its name: as an int, which it is, it would print as a number."""

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


@lru_cache(1024)
def code_name(kind: type[IntEnum], code: int) -> str:
    """Return the enum name of a code; `UNKNOWN` for a code that Kafka 4.3.1 does not know, as its fromCode does."""
    try:
        return kind(code).name
    except ValueError:
        return "UNKNOWN"


def _code(kind: type[_Enum], code: int) -> _Enum:
    """Return the enum value of a code; UNKNOWN as `code_name`."""
    return kind[code_name(kind, code)]


def code_repr(kind: type[IntEnum], code: int) -> str:
    """Return such as `AclOperation.READ`; the number of a code that Kafka 4.3.1 does not know."""
    return f"{kind.__name__}.{kind(code).name}" if code in set(kind) else repr(code)


def parse_name(values: Iterable[_Enum], text: str) -> _Enum:
    """Return the value with this name in any spelling: ALTER_CONFIGS, alter-configs, AlterConfigs (as kafka-acls.sh).

    Raises:
        ConfigError: no value has this name, or the text is not ASCII; the message lists all values.

    """
    values = list(values)
    found = find_name(values, text)
    if found is not None:
        return found
    names, meant = ", ".join(each.name for each in values), _meant(values, text)
    odd = next((character for character in text if not character.isascii()), None)
    if odd is not None:
        raise ConfigError(f"{text[:40]!r} has {odd!r} (U+{ord(odd):04X}): expected ASCII, one of {names}{meant}")
    raise ConfigError(f"{text[:40]!r} is not one of {names}{meant}")


def find_name(values: Iterable[_Enum], text: str) -> _Enum | None:
    """Return the value with this name in any spelling, as `parse_name`; None if there is none."""
    folded = folded_name(text)
    return next((value for value in values if folded_name(value.name) == folded), None)


def folded_name(text: str) -> str:
    """Return one form for all spellings of a name; a text that is not ASCII stays as it is, and so is no name.

    In capitals some other letters would be ASCII ones, such as a dotless i (U+0131) and a long s (U+017F).
    """
    return text.strip().upper().replace("_", "").replace("-", "") if text.isascii() else text


def _meant(values: list[_Enum], text: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  # no command starts slower for it

    folded = folded_name(text[:40]) if text.isascii() else text[:40].upper()
    close = get_close_matches(folded, {folded_name(each.name): each for each in values}, n=1)
    return "".join(f": did you mean {each.name}?" for each in values if folded_name(each.name) in close)


WILDCARD = "*"
"""As a resource name, a host, or the name in `User:*`: any (ResourcePattern.WILDCARD_RESOURCE)."""

WILDCARD_PRINCIPAL = "User:*"
"""As the principal of an ACL, matches every principal of every type (StandardAuthorizerData.WILDCARD_PRINCIPAL)."""

ANONYMOUS_PRINCIPAL = "User:ANONYMOUS"
"""Of a client that did not authenticate (KafkaPrincipal.ANONYMOUS)."""

CLUSTER_NAME = "kafka-cluster"
"""The only name a CLUSTER resource may have (Resource.CLUSTER_NAME)."""


@frozen(kw_only=True, repr=False)
class ResourcePattern:
    """A resource type, a name, and how the name is compared (ResourcePattern). Codes are raw, as in the log."""

    resource_type: int
    name: str
    pattern_type: int = PatternType.LITERAL

    def __repr__(self) -> str:
        return (
            f"ResourcePattern(resource_type={code_repr(ResourceType, self.resource_type)}, name={self.name!r}, "
            f"pattern_type={code_repr(PatternType, self.pattern_type)})"
        )

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={code_name(ResourceType, self.resource_type)}, name={self.name}, "
            f"patternType={code_name(PatternType, self.pattern_type)})"
        )


@frozen(kw_only=True, repr=False)
class StandardAcl:
    """An ACL without its id (org.apache.kafka.metadata.authorizer.StandardAcl). Codes are raw, as in the log."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __repr__(self) -> str:
        return (
            f"StandardAcl(resource_type={code_repr(ResourceType, self.resource_type)}, "
            f"resource_name={self.resource_name!r}, pattern_type={code_repr(PatternType, self.pattern_type)}, "
            f"principal={self.principal!r}, host={self.host!r}, operation={code_repr(AclOperation, self.operation)}, "
            f"permission_type={code_repr(AclPermissionType, self.permission_type)})"
        )

    def __str__(self) -> str:
        return (
            f"StandardAcl[resourceType={code_name(ResourceType, self.resource_type)}, "
            f"resourceName={self.resource_name}, patternType={code_name(PatternType, self.pattern_type)}, "
            f"principal={self.principal}, host={self.host}, operation={code_name(AclOperation, self.operation)}, "
            f"permissionType={code_name(AclPermissionType, self.permission_type)}]"
        )


@frozen(kw_only=True)
class StandardAclWithId:
    """An ACL and its id (StandardAclWithId), also called a rule; `id` is None if the source has no ids.

    It prints as a line for people. Its codes by name are properties; `acl` has them as in the log.
    """

    id: UUID | None
    acl: StandardAcl

    def __str__(self) -> str:
        return printable(acl_text(self.acl))

    @property
    def resource_type(self) -> ResourceType:
        """The type of its resources; a code that Kafka 4.3.1 does not know is UNKNOWN, here and below."""
        return _code(ResourceType, self.acl.resource_type)

    @property
    def resource_name(self) -> str:
        """The name of its resource, or the prefix."""
        return self.acl.resource_name

    @property
    def pattern_type(self) -> PatternType:
        """LITERAL or PREFIXED."""
        return _code(PatternType, self.acl.pattern_type)

    @property
    def principal(self) -> str:
        """Whom it is for: `User:alice`, or `User:*` for everybody."""
        return self.acl.principal

    @property
    def host(self) -> str:
        """The address it is for, or `*`."""
        return self.acl.host

    @property
    def operation(self) -> AclOperation:
        """The operation."""
        return _code(AclOperation, self.acl.operation)

    @property
    def permission_type(self) -> AclPermissionType:
        """ALLOW or DENY."""
        return _code(AclPermissionType, self.acl.permission_type)

    def to_dict(self) -> dict[str, str | None]:
        """Return the object of `aclog acls list --format jsonl`: names in upper case, the id in 22 characters."""
        acl = self.acl
        return {
            "resourceType": code_name(ResourceType, acl.resource_type),
            "resourceName": acl.resource_name,
            "patternType": code_name(PatternType, acl.pattern_type),
            "principal": acl.principal,
            "host": acl.host,
            "operation": code_name(AclOperation, acl.operation),
            "permissionType": code_name(AclPermissionType, acl.permission_type),
            "id": None if self.id is None else uuid_text(self.id),
        }


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

    @classmethod
    def of(cls, acl: StandardAcl) -> "AclBindingFilter":
        """Return the filter with the fields of an ACL (AccessControlEntry.toFilter).

        It also matches others if a field is ANY, MATCH or unknown: aclog.places.exact_filters refuses those.
        """
        return cls(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )


def resource_of(acl: StandardAcl) -> ResourcePattern:
    """Return the resource of an ACL."""
    return ResourcePattern(resource_type=acl.resource_type, name=acl.resource_name, pattern_type=acl.pattern_type)


def acl_text(acl: StandardAcl) -> str:
    """Return an ACL as one line of text."""
    return (
        f"{code_name(AclPermissionType, acl.permission_type)} {acl.principal} {code_name(AclOperation, acl.operation)} "
        f"on {code_name(ResourceType, acl.resource_type)} {code_name(PatternType, acl.pattern_type)} "
        f"{acl.resource_name!r} from {acl.host}"
    )
