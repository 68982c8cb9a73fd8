"""Which ACLs were in force in all of a window."""

from typing import Self

import numpy as np
from attrs import Factory, evolve, field, frozen

from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.decisions.acl_intervals import ALWAYS, FOREVER, AclIntervals
from aclog.usage.decisions.versions import change_times
from aclog.usage.window import Window, micros_of


@frozen(eq=False, kw_only=True)
class WindowRules:
    """Which ACLs are assessed, by ordinal."""

    throughout: Bools
    """In force in the whole window: assessed, unless `concerned`."""
    stays: Bools
    """Not assessed but in force at the end of the window, so that it will not be removed."""
    version: int
    """The version at the end of the window; without own time, the last one."""
    concerned: Bools = field(default=Factory(lambda self: np.zeros_like(self.throughout), takes_self=True))
    """An access that could not be read or decided may have needed it, so that it is only said to be needed."""
    unread: Int64s = field(default=Factory(lambda self: np.zeros(len(self.throughout), np.int64), takes_self=True))
    """How many such accesses there are."""

    @classmethod
    def of(cls, intervals: AclIntervals, window: Window, *, own_time: bool) -> Self:
        """Assess the ACLs for a window."""
        times = change_times(intervals)
        if own_time:
            until = micros_of(window.until) // 1000
            version = int(np.searchsorted(times, until, "right"))
            at_end = (intervals.visible_from <= until) & (intervals.visible_to > until)
        else:
            version, at_end = len(times), intervals.visible_to == FOREVER
        throughout = in_force_throughout(window, intervals) & at_end
        return cls(throughout=throughout, stays=at_end & ~throughout, version=version)

    def but_for(self, concerned: Bools, unread: Int64s) -> Self:
        """Return the same, given which ACLs may have been needed by accesses that are not known, and by how many."""
        stays = self.stays | self.throughout & concerned
        return evolve(self, stays=stays, concerned=concerned, unread=unread)


def in_force_throughout(window: Window, intervals: AclIntervals) -> Bools:
    """Return by ordinal whether the ACL is known to have been in force in the whole window."""
    start, until = micros_of(window.start), micros_of(window.until)
    # from * 1000 <= start and to * 1000 > until, but compared in ms: FOREVER in us would overflow
    in_force: Bools = (intervals.visible_from <= start // 1000) & (intervals.visible_to > until // 1000)
    return in_force & (max(intervals.known_from, ALWAYS) <= start // 1000)
