"""What rules there are, without a look at each: their ids in order, the resource patterns, the principals."""

from collections.abc import Iterator
from heapq import merge
from uuid import UUID

import numpy as np

from aclog.authorizer.acl import AclBindingFilter, PatternType, ResourcePattern
from aclog.authorizer.index.columns import row_columns
from aclog.authorizer.index.decision_mask import State
from aclog.authorizer.index.filters import matching
from aclog.authorizer.index.keys import split_pair
from aclog.authorizer.index.rules import rules_of


def ids(state: State, low: int, high: int) -> Iterator[UUID]:
    """The ids in [low, high) as integers, ascending, lazily; rules without an id are not among them."""
    added = sorted(number for number in state.overlay.added if low <= number < high)
    return (UUID(int=number) for number in merge(_base_ids(state, low, high), added))


def _base_ids(state: State, low: int, high: int) -> Iterator[int]:
    if not state.base.has_ids:
        return
    index, removed = state.base.ids, state.overlay.removed
    for row in index.rows_from(low):
        number = index.number(row)
        if number >= high:
            return
        if row not in removed:
            yield number


def resource_patterns(state: State) -> Iterator[ResourcePattern]:
    """Every resource pattern that a rule is about, once, in no order; with the codes that stand in the records."""
    for kind, resource in state.resources():
        if resource.touched is None and not state.base.odd:
            pattern_type = PatternType.LITERAL if resource.literal else PatternType.PREFIXED
            yield ResourcePattern(resource_type=kind, name=resource.name, pattern_type=pattern_type)
        else:  # rules with codes that only a record can hold stand with those that Kafka takes them for
            codes = {(rule.acl.resource_type, rule.acl.pattern_type) for rule in rules_of(state, resource)}
            for code, pattern_code in codes:
                yield ResourcePattern(resource_type=code, name=resource.name, pattern_type=pattern_code)


def principals(state: State) -> set[str]:
    """Every principal that a rule is for."""
    base, overlay = state.base, state.overlay
    columns = row_columns(base)
    used = np.flatnonzero(np.diff(columns.pair_starts)).tolist()
    found = {split_pair(base.pairs.key(pair))[0] for pair in used}
    found.update(record.principal for record in overlay.added.values())
    if overlay.removed:
        pairs = np.unique(columns.pair_of[np.fromiter(overlay.removed, np.int64)]).tolist()
        for principal in {split_pair(base.pairs.key(pair))[0] for pair in pairs}:
            if next(matching(state, AclBindingFilter(principal=principal)), None) is None:
                found.discard(principal)
    return found
