"""When each life was first and last matched and needed, by whom and from where."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Bools, Int64s

EVENTS = ("first matched", "last matched", "first needed", "last needed")
"""The rows of `times` and `who`."""
_NOBODY = -1


class Use(NamedTuple):
    """A use of a rule."""

    time: int
    """In us since 1970."""
    principal: str
    host: str


@frozen(eq=False, kw_only=True)
class LastUse:
    """Uses by number: of a life, or of an ordinal."""

    numbers: Int64s
    """Ascending, each once."""
    times: Int64s
    """(4, n): EVENTS, in us since 1970."""
    who: Int64s
    """(4, n): the place of the user in `users`, -1 if there was no such event."""
    users: tuple[tuple[str, str], ...]
    """Principals and hosts, in order, each pair once."""

    @classmethod
    def nothing(cls) -> Self:
        """Return that nothing was used."""
        none = np.zeros((len(EVENTS), 0), np.int64)
        return cls(numbers=np.zeros(0, np.int64), times=none, who=none, users=())

    @classmethod
    def of(cls, numbers: Int64s, times: Int64s, who: Int64s, users: Sequence[tuple[str, str]]) -> Self:
        """Return the first and the last of these uses; a number may have several columns.

        Of several users at the same time the first is the first by name, the last the last by name: results must not
        depend on the order in which a log is read.
        """
        ordered = sorted(set(users))
        place = {user: at for at, user in enumerate(ordered)}
        rank = np.array([*(place[user] for user in users), _NOBODY], np.int64)[who]
        once, at = np.unique(numbers, return_inverse=True)
        best = [_best(at, len(once), times[event], rank[event], latest=event % 2 == 1) for event in range(len(EVENTS))]
        best_times, best_who = (np.stack(each) for each in zip(*best, strict=True))
        who, kept = _those_left(best_who)
        left = tuple(ordered[at] for at in kept.tolist())
        return cls(numbers=once.astype(np.int64), times=best_times, who=who, users=left)

    def plus(self, *others: Self) -> Self:
        """Return the first and the last of all."""
        parts, users = (self, *others), list[tuple[str, str]]()
        who = []
        for part in parts:
            who.append(np.where(part.who >= 0, part.who + len(users), _NOBODY))
            users += part.users
        return type(self).of(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.times for part in parts], 1),
            np.concatenate(who, 1),
            users,
        )

    def where(self, chosen: Bools) -> Self:
        """Return some of the numbers, with the users they have."""
        who, kept = _those_left(self.who[:, chosen])
        left = tuple(self.users[at] for at in kept.tolist())
        return type(self)(numbers=self.numbers[chosen], times=self.times[:, chosen], who=who, users=left)

    def numbered(self, numbers: Int64s) -> Self:
        """Return the same for other numbers, of which several may be the same."""
        return type(self).of(numbers[self.numbers], self.times, self.who, self.users)

    def use(self, number: int, event: int) -> Use | None:
        """Return a use of a number, by the place of the event in EVENTS; None if there was none."""
        at = int(np.searchsorted(self.numbers, number))
        if at == len(self.numbers) or self.numbers[at] != number or self.who[event, at] == _NOBODY:
            return None
        return Use(int(self.times[event, at]), *self.users[self.who[event, at]])


def _those_left(who: Int64s) -> tuple[Int64s, Int64s]:
    """Return the users by their place among those that occur, and the places of these."""
    occurs = np.zeros(int(np.max(who, initial=_NOBODY)) + 2, np.bool_)
    occurs[who] = True
    occurs[_NOBODY] = False
    place = np.where(occurs, np.cumsum(occurs) - 1, _NOBODY)
    return place[who], np.flatnonzero(occurs)


def _best(at: Int64s, count: int, times: Int64s, rank: Int64s, *, latest: bool) -> tuple[Int64s, Int64s]:
    """Return the earliest or latest time for each of `count` numbers, and whose it is; `at` are the rows' numbers."""
    some = rank >= 0
    at, times, rank = at[some], times[some], rank[some]
    limits = np.iinfo(np.int64)
    choose, worst = (np.maximum, limits.min) if latest else (np.minimum, limits.max)
    best = np.full(count, worst)
    choose.at(best, at, times)
    tied = times == best[at]
    who = np.full(count, worst)
    choose.at(who, at[tied], rank[tied])
    nobody = who == worst
    best[nobody], who[nobody] = 0, _NOBODY
    return best, who
