"""The base's resources in the order of their names: made when first asked for, and kept with the base."""

from bisect import bisect_left

import numpy as np
import pyarrow.compute as pc
from attrs import frozen

from aclog.authorizer.index.arrays import Int32s, binary_columns, slices
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.keys import resource_name
from aclog.metalog.vectors import unsigned_varints


@frozen(eq=False, kw_only=True)
class NameRanks:
    """Names rank by code points, those of all resource types together; 8 bytes a resource."""

    base: Base
    order: Int32s
    """Resources by name."""
    of_resource: Int32s
    """The rank of each resource's name: where it first stands in `order`."""

    def of(self, name: str, resource: int) -> int:
        """The rank of a name, of which a resource is known or -1; where it is not here, that of the next higher one."""
        if resource >= 0:
            return int(self.of_resource[resource])

        def name_at(resource: int) -> str:
            return resource_name(self.base.resources.key(resource))

        at = bisect_left(self.order, name, key=name_at)
        return int(self.of_resource[self.order[at]]) if at < len(self.order) else len(self.order)


def name_ranks(base: Base) -> NameRanks:
    """The ranks of a base's names."""
    known = base.memo.ranks
    if not isinstance(known, NameRanks):
        known = base.memo.ranks = _make(base)
    return known


def _make(base: Base) -> NameRanks:
    offsets, data = binary_columns(base.resources.array())
    _, starts, _ = unsigned_varints(data, offsets[:-1] + 1)
    names = slices(data.data, starts, offsets[1:] - 1)
    indices = pc.array_sort_indices(names)
    ordered = names.take(indices)
    differs = np.ones(len(names), np.bool_)
    differs[1:] = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))
    order = np.asarray(indices).astype(np.int32)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.maximum.accumulate(np.where(differs, np.arange(len(order)), 0))
    return NameRanks(base=base, order=order, of_resource=ranks)
