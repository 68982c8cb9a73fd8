"""Lints of names that several principals hold: groups and transactional ids."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, finding, texts_among, texts_matching
from aclog.analysis.lint.name_places import NamePlaces
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import noun
from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, ResourceType
from aclog.metalog.vectors import Bools, Int64s

_SHOWN = 10
"""A finding names no more rules than this, and says how many there are."""


def shared_group(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the group names that several principals may join (19)."""
    return _shared("19", table, ResourceType.GROUP, AclOperation.READ)


def shared_transactional_id(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the transactional ids that several principals may use (20)."""
    return _shared("20", table, ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE)


def _shared(lint: str, table: RuleTable, kind: ResourceType, operation: AclOperation) -> Iterator[Finding]:
    star = texts_among(table.names, (WILDCARD,))
    one = texts_matching(table.principals, ":") & ~texts_among(table.principals, (WILDCARD_PRINCIPAL,))
    rows = table.allows & (table.type_of == kind) & (table.operation_of == operation)
    rows &= one[table.principal_of] & ~star[table.resource_of]
    if not rows.any():
        return
    for chosen, others in _Holdings.of(table, rows).shared():
        rules = [table.rule(row) for row in chosen]
        names = sorted({rule.principal for rule in rules})
        which = "the" if table.literal_resource[table.resource_of[chosen[0]]] else "names that begin with the"
        more = f" ({others:,} more rules)" if others else ""
        what = f"{which} {noun(kind)} {rules[0].resource_name!r}"
        yield finding(lint, rules, Told(f"{', '.join(names)}{more} share {what}"))


@frozen(eq=False, kw_only=True)
class _Holdings:
    """Rows by the place of their pattern."""

    rows: Int64s
    places: Int64s
    """Ascending."""
    ends: Int64s
    """By row: where the names that the pattern covers end."""
    principals: Int64s
    other_at: Int64s
    """By row: the next one of another principal."""

    @classmethod
    def of(cls, table: RuleTable, rows: Bools) -> "_Holdings":
        """Return the chosen rows by place; without those on patterns that cover no name."""
        found = NamePlaces.of(table)
        start_of, end_of = (np.full(len(table.names), -1, np.int64) for _ in range(2))
        start_of[found.resource_of[::-1]], end_of[found.resource_of[::-1]] = found.starts[::-1], found.ends[::-1]
        chosen = np.flatnonzero(rows)
        chosen = chosen[start_of[table.resource_of[chosen]] >= 0]
        places, principals = start_of[table.resource_of[chosen]], table.principal_of[chosen].astype(np.int64)
        order = np.lexsort((principals, places))
        chosen, principals = chosen[order], principals[order]
        changes = np.append(np.flatnonzero(np.diff(principals)) + 1, len(chosen))
        return cls(
            rows=chosen,
            places=places[order],
            ends=end_of[table.resource_of[chosen]],
            principals=principals,
            other_at=changes[np.searchsorted(changes, np.arange(len(chosen)), side="right")],
        )

    def shared(self) -> Iterator[tuple[list[int], int]]:
        """Yield for each pattern that several principals hold, all or in part, some of their rows and how many more."""
        if not len(self.rows):  # all are on patterns that cover no name, such as LITERAL ""
            return
        first = np.flatnonzero(np.append(True, np.diff(self.places) != 0))
        ends = np.searchsorted(self.places, self.ends[first])
        for low, high in zip(first.tolist(), ends.tolist(), strict=True):
            if self.other_at[low] < high:
                shown = list(self._some(low, high))
                yield self.rows[shown].tolist(), high - low - len(shown)

    def _some(self, low: int, high: int) -> Iterator[int]:
        """Yield the first holder of a pattern and the first of others, each once in a row."""
        at = low
        for _ in range(_SHOWN):
            yield at
            at = int(self.other_at[at])
            if at >= high:
                return
