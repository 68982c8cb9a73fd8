"""The ACLs of an authorization or a role (V1KafkaPrincipalAcl)."""

from collections.abc import Iterator

from attrs import frozen

from aclog.authorizer.acl import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.formats.enum_names import concrete
from aclog.sources.formats.named_value import named_value
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text
from aclog.sources.formats.statement import Statement

_ACL_KEYS = ("resource", "operations", "type", "host")
_RESOURCE_KEYS = ("type", "pattern", "patternType")
_TYPES = concrete(ResourceType)
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH)
_OPERATIONS = concrete(AclOperation)
_PERMISSIONS = (AclPermissionType.ALLOW, AclPermissionType.DENY)


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
            resource_type=named_value(resource.required("type", "resource"), "type", _TYPES, any_case=True),
            pattern=resource.required("pattern", "resource"),
            pattern_type=named_value(
                resource.required("patternType", "resource"), "patternType", _PATTERNS, any_case=True
            ),
            operations=tuple(named_value(each, "operation", _OPERATIONS, any_case=True) for each in operations),
            permission_type=named_value(acl.required("type", f"an ACL of {what}"), "type", _PERMISSIONS, any_case=True),
            host=WILDCARD if host is None else plain_text(host, "host"),
        )
