"""What the rules of one subject say at a place: those on all its patterns that cover the place, together."""

import numpy as np
from attrs import frozen

from aclog.analysis.lint.effect.lanes import States, combined
from aclog.analysis.lint.effect.nesting import nested
from aclog.metalog.vectors import Int64s

_PLACE_BITS = 31


@frozen(eq=False, kw_only=True)
class Chains:
    """States by subject and place: each holds from one place, of one subject, up to the next."""

    keys: Int64s
    """subject << 31 | place, ascending."""
    states: States

    @classmethod
    def of(cls, subjects: Int64s, starts: Int64s, ends: Int64s, states: States) -> "Chains":
        """Add up intervals [start, end): those of one subject are nested in one another, or apart."""
        order = np.lexsort((-ends, starts, subjects))
        subjects, starts, ends, states = subjects[order], starts[order], ends[order], states[order]
        opens, closes = subjects << _PLACE_BITS | starts, subjects << _PLACE_BITS | ends
        sums, outside = states.copy(), np.zeros(len(order), np.uint64)
        for here, around in nested(opens, closes):
            outside[here] = sums[around]
            sums[here] = combined(sums[around], states[here])
        # Where several intervals begin or end, the last one counts: the outermost that ends, the innermost that begins.
        keys = np.concatenate((closes[::-1], opens))
        sequence = np.argsort(keys, kind="stable")
        keys = keys[sequence]
        last = np.append(keys[1:] != keys[:-1], True) if len(keys) else np.zeros(0, np.bool_)
        return cls(keys=keys[last], states=np.concatenate((outside[::-1], sums))[sequence[last]])

    def subjects(self) -> Int64s:
        """Return the subject of each key."""
        return self.keys >> _PLACE_BITS

    def places(self) -> Int64s:
        """Return the place of each key."""
        return self.keys & (1 << _PLACE_BITS) - 1

    def at(self, subjects: Int64s, places: Int64s) -> States:
        """Return the state of each subject at each place; 0 for subject -1."""
        found = np.zeros(len(subjects), np.uint64)
        asked = np.flatnonzero(subjects >= 0)
        if not len(self.keys) or not len(asked):
            return found
        wanted = subjects[asked] << _PLACE_BITS | places[asked]
        at = np.searchsorted(self.keys, wanted, side="right") - 1
        known = (at >= 0) & (self.keys[at] >> _PLACE_BITS == subjects[asked])
        found[asked[known]] = self.states[at[known]]
        return found
