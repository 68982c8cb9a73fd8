"""The resources that make rules: Mongey's `kafka_acl`, and Confluent's `confluent_kafka_acl`."""

import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from attrs import frozen

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.authorizer.creation_checks import refusal
from aclog.metalog.errors import ConfigError

_Member = TypeVar("_Member")
MakeError: TypeAlias = Callable[[str, str], ConfigError]
"""Makes an error about an attribute: its name, and what is wrong."""

_META = frozenset(
    {"count", "for_each", "provider", "depends_on", "lifecycle", "connection", "provisioner", "id", "timeouts"}
)
"""What every resource may have."""


@frozen(kw_only=True)
class AclSchema:
    """How a kind of resource names the parts of a rule, and their values."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str
    defaults: Mapping[str, str]
    resource_types: Mapping[str, ResourceType]
    pattern_types: Mapping[str, PatternType]
    operations: Mapping[str, AclOperation]
    permission_types: Mapping[str, AclPermissionType]
    others: frozenset[str]
    """Attributes and blocks that say nothing of the rule."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that make the rule."""
        return (
            self.resource_type,
            self.resource_name,
            self.pattern_type,
            self.principal,
            self.host,
            self.operation,
            self.permission_type,
        )

    def rule(self, texts: Mapping[str, str], hidden: Collection[str], error: MakeError) -> StandardAcl:
        """Return the rule that the attributes state, of which those that are hidden are not shown in an error.

        Raises:
            ConfigError: a word that the provider does not know, or a rule that no Kafka accepts.

        """

        def _word(name: str, words: Mapping[str, _Member]) -> _Member:
            found = words.get(texts[name])
            if found is None:
                shown = "" if name in hidden else f" {texts[name][:40]!r}"
                raise error(name, f"{name}{shown} is not one of {', '.join(words)}")
            return found

        acl = StandardAcl(
            resource_type=_word(self.resource_type, self.resource_types),
            resource_name=texts[self.resource_name],
            pattern_type=_word(self.pattern_type, self.pattern_types),
            principal=texts[self.principal],
            host=texts[self.host],
            operation=_word(self.operation, self.operations),
            permission_type=_word(self.permission_type, self.permission_types),
        )
        refused = refusal(acl)
        if refused is not None:
            raise error("", f"no Kafka accepts this rule: {refused}")
        return acl


_TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN,
)
_OPERATIONS = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
_PERMISSIONS = (AclPermissionType.DENY, AclPermissionType.ALLOW)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")).removesuffix("Id") + (
        "ID" if name.endswith("_ID") else ""
    )


_KAFKA = AclSchema(
    resource_type="resource_type",
    resource_name="resource_name",
    pattern_type="resource_pattern_type_filter",
    principal="acl_principal",
    host="acl_host",
    operation="acl_operation",
    permission_type="acl_permission_type",
    defaults=MappingProxyType({"resource_pattern_type_filter": "Literal"}),
    resource_types=MappingProxyType({_camel(each.name): each for each in _TYPES}),
    pattern_types=MappingProxyType({_camel(each.name): each for each in _PATTERNS}),
    operations=MappingProxyType({_camel(each.name): each for each in _OPERATIONS}),
    permission_types=MappingProxyType({_camel(each.name): each for each in _PERMISSIONS}),
    others=_META,
)
_CONFLUENT = AclSchema(
    resource_type="resource_type",
    resource_name="resource_name",
    pattern_type="pattern_type",
    principal="principal",
    host="host",
    operation="operation",
    permission_type="permission",
    defaults=MappingProxyType({}),
    resource_types=MappingProxyType({each.name: each for each in _TYPES}),
    pattern_types=MappingProxyType({each.name: each for each in _PATTERNS}),
    operations=MappingProxyType({each.name: each for each in _OPERATIONS}),
    permission_types=MappingProxyType({each.name: each for each in _PERMISSIONS}),
    others=_META | {"kafka_cluster", "rest_endpoint", "http_endpoint", "credentials"},
)

SCHEMAS: Mapping[str, AclSchema] = MappingProxyType(
    {"kafka_acl": _KAFKA, "confluent_kafka_acl": _CONFLUENT, "confluentcloud_kafka_acl": _CONFLUENT}
)
"""By the kind of resource; `confluentcloud` is what Confluent's provider was called before."""

_MAKES_ACLS = re.compile(r"kafka\w*acl|acl\w*kafka")


def may_make_rules(kind: str) -> bool:
    """Return whether a kind of resource that has no schema here is, by its name, for ACLs of Kafka."""
    return kind not in SCHEMAS and _MAKES_ACLS.search(kind) is not None
