"""Resources of the Redpanda Operator: User, RedpandaRole and Group, and their ACLs."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import (
    OPERATIONS,
    PERMISSIONS,
    TYPES,
    LocatedRule,
    ReadContext,
    Resource,
    SourceFile,
    Statement,
    choice,
    resources,
)
from aclog.sources.formats.unread import UnreadKind
from aclog.sources.formats.verdicts import judge_resource

# The ACLs of one resource (operator/api/redpanda/v1alpha2: UserSpec, RoleSpec, GroupSpec, ACLRule).


GROUP = "cluster.redpanda.com"
KINDS = ("User", "RedpandaRole", "Group")
_KEYS = MappingProxyType(
    {
        "User": ("cluster", "authentication", "authorization", "template"),
        "RedpandaRole": ("cluster", "principals", "authorization", "internal"),
        "Group": ("cluster", "authorization"),
    }
)
_INTERNAL = "__"
"""The prefix of the name of an internal role."""
_OF_REGISTRY = ("subject", "registry")
"""Types of resources of the Schema Registry, whose ACLs are not Kafka's."""
_PATTERNS = MappingProxyType({"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED})


def rules_of(resource: Resource, context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of a resource; none without authorization. Members of a role are reported as unread.

    Raises:
        ConfigError: a rule that the operator or Kubernetes refuses.

    """
    resource.node.check_keys(("apiVersion", "kind", "metadata", "spec", "status"), resource.kind)
    resource.spec.check_keys(_KEYS[resource.kind], f"the spec of a {resource.kind}")
    principal = _principal(resource)
    authorization = resource.spec.get("authorization")
    members = resource.spec.get("principals")
    if members is not None and members.items("principals"):
        why = f"the members of {principal[:80]}: what the role may is not counted as theirs"
        context.not_read(UnreadKind.RESOURCE, members, why, name=resource.kind)
    if authorization is None:
        return
    authorization.check_keys(("type", "acls"), "authorization")
    kind = authorization.get("type")
    if kind is not None and kind.text("type") != "simple":
        raise kind.error(f"authorization of the type {kind.raw[:40]!r}: expected simple")
    for rule in authorization.members("acls"):
        yield from _rules(rule, principal, context)


def _principal(resource: Resource) -> str:
    match resource.kind:
        case "User":
            return f"User:{resource.kubernetes_name}"
        case "Group":
            return f"Group:{resource.kubernetes_name}"
    internal = resource.spec.get("internal")
    is_internal = internal is not None and internal.boolean("internal")
    return f"RedpandaRole:{_INTERNAL if is_internal else ''}{resource.kubernetes_name}"


def _rules(rule: Node, principal: str, context: ReadContext) -> Iterator[LocatedRule]:
    rule.check_keys(("type", "resource", "host", "operations"), "a rule of acls")
    resource = rule.required("resource", "a rule of acls")
    resource.check_keys(("type", "name", "patternType"), "a resource")
    kind = resource.required("type", "a resource")
    if kind.text("type") in _OF_REGISTRY:
        context.ignore("ACL of the Schema Registry")
        return
    resource_type = choice(kind, "type", TYPES)
    host = rule.get("host")
    permission = choice(rule.required("type", "a rule of acls"), "type", PERMISSIONS)
    pattern_type = choice(resource.get("patternType"), "patternType", _PATTERNS, "literal")
    name = _name(resource, resource_type)
    if resource_type is ResourceType.CLUSTER and pattern_type is not PatternType.LITERAL:
        raise resource.error("a cluster has no prefixed pattern")
    for operation in _operations(rule):
        statement = Statement(
            where=operation,
            resource_type=resource_type,
            name=name,
            pattern_type=pattern_type,
            host=WILDCARD if host is None else host.string("host"),
            operation=choice(operation, "the operation", OPERATIONS),
            permission_type=permission,
        )
        yield statement.rule(principal)


def _operations(rule: Node) -> Sequence[Node]:
    operations = rule.required("operations", "a rule of acls").items("operations")
    if not operations:
        raise rule.error("operations is empty: expected one at least")
    return operations


def _name(resource: Node, resource_type: ResourceType) -> str:
    name = resource.get("name")
    if resource_type is ResourceType.CLUSTER:
        if name is not None and name.string("name"):
            raise name.error("a cluster has no name")
        return CLUSTER_NAME
    return resource.required("name", "a resource").string("name")


# Which files are of the operator, and the resources in them.


def claims(file: SourceFile) -> bool:
    """Return whether a resource that makes ACLs is in the file. Raises ConfigError, OSError: it cannot be read."""
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(GROUP.encode()):
        return False
    return any(map(is_of_operator, resources(file.documents)))


def is_of_operator(resource: Resource) -> bool:
    """Return whether a resource is one of the operator's that makes ACLs."""
    return resource.kind in KINDS and resource.api_version.startswith(f"{GROUP}/")


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of the resources; everything else is judged.

    Raises:
        ConfigError: a resource that the operator refuses, or one twice; with its file and line.
        OSError: a file cannot be read.

    """
    places: dict[tuple[str, str, str], str] = {}
    for file in files:
        for resource in resources(file.documents):
            if not is_of_operator(resource):
                judge_resource(resource, context)
                continue
            namespace = resource.namespace
            space = "" if namespace is None else namespace.text("metadata.namespace")
            identity = (resource.kind, space, resource.kubernetes_name)
            place = f"{resource.node.file}:{resource.node.line}"
            if places.setdefault(identity, place) != place:
                raise resource.node.error(
                    f"{resource.kind} {resource.kubernetes_name[:60]} is in {places[identity]} already"
                )
            yield from rules_of(resource, context)
    if not places:  # files that were not claimed, but given with the format
        names = ", ".join(file.name for file in files)
        raise ConfigError(f"{names}: expected a User, RedpandaRole or Group of {GROUP}")
