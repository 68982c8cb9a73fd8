"""Mutants of a rule: what somebody may make of it by mistake."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from attrs import evolve, frozen

from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)


class Mutation(StrEnum):
    """What becomes of a rule."""

    REMOVED = "removed"
    ANY_LONGER_NAME = "literal to prefixed"
    ANY_HOST = "any host"
    ANY_PRINCIPAL = "any principal"
    ALL_OPERATIONS = "all operations"
    FLIPPED = "flipped"


@frozen(kw_only=True)
class Mutant:
    """A rule, and what it becomes."""

    rule: StandardAcl
    mutation: Mutation
    becomes: StandardAcl | None
    """None if it is removed."""


def mutants(rule: StandardAcl) -> Iterator[Mutant]:
    """Yield the mutants of a rule that differ from it."""
    yield Mutant(rule=rule, mutation=Mutation.REMOVED, becomes=None)
    literal = rule.pattern_type == PatternType.LITERAL and rule.resource_type != ResourceType.CLUSTER
    if literal and rule.resource_name != WILDCARD:
        yield _mutant(rule, Mutation.ANY_LONGER_NAME, pattern_type=int(PatternType.PREFIXED))
    if rule.host != WILDCARD:
        yield _mutant(rule, Mutation.ANY_HOST, host=WILDCARD)
    if rule.principal != WILDCARD_PRINCIPAL:
        yield _mutant(rule, Mutation.ANY_PRINCIPAL, principal=WILDCARD_PRINCIPAL)
    if rule.operation != AclOperation.ALL:
        yield _mutant(rule, Mutation.ALL_OPERATIONS, operation=int(AclOperation.ALL))
    allows = rule.permission_type == AclPermissionType.ALLOW
    yield _mutant(
        rule, Mutation.FLIPPED, permission_type=int(AclPermissionType.DENY if allows else AclPermissionType.ALLOW)
    )


def _mutant(rule: StandardAcl, mutation: Mutation, **fields: Any) -> Mutant:
    return Mutant(rule=rule, mutation=mutation, becomes=evolve(rule, **fields))
