"""What ACLs did for accesses, added up by one task in memory bounded by the number of ACLs, not of accesses."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, field

from aclog.authorizer.index.arrays import Int32s
from aclog.metalog.vectors import Int64s
from aclog.usage.decisions.accesses import Access, ParsedAccess, parse_access
from aclog.usage.decisions.necessary_acls import NecessaryAcls, Pairs
from aclog.usage.unused.access_sets import AccessSets
from aclog.usage.window_rules import WindowRules

_MOST_GROUPS = 1 << 18
"""Groups of ACLs that a task holds before it emits them; about 300 bytes each at most."""

TALLY = pa.schema(
    [
        pa.field("ordinal", pa.int32()),
        pa.field("matched", pa.int64()),
        pa.field("needed", pa.int64()),
        pa.field("last_matched", pa.int64()),
        pa.field("last_needed", pa.int64()),
        pa.field("last_needed_by", pa.string()),
        pa.field("group", pa.list_(pa.int32())),
    ]  # type: ignore[arg-type]  # fields of several types
)
"""Counts of accesses and last times (us since 1970) of an ACL, or a group of ACLs of which at least one must stay."""

_NEVER = np.iinfo(np.int64).min


@define(eq=False)
class Tally:
    """What one task has added up."""

    acls: NecessaryAcls
    window: WindowRules
    with_sets: bool = False
    """Whether `matched_sets` will be asked for: they are held to the end."""
    _matched: Int64s = field(init=False)
    _needed: Int64s = field(init=False)
    _last_matched: Int64s = field(init=False)
    _last_needed: Int64s = field(init=False)
    _by: dict[int, str] = field(factory=dict, init=False)
    _groups: set[bytes] = field(factory=set, init=False)
    """The bytes of sorted int32 ordinals: smaller than tuples, and as quick to compare."""
    _matched_together: set[bytes] = field(factory=set, init=False)
    """The same of int64 ordinals, of the ACLs that match an access at its own time or at the end of the window."""

    def __attrs_post_init__(self) -> None:
        """Start at zero."""
        count = len(self.window.throughout)
        self._matched, self._needed = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._last_matched, self._last_needed = np.full(count, _NEVER), np.full(count, _NEVER)

    @property
    def has_many_groups(self) -> bool:
        """Whether it is time to emit the groups."""
        return len(self._groups) > _MOST_GROUPS

    def add(self, table: pa.Table) -> None:
        """Add distinct accesses without errors: COUNTED with `decision_code` and `decision_code_at_end`."""
        parsed = _parsed_accesses(table)
        version, count, last = (np.asarray(table.column(name)) for name in ("version", "count", "last"))
        found = self.acls.find(parsed, version, np.asarray(table.column("decision_code")))
        _add(self._matched, found.matched, count)
        _add(self._needed, found.needed, count)
        np.maximum.at(self._last_matched, found.matched.ordinal, last[found.matched.access])
        self._note_last_needed(found.needed, last, [access.principal for access in parsed])
        self._note_groups(found.groups)
        self._note_matched(found.matched)
        # removing ACLs must not change what the same accesses would get now, either
        at_end = np.full(len(parsed), self.window.version, np.int64)
        if not np.array_equal(at_end, version):
            found = self.acls.find(parsed, at_end, np.asarray(table.column("decision_code_at_end")))
            self._note_groups(found.groups)
            self._note_matched(found.matched)

    def _note_last_needed(self, needed: Pairs, last: Int64s, principals: list[str]) -> None:
        """Of several principals at the same time, take the last by name: results must not depend on partitions."""
        _, rank = np.unique(np.array(principals, object), return_inverse=True)
        times = last[needed.access]
        order = np.lexsort((rank[needed.access], times, needed.ordinal))[::-1]
        ordinals, times, access = needed.ordinal[order], times[order], needed.access[order]
        lasts = _firsts(ordinals)
        lasts = lasts[times[lasts] >= self._last_needed[ordinals[lasts]]]
        for at in lasts.tolist():
            ordinal, time, principal = int(ordinals[at]), int(times[at]), principals[access[at]]
            known = self._by.get(ordinal, "") if time == self._last_needed[ordinal] else ""
            self._by[ordinal], self._last_needed[ordinal] = max(known, principal), time

    def _note_groups(self, groups: Pairs) -> None:
        """Keep the groups that constrain a removal: those without an ACL that stays anyway."""
        kept = np.zeros(int(np.max(groups.access, initial=-1)) + 1, np.bool_)
        kept[groups.access[self.window.stays[groups.ordinal]]] = True
        left = ~kept[groups.access] & self.window.throughout[groups.ordinal]
        access, ordinal = groups.access[left], groups.ordinal[left].astype(np.int32)
        order = np.lexsort((ordinal, access))
        access, ordinal = access[order], ordinal[order]
        starts = np.append(_firsts(access), len(access)).tolist()
        data = ordinal.tobytes()
        self._groups.update(data[4 * start : 4 * end] for start, end in pairwise(starts))

    def _note_matched(self, matched: Pairs) -> None:
        if not self.with_sets:
            return
        order = np.lexsort((matched.ordinal, matched.access))
        access, data = matched.access[order], matched.ordinal[order].astype(np.int64).tobytes()
        starts = np.append(_firsts(access), len(access)).tolist()
        self._matched_together.update(data[8 * start : 8 * end] for start, end in pairwise(starts))

    def matched_sets(self) -> AccessSets:
        """Return the distinct sets of ACLs that match an access together, by ordinal."""
        sets = sorted(self._matched_together)
        members = np.frombuffer(b"".join(sets), np.int64)
        starts = np.cumsum([0, *(len(each) // 8 for each in sets)])
        return AccessSets(starts=starts, members=members, denies=self.acls.denying()[members])

    def rules(self) -> pa.Table:
        """Return the ACLs that matched or were needed (TALLY)."""
        at = np.flatnonzero((self._matched > 0) | (self._needed > 0))
        columns: dict[str, Any] = {
            "ordinal": at.astype(np.int32),
            "matched": self._matched[at],
            "needed": self._needed[at],
            "last_matched": pa.array(self._last_matched[at], mask=self._matched[at] == 0),
            "last_needed": pa.array(self._last_needed[at], mask=self._needed[at] == 0),
            "last_needed_by": pa.array([self._by.get(ordinal) for ordinal in at.tolist()], pa.string()),
        }
        return pa.table({**columns, "group": pa.nulls(len(at), pa.list_(pa.int32()))}, schema=TALLY)

    def take_groups(self) -> pa.Table:
        """Return the groups added since the last call (TALLY)."""
        groups = sorted(self._groups)
        self._groups.clear()
        ends = np.cumsum([0, *(len(group) // 4 for group in groups)]).astype(np.int32)
        members = pa.array(np.frombuffer(b"".join(groups), np.int32))
        lists: Any = pa.ListArray.from_arrays(pa.array(ends), members)  # type: ignore[call-overload]  # wrong in the stubs
        nulls = [pa.nulls(len(groups), field.type) for field in TALLY][:-1]
        return pa.table([*nulls, lists], schema=TALLY)


def _parsed_accesses(table: pa.Table) -> list[ParsedAccess]:
    """Return the accesses of a table, all of which are well-formed."""
    columns = (table.column(at).to_pylist() for at in range(len(Access._fields)))
    parsed = map(parse_access, map(Access, *columns))
    return [access for access in parsed if isinstance(access, ParsedAccess)]


def _add(counts: Int64s, pairs: Pairs, count: Int64s) -> None:
    np.add.at(counts, pairs.ordinal, count[pairs.access])


def rules_to_keep(groups: Any, worth: Int64s) -> Int32s:
    """Return the ACL of the highest worth in each group (an Arrow list of ordinals), the first of equals, each once."""
    lists = groups.drop_null()
    ordinals = np.asarray(lists.flatten()).astype(np.int64)
    owner = np.repeat(np.arange(len(lists)), np.asarray(lists.value_lengths()))
    order = np.lexsort((ordinals, -worth[ordinals], owner))
    return np.unique(ordinals[order][_firsts(owner)]).astype(np.int32)


def _firsts(column: Int64s) -> Int64s:
    """Return where each run of equal numbers begins; the numbers are not negative."""
    return np.flatnonzero(np.diff(column, prepend=-1))
