"""Questions whether something stands in an interval of places."""

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Bools, Int64s

_PLACE_BITS = 31


@frozen(eq=False)
class Standing:
    """Places that belong to groups, by both."""

    _keys: Int64s

    @classmethod
    def of(cls, groups: Int64s, places: Int64s) -> "Standing":
        """Take places, each of a group."""
        return cls(np.sort(groups << _PLACE_BITS | places))

    def any(self, groups: Int64s, starts: Int64s, ends: Int64s) -> Bools:
        """Return whether a group has a place in each [start, end)."""
        low = np.searchsorted(self._keys, groups << _PLACE_BITS | starts)
        found: Bools = np.searchsorted(self._keys, groups << _PLACE_BITS | ends) > low
        return found
