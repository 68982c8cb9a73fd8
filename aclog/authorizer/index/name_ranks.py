"""The base's resources ranked by name; built on first use and kept with the base."""

from bisect import bisect_left
from itertools import chain
from operator import ne

import numpy as np
from attrs import frozen

from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.byte_strings import ByteStrings, sorted_rows
from aclog.authorizer.index.keys import KeyTable, resource_name
from aclog.authorizer.index.prefix_range import prefix_range
from aclog.metalog.vectors import unsigned_varints


@frozen(eq=False, kw_only=True)
class NameRanks:
    """Ranks of names by code points, for all resource types together; 8 bytes per resource.

    It is kept with its base, and holds no more of it than the keys: a cycle would keep both of them.
    """

    resources: KeyTable
    order: Int32s
    """Resources sorted by name."""
    of_resource: Int32s
    """By resource: the rank of its name, which is the first position of that name in `order`."""

    def of(self, name: str, resource: int) -> int:
        """Return the rank of a name; `resource` is one with that name, or -1 if the base has none.

        An absent name has the rank of the next higher one.
        """
        if resource >= 0:
            return int(self.of_resource[resource])

        at = bisect_left(self.order, name, key=self._name)
        return int(self.of_resource[self.order[at]]) if at < len(self.order) else len(self.order)

    def under(self, prefix: str) -> tuple[int, int]:
        """Return the range of positions in `order` of the names that begin with a prefix."""
        return prefix_range(self.order, prefix, self._name)

    def _name(self, resource: int) -> str:
        return resource_name(self.resources.key(resource))


def name_ranks(base: Base) -> NameRanks:
    """Return the ranks of a base's names."""
    known = base.memo.ranks
    if not isinstance(known, NameRanks):
        known = base.memo.ranks = _make(base)
    return known


def _make(base: Base) -> NameRanks:
    offsets, data = np.asarray(base.resources.offsets).astype(np.int64), np.frombuffer(base.resources.data, np.uint8)
    _, starts, _ = unsigned_varints(data, offsets[:-1] + 1)
    ends = offsets[1:] - 1
    order = sorted_rows(data, starts, ends)
    names = ByteStrings.cut(data, starts[order], ends[order]).values()
    differs = np.fromiter(map(ne, names, chain([None], names)), np.bool_, len(names))
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.maximum.accumulate(np.where(differs, np.arange(len(order)), 0))
    return NameRanks(resources=base.resources, order=order, of_resource=ranks)
