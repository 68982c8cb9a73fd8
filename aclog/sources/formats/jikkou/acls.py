"""The ACLs of an authorization or a role (V1KafkaPrincipalAcl)."""

from collections.abc import Iterator
from enum import IntEnum
from typing import TypeVar

from attrs import frozen

from aclog.authorizer.acl import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text
from aclog.sources.formats.statement import Statement

_ACL_KEYS = ("resource", "operations", "type", "host")
_RESOURCE_KEYS = ("type", "pattern", "patternType")
_TYPES = tuple(each for each in ResourceType if each >= ResourceType.TOPIC)
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH)
_OPERATIONS = tuple(each for each in AclOperation if each >= AclOperation.ALL)
_PERMISSIONS = (AclPermissionType.ALLOW, AclPermissionType.DENY)

_Enum = TypeVar("_Enum", bound=IntEnum)


@frozen(kw_only=True)
class PrincipalAcl:
    """One ACL: operations on a literal name, on a prefix, or on all topics that a regular expression matches."""

    where: Node
    resource_type: ResourceType
    pattern: Node
    pattern_type: PatternType
    operations: tuple[AclOperation, ...]
    permission_type: AclPermissionType
    host: str

    def statements(self) -> Iterator[Statement]:
        """Yield its statements, of a literal name or a prefix."""
        return self._statements(plain_text(self.pattern, "pattern"), self.pattern_type)

    def statements_about(self, topic: str) -> Iterator[Statement]:
        """Yield its statements about one topic that matches."""
        return self._statements(topic, PatternType.LITERAL)

    def _statements(self, name: str, pattern_type: PatternType) -> Iterator[Statement]:
        for operation in self.operations:
            yield Statement(
                where=self.where,
                resource_type=self.resource_type,
                name=name,
                pattern_type=pattern_type,
                operation=operation,
                permission_type=self.permission_type,
                host=self.host,
            )


def acls_of(spec: Node, what: str) -> Iterator[PrincipalAcl]:
    """Yield the ACLs under `acls`. Raises ConfigError: a key is missing or unknown, or holds none of Kafka's names."""
    for acl in spec.members("acls"):
        acl.check_keys(_ACL_KEYS, f"an ACL of {what}")
        resource = acl.required("resource", f"an ACL of {what}")
        resource.check_keys(_RESOURCE_KEYS, "resource")
        operations = acl.required("operations", f"an ACL of {what}").items("operations")
        host = acl.mapping().get("host")
        yield PrincipalAcl(
            where=acl,
            resource_type=_named(resource.required("type", "resource"), "type", _TYPES),
            pattern=resource.required("pattern", "resource"),
            pattern_type=_named(resource.required("patternType", "resource"), "patternType", _PATTERNS),
            operations=tuple(_named(each, "operation", _OPERATIONS) for each in operations),
            permission_type=_named(acl.required("type", f"an ACL of {what}"), "type", _PERMISSIONS),
            host=WILDCARD if host is None else plain_text(host, "host"),
        )


def _named(node: Node, what: str, values: tuple[_Enum, ...]) -> _Enum:
    found = node.text(what)
    for value in values:
        if value.name == found.upper():
            return value
    raise node.error(f"{what} is {found[:60]!r}: expected one of {', '.join(each.name for each in values)}")
