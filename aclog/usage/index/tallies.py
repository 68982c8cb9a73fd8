"""What a part of an access log says, by the ordinals of the rules of its run: what tasks pass to the index."""

from typing import Self

import numpy as np
from attrs import field, frozen

from aclog.metalog.vectors import Int64s
from aclog.usage.index.last_use import LastUse
from aclog.usage.index.used_store import DayRows
from aclog.usage.unread import UnreadAccesses
from aclog.usage.unused.access_sets import AccessSets


@frozen(eq=False, kw_only=True)
class DayTally:
    """Numpy columns, quick to pickle. Tallies of parts add up, in any order."""

    rules: DayRows
    """By day and ordinal: accesses that the rule matched, and those that needed it."""
    last_use: LastUse
    """By ordinal."""
    sets: AccessSets
    """Of ordinals: what matched accesses together."""
    set_rows: DayRows
    """By day and place in `sets`: accesses in `matched`; `needed` is 0."""
    first: int
    """The times of the first and the last access that was judged, in us since 1970."""
    last: int
    accesses: int
    """How many were judged."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Those that cannot be decided."""

    @classmethod
    def nothing(cls) -> Self:
        """Return the tally of no accesses."""
        none = np.zeros(0, np.int64)
        rows = DayRows(none, none, none, none)
        limits = np.iinfo(np.int64)
        return cls(
            rules=rows,
            last_use=LastUse.nothing(),
            sets=AccessSets.of(()),
            set_rows=rows,
            first=limits.max,
            last=limits.min,
            accesses=0,
        )


def numbered_sets(sets: AccessSets, numbers: Int64s) -> AccessSets:
    """Return sets of ordinals as sets of the lives with these numbers: members ascend, the denies after the allows."""
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.starts))
    members = numbers[sets.members]
    order = np.lexsort((members, sets.denies, owner))
    return AccessSets(starts=sets.starts, members=members[order], denies=sets.denies[order])
