"""authorizeByResourceType: whether an operation is allowed on at least one resource of a type.

Kafka answers it with the default method of its Authorizer interface, which reads rules in its own way: no implied
operations, only DENY denies, only LITERAL and PREFIXED count, and a DENY on the empty prefix rules nothing out.
"""

from collections.abc import Iterator
from itertools import islice, product

import numpy as np

from aclog.authorizer.acl import WILDCARD, AclOperation, AclPermissionType, PatternType
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index import by_type_scan as sieve
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.columns import row_columns
from aclog.authorizer.index.decision_mask import Resource, State
from aclog.authorizer.index.keys import resource_name
from aclog.authorizer.index.masks import DENIED
from aclog.authorizer.index.overlay import key_of
from aclog.authorizer.index.rules import rules_of

_FIRST_BLOCK = 64
_MOST_ONE_BY_ONE = 64
"""Allowed resources that are looked at one by one; most often the first survives."""


def some_resource_allowed(state: State, subject: Subject, operation: int, resource_type: int) -> bool:
    """Whether a rule allows the operation on a resource that no other rule takes away.

    Raises:
        InvalidRequestError: a rule that Kafka trips over: with a value for filters only, or a principal without colon.

    """
    _check(state, subject, resource_type)
    denied, allowed = _says(state, state.literal(resource_type, WILDCARD), subject, operation)
    if denied or allowed:
        return not denied
    dominion = _Dominion(state, subject, operation, resource_type)
    masks_tell = not dominion.exactly and not state.overlay.removed
    added = sieve.added(state, subject, operation, resource_type, AclPermissionType.ALLOW)
    if any(not dominion.denies(record.resource_name, literal=key_of(record)[2]) for record in added):
        return True
    resources = _allowed(state, subject, operation, resource_type, skip_denied=masks_tell)
    for name, literal in islice(resources, _MOST_ONE_BY_ONE):
        if not dominion.denies(name, literal=literal):
            return True
    return next(resources, None) is not None and sieve.some_survives(state, subject, operation, resource_type)


def _check(state: State, subject: Subject, resource_type: int) -> None:
    if state.base.unbindable + state.overlay.unbindable:
        raise InvalidRequestError("a rule holds ANY or MATCH, which only filters may: authorize each resource by name")
    if not state.throws:
        return
    hosts = {host for _, host in subject.keys}
    for kind, resource in state.resources():
        for rule in rules_of(state, resource) if kind == resource_type else ():
            if ":" not in rule.acl.principal and rule.acl.host in hosts:
                raise InvalidRequestError(f"a rule has principal {rule.acl.principal!r}: expected Type:name")


def _says(state: State, resource: Resource, subject: Subject, operation: int) -> tuple[bool, bool]:
    """Whether a resource's rules deny and allow the operation to the subject, read as byResourceType does."""
    permissions = set()
    for rule in rules_of(state, resource, subject):
        if rule.acl.operation in (operation, AclOperation.ALL) and (
            rule.acl.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        ):
            permissions.add(rule.acl.permission_type)
    return AclPermissionType.DENY in permissions, AclPermissionType.ALLOW in permissions


class _Dominion:
    """What takes an allowed resource away: a DENY on it, or on a prefix that is not empty."""

    def __init__(self, state: State, subject: Subject, operation: int, resource_type: int) -> None:
        self.state, self.subject, self.operation, self.resource_type = state, subject, operation, resource_type
        _, empty = state.named(resource_type, "")
        self.exactly = bool(
            state.base.irregular + state.overlay.irregular or _says(state, empty, subject, operation)[0]
        )
        """Whether the masks of authorize() say more than counts here."""

    def denies(self, name: str, *, literal: bool) -> bool:
        """Whether an allowed resource of this name is taken away."""
        state, subject, kind = self.state, self.subject, self.resource_type
        if not self.exactly:
            mask = state.prefix_mask(subject, kind, name)
            if literal:
                mask |= state.literal_mask(subject, kind, name)
            return bool(mask >> self.operation & DENIED)
        resources = [resource for resource in state.prefixes(kind, name) if resource.name]
        if literal:
            resources.append(state.literal(kind, name))
        return any(_says(state, resource, subject, self.operation)[0] for resource in resources)


def _allowed(
    state: State, subject: Subject, operation: int, resource_type: int, *, skip_denied: bool
) -> Iterator[tuple[str, bool]]:
    """The resources of the base (name, whether LITERAL) that a rule allows the operation on.

    With `skip_denied`, not those that a rule of the same pair denies, as most are that are denied at all.
    """
    base, removed = state.base, state.overlay.removed
    columns = row_columns(base)
    for pair, wanted in product(subject.pairs, {operation, int(AclOperation.ALL)}):
        rows, start, size = columns.of(pair, resource_type, wanted, AclPermissionType.ALLOW), 0, _FIRST_BLOCK
        while start < len(rows):
            block = rows[start : start + size]
            if skip_denied:
                block = block[columns.masks[block] >> np.uint32(operation) & np.uint32(DENIED) == 0]
            for row in block.tolist():
                if row not in removed and row not in base.odd:
                    key = base.resources.key(columns.resource_of[row])
                    yield resource_name(key), key[-1] == PatternType.LITERAL
            start, size = start + size, size * 8
