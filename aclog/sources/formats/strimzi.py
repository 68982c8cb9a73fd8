"""Strimzi: KafkaUser resources, and their ACLs."""

import posixpath
from collections.abc import Iterator, Sequence
from types import MappingProxyType

from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.nodes import Node, plain_value
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
from aclog.sources.formats.verdicts import judge_resource, labelled_cluster

# The ACLs of one KafkaUser (io.strimzi.operator.user.model.KafkaUserModel, SimpleAclRule).


_PATTERNS = MappingProxyType({"literal": PatternType.LITERAL, "prefix": PatternType.PREFIXED})
_LONGEST_TLS_NAME = 64
"""The longest common name of a certificate, in characters."""


def rules_of_user(user: Resource) -> Iterator[LocatedRule]:
    """Yield the rules of a user; none without authorization. Raises ConfigError: a rule that Strimzi refuses."""
    user.node.check_keys(("apiVersion", "kind", "metadata", "spec", "status"), "KafkaUser")
    user.spec.check_keys(("authentication", "authorization", "quotas", "template"), "the spec of a KafkaUser")
    principal = _principal(user)
    authorization = user.spec.get("authorization")
    if authorization is None:
        return
    authorization.check_keys(("type", "acls"), "authorization")
    kind = authorization.required("type", "authorization")
    if kind.text("type") != "simple":
        raise kind.error(f"authorization of the type {kind.raw[:40]!r}: expected simple")
    for rule in authorization.required("acls", "authorization").items("acls"):
        yield from _rules(rule, principal, user)


def _principal(user: Resource) -> str:
    """Return the principal: by a certificate, `User:CN=NAME`."""
    authentication = user.spec.get("authentication")
    if authentication is None:
        return f"User:{user.kubernetes_name}"
    kind = authentication.required("type", "authentication")
    match kind.text("type"):
        case "scram-sha-512":
            return f"User:{user.kubernetes_name}"
        case "tls" if len(user.kubernetes_name) > _LONGEST_TLS_NAME:
            raise user.node.error(
                f"a user with tls authentication has a name of {_LONGEST_TLS_NAME} characters at most"
            )
        case "tls" | "tls-external":
            return f"User:CN={user.kubernetes_name}"
    raise kind.error(f"authentication of the type {kind.raw[:40]!r}: expected scram-sha-512, tls or tls-external")


def _rules(rule: Node, principal: str, user: Resource) -> Iterator[LocatedRule]:
    rule.check_keys(("type", "resource", "host", "operation", "operations"), "a rule of acls")
    pattern = _pattern(rule.required("resource", "a rule of acls"))
    permission = choice(rule.get("type"), "type", PERMISSIONS, "allow")
    host = rule.get("host")
    for operation in _operations(rule, user):
        statement = Statement(
            where=operation,
            resource_type=pattern.type,
            name=pattern.name,
            pattern_type=pattern.pattern_type,
            host=WILDCARD if host is None else host.string("host"),
            operation=choice(operation, "the operation", OPERATIONS),
            permission_type=permission,
        )
        yield statement.rule(principal)


def _operations(rule: Node, user: Resource) -> Sequence[Node]:
    """Return the operations: a list, or in v1beta2 a single one instead."""
    one, several = rule.get("operation"), rule.get("operations")
    if one is not None and user.api_version.endswith("/v1"):
        raise one.error("operation is a key of v1beta2: expected operations, a list")
    if one is not None and several is not None:
        raise one.error("operation and operations in one rule: expected one of them")
    if one is not None:
        return [one]
    return rule.required("operations", "a rule of acls").items("operations")


@frozen
class _Pattern:
    type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


def _pattern(resource: Node) -> _Pattern:
    resource.check_keys(("type", "name", "patternType"), "a resource")
    kind = resource.required("type", "a resource")
    resource_type = choice(kind, "type", TYPES)
    if resource_type is ResourceType.CLUSTER:  # with any name and pattern
        return _Pattern(ResourceType.CLUSTER, CLUSTER_NAME)
    name = resource.required("name", f"a resource of the type {kind.raw}").string("name")
    return _Pattern(resource_type, name, choice(resource.get("patternType"), "patternType", _PATTERNS, "literal"))


# Which files are Strimzi's, and the users in them.


_GROUP = "kafka.strimzi.io/"
_VERSIONS = (f"{_GROUP}v1", f"{_GROUP}v1beta2")
_OLD_VERSIONS = (f"{_GROUP}v1beta1", f"{_GROUP}v1alpha1")
"""Of Strimzi before 0.23."""
_OTHERS = ("KafkaPrincipalAuthorization", "KafkaPrincipalRole", "AccessControlEntry")
"""Kinds that other tools make ACLs of: beside a KafkaUser, they would be left out."""


def claims(file: SourceFile) -> bool:
    """Return whether a KafkaUser of Strimzi is in the file; other tools have a kind of this name in groups of theirs.

    Raises:
        ConfigError: it may be and is not YAML; OSError: it cannot be read.

    """
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(b"KafkaUser"):
        return False
    return any(_is_user(each) for each in resources(file.documents))


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of the KafkaUsers; everything else is counted.

    A user of a version that older releases of Strimzi served is unread.

    Raises:
        ConfigError: a user that the User Operator or Kubernetes refuses, a duplicate one; with its file and line.
        OSError: a file cannot be read.

    """
    places: dict[tuple[str, str, str], tuple[SourceFile, Node]] = {}
    has_users = False
    for file in files:
        for resource in resources(file.documents):
            has_users = has_users or _is_user(resource)
            if _is_user(resource) and resource.api_version in _OLD_VERSIONS and not context.strict and len(files) > 1:
                why = f"a KafkaUser of apiVersion {resource.api_version}: expected {' or '.join(_VERSIONS)}"
                context.not_read(UnreadKind.RESOURCE, resource.node, why, name="KafkaUser")
            elif _is_user(resource):
                check_version(resource)
                _check_first(resource, file, places, context)
                yield from rules_in_cluster(resource)
            elif resource.kind in _OTHERS:
                raise resource.node.error(f"a {resource.kind} beside a KafkaUser: move it to a separate file")
            else:
                judge_resource(resource, context)
    if not has_users:  # files that were not claimed, but given with the format
        raise ConfigError(f"{', '.join(file.name for file in files)}: expected a KafkaUser of {_VERSIONS[0]}")


def _is_user(resource: Resource) -> bool:
    return resource.kind == "KafkaUser" and (resource.api_version.startswith(_GROUP) or not resource.api_version)


def check_version(resource: Resource) -> None:
    """Refuse a user of a version that has no users. Raises ConfigError."""
    if resource.api_version not in _VERSIONS:
        version = resource.api_version or "missing"
        raise resource.node.error(f"KafkaUser of apiVersion {version[:60]}: expected {' or '.join(_VERSIONS)}")


def rules_in_cluster(user: Resource) -> Iterator[LocatedRule]:
    """Yield the rules of a user, of the Kafka that its label names. Raises as rules_of_user."""
    cluster = labelled_cluster(user)
    yield from (rule.of_cluster(cluster) for rule in rules_of_user(user))


def _check_first(
    resource: Resource,
    file: SourceFile,
    places: dict[tuple[str, str, str], tuple[SourceFile, Node]],
    context: ReadContext,
) -> None:
    """Refuse a second resource of the name with another content: applied after the first, it replaces it.

    Not if it is in another directory, or of another Kafka: these are environments, each applied by itself.
    """
    namespace, cluster = resource.namespace, labelled_cluster(resource)
    identity = (
        "" if namespace is None else namespace.text("metadata.namespace"),
        resource.kubernetes_name,
        "" if cluster is None else cluster.name,
    )
    first_file, first = places.setdefault(identity, (file, resource.node))
    if first is resource.node or plain_value(first) == plain_value(resource.node):
        return
    directories = {posixpath.dirname(each.path) for each in (first_file, file)}
    if len(directories) == 1:
        raise resource.node.error(
            f"KafkaUser {resource.kubernetes_name[:60]} is in {first.file}:{first.line} already, and differs: one "
            "would replace the other in a cluster"
        )
    context.twins |= directories
