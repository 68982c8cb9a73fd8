"""Writes Strimzi's KafkaUser resources: one for each principal."""

import re
from collections.abc import Iterator, Sequence

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers.grouping import Grant, by_principal, grants
from aclog.sources.formats.writers.holding import refused
from aclog.sources.formats.writers.names import camel_name
from aclog.sources.formats.writers.yaml_text import quoted

_USER = "User:"
_CERTIFICATE = "CN="
_LONGEST_COMMON_NAME = 64
_LONGEST_NAME = 253
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
"""A name of a resource of Kubernetes (RFC 1123)."""
_TYPES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactionalId",
}
_PATTERNS = {PatternType.LITERAL: "literal", PatternType.PREFIXED: "prefix"}
_COMMENT = """\
# The User Operator wants a label on each of these: strimzi.io/cluster, with the name of the Kafka."""


def unfit(rule: StandardAcl) -> str | None:
    """Return why a KafkaUser cannot hold a rule; None if it can."""
    if rule.resource_type not in _TYPES:
        return f"Strimzi has no resource of the type {ResourceType(rule.resource_type).name}"
    if rule.resource_type == ResourceType.CLUSTER and rule.pattern_type != PatternType.LITERAL:
        return "Strimzi has no prefix of the cluster"
    if rule.operation > AclOperation.IDEMPOTENT_WRITE:
        return f"Strimzi has no operation {AclOperation(rule.operation).name}"
    if not rule.principal.startswith(_USER):
        return "a KafkaUser is a principal of the type User"
    name, tls = _identity(rule.principal)
    if not _NAME.fullmatch(name) or len(name) > (_LONGEST_COMMON_NAME if tls else _LONGEST_NAME):
        return "the principal's name is none of a resource of Kubernetes"
    return None


def lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the documents. Raises ConfigError: two principals would be KafkaUsers of one name."""
    _check_names(rules)
    yield _COMMENT
    for principal, found in by_principal(rules):
        name, tls = _identity(principal)
        yield "---"
        yield "apiVersion: kafka.strimzi.io/v1"
        yield "kind: KafkaUser"
        yield "metadata:"
        yield f"  name: {quoted(name)}"
        yield "spec:"
        yield "  authentication:"
        yield f"    type: {'tls' if tls else 'scram-sha-512'}"
        yield "  authorization:"
        yield "    type: simple"
        yield "    acls:"
        for grant in grants(found):
            yield from _acl(grant)


def _acl(grant: Grant) -> Iterator[str]:
    yield "      - resource:"
    yield f"          type: {_TYPES[grant.resource_type]}"
    if grant.resource_type != ResourceType.CLUSTER:
        yield f"          name: {quoted(grant.resource_name)}"
        yield f"          patternType: {_PATTERNS[grant.pattern_type]}"
    yield f"        operations: [{', '.join(map(camel_name, grant.operations))}]"
    yield f"        host: {quoted(grant.host)}"
    if grant.permission_type == AclPermissionType.DENY:
        yield "        type: deny"


def _identity(principal: str) -> tuple[str, bool]:
    """Return the name of the KafkaUser, and whether a certificate authenticates it."""
    name = principal.removeprefix(_USER)
    return name.removeprefix(_CERTIFICATE), name.startswith(_CERTIFICATE)


def _check_names(rules: Sequence[StandardAcl]) -> None:
    first: dict[str, bool] = {}
    twice = []
    for rule in rules:
        name, tls = _identity(rule.principal)
        if first.setdefault(name, tls) != tls:
            twice.append((rule, f"a KafkaUser {name} exists with the other kind of authentication"))
    if twice:
        raise refused(AclsFormat.STRIMZI, len(rules), twice)
