"""The PREFIXED names of one resource type, and the chain of those that are prefixes of a given name.

The names are one sorted list, and also a forest: the parent of a name is the longest other name that it begins with.
The prefixes of a given name are ancestors of the last name that sorts at or before it. Walking up parent by parent
could take a thousand steps in a ladder of nested prefixes, so each node has a jump link to a far ancestor, too
(skew-binary jump pointers, Myers 1983): the longest prefix is found with O(log n) comparisons on any set of names.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from aclog.authorizer.index.arrays import Binary, Int32s, Pause, no_pause

_CHUNK = 2048


@frozen(eq=False)
class Prefixes:
    """Sorted distinct names, and by name its resource, its parent and its jump link, -1 for none.

    A node is an index into these columns.
    """

    names: list[str]
    resources: memoryview
    parents: memoryview
    jumps: memoryview

    @classmethod
    def of(cls, names: Binary, resources: Int32s, pause: Pause = no_pause) -> Self:
        """Build the links from UTF-8 names in any order and the resource number of each."""
        order = pc.array_sort_indices(names)
        in_order = names.take(order).cast(pa.large_string() if pa.types.is_large_binary(names.type) else pa.string())
        texts: list[str] = []
        for start in range(0, len(in_order), _CHUNK):
            texts += in_order.slice(start, _CHUNK).to_pylist()  # type: ignore[arg-type]  # there are no nulls
            pause()
        parents, jumps = _links(texts, pause)
        return cls(texts, resources[np.asarray(order)].data, memoryview(parents), memoryview(jumps))

    def longest(self, name: str) -> int:
        """Return the node of the longest name that `name` begins with or equals; -1 if there is none."""
        names, parents, jumps = self.names, self.parents, self.jumps
        node = bisect_right(names, name) - 1
        while node >= 0 and not name.startswith(names[node]):
            # If the jump target is no prefix, nothing between it and this node is: all of them begin with the target.
            jump = jumps[node]
            node = jump if jump >= 0 and not name.startswith(names[jump]) else parents[node]
        return node

    def chain(self, name: str) -> Iterator[int]:
        """Yield the nodes of all prefixes of `name`, longest first."""
        node = self.longest(name)
        while node >= 0:
            yield node
            node = self.parents[node]


EMPTY = Prefixes([], *(np.zeros(0, np.int32).data for _ in range(3)))


def _links(names: Sequence[str], pause: Pause) -> "tuple[array[int], array[int]]":
    parents, jumps = array("i", [-1]) * len(names), array("i", [-1]) * len(names)
    depths: dict[int, int] = {}
    for node in range(1, len(names)):
        if node % _CHUNK == 0:
            pause()
        # The predecessor in sorted order, or one of its ancestors, is the parent.
        name, parent = names[node], node - 1
        while parent >= 0 and not name.startswith(names[parent]):
            parent = parents[parent]
        if parent < 0:
            continue
        parents[node] = parent
        depths[node] = depths.get(parent, 0) + 1
        # Skew-binary rule: if the parent's last two jumps span equal depths, the new node jumps over both, else to its
        # parent. Jump lengths then grow exponentially towards the root.
        jump = jumps[parent]
        far = jumps[jump] if jump >= 0 else -1
        depth, middle, end = depths.get(parent, 0), depths.get(jump, 0), depths.get(far, 0)
        jumps[node] = far if far >= 0 and depth - middle == middle - end else parent
    return parents, jumps
