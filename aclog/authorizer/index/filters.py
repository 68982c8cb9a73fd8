"""Listing by filter (AclBindingFilter.matches): a filter with a name or a principal reads only their ACLs."""

from collections.abc import Iterator

import numpy as np

from aclog.authorizer.acl import (
    WILDCARD,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acl_records import rule_of
from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.columns import RowColumns, pairs_of, row_columns
from aclog.authorizer.index.masks import (
    OPERATIONS,
    TYPES,
    known_operation,
    known_pattern,
    known_permission,
    known_type,
)
from aclog.authorizer.index.rules import rules_of
from aclog.metalog.vectors import Bools

_BLOCK = 1 << 14
"""Rows compared at a time."""


def filter_matches(wanted: AclBindingFilter, acl: StandardAcl) -> bool:
    """Return whether a filter matches an ACL; codes are compared as Kafka reads them."""
    if wanted.principal is not None and wanted.principal != acl.principal:
        return False
    if wanted.host is not None and wanted.host != acl.host:
        return False
    kind = known_type(wanted.resource_type)
    if kind not in (ResourceType.ANY, known_type(acl.resource_type)):
        return False
    operation = known_operation(wanted.operation)
    if operation not in (AclOperation.ANY, known_operation(acl.operation)):
        return False
    permission = known_permission(wanted.permission_type)
    if permission not in (AclPermissionType.ANY, known_permission(acl.permission_type)):
        return False
    return _pattern_matches(wanted, acl)


def _pattern_matches(wanted: AclBindingFilter, acl: StandardAcl) -> bool:
    pattern, name = known_pattern(wanted.pattern_type), wanted.resource_name
    if pattern not in (PatternType.ANY, PatternType.MATCH, known_pattern(acl.pattern_type)):
        return False
    if name is None:
        return True
    if pattern != PatternType.MATCH:
        return name == acl.resource_name
    if acl.pattern_type == PatternType.LITERAL:
        return acl.resource_name in (name, WILDCARD)
    return name.startswith(acl.resource_name)


def matching(index: AclIndex, wanted: AclBindingFilter) -> Iterator[StandardAclWithId]:
    """Yield the ACLs that a filter matches, lazily, in no particular order."""
    if wanted.resource_name is not None:
        found = _of_name(index, wanted, wanted.resource_name)
        # With regular ACLs and a filter on the resource alone, the look-up by name is exact and needs no second check.
        if not index.base.raw_codes and not index.overlay.irregular and _any_entry(wanted):
            return found
    elif wanted.principal is not None:
        found = _of_rows(index, wanted, _rows_of_principal(index, wanted))
    else:
        found = _of_rows(index, wanted, np.arange(len(index.base), dtype=np.int32))
    return (rule for rule in found if filter_matches(wanted, rule.acl))


def _any_entry(wanted: AclBindingFilter) -> bool:
    """Return whether the filter restricts nothing but the resource."""
    return (
        wanted.principal is None
        and wanted.host is None
        and wanted.operation == AclOperation.ANY
        and wanted.permission_type == AclPermissionType.ANY
        and wanted.pattern_type in (PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED)
    )


def _of_name(index: AclIndex, wanted: AclBindingFilter, name: str) -> Iterator[StandardAclWithId]:
    kind = known_type(wanted.resource_type)
    for code in range(TYPES) if kind == ResourceType.ANY else (kind,):
        for resource in _resources(index, wanted, code, name):
            yield from _of_resource(index, wanted, resource)


def _resources(index: AclIndex, wanted: AclBindingFilter, kind: int, name: str) -> Iterator[Resource]:
    pattern = known_pattern(wanted.pattern_type)
    if pattern == PatternType.MATCH:
        # Unlike in authorize(), `*` also covers names that begin with `*`.
        yield from index.prefixes(kind, name)
        if name != WILDCARD:
            yield index.literal(kind, WILDCARD)
        yield index.literal(kind, name)
        return
    literal, prefixed = index.named(kind, name)
    if pattern in (PatternType.ANY, PatternType.LITERAL):
        yield literal
    if pattern != PatternType.LITERAL:
        yield prefixed


def _of_resource(index: AclIndex, wanted: AclBindingFilter, resource: Resource) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of a resource; if the filter has both principal and host, only theirs."""
    if wanted.principal is not None and wanted.host is not None:
        keys = ((wanted.principal, wanted.host),)
        yield from rules_of(index, resource, index.base.subject(keys))
    else:
        yield from rules_of(index, resource)


def _rows_of_principal(index: AclIndex, wanted: AclBindingFilter) -> Int32s:
    base, principal = index.base, wanted.principal or ""
    if wanted.host is not None:
        return row_columns(base).of_pair(base.pair(principal, wanted.host))
    columns = row_columns(base)
    return np.concatenate([columns.of_pair(pair) for pair in (*pairs_of(base, principal), -1)])


def _of_rows(index: AclIndex, wanted: AclBindingFilter, rows: Int32s) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of these rows that may match, and all that were added since."""
    base, removed = index.base, index.overlay.removed
    columns = row_columns(base)
    # In blocks, so that the first ACLs of a large listing are returned soon.
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        for row in block[_wanted(columns, wanted, block)].tolist():
            if row not in removed:
                yield base.rule(row)
    yield from map(rule_of, index.overlay.added.values())


def _wanted(columns: RowColumns, wanted: AclBindingFilter, rows: Int32s) -> Bools:
    """Return which rows match the filter's type, operation and permission; unknown codes count as UNKNOWN (0)."""
    fits = np.ones(len(rows), np.bool_)
    kind, operation = known_type(wanted.resource_type), known_operation(wanted.operation)
    permission = known_permission(wanted.permission_type)
    if kind != ResourceType.ANY:
        fits &= columns.types[rows] == kind
    if operation != AclOperation.ANY:
        codes = columns.operations[rows]
        fits &= (codes == operation) | (operation == 0) & (codes >= OPERATIONS)
    if permission != AclPermissionType.ANY:
        codes = columns.permissions[rows]
        fits &= (codes == permission) | (permission == 0) & (codes > AclPermissionType.ALLOW)
    return fits
