"""Writes a state of kafka-gitops: a user for each principal, with its rules as custom ACLs."""

from collections.abc import Iterator, Sequence

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.sources.formats.writers.grouping import by_principal, digest
from aclog.sources.formats.writers.yaml_text import quoted, quoted_key


def unfit(rule: StandardAcl) -> str | None:
    """Return why a state cannot hold a rule; None if it can. The tool's Kafka client is of version 2.4."""
    if rule.resource_type == ResourceType.USER:
        return "kafka-gitops has no type USER"
    if rule.operation > AclOperation.IDEMPOTENT_WRITE:
        return f"kafka-gitops has no operation {AclOperation(rule.operation).name}"
    return None


def lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the state."""
    found = list(by_principal(rules))
    yield "users:" if found else "users: {}"
    for principal, of_principal in found:
        yield f"  {_user(principal, of_principal)}:"
        yield f"    principal: {quoted(principal)}"
    if found:
        yield "customUserAcls:"
    for principal, of_principal in found:
        yield f"  {_user(principal, of_principal)}:"
        for rule in of_principal:
            yield from _acl(rule)


def _acl(rule: StandardAcl) -> Iterator[str]:
    kind, pattern = ResourceType(rule.resource_type).name, PatternType(rule.pattern_type).name
    operation, permission = AclOperation(rule.operation).name, AclPermissionType(rule.permission_type).name
    # The digest tells rules apart whatever stands in their names, and stays when others come and go.
    what = f"{permission} {operation} {kind} {rule.resource_name}"
    yield f"    {quoted_key(f'{digest(rule)} {what}', digest(rule))}:"
    yield f"      name: {quoted(rule.resource_name)}"
    yield f"      type: {kind}"
    yield f"      pattern: {pattern}"
    yield f"      host: {quoted(rule.host)}"
    yield f"      operation: {operation}"
    yield f"      permission: {permission}"


def _user(principal: str, rules: Sequence[StandardAcl]) -> str:
    return quoted_key(principal, digest(rules[0]))
