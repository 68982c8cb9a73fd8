"""From distinct accesses by day to what the index of last use takes: which rules they matched and needed, and when."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from attrs import define, evolve, frozen

from aclog.authorizer.index.arrays import changes, expanded
from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.decisions.accesses import REQUEST_COLUMNS, Access, ParsedAccess, parse_access
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decision_codes import DecisionCode
from aclog.usage.decisions.necessary_acls import AclDependencies, NecessaryAcls
from aclog.usage.index.last_use import LastUse
from aclog.usage.index.tallies import DayTally
from aclog.usage.index.used_store import DayRows
from aclog.usage.undecided import undecided
from aclog.usage.unused.access_sets import AccessSets

_ROWS = 1 << 18
"""Rows tallied together."""

_NUMBER_BYTES = 8


@define(eq=False, kw_only=True)
class DayTallies:
    """Tallies distinct accesses by day; one process owns it."""

    authorizer: BulkAuthorizer
    acls: NecessaryAcls
    denies: Bools
    """By ordinal."""
    own_time: bool
    """Whether each access is judged by the ACLs of its own time; if not, by those of the last version."""

    @classmethod
    def of(cls, intervals: AclIntervals, settings: Settings, *, own_time: bool) -> Self:
        """Judge by these ACLs."""
        acls = NecessaryAcls.of(intervals, settings)
        return cls(
            authorizer=BulkAuthorizer.of(intervals, settings), acls=acls, denies=acls.denying(), own_time=own_time
        )

    def tallies(self, counted: pa.Table) -> Iterator[DayTally]:
        """Yield the tallies of parts of a table (COUNTED_BY_DAY, a row per access, version and day)."""
        for start in range(0, len(counted), _ROWS):
            yield self.tally(counted.slice(start, _ROWS))

    def tally(self, counted: pa.Table) -> DayTally:
        """Return the tally of accesses (COUNTED_BY_DAY); super users are left out, and what is undecided is unread.

        The tallies of the parts of a table add up to that of the whole.
        """
        once = _Once.of(counted)
        columns = [counted.column(name).take(once.rows) for name in REQUEST_COLUMNS]
        first, version = (np.asarray(counted.column(name)) for name in ("first", "version"))
        codes = self.authorizer.decide(columns, first[once.rows] if self.own_time else None)
        unread = undecided(counted, codes[once.of_row]).but_of(self.authorizer.settings.super_users)
        judged = codes >= DecisionCode.DEFAULT_ALLOW
        once = once.where(judged)
        if not len(once.rows):
            return evolve(DayTally.nothing(), unread=unread)
        parsed = _parsed([column.filter(pa.array(judged)) for column in columns])
        found = self.acls.find(parsed, version[once.rows], codes[judged])
        return evolve(_Tallying.of(counted, once, parsed).tally(found, self.denies), unread=unread)


@frozen(eq=False, kw_only=True)
class _Once:
    """The distinct accesses of a table, each once per version: what is judged of a row is the same on all days."""

    rows: Int64s
    """A row of each."""
    of_row: Int64s
    """By row: its access; -1 if it is left out."""

    @classmethod
    def of(cls, counted: pa.Table) -> Self:
        """Find the distinct accesses."""
        keys = np.zeros(len(counted), np.int64)
        for name in (*REQUEST_COLUMNS, "version"):
            encoded = counted.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
            keys = keys * len(encoded.dictionary) + np.asarray(encoded.indices).astype(np.int64)
            _, keys = np.unique(keys, return_inverse=True)
        _, rows, of_row = np.unique(keys, return_index=True, return_inverse=True)
        return cls(rows=rows.astype(np.int64), of_row=of_row.astype(np.int64))

    def where(self, chosen: Bools) -> Self:
        """Leave accesses out."""
        number = np.where(chosen, np.cumsum(chosen) - 1, -1)
        return type(self)(rows=self.rows[chosen], of_row=number[self.of_row])


def _parsed(columns: list[Any]) -> list[ParsedAccess]:
    """Return accesses all of which are well-formed."""
    parsed = map(parse_access, map(Access, *(column.to_pylist() for column in columns)))
    return [access for access in parsed if isinstance(access, ParsedAccess)]


class _Rows(NamedTuple):
    """The rows of a table that are judged."""

    access: Int64s
    day: Int64s
    accesses: Int64s
    first: Int64s
    last: Int64s


@frozen(eq=False, kw_only=True)
class _Tallying:
    """The judged rows of a table, in order of their accesses."""

    rows: _Rows
    starts: Int64s
    """By access: where its rows begin; and at the end the number of rows."""
    parsed: list[ParsedAccess]

    @classmethod
    def of(cls, counted: pa.Table, once: _Once, parsed: list[ParsedAccess]) -> Self:
        """Put the rows in order; `parsed` are the accesses by number."""
        judged = np.flatnonzero(once.of_row >= 0)
        order = judged[np.argsort(once.of_row[judged], kind="stable")]
        names = ("day", "count", "first", "last")
        columns = (np.asarray(counted.column(name))[order].astype(np.int64) for name in names)
        access = once.of_row[order]
        starts = np.searchsorted(access, np.arange(len(parsed) + 1))
        return cls(rows=_Rows(access, *columns), starts=starts, parsed=parsed)

    def tally(self, found: AclDependencies, denies: Bools) -> DayTally:
        """Tally what the accesses depend on."""
        used = _Uses.of(found, len(denies))
        sets, set_of = _sets(found, denies, len(self.parsed))
        of_row = set_of[self.rows.access]
        in_set = of_row >= 0
        return DayTally(
            rules=self._by_day(used),
            last_use=self._last_use(used),
            sets=sets,
            set_rows=_added_up(self.rows.day[in_set], of_row[in_set], self.rows.accesses[in_set]),
            first=int(self.rows.first.min()),
            last=int(self.rows.last.max()),
            accesses=int(self.rows.accesses.sum()),
        )

    def _by_day(self, used: "_Uses") -> DayRows:
        use, row = expanded(self.starts[used.access], self.starts[used.access + 1])
        count = self.rows.accesses[row]
        matched, needed = (np.where(each[use], count, 0) for each in (used.matched, used.needed))
        return _added_up(self.rows.day[row], used.ordinal[use], matched, needed)

    def _last_use(self, used: "_Uses") -> LastUse:
        # the rows of an access are those of its days
        starts = self.starts[:-1]
        first, last = np.minimum.reduceat(self.rows.first, starts), np.maximum.reduceat(self.rows.last, starts)
        times = np.stack([first[used.access], last[used.access]] * 2)
        who = np.stack([np.where(each, used.access, -1) for each in (used.matched, used.needed) for _ in range(2)])
        return LastUse.of(used.ordinal, times, who, [(each.principal, each.host) for each in self.parsed])


class _Uses(NamedTuple):
    """Pairs of an access and an ordinal: whether the ACL matches it, and whether it needs the ACL, which may not match.

    With allow.everyone.if.no.acl.found, an ACL is needed that keeps an access from being allowed by its mere presence.
    """

    access: Int64s
    ordinal: Int64s
    matched: Bools
    needed: Bools

    @classmethod
    def of(cls, found: AclDependencies, ordinals: int) -> Self:
        """Join what matched and what was needed; `ordinals` is the number of ACLs."""
        matched, needed = (pairs.access * ordinals + pairs.ordinal for pairs in (found.matched, found.needed))
        keys = np.union1d(matched, needed)
        return cls(keys // ordinals, keys % ordinals, np.isin(keys, matched), np.isin(keys, needed))


def _sets(found: AclDependencies, denies: Bools, accesses: int) -> tuple[AccessSets, Int64s]:
    """Return the distinct sets of ACLs that match accesses together, and by access the place of its set, or -1.

    Without an ALLOW nothing is allowed, whatever else goes; and an ALLOW alone says all if it is needed.
    """
    access, ordinal = found.matched
    order = np.lexsort((ordinal, access))
    access, ordinal = access[order], ordinal[order]
    allowed = np.bincount(access[~denies[ordinal]], minlength=accesses)
    alone = np.zeros(accesses, np.bool_)
    alone[found.needed.access] = np.bincount(access, minlength=accesses)[found.needed.access] == 1
    wanted = (allowed > 0) & ~alone
    data, starts = ordinal.tobytes(), np.searchsorted(access, np.arange(accesses + 1))
    place: dict[bytes, int] = {}
    set_of = np.full(accesses, -1, np.int64)
    for at in np.flatnonzero(wanted).tolist():
        key = data[_NUMBER_BYTES * starts[at] : _NUMBER_BYTES * starts[at + 1]]
        set_of[at] = place.setdefault(key, len(place))
    members = np.frombuffer(b"".join(place), np.int64)
    sizes = np.fromiter((len(each) // _NUMBER_BYTES for each in place), np.int64, len(place))
    sets = AccessSets(starts=np.concatenate(([0], np.cumsum(sizes))), members=members, denies=denies[members])
    return sets, set_of


def _added_up(day: Int64s, number: Int64s, *counts: Int64s) -> DayRows:
    """Return one row for each day and number."""
    order = np.lexsort((number, day))
    day, number = day[order], number[order]
    starts = changes(day, number)
    if not len(starts):
        return DayRows(day, number, *(day[:0],) * 2)
    sums = [np.add.reduceat(each[order], starts) for each in counts]
    matched, needed = sums if len(sums) == 2 else (*sums, np.zeros(len(starts), np.int64))
    return DayRows(day[starts], number[starts], matched, needed)
