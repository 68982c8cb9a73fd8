"""Versions of a set of ACLs: the states that it went through, numbered in order of time."""

from typing import Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.decisions.acl_intervals import ALWAYS, FOREVER, AclIntervals


def change_times(intervals: AclIntervals) -> Int64s:
    """Return the times at which versions 1, 2, ... begin, ascending, in ms since 1970.

    Another Kafka that decides makes a version, too.
    """
    of_kafka = np.array(() if intervals.kafka is None else intervals.kafka.changes, np.int64)
    times = np.unique(np.concatenate((intervals.visible_from, intervals.visible_to, of_kafka)))
    return times[(times > ALWAYS) & (times < FOREVER)]


@frozen(eq=False, kw_only=True)
class Versions:
    """The versions between which each ACL was in force.

    Version v holds from the v-th time at which any ACL was added or removed, or another Kafka decided; version 0 holds
    before the first of them.
    """

    times: Int64s
    """When versions 1, 2, ... begin, ascending, in ms since 1970."""
    starts: Int64s
    ends: Int64s
    """By ordinal: the first version with the ACL, and the first one without it."""
    permanent: Bools
    """By ordinal: whether the ACL is in force at all versions."""
    ranges: NDArray[np.uint8] | None = None
    """By version: whether ACLs match whose host is a range (Ranges); None: the settings say so."""

    @classmethod
    def of(cls, intervals: AclIntervals) -> Self:
        """Number the versions of these intervals."""
        times = change_times(intervals)
        end = len(times) + 1
        starts = np.searchsorted(times, intervals.visible_from, "right")
        ends = np.where(intervals.visible_to < FOREVER, np.searchsorted(times, intervals.visible_to, "right"), end)
        kafka = intervals.kafka
        ranges = None if kafka is None else kafka.at(np.concatenate(([ALWAYS], times)))
        return cls(times=times, starts=starts, ends=ends, permanent=(starts == 0) & (ends == end), ranges=ranges)

    @property
    def end(self) -> int:
        """The number after the last version."""
        return len(self.times) + 1

    def at(self, times: Int64s) -> Int64s:
        """Return the version at each of these times, in us since 1970."""
        return np.searchsorted(self.times * 1000, times, "right")

    def in_force(self, version: int) -> Bools:
        """Return by ordinal whether the ACL is in force at a version."""
        in_force: Bools = (self.starts <= version) & (version < self.ends)
        return in_force
