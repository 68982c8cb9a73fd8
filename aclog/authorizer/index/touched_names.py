"""The names of an overlay in order: which of the patterns that changes touched begin with a text."""

from collections.abc import Sequence
from itertools import starmap
from typing import TypeAlias

from attrs import frozen

from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.overlay import TouchedResource
from aclog.authorizer.index.prefix_range import prefix_range
from aclog.metalog.persistent_map import Map

_ByName: TypeAlias = Map[str, TouchedResource]


@frozen(eq=False)
class TouchedNames:
    """The names of one version of an overlay."""

    _maps: Sequence[_ByName]
    """As Overlay.touched."""
    _names: Sequence[list[str]]
    """By map: its names in the order of their code points."""

    def under(self, kind: int, prefix: str) -> list[Resource]:
        """Return the patterns of a type whose names begin with a text, which may be empty; `kind` is 0..7."""
        found = []
        for literal in (False, True):
            names, by_name = self._names[2 * kind + literal], self._maps[2 * kind + literal]
            low, high = prefix_range(names, prefix)
            for name in names[low:high]:
                touched = by_name[name]
                found.append(Resource(name, literal=literal, number=touched.number, touched=touched))
        return found

    def moved(self, maps: Sequence[_ByName]) -> "TouchedNames":
        """Return the names of another version, in time that mostly follows what differs."""
        return TouchedNames(maps, tuple(starmap(_moved, zip(self._names, self._maps, maps, strict=True))))


def touched_names(index: AclIndex) -> TouchedNames:
    """Return the names of an index's overlay."""
    memo, maps = index.base.memo, index.overlay.touched
    known = memo.touched_names
    if not isinstance(known, TouchedNames):
        known = TouchedNames((Map(),) * len(maps), [[] for _ in maps])
    # Another thread may do the same: whichever comes last is as good to start from.
    found = memo.touched_names = known.moved(maps)
    return found


def _moved(names: list[str], before: _ByName, after: _ByName) -> list[str]:
    differ = set(before.unshared_keys(after))
    if not differ:
        return names
    # What is in order is merged with the rest, which takes little more than copying it.
    return sorted([*(name for name in names if name not in differ), *(name for name in differ if name in after)])
