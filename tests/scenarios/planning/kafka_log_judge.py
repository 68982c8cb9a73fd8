"""Holds what a real Kafka's log says of an apply against the plan, by plain loops."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType

DENY = AclPermissionType.DENY
PRINCIPALS = ("User:a", "User:b", "User:c")
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)
_IMPLY_DESCRIBE = {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}

Change: TypeAlias = tuple[str, StandardAcl]
"""ADDED or REMOVED, and the rule."""


def ends_with(state: set[StandardAcl], steps: Iterable[Change]) -> set[StandardAcl]:
    """What is there after all of these steps."""
    found = set(state)
    for kind, rule in steps:
        (found.add if kind == "ADDED" else found.discard)(rule)
    return found


def judge_order(
    state: set[StandardAcl], changes: Sequence[Change], names: Sequence[str], listed: Sequence[dict] | None
) -> None:
    """Fail if a state on the way decides otherwise than both ends do, but for the denials that a plan lists.

    `listed` are the plan's regions where names without rules are open; None where they are not.
    """
    stages = [_stage(*change) for change in changes]
    assert stages == sorted(stages), changes
    end, now = ends_with(state, changes), set(state)
    requests = [
        (principal, operation, name)
        for principal in (*PRINCIPALS, "User:d")
        for operation in OPERATIONS
        for name in names
    ]
    for kind, rule in changes:
        (now.add if kind == "ADDED" else now.discard)(rule)
        for request in requests:
            before, after, is_now = (allows(rules, request, listed is not None) for rules in (state, end, now))
            if before == after != is_now:
                assert before, ("allowed for a moment", request, rule)
                assert any(_holds(region, request) for region in listed or ()), ("not listed", request, rule)


def _stage(kind: str, rule: StandardAcl) -> int:
    denies = rule.permission_type == DENY
    return (0 if denies else 1) if kind == "ADDED" else (3 if denies else 2)


def allows(rules: Iterable[StandardAcl], request, open_by_default: bool) -> bool:
    """Whether rules of topics, for all hosts, allow a request."""
    principal, operation, name = request
    on_name, allowed = False, False
    for rule in rules:
        if not _covers(rule, name):
            continue
        on_name = True
        if rule.principal not in {principal, "User:*"}:
            continue
        same = rule.operation in {operation, AclOperation.ALL}
        if rule.permission_type == DENY and same:
            return False
        implied = operation == AclOperation.DESCRIBE and rule.operation in _IMPLY_DESCRIBE
        allowed |= rule.permission_type != DENY and (same or implied)
    return allowed or (open_by_default and not on_name)


def _covers(rule: StandardAcl, name: str) -> bool:
    return (
        name.startswith(rule.resource_name) if rule.pattern_type == PatternType.PREFIXED else rule.resource_name == name
    )


def _holds(region: dict, request) -> bool:
    """Whether a request is in a region of a plan's head."""
    principal, operation, name = request
    principals = region["principals"]
    if (principal not in principals["in"]) if "in" in principals else (principal in principals["except"]):
        return False
    if operation.name not in region["operations"]:
        return False
    return any(
        part["literal"] == name
        if "literal" in part
        else name.startswith(part["prefix"])
        and not name.startswith(tuple(part["exceptPrefixes"]))
        and name not in part["exceptLiterals"]
        for part in region["names"]
    )
