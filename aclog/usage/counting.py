"""Counting of accesses: distinct accesses, coverage and days, in bounded memory."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, fields

from aclog.authorizer.index.layout import Int32s, changes, expanded
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.values import define, frozen
from aclog.usage.decisions.access_columns import AccessColumns, parse_columns
from aclog.usage.decisions.bulk_authorizer import AclDependencies, BulkAuthorizer, NecessaryAcls, Pairs
from aclog.usage.decisions.decisions import (
    REQUEST_COLUMNS,
    UNRESOLVED,
    AccessNumbers,
    DecisionCode,
    DecisionSteps,
    StepColumns,
)
from aclog.usage.decisions.intervals import AclIntervals
from aclog.usage.index.tallies import DayRows, DayTally
from aclog.usage.index.used import LastUse
from aclog.usage.rules import WindowRules
from aclog.usage.undecided import undecided
from aclog.usage.window import DAY, AccessSets, Coverage, UnreadCounter, UnreadSpan, Window, micros_of

# Distinct accesses of a log, counted once per version of the ACLs that made a difference to them.


_MOST_HELD = 1 << 18
"""Distinct accesses that a task holds before it emits its counts; about 200 bytes each."""

_MOST_STEPS = 1 << 22
"""Steps of these accesses that a task holds, one per change of the ACLs; about 50 bytes each."""

_MOST_COUNTS = 1 << 22
"""Counts that a task holds, by step and, if requested, by day; 40 bytes each."""

_MOST_LOOSE = 1 << 20
"""Counts of single batches that a task holds before it adds them up."""

_EARLIEST, _LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

_DAY_BITS = 24
"""For the day in a key: more than the days of the years 1 to 9999, of which half come before 1970."""
_DAY_0 = 1 << (_DAY_BITS - 1)

COUNTED = pa.schema(
    [pa.field(name, pa.string()) for name in REQUEST_COLUMNS]
    + [pa.field(name, pa.int64()) for name in ("version", "count", "first", "last")]
)
"""An access, its count, its first and last time (us since 1970) while the ACLs it depends on are those of `version`."""

COUNTED_BY_DAY = COUNTED.append(pa.field("day", pa.int32()))
"""The same by day: days since 1970, UTC."""


@define(eq=False)
class SeenAccesses:
    """The accesses that a worker process has seen, and the versions at which the ACLs they depend on change.

    An access in several spellings has several numbers.
    """

    acls: NecessaryAcls | None
    """None if all accesses are evaluated by the ACLs of one version, regardless of their time."""
    version: int = field(default=0, kw_only=True)
    """That version."""
    numbers: AccessNumbers = field(init=False)
    steps: DecisionSteps = field(init=False)
    """Their decision codes are unused."""

    def __attrs_post_init__(self) -> None:
        """Start empty."""
        self.forget()

    @property
    def is_full(self) -> bool:
        """Whether to emit the counts and forget the accesses."""
        return len(self.numbers) > _MOST_HELD or self.steps.size > _MOST_STEPS

    def forget(self) -> None:
        """Forget all accesses."""
        self.numbers = AccessNumbers(spelled=True)
        self.steps = DecisionSteps(1 if self.acls is None else self.acls.intervals.versions.end)

    def number(self, columns: list[Any]) -> Int64s:
        """Return the number of each row's access."""
        access_of, new = self.numbers.number(columns)
        if new:
            self._add_new(new)
        return access_of

    def steps_of(self, access_of: Int64s, times: Int64s) -> Int64s:
        """Return the step of each row: its access, at its time (us since 1970)."""
        return self.steps.steps(access_of, 0 if self.acls is None else self.acls.intervals.versions.at(times))

    def versions_of(self, steps: Int64s) -> Int64s:
        """Return the version at which each step begins."""
        return np.full(len(steps), self.version) if self.acls is None else self.steps.versions(steps)

    def _add_new(self, count: int) -> None:
        moving = StepColumns.of({})
        if self.acls is not None:
            moving = _moving(self.acls, self.numbers.columns(slice(len(self.numbers) - count, None)))
        self.steps.append(np.zeros(count, np.int32), moving)


def _moving(acls: NecessaryAcls, new: list[Any]) -> StepColumns:
    accesses, codes = parse_columns(new)
    changes = acls.changes(accesses)
    return changes._replace(access=np.flatnonzero(codes == UNRESOLVED)[changes.access])


class _Counts(NamedTuple):
    """Counts in columns; keys are distinct."""

    key: Int64s
    """The step, and below it the day, if counted by day."""
    access: Int64s
    rows: Int64s
    first: Int64s
    last: Int64s


@define(eq=False)
class AccessCounter:
    """Counts the distinct accesses of one task by step, as DecisionSteps numbers steps, and optionally by day."""

    memory: SeenAccesses
    by_day: bool = False
    _parts: list[_Counts] = field(factory=list, init=False)
    _loose: int = field(default=0, init=False)
    """The counts in all but the first of them, which are those of single batches."""

    @property
    def is_full(self) -> bool:
        """Whether to emit the counts and forget the accesses."""
        return self.memory.is_full or (bool(self._parts) and len(self._parts[0].key) > _MOST_COUNTS)

    def add(self, columns: list[Any], times: Int64s) -> None:
        """Count rows: the columns REQUEST_COLUMNS, and the times in us since 1970."""
        access_of = self.memory.number(columns)
        keys = self.memory.steps_of(access_of, times)
        if self.by_day:
            keys = keys << _DAY_BITS | (times // DAY + _DAY_0)
        counts = _added_up(_Counts(keys, access_of, np.ones(len(keys), np.int64), times, times))
        self._hold(counts)

    def add_timeless(self, columns: list[Any]) -> None:
        """Count rows without a time, in a counter of one version for all times and without days.

        An access without any time has a `first` later than its `last`.
        """
        access_of = self.memory.number(columns)
        steps, rows = self.memory.steps_of(access_of, access_of), np.ones_like(access_of)
        first, last = (np.full(len(access_of), end, np.int64) for end in (_LATEST, _EARLIEST))
        self._hold(_added_up(_Counts(steps, access_of, rows, first, last)))

    def _hold(self, counts: _Counts) -> None:
        self._parts.append(counts)
        self._loose += len(counts.key)
        if self._loose > _MOST_LOOSE:
            self._add_up()

    def table(self) -> pa.Table:
        """Return the counts (COUNTED, or COUNTED_BY_DAY)."""
        self._add_up()
        if not self._parts:
            return (COUNTED_BY_DAY if self.by_day else COUNTED).empty_table()
        counts = self._parts[0]
        steps = counts.key >> _DAY_BITS if self.by_day else counts.key
        numbers: list[Any] = [self.memory.versions_of(steps), counts.rows, counts.first, counts.last]
        if self.by_day:
            numbers.append(((counts.key & ((1 << _DAY_BITS) - 1)) - _DAY_0).astype(np.int32))
        schema = COUNTED_BY_DAY if self.by_day else COUNTED
        return pa.table([*self._texts(counts.access), *map(pa.array, numbers)], schema=schema)

    def _texts(self, access: Int64s) -> list[Any]:
        return [column.cast(pa.string()) for column in self.memory.numbers.columns(access)]

    def _add_up(self) -> None:
        if len(self._parts) > 1:
            self._parts = [_added_up(_Counts(*map(np.concatenate, zip(*self._parts, strict=True))))]
        self._loose = 0


def _added_up(counts: _Counts) -> _Counts:
    encoded = pa.array(counts.key).dictionary_encode()
    of = np.asarray(encoded.indices)
    size = len(encoded.dictionary)
    access, count = np.empty(size, np.int64), np.zeros(size, np.int64)
    first, last = np.full(size, _LATEST), np.full(size, _EARLIEST)
    access[of] = counts.access
    np.add.at(count, of, counts.rows)
    np.minimum.at(first, of, counts.first)
    np.maximum.at(last, of, counts.last)
    return _Counts(np.asarray(encoded.dictionary), access, count, first, last)


# The uses of ACLs, added up by one task in memory bounded by the number of ACLs, not of accesses.


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
    """The sums of one task."""

    acls: NecessaryAcls
    window: WindowRules
    with_sets: bool = False
    """Whether `matched_sets` will be called: the sets are kept until the end."""
    with_groups: bool = True
    """Whether `take_groups` will be called."""
    _matched: Int64s = field(init=False)
    _needed: Int64s = field(init=False)
    _last_matched: Int64s = field(init=False)
    _last_needed: Int64s = field(init=False)
    _by: dict[int, str] = field(factory=dict, init=False)
    _groups: set[bytes] = field(factory=set, init=False)
    """The bytes of sorted int32 ordinals: smaller than tuples, and as quick to compare."""
    _matched_together: set[bytes] = field(factory=set, init=False)
    """The same of int64 ordinals, of the ACLs that match an access at its own time, or of the newest ones."""

    def __attrs_post_init__(self) -> None:
        """Start at zero."""
        count = len(self.window.throughout)
        self._matched, self._needed = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._last_matched, self._last_needed = np.full(count, _NEVER), np.full(count, _NEVER)

    @property
    def has_many_groups(self) -> bool:
        """Whether to emit the groups."""
        return len(self._groups) > _MOST_GROUPS

    def add(self, table: pa.Table) -> None:
        """Add distinct accesses without errors: COUNTED with `decision_code` and `decision_code_at_end`."""
        parsed, _ = parse_columns([table.column(name) for name in REQUEST_COLUMNS])
        version, count, last = (np.asarray(table.column(name)) for name in ("version", "count", "last"))
        dependencies = self.acls.find(parsed, version, np.asarray(table.column("decision_code")))
        _add(self._matched, dependencies.matched, count)
        _add(self._needed, dependencies.needed, count)
        np.maximum.at(self._last_matched, dependencies.matched.ordinal, last[dependencies.matched.access])
        self._note_last_needed(dependencies.needed, last, parsed)
        self._note_groups(dependencies.groups)
        self._note_matched(dependencies.matched)
        # removing ACLs must not change what the same accesses would get now, either
        at_end = np.full(len(parsed), self.window.version, np.int64)
        if not np.array_equal(at_end, version):
            dependencies = self.acls.find(parsed, at_end, np.asarray(table.column("decision_code_at_end")))
            self._note_groups(dependencies.groups)
            self._note_matched(dependencies.matched)

    def _note_last_needed(self, needed: Pairs, last: Int64s, accesses: AccessColumns) -> None:
        """If several principals have the same time, take the last by name: results must not depend on partitions."""
        texts, principal_of = accesses.requests.principals, accesses.requests.principal_of
        rank = np.argsort(np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64))[principal_of]
        times = last[needed.access]
        order = np.lexsort((rank[needed.access], times, needed.ordinal))[::-1]
        ordinals, times, access = needed.ordinal[order], times[order], needed.access[order]
        lasts = _firsts(ordinals)
        lasts = lasts[times[lasts] >= self._last_needed[ordinals[lasts]]]
        ordinals, times, principals = ordinals[lasts], times[lasts], principal_of[access[lasts]]
        is_tie = times == self._last_needed[ordinals]
        self._last_needed[ordinals] = times
        by = self._by
        for ordinal, principal, tie in zip(ordinals.tolist(), principals.tolist(), is_tie.tolist(), strict=True):
            name = texts[principal]
            by[ordinal] = max(by.get(ordinal, ""), name) if tie else name

    def _note_groups(self, groups: Pairs) -> None:
        """Add the groups that constrain a removal: those whose ACLs may all be removed."""
        if not self.with_groups:
            return
        satisfied = np.zeros(int(np.max(groups.access, initial=-1)) + 1, np.bool_)
        satisfied[groups.access[self.window.stays[groups.ordinal]]] = True
        unsettled = ~satisfied[groups.access] & self.window.throughout[groups.ordinal]
        access, ordinal = groups.access[unsettled], groups.ordinal[unsettled].astype(np.int32)
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


def _add(counts: Int64s, pairs: Pairs, count: Int64s) -> None:
    np.add.at(counts, pairs.ordinal, count[pairs.access])


def rules_to_keep(groups: Any, worth: Int64s) -> Int32s:
    """Return the ACL of the highest worth in each group (an Arrow list of ordinals), the first of equals, once."""
    lists = groups.drop_null()
    ordinals = np.asarray(lists.flatten()).astype(np.int64)
    owner = np.repeat(np.arange(len(lists)), np.asarray(lists.value_lengths()))
    order = np.lexsort((ordinals, -worth[ordinals], owner))
    return np.unique(ordinals[order][_firsts(owner)]).astype(np.int32)


def _firsts(column: Int64s) -> Int64s:
    """Return where each run of equal numbers begins; the numbers are not negative."""
    return np.flatnonzero(np.diff(column, prepend=-1))


# Distinct accesses by day, converted for the index of last use: the ACLs that they matched and needed, and when.


_ROWS = 1 << 18
"""How many rows are tallied at once."""

_NUMBER_BYTES = 8

_MOST_KEYS = 1 << 62
"""Keys of combined numbers below it fit an int64."""


@define(eq=False, kw_only=True)
class DayTallies:
    """Tallies distinct accesses by day; one process owns it."""

    authorizer: BulkAuthorizer
    acls: NecessaryAcls
    denies: Bools
    """By ordinal."""
    own_time: bool
    """Whether each access is evaluated by the ACLs of its own time; otherwise by those of the last version."""

    @classmethod
    def of(cls, intervals: AclIntervals, settings: Settings, *, own_time: bool) -> Self:
        """Return tallies that evaluate accesses by these ACLs."""
        authorizer = BulkAuthorizer.of(intervals, settings)
        acls = NecessaryAcls.of(intervals, settings, like=authorizer)
        return cls(authorizer=authorizer, acls=acls, denies=acls.denying(), own_time=own_time)

    def tallies(self, counted: pa.Table) -> Iterator[DayTally]:
        """Yield the tallies of parts of a table (COUNTED_BY_DAY, a row per access, version and day)."""
        for start in range(0, len(counted), _ROWS):
            yield self.tally(counted.slice(start, _ROWS))

    def tally(self, counted: pa.Table) -> DayTally:
        """Return the tally of accesses (COUNTED_BY_DAY), without super users; undecided accesses are counted as unread.

        The tallies of the parts of a table add up to that of the whole.
        """
        once = _Once.of(counted)
        columns = [counted.column(name).take(once.rows) for name in REQUEST_COLUMNS]
        first, version = (np.asarray(counted.column(name)) for name in ("first", "version"))
        parsed = parse_columns(columns)
        if self.own_time:
            codes = self.authorizer.decide(columns, first[once.rows])
        else:
            codes = self.authorizer.decide_once(parsed)
        unread = undecided(counted, codes[once.of_row]).but_of(self.authorizer.settings.super_users)
        judged = codes >= DecisionCode.DEFAULT_ALLOW
        once = once.where(judged)
        if not len(once.rows):
            return evolve(DayTally.nothing(), unread=unread)
        accesses = parsed.accesses.take(judged[parsed.codes == UNRESOLVED])
        dependencies = self.acls.find(accesses, version[once.rows], codes[judged])
        return evolve(_Tallying.of(counted, once, accesses).tally(dependencies, self.denies), unread=unread)


@frozen(eq=False, kw_only=True)
class _Once:
    """The distinct accesses of a table, each once per version: the evaluation of a row is the same on all days."""

    rows: Int64s
    """A row of each."""
    of_row: Int64s
    """By row: its access; -1 if it is excluded."""

    @classmethod
    def of(cls, counted: pa.Table) -> Self:
        """Find the distinct accesses."""
        keys, size = np.zeros(len(counted), np.int64), 1
        for name in (*REQUEST_COLUMNS, "version"):
            encoded = counted.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
            if size * len(encoded.dictionary) >= _MOST_KEYS:  # renumbered in their order
                _, keys = np.unique(keys, return_inverse=True)
                size = len(keys)
            keys = keys * len(encoded.dictionary) + np.asarray(encoded.indices).astype(np.int64)
            size *= len(encoded.dictionary)
        _, rows, of_row = np.unique(keys, return_index=True, return_inverse=True)
        return cls(rows=rows.astype(np.int64), of_row=of_row.astype(np.int64))

    def where(self, which: Bools) -> Self:
        """Exclude accesses."""
        number = np.where(which, np.cumsum(which) - 1, -1)
        return type(self)(rows=self.rows[which], of_row=number[self.of_row])


class _Rows(NamedTuple):
    """The rows of a table that are evaluated."""

    access: Int64s
    day: Int64s
    accesses: Int64s
    first: Int64s
    last: Int64s


@frozen(eq=False, kw_only=True)
class _Tallying:
    """The evaluated rows of a table, in order of their accesses."""

    rows: _Rows
    starts: Int64s
    """By access: the position of its first row; and at the end the number of rows."""
    parsed: AccessColumns

    @classmethod
    def of(cls, counted: pa.Table, once: _Once, parsed: AccessColumns) -> Self:
        """Sort the rows; `parsed` are the accesses by number."""
        judged = np.flatnonzero(once.of_row >= 0)
        order = judged[np.argsort(once.of_row[judged], kind="stable")]
        names = ("day", "count", "first", "last")
        columns = (np.asarray(counted.column(name))[order].astype(np.int64) for name in names)
        access = once.of_row[order]
        starts = np.searchsorted(access, np.arange(len(parsed) + 1))
        return cls(rows=_Rows(access, *columns), starts=starts, parsed=parsed)

    def tally(self, dependencies: AclDependencies, denies: Bools) -> DayTally:
        """Tally the dependencies of the accesses."""
        used = _Uses.of(dependencies, len(denies))
        sets, set_of = _sets(dependencies, denies, len(self.parsed))
        of_row = set_of[self.rows.access]
        in_set = of_row >= 0
        return DayTally(
            rules=self._by_day(used),
            last_use=self._last_use(used),
            sets=sets,
            set_rows=_days_added_up(self.rows.day[in_set], of_row[in_set], self.rows.accesses[in_set]),
            first=int(self.rows.first.min()),
            last=int(self.rows.last.max()),
            accesses=int(self.rows.accesses.sum()),
        )

    def _by_day(self, used: "_Uses") -> DayRows:
        use, row = expanded(self.starts[used.access], self.starts[used.access + 1])
        count = self.rows.accesses[row]
        matched, needed = (np.where(each[use], count, 0) for each in (used.matched, used.needed))
        return _days_added_up(self.rows.day[row], used.ordinal[use], matched, needed)

    def _last_use(self, used: "_Uses") -> LastUse:
        # the rows of an access are those of its days
        starts = self.starts[:-1]
        first, last = np.minimum.reduceat(self.rows.first, starts), np.maximum.reduceat(self.rows.last, starts)
        times = np.stack([first[used.access], last[used.access]] * 2)
        users, user_of = self.parsed.users()
        user = user_of[used.access]
        who = np.stack([np.where(each, user, -1) for each in (used.matched, used.needed) for _ in range(2)])
        return LastUse.of(used.ordinal, times, who, users)


class _Uses(NamedTuple):
    """Pairs of an access and an ordinal: whether the ACL matches, and whether it is needed, even without a match.

    With allow.everyone.if.no.acl.found, an ACL is needed if its mere presence keeps an access from being allowed.
    """

    access: Int64s
    ordinal: Int64s
    matched: Bools
    needed: Bools

    @classmethod
    def of(cls, dependencies: AclDependencies, ordinals: int) -> Self:
        """Join what matched and what was needed; `ordinals` is the number of ACLs."""
        matched, needed = (
            pairs.access * ordinals + pairs.ordinal for pairs in (dependencies.matched, dependencies.needed)
        )
        keys = np.union1d(matched, needed)
        return cls(keys // ordinals, keys % ordinals, np.isin(keys, matched), np.isin(keys, needed))


def _sets(dependencies: AclDependencies, denies: Bools, accesses: int) -> tuple[AccessSets, Int64s]:
    """Return the distinct sets of ACLs that match accesses together, and by access the position of its set, or -1.

    Without an ALLOW an access is denied after any removal, and a single ALLOW is recorded as needed: neither has a set.
    """
    access, ordinal = dependencies.matched
    order = np.lexsort((ordinal, access))
    access, ordinal = access[order], ordinal[order]
    allowed = np.bincount(access[~denies[ordinal]], minlength=accesses)
    alone = np.zeros(accesses, np.bool_)
    alone[dependencies.needed.access] = np.bincount(access, minlength=accesses)[dependencies.needed.access] == 1
    eligible = (allowed > 0) & ~alone
    data, starts = ordinal.tobytes(), np.searchsorted(access, np.arange(accesses + 1))
    place: dict[bytes, int] = {}
    set_of = np.full(accesses, -1, np.int64)
    for at in np.flatnonzero(eligible).tolist():
        key = data[_NUMBER_BYTES * starts[at] : _NUMBER_BYTES * starts[at + 1]]
        set_of[at] = place.setdefault(key, len(place))
    members = np.frombuffer(b"".join(place), np.int64)
    sizes = np.fromiter((len(each) // _NUMBER_BYTES for each in place), np.int64, len(place))
    sets = AccessSets(starts=np.concatenate(([0], np.cumsum(sizes))), members=members, denies=denies[members])
    return sets, set_of


def _days_added_up(day: Int64s, number: Int64s, *counts: Int64s) -> DayRows:
    """Return one row per day and number."""
    order = np.lexsort((number, day))
    day, number = day[order], number[order]
    starts = changes(day, number)
    if not len(starts):
        return DayRows(day, number, *(day[:0],) * 2)
    sums = [np.add.reduceat(each[order], starts) for each in counts]
    matched, needed = sums if len(sums) == 2 else (*sums, np.zeros(len(starts), np.int64))
    return DayRows(day[starts], number[starts], matched, needed)


# Counts the lines of an access log by broker and hour.


_MOST_PARTS = 64


@define(eq=False)
class CoverageCounter:
    """Counts the lines of one task."""

    _parts: list[Coverage] = field(factory=list, init=False)

    def add(self, times: Int64s, brokers: Any) -> None:
        """Count lines: their times in us since 1970, and their brokers, an Arrow array of text, null for none."""
        if not len(times):
            return
        if isinstance(brokers, pa.ChunkedArray):
            brokers = brokers.combine_chunks()
        if not pa.types.is_dictionary(brokers.type):
            brokers = brokers.dictionary_encode()
        names: tuple[str | None, ...] = (*brokers.dictionary.to_pylist(), None)
        broker = np.asarray(brokers.indices.fill_null(len(names) - 1)).astype(np.int64)
        self._parts.append(Coverage.of_lines(times, broker, names))
        if len(self._parts) > _MOST_PARTS:
            self._parts = [Coverage.sum(self._parts)]

    def add_timed(self, timestamps: Any, brokers: Any) -> None:
        """Count the lines with a time, as an Arrow array of TIMESTAMPs in us."""
        timed = timestamps.is_valid()
        self.add(np.asarray(timestamps.filter(timed).cast(pa.int64())), brokers.filter(timed))

    def coverage(self) -> Coverage:
        """Return the counts."""
        return Coverage.sum(self._parts)


# The counts of one task for a part of an access log: distinct accesses in the window, and the other rows.


_NO_TIME = np.iinfo(np.int64).min


@frozen(kw_only=True)
class RowCounts:
    """The rows of a log, and those that were not counted as accesses, by reason."""

    total: int = 0
    without_time: int = 0
    outside: int = 0
    """Outside the window."""
    before_log: int = 0
    """In the window, but before the ACLs are known."""
    logged_denials: int = 0
    """Those that the log itself calls DENIED, counted or not."""

    @property
    def is_denials_only(self) -> bool:
        """Whether the log has denials alone, as Kafka writes at INFO: it has no use of an ALLOW."""
        return 0 < self.logged_denials == self.total

    def denials_text(self, of: str = "") -> str:
        """Return what a log of denials alone cannot show; `of`: what the accesses are of."""
        return (
            f"all {self.total:,} accesses{of} are denials, by which no rule is ever needed: Kafka logs what it allows "
            "only if kafka.authorizer.logger is at DEBUG"
        )

    @classmethod
    def sum_of(cls, counts: Iterable[Self]) -> Self:
        """Return the sum."""
        parts = list(counts)
        return cls(**{each.name: sum(getattr(part, each.name) for part in parts) for each in fields(cls)})


@define(eq=False, kw_only=True)
class LogCounter:
    """Counts the rows of one task."""

    accesses: AccessCounter
    window: Window | None = None
    """None: all rows with a time are counted."""
    known_from: int | None = None
    """The time from which the ACLs are known, in us since 1970; None for at all times."""
    coverage: CoverageCounter | None = None
    """Counts all lines with a time, in the window or not, by their column `broker`; None if coverage is not needed."""
    timeless: bool = False
    """Whether rows without a time are also counted: then there is no window, and one version of the ACLs."""
    rows: RowCounts = field(factory=RowCounts, init=False)
    days: set[int] = field(factory=set, init=False)
    """The days (UTC, since 1970) with any access, in the window or not."""
    unread: UnreadCounter = field(factory=UnreadCounter, init=False)
    """Rows without a time, unless they are counted: they may be in the window."""
    earliest: int | None = field(default=None, init=False)
    latest: int | None = field(default=None, init=False)
    """The times of the first and the last of all rows, in us since 1970; None if none has a time."""

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Count rows with the columns REQUEST_COLUMNS and `timestamp`, a TIMESTAMP in us."""
        columns: list[Any] = [batch.column(name) for name in REQUEST_COLUMNS]
        times = _micros(batch.column("timestamp"))
        timed = times != _NO_TIME
        self._note_times(times[timed])
        if self.coverage is not None:
            self.coverage.add(times[timed], batch.column("broker").filter(pa.array(timed)))
        inside = timed if self.window is None else timed & _is_in(self.window, times)
        visible = inside if self.known_from is None else inside & (times >= self.known_from)
        total, with_time, in_window, counted = len(times), *(int(each.sum()) for each in (timed, inside, visible))
        self.rows = evolve(
            self.rows,
            total=self.rows.total + total,
            without_time=self.rows.without_time + total - with_time,
            outside=self.rows.outside + with_time - in_window,
            before_log=self.rows.before_log + in_window - counted,
            logged_denials=self.rows.logged_denials + _denials(batch),
        )
        if with_time < total:
            mask = pa.array(~timed)
            if self.timeless:
                self.accesses.add_timeless([column.filter(mask) for column in columns])
            else:
                self._note_untimed(batch.filter(mask))
        if counted < total:
            mask = pa.array(visible)
            columns, times = [column.filter(mask) for column in columns], times[visible]
        if counted:
            self.accesses.add(columns, times)

    def _note_untimed(self, rows: pa.RecordBatch | pa.Table) -> None:
        names: list[str] = [name for name in ("principal", "loggedDecision", "broker") if name in rows.schema.names]
        table = pa.table([_decoded(rows.column(name)) for name in names], names)
        for row in table.group_by(names).aggregate([([], "count_all")]).to_pylist():
            decision: Any = row.get("loggedDecision")
            span = UnreadSpan(row["count_all"], None, None)
            self.unread.add(row["principal"], decision, DecisionCode.NO_TIME.name, span, broker=row.get("broker"))

    def _note_times(self, times: Int64s) -> None:
        if not len(times):
            return
        self.days.update(np.asarray(pc.unique(pa.array(times // DAY))).tolist())
        first, last = int(times.min()), int(times.max())
        self.earliest = first if self.earliest is None else min(self.earliest, first)
        self.latest = last if self.latest is None else max(self.latest, last)


def _denials(batch: pa.RecordBatch | pa.Table) -> int:
    """Return the number of rows that were logged as DENIED."""
    if "loggedDecision" not in batch.schema.names:
        return 0
    decisions: Any = batch.column("loggedDecision")
    denied: Any = pc.sum(pc.is_in(decisions, pa.array(["DENIED"])))
    return denied.as_py() or 0


def _decoded(column: Any) -> Any:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _micros(timestamps: Any) -> Int64s:
    return np.asarray(timestamps.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).fill_null(_NO_TIME))


def _is_in(window: Window, times: Int64s) -> Bools:
    inside: Bools = (times >= micros_of(window.start)) & (times <= micros_of(window.until))
    return inside
