"""Intervals by ACL content: which interval of a content is in force at a version, and when contents change."""

from typing import Self

import numpy as np
from attrs import frozen

from aclog.authorizer.index.arrays import Int32s, expanded
from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.decisions.versions import Versions


@frozen(eq=False, kw_only=True)
class ContentIntervals:
    """The intervals of contents (ACLs without their ids); those of one content do not overlap."""

    versions: Versions
    content_of: Int32s
    """By ordinal."""
    permanent: Bools
    """By content: whether it is in force at all versions."""
    _order: Int64s
    """Ordinals by content and start."""
    _keys: Int64s
    """content * end + start of these: one sorted array, so that one bisection finds both."""
    _content_starts: Int64s
    """By content: where its intervals begin in `_order`; one more entry than contents."""

    @classmethod
    def of(cls, intervals: AclIntervals) -> Self:
        """Index the intervals."""
        contents, versions = len(intervals.record_ends), Versions.of(intervals)
        # an ACL added and removed at one time was never visible, and its key would shadow that of its successor
        visible = np.flatnonzero(versions.starts < versions.ends)
        keys = intervals.content_of[visible] * np.int64(versions.end) + versions.starts[visible]
        order = np.argsort(keys)
        permanent = np.zeros(contents, np.bool_)
        permanent[intervals.content_of[versions.permanent]] = True
        return cls(
            versions=versions,
            content_of=intervals.content_of,
            permanent=permanent,
            order=visible[order],
            keys=keys[order],
            content_starts=np.searchsorted(keys[order], np.arange(contents + 1) * np.int64(versions.end)),
        )

    def in_force(self, contents: Int64s, versions: Int64s) -> Int64s:
        """Return the ordinal of each content's interval at its version, -1 if the content is not in force."""
        if not len(self._keys):
            return np.full(len(contents), -1, np.int64)
        at = np.searchsorted(self._keys, contents * self.versions.end + versions, "right") - 1
        ordinal = self._order[at]
        # the last key below may belong to another content, or to an interval that has ended
        found = (at >= 0) & (self.content_of[ordinal] == contents) & (versions < self.versions.ends[ordinal])
        return np.where(found, ordinal, -1)

    def changes(self, contents: Int64s) -> Int64s:
        """Return the versions at which any of these contents is added or removed: ascending, the first is 0."""
        _, at = expanded(self._content_starts[contents], self._content_starts[contents + 1])
        ordinals = self._order[at]
        versions = np.unique(np.concatenate(([0], self.versions.starts[ordinals], self.versions.ends[ordinals])))
        return versions[versions < self.versions.end]
