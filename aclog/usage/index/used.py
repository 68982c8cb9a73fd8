"""Uses of ACLs by days and spans of days."""

import json
import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np

from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.errors import DecodeError
from aclog.metalog.values import frozen
from aclog.usage.index.database import deflated, inflated, packed, unpacked
from aclog.usage.window import AccessSets

# Counts of uses by number: of lives of ACLs, or of sets of lives.


@frozen(eq=False, kw_only=True)
class Used:
    """Columns by number, ascending, each number once."""

    numbers: Int64s
    matched: Int64s
    """Accesses."""
    needed: Int64s
    """Accesses; with allow.everyone.if.no.acl.found, there may be some that the ACL did not match."""
    days_matched: Int64s
    days_needed: Int64s

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return len(self.numbers)

    @classmethod
    def nothing(cls) -> Self:
        """Return an empty table."""
        none = np.zeros(0, np.int64)
        return cls(numbers=none, matched=none, needed=none, days_matched=none, days_needed=none)

    @classmethod
    def of(cls, numbers: Int64s, matched: Int64s, needed: Int64s) -> Self:
        """Add up the uses of one day; a number may have several rows."""
        once, at = np.unique(numbers, return_inverse=True)
        sums = [np.zeros(len(once), np.int64) for _ in range(2)]
        for total, column in zip(sums, (matched, needed), strict=True):
            np.add.at(total, at, column)
        return cls(
            numbers=once.astype(np.int64),
            matched=sums[0],
            needed=sums[1],
            days_matched=(sums[0] > 0).astype(np.int64),
            days_needed=(sums[1] > 0).astype(np.int64),
        )

    def where(self, which: Bools) -> Self:
        """Return some of the rows."""
        return type(self)(
            numbers=self.numbers[which],
            matched=self.matched[which],
            needed=self.needed[which],
            days_matched=self.days_matched[which],
            days_needed=self.days_needed[which],
        )

    def plus(self, other: Self) -> Self:
        """Add up the uses of different days."""
        once, at = np.unique(np.concatenate((self.numbers, other.numbers)), return_inverse=True)
        mine, its = at[: len(self)], at[len(self) :]

        def total(one: Int64s, two: Int64s) -> Int64s:
            """Add up a column; both have a number once."""
            added = np.zeros(len(once), np.int64)
            added[mine] = one
            added[its] += two
            return added

        return type(self)(
            numbers=once,
            matched=total(self.matched, other.matched),
            needed=total(self.needed, other.needed),
            days_matched=total(self.days_matched, other.days_matched),
            days_needed=total(self.days_needed, other.days_needed),
        )

    def plus_same_day(self, other: Self) -> tuple[Self, Self]:
        """Add up the uses of the same day; also return the increase, as if it were another day."""
        both = self.plus(other)
        both = type(self).of(both.numbers, both.matched, both.needed)
        counted, counted_needed = (
            np.isin(other.numbers, self.numbers[each > 0]) for each in (self.matched, self.needed)
        )
        more = type(self)(
            numbers=other.numbers,
            matched=other.matched,
            needed=other.needed,
            days_matched=((other.matched > 0) & ~counted).astype(np.int64),
            days_needed=((other.needed > 0) & ~counted_needed).astype(np.int64),
        )
        return both, more


# Spans of days: a window of ten years is about 70 of them, whose counts are precomputed.
#
# Level 0 is single days; a span of a level is 16 spans of the level below, aligned to the days since 1970.


LEVELS: Final = (0, 4, 8)
"""By the bits of a day's number that a span omits: days, 16 days, 256 days."""


class Span(NamedTuple):
    """The 1 << level days from `number << level` on."""

    level: int
    number: int


def spans(first_day: int, last_day: int) -> list[Span]:
    """Return the fewest spans that equal these days (since 1970, both included), in order."""
    parts, day = list[Span](), first_day
    while day <= last_day:
        level = max(each for each in LEVELS if day % (1 << each) == 0 and day + (1 << each) - 1 <= last_day)
        parts.append(Span(level, day >> level))
        day += 1 << level
    return parts


# Sets of lives that matched accesses together, stored once each: the number of a set is its position.


SET_TABLES: Final = """
CREATE TABLE sets (segment INTEGER PRIMARY KEY, digests BLOB NOT NULL, columns BLOB NOT NULL);
"""

_SEGMENT = 1 << 13
_DIGEST = 16


def set_numbers(database: sqlite3.Connection, sets: AccessSets) -> Int64s:
    """Return the numbers of sets, whose members ascend within the denies and within the allows; add unknown sets."""
    digests = _digests(sets)
    stored = b"".join(row[0] for row in database.execute("SELECT digests FROM sets ORDER BY segment"))
    number_of = {stored[at : at + _DIGEST]: at // _DIGEST for at in range(0, len(stored), _DIGEST)}
    numbers, new = np.empty(len(sets), np.int64), list[int]()
    count = len(number_of)
    for at, digest in enumerate(digests):
        number = number_of.setdefault(digest, len(number_of))
        numbers[at] = number
        if number == count + len(new):
            new.append(at)
    _append(database, count, sets, new, digests)
    return numbers


def read_sets(database: sqlite3.Connection, numbers: Int64s) -> AccessSets:
    """Return sets by their ascending numbers."""
    sizes, members, denies = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for segment in np.unique(numbers // _SEGMENT).tolist():
        positions = numbers[numbers // _SEGMENT == segment] % _SEGMENT
        size, member, deny = _segment(database, segment)
        if positions[-1] >= len(size):
            raise DecodeError("sets are missing: damaged")
        which = np.zeros(len(size), np.bool_)
        which[positions] = True
        of_member = np.repeat(which, size)
        sizes.append(size[positions])
        members.append(member[of_member])
        denies.append(deny[of_member])
    return AccessSets(
        starts=np.concatenate(([0], np.cumsum(np.concatenate(sizes)))),
        members=np.concatenate(members),
        denies=np.concatenate(denies) > 0,
    )


def _append(
    database: sqlite3.Connection, count: int, sets: AccessSets, new: Sequence[int], digests: Sequence[bytes]
) -> None:
    at = 0
    while at < len(new):
        segment, offset = divmod(count + at, _SEGMENT)
        batch = new[at : at + _SEGMENT - offset]
        size, member, deny = _segment(database, segment) if offset else [np.zeros(0, np.int64)] * 3
        is_in_batch = np.zeros(len(sets), np.bool_)
        is_in_batch[list(batch)] = True
        of_member = np.repeat(is_in_batch, np.diff(sets.starts))
        columns = packed(
            np.concatenate((size, np.diff(sets.starts)[is_in_batch])),
            np.concatenate((member, sets.members[of_member])),
            np.concatenate((deny, sets.denies[of_member])),
        )
        row = database.execute("SELECT digests FROM sets WHERE segment = ?", (segment,)).fetchone()
        keys = b"".join((b"" if row is None else row[0], *(digests[each] for each in batch)))
        database.execute("INSERT OR REPLACE INTO sets VALUES (?, ?, ?)", (segment, keys, columns))
        at += len(batch)


def _segment(database: sqlite3.Connection, segment: int) -> list[Int64s]:
    row = database.execute("SELECT columns FROM sets WHERE segment = ?", (segment,)).fetchone()
    if row is None:
        raise DecodeError("sets are missing: damaged")
    columns = unpacked(row[0])
    if len(columns) != 3 or not columns[0].sum() == len(columns[1]) == len(columns[2]):
        raise DecodeError("sets without their members: damaged")
    return columns


def _digests(sets: AccessSets) -> list[bytes]:
    data = (sets.members << 1 | sets.denies).astype("<i8").tobytes()
    ends = (sets.starts * 8).tolist()
    return [blake2b(data[a:b], digest_size=_DIGEST).digest() for a, b in pairwise(ends)]


# The first and last match and need of each life, with principal and host.


EVENTS = ("first matched", "last matched", "first needed", "last needed")
"""The rows of `times` and `who`."""
_NO_USER = -1


def _in_order(users: Sequence[tuple[str, str]]) -> tuple[Int64s, Int64s]:
    """Return positions of the distinct users in order of principal and host, and the place of each user among them."""
    if not users:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # each part alone: a text compares in a fraction of the time of a pair
    principals, hosts = (_ranks([user[part] for user in users]) for part in range(2))
    keys = principals * (int(hosts.max()) + 1) + hosts
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place


def _ranks(texts: list[str]) -> Int64s:
    distinct = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    return np.fromiter(map(distinct.__getitem__, texts), np.int64, len(texts))


class Use(NamedTuple):
    """A use of a rule."""

    time: int
    """In us since 1970."""
    principal: str
    host: str


@frozen(eq=False, kw_only=True)
class LastUse:
    """Uses by number, of a life or an ordinal."""

    numbers: Int64s
    """Ascending, each once."""
    times: Int64s
    """(4, n): EVENTS, in us since 1970."""
    who: Int64s
    """(4, n): the position of the user in `users`, -1 if there was no such event."""
    users: tuple[tuple[str, str], ...]
    """Principals and hosts, in order, each pair once."""

    @classmethod
    def nothing(cls) -> Self:
        """Return an empty table."""
        none = np.zeros((len(EVENTS), 0), np.int64)
        return cls(numbers=np.zeros(0, np.int64), times=none, who=none, users=())

    @classmethod
    def of(cls, numbers: Int64s, times: Int64s, who: Int64s, users: Sequence[tuple[str, str]]) -> Self:
        """Return the first and the last of these uses; a number may have several columns.

        If several users have the same time, the first use is that of the first name, the last use that of the last
        name: results must not depend on the order in which a log is read.
        """
        ordered, place = _in_order(users)
        rank = np.append(place, _NO_USER)[who]
        once, at = np.unique(numbers, return_inverse=True)
        best = [_best(at, len(once), times[event], rank[event], latest=event % 2 == 1) for event in range(len(EVENTS))]
        best_times, best_who = (np.stack(each) for each in zip(*best, strict=True))
        who, places = _those_left(best_who)
        remaining = tuple(users[at] for at in ordered[places].tolist())
        return cls(numbers=once.astype(np.int64), times=best_times, who=who, users=remaining)

    def plus(self, *others: Self) -> Self:
        """Return the first and the last uses of all."""
        parts, users = (self, *others), list[tuple[str, str]]()
        who = []
        for part in parts:
            who.append(np.where(part.who >= 0, part.who + len(users), _NO_USER))
            users += part.users
        return type(self).of(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.times for part in parts], 1),
            np.concatenate(who, 1),
            users,
        )

    def where(self, which: Bools) -> Self:
        """Return some of the numbers, with their users."""
        who, places = _those_left(self.who[:, which])
        remaining = tuple(self.users[at] for at in places.tolist())
        return type(self)(numbers=self.numbers[which], times=self.times[:, which], who=who, users=remaining)

    def numbered(self, numbers: Int64s) -> Self:
        """Return the same for other numbers, which may have duplicates."""
        return type(self).of(numbers[self.numbers], self.times, self.who, self.users)

    def use(self, number: int, event: int) -> Use | None:
        """Return a use of a number, by the position of the event in EVENTS, or None."""
        at = int(np.searchsorted(self.numbers, number))
        if at == len(self.numbers) or self.numbers[at] != number or self.who[event, at] == _NO_USER:
            return None
        return Use(int(self.times[event, at]), *self.users[self.who[event, at]])


def _those_left(who: Int64s) -> tuple[Int64s, Int64s]:
    """Return the new positions of the users that occur, and their old positions."""
    occurs = np.zeros(int(np.max(who, initial=_NO_USER)) + 2, np.bool_)
    occurs[who] = True
    occurs[_NO_USER] = False
    place = np.where(occurs, np.cumsum(occurs) - 1, _NO_USER)
    return place[who], np.flatnonzero(occurs)


def _best(at: Int64s, count: int, times: Int64s, rank: Int64s, *, latest: bool) -> tuple[Int64s, Int64s]:
    """Return the earliest or latest time for each of `count` numbers, and its user; `at` are the rows' numbers."""
    some = rank >= 0
    at, times, rank = at[some], times[some], rank[some]
    limits = np.iinfo(np.int64)
    choose, worst = (np.maximum, limits.min) if latest else (np.minimum, limits.max)
    best = np.full(count, worst)
    choose.at(best, at, times)
    tied = times == best[at]
    who = np.full(count, worst)
    choose.at(who, at[tied], rank[tied])
    absent = who == worst
    best[absent], who[absent] = 0, _NO_USER
    return best, who


# First and last uses of lives in the database, in chunks of numbers.


LAST_USE_TABLES: Final = """
CREATE TABLE last_use (chunk INTEGER PRIMARY KEY, columns BLOB NOT NULL, users BLOB NOT NULL);
"""

_LAST_USE_CHUNK_BITS = 12


def add_last_use(database: sqlite3.Connection, uses: LastUse) -> None:
    """Add uses by the number of lives."""
    of_number = uses.numbers >> _LAST_USE_CHUNK_BITS
    for chunk in np.unique(of_number).tolist():
        part = _read(database, chunk).plus(uses.where(of_number == chunk))
        columns = packed(part.numbers, *part.times, *part.who)
        users = deflated(json.dumps(part.users, ensure_ascii=False).encode())
        database.execute("INSERT OR REPLACE INTO last_use VALUES (?, ?, ?)", (chunk, columns, users))


def read_last_use(database: sqlite3.Connection, numbers: Int64s) -> LastUse:
    """Return the uses of some lives."""
    parts = []
    for chunk in np.unique(numbers >> _LAST_USE_CHUNK_BITS).tolist():
        part = _read(database, chunk)
        parts.append(part.where(np.isin(part.numbers, numbers)))
    return LastUse.nothing().plus(*parts)


def _read(database: sqlite3.Connection, chunk: int) -> LastUse:
    row = database.execute("SELECT columns, users FROM last_use WHERE chunk = ?", (chunk,)).fetchone()
    if row is None:
        return LastUse.nothing()
    columns = unpacked(row[0])
    if len(columns) != 1 + 2 * len(EVENTS) or len({len(column) for column in columns}) != 1:
        raise DecodeError("invalid last uses: damaged")
    try:
        users = tuple((principal, host) for principal, host in json.loads(inflated(row[1])))
    except (ValueError, TypeError) as error:
        raise DecodeError(f"invalid users of last uses: {error}") from error
    numbers, *rest = columns
    return LastUse(numbers=numbers, times=np.stack(rest[: len(EVENTS)]), who=np.stack(rest[len(EVENTS) :]), users=users)
