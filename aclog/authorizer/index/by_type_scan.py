"""authorizeByResourceType for subjects with many allowed and many denied resources: one vectorised scan by name.

Sorted by name, the resources that a denied prefix excludes are adjacent, right after the prefix. The outermost denied
prefixes therefore cut the sorted names into ranges, each of which begins with the excluded ones. If the last allowed
name of a range does not begin with the range's prefix, it survives; if it does, so do all others of the range.
"""

from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.base import Base, Subject
from aclog.authorizer.index.columns import row_columns
from aclog.authorizer.index.keys import resource_name
from aclog.authorizer.index.masks import known_type
from aclog.authorizer.index.name_ranks import name_ranks
from aclog.authorizer.index.overlay import key_of
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.vectors import Bools, Int64s


def any_survives(index: AclIndex, subject: Subject, operation: int, resource_type: int) -> bool:
    """Return whether an ACL of the base allows the operation on a resource that no DENY excludes.

    A DENY excludes its own pattern and, on a prefix that is not empty, every resource whose name begins with the
    prefix.
    """
    base, ask = index.base, (subject, operation, resource_type)
    denied = _resources(index, *ask, AclPermissionType.DENY)
    # A DENY on the empty prefix excludes nothing here, though it denies everything in authorize().
    denied = denied[denied != base.resource(resource_type, "", literal=False)]
    prefixes = {_name(base, number): number for number in denied[_are_prefixes(base, denied)].tolist()}
    literals: list[int] = []
    for record in added(index, *ask, AclPermissionType.DENY):
        _, name, literal = key_of(record)
        if literal:
            literals.append(base.resource(resource_type, name, literal=True))
        elif name:
            prefixes.setdefault(name, base.resource(resource_type, name, literal=False))
    is_left = np.zeros(len(base.resources) + 1, np.bool_)  # the last one for -1, "not in the base"
    is_left[_resources(index, *ask, AclPermissionType.ALLOW)] = True
    is_left[denied] = False
    is_left[literals] = False
    left = np.flatnonzero(is_left)
    return _some_beyond(base, left, {name: prefixes[name] for name in _outermost(prefixes)})


def added(
    index: AclIndex, subject: Subject, operation: int, resource_type: int, permission: int
) -> Iterator[AccessControlEntryRecord]:
    """Yield the overlay's ACLs with this permission for the operation and type, as byResourceType reads them."""
    for record in index.overlay.added.values():
        if (
            (record.principal, record.host) in subject.keys
            and record.operation in (operation, AclOperation.ALL)
            and record.permission_type == permission
            and record.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
            and known_type(record.resource_type) == resource_type
        ):
            yield record


def _resources(index: AclIndex, subject: Subject, operation: int, resource_type: int, permission: int) -> Int32s:
    """Return the resources of the base with such an ACL, possibly repeated."""
    columns = row_columns(index.base)
    wanted = product(subject.pairs, {operation, int(AclOperation.ALL)})
    rows = np.concatenate(
        [columns.by_pair[:0], *(columns.of(pair, resource_type, op, permission) for pair, op in wanted)]
    )
    # Rows with raw codes are left out with the removed ones: Kafka compares pattern types exactly here.
    gone = np.array([*index.overlay.removed, *index.base.raw_codes], np.int32)
    left: Int32s = columns.resource_of[rows[~np.isin(rows, gone)]]
    return left


def _are_prefixes(base: Base, resources: Int32s) -> Bools:
    ends = np.asarray(base.resources.offsets)[resources + 1]
    return np.asarray(np.frombuffer(base.resources.data, np.uint8)[ends - 1] == PatternType.PREFIXED)


def _outermost(prefixes: Iterable[str]) -> list[str]:
    """Return the prefixes that begin with no other one, sorted."""
    found: list[str] = []
    for prefix in sorted(prefixes):
        if not found or not prefix.startswith(found[-1]):
            found.append(prefix)
    return found


def _some_beyond(base: Base, resources: Int64s, prefixes: dict[str, int]) -> bool:
    """Return whether the name of any of these resources begins with none of the outermost prefixes.

    `prefixes` are sorted; the values are their numbers in the base, or -1.
    """
    if not len(resources) or not prefixes:
        return bool(len(resources))
    ranks = name_ranks(base)
    is_here = np.zeros(len(ranks.order), np.bool_)
    is_here[ranks.of_resource[resources]] = True
    here = np.flatnonzero(is_here)
    starts = np.array([ranks.of(name, number) for name, number in prefixes.items()])
    range_of = np.searchsorted(starts, here, "right") - 1
    # A name before the first range begins with no prefix.
    if range_of[0] < 0:
        return True
    last = np.flatnonzero(np.append(range_of[1:] != range_of[:-1], [True]))
    pairs = zip(ranks.order[here[last]].tolist(), range_of[last].tolist(), strict=True)
    names = list(prefixes)
    return any(not _name(base, resource).startswith(names[at]) for resource, at in pairs)


def _name(base: Base, resource: int) -> str:
    return resource_name(base.resources.key(resource))
