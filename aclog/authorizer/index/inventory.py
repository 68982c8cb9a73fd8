"""Listings of ids, resource patterns and principals that do not make an object per ACL."""

from collections.abc import Iterator
from heapq import merge
from uuid import UUID

import numpy as np

from aclog.authorizer.acl import AclBindingFilter, PatternType, ResourcePattern
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.columns import row_columns
from aclog.authorizer.index.filters import matching
from aclog.authorizer.index.keys import split_pair
from aclog.authorizer.index.rules import rules_of


def ids(index: AclIndex, low: int, high: int) -> Iterator[UUID]:
    """Yield the ids in [low, high), given as integers, in ascending order. ACLs without an id are left out."""
    added = sorted(number for number in index.overlay.added if low <= number < high)
    return (UUID(int=number) for number in merge(_base_ids(index, low, high), added))


def _base_ids(index: AclIndex, low: int, high: int) -> Iterator[int]:
    if not index.base.has_ids:
        return
    id_index, removed = index.base.ids, index.overlay.removed
    for row in id_index.rows_from(low):
        number = id_index.number(row)
        if number >= high:
            return
        if row not in removed:
            yield number


def changed_ids(old: AclIndex, new: AclIndex) -> tuple[set[int], set[int]] | None:
    """Return the ids of ACLs that only the old index has, and of those that only the new one has; None: too far apart.

    An id that another ACL has now is in both. The cost is that of the overlays, over one and the same base.
    """
    if old.base is not new.base:
        return None
    was, now = old.overlay, new.overlay
    gone = {number for number, record in was.added.items() if now.added.get(number) is not record}
    come = {number for number, record in now.added.items() if was.added.get(number) is not record}
    if old.base.has_ids:
        number_of = old.base.ids.number
        gone.update(number_of(row) for row in now.removed if row not in was.removed)
        come.update(number_of(row) for row in was.removed if row not in now.removed)
    return gone, come


def resource_patterns(index: AclIndex) -> Iterator[ResourcePattern]:
    """Yield every resource pattern that has an ACL once, in no particular order, with the codes of the records."""
    for kind, resource in index.resources():
        if resource.touched is None and not index.base.raw_codes:
            pattern_type = PatternType.LITERAL if resource.literal else PatternType.PREFIXED
            yield ResourcePattern(resource_type=kind, name=resource.name, pattern_type=pattern_type)
        else:  # ACLs whose records hold other codes share the resource that Kafka reads from them
            codes = {(rule.acl.resource_type, rule.acl.pattern_type) for rule in rules_of(index, resource)}
            for code, pattern_code in codes:
                yield ResourcePattern(resource_type=code, name=resource.name, pattern_type=pattern_code)


def principals(index: AclIndex) -> set[str]:
    """Return every principal that has an ACL."""
    base, overlay = index.base, index.overlay
    columns = row_columns(base)
    used = np.flatnonzero(np.diff(columns.pair_starts)).tolist()
    found = {split_pair(base.pairs.key(pair))[0] for pair in used}
    found.update(record.principal for record in overlay.added.values())
    if overlay.removed:
        # Only principals of removed rows can have lost their last ACL.
        pairs = np.unique(columns.pair_of[np.fromiter(overlay.removed, np.int64)]).tolist()
        for principal in {split_pair(base.pairs.key(pair))[0] for pair in pairs}:
            if next(matching(index, AclBindingFilter(principal=principal)), None) is None:
                found.discard(principal)
    return found
