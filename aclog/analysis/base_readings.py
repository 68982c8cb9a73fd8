"""What the engine has read of a base, kept with it: both sides of a comparison ask the same, and so does the next."""

import numpy as np
from attrs import define, field

from aclog.analysis.regions.root import Root
from aclog.authorizer.index.base import LONGEST_REMEMBERED, Base
from aclog.authorizer.index.columns import pairs_of, row_columns
from aclog.authorizer.index.generations import Generations
from aclog.authorizer.index.keys import split_pair
from aclog.authorizer.index.name_ranks import name_ranks

_MOST = 1024
"""Entries of each kind in a generation."""
_LONGEST = 64
"""Resources, or pairs, of an entry; more are read anew, as a principal may have rules on all there are."""


@define(eq=False)
class BaseReadings:
    """Safe for any number of threads. It is kept with the base that it is asked about, and so holds no base itself.

    A base that is referred to by what it keeps would not go until the collector looks at all there is.
    """

    _pairs: Generations[str, tuple[tuple[int, str], ...]] = field(factory=lambda: Generations(_MOST), init=False)
    _bounds: Generations[str, tuple[int, int]] = field(factory=lambda: Generations(_MOST), init=False)
    _under: Generations[tuple[Root, str], tuple[int, ...]] = field(factory=lambda: Generations(_MOST), init=False)

    @staticmethod
    def of(base: Base) -> "BaseReadings":
        """Return what was read of a base."""
        known = base.memo.readings
        if not isinstance(known, BaseReadings):
            known = base.memo.readings = BaseReadings()
        return known

    def pairs(self, base: Base, principal: str) -> tuple[tuple[int, str], ...]:
        """Return the pairs of a principal by number, and their hosts."""
        found = self._pairs.get(principal)
        if found is None:
            keys = base.pairs
            found = tuple((pair, split_pair(keys.key(pair))[1]) for pair in pairs_of(base, principal))
            if len(found) <= _LONGEST and len(principal) <= LONGEST_REMEMBERED:
                self._pairs.put(principal, found)
        return found

    def bounds(self, base: Base, prefix: str) -> tuple[int, int]:
        """Return the range of positions, in the order of names, of those that begin with a prefix."""
        found = self._bounds.get(prefix)
        if found is None:
            found = name_ranks(base).under(prefix)
            if len(prefix) <= LONGEST_REMEMBERED:
                self._bounds.put(prefix, found)
        return found

    def under_of(self, base: Base, root: Root, principal: str) -> tuple[int, ...]:
        """Return the resources below a root, of its type, on which a principal has cells."""
        found = self._under.get((root, principal))
        if found is None:
            found = self._read(base, root, principal)
            if len(found) <= _LONGEST and max(len(root.name), len(principal)) <= LONGEST_REMEMBERED:
                self._under.put((root, principal), found)
        return found

    def _read(self, base: Base, root: Root, principal: str) -> tuple[int, ...]:
        columns = row_columns(base)
        rows = [columns.of_pair(pair) for pair, _ in self.pairs(base, principal)]
        if not rows:
            return ()
        all_rows = rows[0] if len(rows) == 1 else np.concatenate(rows)
        numbers = columns.resource_of[all_rows[columns.types[all_rows] == root.kind]]
        if root.name:
            low, high = self.bounds(base, root.name)
            ranks = name_ranks(base).of_resource[numbers]
            numbers = numbers[(ranks >= low) & (ranks < high)]
        return tuple(dict.fromkeys(numbers.tolist()))
