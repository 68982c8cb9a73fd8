"""How often numbers were used: lives of ACLs, or sets of them."""

from typing import Self

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Bools, Int64s


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
        """Return that nothing was used."""
        none = np.zeros(0, np.int64)
        return cls(numbers=none, matched=none, needed=none, days_matched=none, days_needed=none)

    @classmethod
    def of(cls, numbers: Int64s, matched: Int64s, needed: Int64s) -> Self:
        """Add up what was used on one day; a number may have several rows."""
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

    def where(self, chosen: Bools) -> Self:
        """Return some of the rows."""
        return type(self)(
            numbers=self.numbers[chosen],
            matched=self.matched[chosen],
            needed=self.needed[chosen],
            days_matched=self.days_matched[chosen],
            days_needed=self.days_needed[chosen],
        )

    def plus(self, other: Self) -> Self:
        """Add up what was used on different days."""
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
        """Add up what was used on the same day; and return by how much the day is more, as a day among others."""
        both = self.plus(other)
        both = type(self).of(both.numbers, both.matched, both.needed)
        known, known_needed = (np.isin(other.numbers, self.numbers[each > 0]) for each in (self.matched, self.needed))
        more = type(self)(
            numbers=other.numbers,
            matched=other.matched,
            needed=other.needed,
            days_matched=((other.matched > 0) & ~known).astype(np.int64),
            days_needed=((other.needed > 0) & ~known_needed).astype(np.int64),
        )
        return both, more
