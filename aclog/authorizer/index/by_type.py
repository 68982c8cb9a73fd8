"""The second step of authorizeByResourceType: is the operation allowed on at least one resource of a type?

StandardAuthorizer does not override the default method of Kafka's Authorizer interface, which reads ACLs in its own
way: no operation implies another, only DENY denies, only LITERAL and PREFIXED count, and a DENY on the empty prefix
excludes nothing.
"""

from collections.abc import Iterator
from itertools import islice, product

import numpy as np

from aclog.authorizer.acl import WILDCARD, AclOperation, AclPermissionType, PatternType
from aclog.authorizer.cidr import in_cidr
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index import by_type_scan, colonless
from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.columns import row_columns
from aclog.authorizer.index.keys import resource_name
from aclog.authorizer.index.masks import DENIED
from aclog.authorizer.index.overlay import key_of
from aclog.authorizer.index.rules import rules_of

_FIRST_BLOCK = 64
_MAX_ONE_BY_ONE = 64
"""Allowed resources to check one by one, before aclog.authorizer.index.by_type_scan: usually the first one is not
denied."""


def any_resource_allowed(index: AclIndex, subject: Subject, operation: int, resource_type: int, *, cidr: bool) -> bool:
    """Return whether the subject is allowed the operation on a resource that no DENY excludes.

    Raises:
        InvalidRequestError: an ACL on which Kafka throws: it holds ANY or MATCH, or its principal has no colon.

    """
    _check(index, subject, resource_type, cidr=cidr)
    # On LITERAL `*` either answer is final: an ALLOW there wins even over denied prefixes.
    denied, allowed = _says(index, index.literal(resource_type, WILDCARD), subject, operation)
    if denied or allowed:
        return not denied
    deny_rules = _DenyRules(index, subject, operation, resource_type)
    # A row's own mask shows a DENY of the same cell, unless it may be out of date or hold what does not count here.
    masks_tell = not deny_rules.exactly and not index.overlay.removed
    allows = by_type_scan.added(index, subject, operation, resource_type, permission=AclPermissionType.ALLOW)
    if any(not deny_rules.denies(record.resource_name, literal=key_of(record)[2]) for record in allows):
        return True
    resources = _allowed(index, subject, operation, resource_type, skip_denied=masks_tell)
    for name, literal in islice(resources, _MAX_ONE_BY_ONE):
        if not deny_rules.denies(name, literal=literal):
            return True
    # All of the first were denied, so probably most are: from here on all at once.
    return next(resources, None) is not None and by_type_scan.any_survives(index, subject, operation, resource_type)


def _check(index: AclIndex, subject: Subject, resource_type: int, *, cidr: bool) -> None:
    if index.base.unbindable + index.overlay.unbindable:
        raise InvalidRequestError("an ACL holds ANY or MATCH, which only filters may: authorize each resource by name")
    if not index.has_colonless:
        return
    # The subject's keys have the ranges of its own principal and of `User:*` only.
    _, host = subject.keys[0]
    for acl in colonless.of_type(index, resource_type):
        if acl.host in (host, WILDCARD) or (cidr and in_cidr(acl.host, host)):
            raise InvalidRequestError(
                f"an ACL has the principal {acl.principal!r}: expected principalType:principalName"
            )


def _says(index: AclIndex, resource: Resource, subject: Subject, operation: int) -> tuple[bool, bool]:
    """Return whether a resource's ACLs deny and allow the subject the operation, read as byResourceType does."""
    permissions = set()
    for rule in rules_of(index, resource, subject):
        if rule.acl.operation in (operation, AclOperation.ALL) and (
            rule.acl.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        ):
            permissions.add(rule.acl.permission_type)
    return AclPermissionType.DENY in permissions, AclPermissionType.ALLOW in permissions


class _DenyRules:
    """The DENY ACLs that exclude an allowed resource: on the same pattern, or on a prefix that is not empty."""

    def __init__(self, index: AclIndex, subject: Subject, operation: int, resource_type: int) -> None:
        self.index, self.subject, self.operation, self.resource_type = index, subject, operation, resource_type
        _, empty = index.named(resource_type, "")
        self.exactly = bool(
            index.base.irregular + index.overlay.irregular or _says(index, empty, subject, operation)[0]
        )
        """Whether the masks, made for authorize(), may deny what is not denied here, so that ACLs have to be read."""

    def denies(self, name: str, *, literal: bool) -> bool:
        """Return whether an allowed resource of this name is excluded."""
        index, subject, kind = self.index, self.subject, self.resource_type
        if not self.exactly:
            mask = index.prefix_mask(subject, kind, name)
            if literal:
                mask |= index.literal_mask(subject, kind, name)
            return bool(mask >> self.operation & DENIED)
        resources = [resource for resource in index.prefixes(kind, name) if resource.name]
        if literal:
            resources.append(index.literal(kind, name))
        return any(_says(index, resource, subject, self.operation)[0] for resource in resources)


def _allowed(
    index: AclIndex, subject: Subject, operation: int, resource_type: int, *, skip_denied: bool
) -> Iterator[tuple[str, bool]]:
    """Yield the resources of the base, as (name, whether LITERAL), on which the subject is allowed the operation.

    With `skip_denied`, those are left out whose cell also denies it, which most denied resources are.
    """
    base, removed = index.base, index.overlay.removed
    columns = row_columns(base)
    for pair, wanted in product(subject.pairs, {operation, int(AclOperation.ALL)}):
        rows, start, size = columns.of(pair, resource_type, wanted, AclPermissionType.ALLOW), 0, _FIRST_BLOCK
        while start < len(rows):
            block = rows[start : start + size]
            # Blocks grow from small to large: the first resource usually decides, the last one may be far away.
            if skip_denied:
                block = block[columns.masks[block] >> np.uint32(operation) & np.uint32(DENIED) == 0]
            for row in block.tolist():
                if row not in removed and row not in base.raw_codes:
                    key = base.resources.key(columns.resource_of[row])
                    yield resource_name(key), key[-1] == PatternType.LITERAL
            start, size = start + size, size * 8
