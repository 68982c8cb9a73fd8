"""The prefixes of one resource type: which of them a name begins with, in a bounded number of steps.

The prefixes stand in one sorted list. All prefixes of a name are the ancestors (by "begins with") of the last one that
sorts at or before it; parent and jump links (skew-binary, as in Myers' lists) find the longest in O(log n) compares.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from aclog.authorizer.index.arrays import Binary, Int32s, Pause, go_on

_CHUNK = 2048


@frozen(eq=False)
class Prefixes:
    """Sorted distinct names, the resource of each, its parent (the next shorter prefix) and a jump far up; -1 is none.

    A node is an index into these columns.
    """

    names: list[str]
    resources: memoryview
    parents: memoryview
    jumps: memoryview

    @classmethod
    def of(cls, names: Binary, resources: Int32s, pause: Pause = go_on) -> Self:
        """Of a binary array of UTF-8 names, in any order, and the resource number of each."""
        order = pc.array_sort_indices(names)
        in_order = names.take(order).cast(pa.large_string() if pa.types.is_large_binary(names.type) else pa.string())
        texts: list[str] = []
        for start in range(0, len(in_order), _CHUNK):
            texts += in_order.slice(start, _CHUNK).to_pylist()  # type: ignore[arg-type]  # there are no nulls
            pause()
        parents, jumps = _links(texts, pause)
        return cls(texts, resources[np.asarray(order)].data, memoryview(parents), memoryview(jumps))

    def nearest(self, name: str) -> int:
        """The node of the longest prefix of `name` (or the whole of it); -1 if there is none."""
        names, parents, jumps = self.names, self.parents, self.jumps
        node = bisect_right(names, name) - 1
        while node >= 0 and not name.startswith(names[node]):
            jump = jumps[node]
            node = jump if jump >= 0 and not name.startswith(names[jump]) else parents[node]
        return node

    def chain(self, name: str) -> Iterator[int]:
        """The nodes of all prefixes of `name`, longest first."""
        node = self.nearest(name)
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
        name, parent = names[node], node - 1
        while parent >= 0 and not name.startswith(names[parent]):
            parent = parents[parent]
        if parent < 0:
            continue
        parents[node] = parent
        depths[node] = depths.get(parent, 0) + 1
        jump = jumps[parent]
        far = jumps[jump] if jump >= 0 else -1
        depth, middle, end = depths.get(parent, 0), depths.get(jump, 0), depths.get(far, 0)
        jumps[node] = far if far >= 0 and depth - middle == middle - end else parent
    return parents, jumps
