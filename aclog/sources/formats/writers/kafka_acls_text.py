"""Writes the listing of `kafka-acls.sh --list`. Names stand in it as they are, without quotes."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from aclog.authorizer.acl import AclOperation, AclPermissionType, StandardAcl, code_name, resource_of
from aclog.sources.formats.writers.grouping import sort_key

_AFTER_PRINCIPAL = ", host="


def unfit(rule: StandardAcl) -> str | None:
    """Return why the listing cannot hold a rule; None if it can."""
    if any("\n" in text for text in (rule.resource_name, rule.principal, rule.host)):
        return "a name with a line end"
    if _AFTER_PRINCIPAL in rule.principal + rule.host:
        return "a principal or host that holds `, host=`"
    return None


def lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the lines."""
    for pattern, found in groupby(sorted(rules, key=sort_key), resource_of):
        yield f"Current ACLs for resource `{pattern}`:"
        for rule in found:
            operation, permission = code_name(AclOperation, rule.operation), _permission(rule)
            yield (
                f"\t(principal={rule.principal}, host={rule.host}, operation={operation}, permissionType={permission})"
            )
        yield ""


def _permission(rule: StandardAcl) -> str:
    return code_name(AclPermissionType, rule.permission_type)
