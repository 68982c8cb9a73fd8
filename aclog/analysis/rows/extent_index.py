"""Finds, among many names and prefixes, those that have names in common with another; and so extents of rules."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Generic, Self, TypeVar

from attrs import frozen

from aclog.analysis.regions.names import Literal, NamePart
from aclog.analysis.regions.region import Region
from aclog.analysis.rows.extent import Extent

_LAST = "\U0010ffff"
_Held = TypeVar("_Held")


@frozen(eq=False)
class NameIndex(Generic[_Held]):
    """What belongs to names and prefixes of resource types."""

    _literals: dict[tuple[int, str], list[_Held]]
    _subtrees: dict[tuple[int, str], list[_Held]]
    _sorted: dict[int, list[str]]
    """By resource type: every name and prefix, once."""

    @classmethod
    def of(cls, parts: Iterable[tuple[int, NamePart, _Held]]) -> Self:
        """Return the index of what belongs to parts of names, each of a resource type."""
        literals: dict[tuple[int, str], list[_Held]] = defaultdict(list)
        subtrees: dict[tuple[int, str], list[_Held]] = defaultdict(list)
        for kind, part, held in parts:
            if isinstance(part, Literal):
                literals[kind, part.name].append(held)
            else:
                subtrees[kind, part.prefix].append(held)
        names: dict[int, list[str]] = defaultdict(list)
        for kind, name in sorted(literals.keys() | subtrees.keys()):
            names[kind].append(name)
        return cls(dict(literals), dict(subtrees), dict(names))

    def near(self, kind: int, part: NamePart) -> Iterator[_Held]:
        """Yield what belongs to parts that have names in common with this one, or may have."""
        name = part.name if isinstance(part, Literal) else part.prefix
        for end in range(len(name) + 1):
            yield from self._subtrees.get((kind, name[:end]), ())
        if isinstance(part, Literal):
            yield from self._literals.get((kind, name), ())
            return
        names = self._sorted.get(kind, [])
        for number in range(bisect_left(names, name), bisect_left(names, name + _LAST)):
            yield from self._literals.get((kind, names[number]), ())
            yield from self._subtrees.get((kind, names[number]), ())


def index_of_extents(extents: Iterable[Extent]) -> NameIndex[Extent]:
    """Return extents by their names."""
    return NameIndex.of((extent.resource_type, part, extent) for extent in extents for part in extent.names)


def index_of_region(region: Region) -> NameIndex[NamePart]:
    """Return the parts of a region's names."""
    return NameIndex.of((region.resource_type, part, part) for part in region.names)


def near_region(extents: NameIndex[Extent], region: Region) -> Iterator[tuple[Extent, NamePart]]:
    """Yield extents with the part of a region with which they have names in common, or may have."""
    for part in region.names:
        for extent in extents.near(region.resource_type, part):
            yield extent, part
