"""The names of an overlay in order: which of the patterns that changes touched begin with a text."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import TypeAlias

from attrs import frozen

from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.overlay import TouchedResource
from aclog.metalog.persistent_map import Map

_ByName: TypeAlias = Map[str, TouchedResource]

_FEW = 4
"""Sorting a list anew is cheaper than keeping it in order when more than one of so many names come or go."""


@frozen(eq=False)
class TouchedNames:
    """The names of one version of an overlay."""

    _maps: Sequence[_ByName]
    """As Overlay.touched."""
    _names: Sequence[list[str]]
    """By map: its names in the order of their code points."""

    def under(self, kind: int, prefix: str, *, literal: bool) -> list[str]:
        """Return the names of a type that begin with a text, which may be empty; `kind` is 0..7."""
        names, length = self._names[2 * kind + literal], len(prefix)
        low = bisect_left(names, prefix)
        # The head of a name is compared, as no text comes after all that begin so.
        return names[low : bisect_right(names, prefix, lo=low, key=lambda name: name[:length])]

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
    if len(differ) * _FEW > len(names):
        return sorted(after)
    # What is in order is merged with the rest, which takes little more than copying it.
    return sorted([*_without(names, differ), *sorted(name for name in differ if name in after)])


def _without(names: list[str], gone: set[str]) -> Iterator[str]:
    return (name for name in names if name not in gone)
