"""Intervals by ACL content: which interval of a content is in force at a version, and when contents change."""

from typing import Self

import numpy as np
from attrs import frozen

from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.matches import expanded
from aclog.metalog.vectors import Bools, Int64s
from aclog.pipeline.decisions.acl_intervals import ALWAYS, FOREVER, AclIntervals


def change_times(intervals: AclIntervals) -> Int64s:
    """When version 1 of the rules begins, version 2, ..., in ms since 1970."""
    times = np.unique(np.concatenate((intervals.visible_from, intervals.visible_to)))
    return times[(times > ALWAYS) & (times < FOREVER)]


def interval_versions(intervals: AclIntervals, times: Int64s) -> tuple[Int64s, Int64s]:
    """By ordinal: the first version with the rule, and the first one without it; `times` are `change_times`."""
    ends = np.searchsorted(times, intervals.visible_to, "right")
    return np.searchsorted(times, intervals.visible_from, "right"), np.where(
        intervals.visible_to < FOREVER, ends, len(times) + 1
    )


@frozen(eq=False, kw_only=True)
class ContentIntervals:
    """The intervals of contents; no content stands twice at once."""

    times: Int64s
    """When versions begin (change_times)."""
    starts: Int64s
    ends: Int64s
    """By ordinal: the first version with the rule, and the first one without it."""
    content_of: Int32s
    still: Bools
    """By content: whether it stands at all versions."""
    _order: Int64s
    """Ordinals by content and start."""
    _keys: Int64s
    """content * end + start of these."""
    _content_starts: Int64s
    """By content: where its intervals are in `_order`; one more entry than contents."""

    @classmethod
    def of(cls, intervals: AclIntervals) -> Self:
        """Index the intervals."""
        contents, times = len(intervals.record_ends), change_times(intervals)
        end = len(times) + 1
        starts, ends = interval_versions(intervals, times)
        lasting = np.flatnonzero(starts < ends)  # what came and went at one time never decided anything
        keys = intervals.content_of[lasting] * np.int64(end) + starts[lasting]
        order = np.argsort(keys)
        still = np.zeros(contents, np.bool_)
        still[intervals.content_of[(starts == 0) & (ends == end)]] = True
        return cls(
            times=times,
            starts=starts,
            ends=ends,
            content_of=intervals.content_of,
            still=still,
            order=lasting[order],
            keys=keys[order],
            content_starts=np.searchsorted(keys[order], np.arange(contents + 1) * np.int64(end)),
        )

    @property
    def end(self) -> int:
        """The version after the last."""
        return len(self.times) + 1

    def versions(self, times: Int64s) -> Int64s:
        """The version of the rules at each of these times, in us since 1970."""
        return np.searchsorted(self.times * 1000, times, "right")

    def in_force(self, version: int) -> Bools:
        """By ordinal: whether the rule stands at a version."""
        there: Bools = (self.starts <= version) & (version < self.ends)
        return there

    def standing(self, contents: Int64s, versions: Int64s) -> Int64s:
        """The ordinal of the interval of each content that stands at its version, -1 where none does."""
        if not len(self._keys):
            return np.full(len(contents), -1, np.int64)
        at = np.searchsorted(self._keys, contents * self.end + versions, "right") - 1
        ordinal = self._order[at]
        there = (at >= 0) & (self.content_of[ordinal] == contents) & (versions < self.ends[ordinal])
        return np.where(there, ordinal, -1)

    def changes(self, contents: Int64s) -> Int64s:
        """The versions, ascending and the first 0, at which any of these came or went."""
        _, at = expanded(self._content_starts[contents], self._content_starts[contents + 1])
        intervals = self._order[at]
        found = np.unique(np.concatenate(([0], self.starts[intervals], self.ends[intervals])))
        return found[found < self.end]
