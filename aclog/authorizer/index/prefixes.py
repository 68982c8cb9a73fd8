"""The PREFIXED names of a base, and the chain of those that are prefixes of a given name.

The names of a type are sorted, and also a forest: the parent of a name is the longest other name that it begins with.
The prefixes of a given name are ancestors of the last name that sorts at or before it. Walking up parent by parent
could take a thousand steps in a ladder of nested prefixes, so each node has a jump link to a far ancestor, too
(skew-binary jump pointers, Myers 1983): the longest prefix is found with O(log n) comparisons on any set of names.

Names are compared as UTF-8, whose order is that of code points.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import Factory, define

from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.index.byte_strings import ByteStrings
from aclog.authorizer.index.keys import KeyTable, name_bytes
from aclog.metalog.vectors import unsigned_varints

_CHUNK = 2048

_LISTED_AFTER = 64
"""A list of all names is made once there was one search per this many names: by then it costs less than they did."""


@define(eq=False)
class Prefixes:
    """The prefixed names of all types by type and name. A node is an index into these columns, -1 stands for none."""

    _keys: KeyTable
    resources: memoryview
    parents: memoryview
    jumps: memoryview
    type_nodes: memoryview
    """Where the nodes of each type begin, and at the end their number."""
    _searches: int = 0
    _names: list[bytes] | None = Factory(lambda: None)
    """All names, once searches have paid for them. Threads may race here: they make the same list."""

    def __len__(self) -> int:
        return len(self.resources)

    def name(self, node: int) -> bytes:
        """Return the name of a node in UTF-8."""
        return name_bytes(self._keys.key(self.resources[node]))

    def longest(self, resource_type: int, name: bytes) -> int:
        """Return the node of the longest name that `name`, in UTF-8, begins with or equals; -1 if there is none."""
        low, high = self.type_nodes[resource_type], self.type_nodes[resource_type + 1]
        if low == high:
            return -1
        names = self._names
        if names is None:
            names = self._listed()
        if names is None:
            node = bisect_right(range(high), name, low, high, key=self.name) - 1
        else:
            node = bisect_right(names, name, low, high) - 1
        if node < low:
            return -1
        text, parents, jumps = self.name if names is None else names.__getitem__, self.parents, self.jumps
        while node >= 0 and not name.startswith(text(node)):
            # If the jump target is no prefix, nothing between it and this node is: all of them begin with the target.
            jump = jumps[node]
            node = jump if jump >= 0 and not name.startswith(text(jump)) else parents[node]
        return node

    def chain(self, resource_type: int, name: bytes) -> Iterator[int]:
        """Yield the nodes of all prefixes of `name`, in UTF-8, longest first."""
        node = self.longest(resource_type, name)
        while node >= 0:
            yield node
            node = self.parents[node]

    def _listed(self) -> list[bytes] | None:
        self._searches += 1
        if self._searches * _LISTED_AFTER > len(self.resources):
            self._names = self._all_names()
        return self._names

    def _all_names(self) -> list[bytes]:
        data, offsets = np.frombuffer(self._keys.data, np.uint8), np.asarray(self._keys.offsets).astype(np.int64)
        nodes = np.asarray(self.resources)
        _, starts, _ = unsigned_varints(data, offsets[nodes] + 1)
        return ByteStrings.cut(data, starts, offsets[nodes + 1] - 1).values()


def links(names: Sequence[bytes], pause: Pause = no_pause) -> "tuple[array[int], array[int]]":
    """Return the parent and the jump link of each of these sorted names, all of one type."""
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
