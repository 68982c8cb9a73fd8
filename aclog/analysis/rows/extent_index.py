"""Finds, among the extents of many rules, those that have names in common with a region."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Self

from attrs import frozen

from aclog.analysis.regions.names import Literal, NamePart
from aclog.analysis.regions.region import Region
from aclog.analysis.rows.extent import Extent

_LAST = "\U0010ffff"


@frozen(eq=False)
class ExtentIndex:
    """Extents by the names and prefixes of their parts."""

    _literals: dict[tuple[int, str], list[Extent]]
    _subtrees: dict[tuple[int, str], list[Extent]]
    _sorted: dict[int, list[str]]
    """By resource type: every name and prefix, once."""

    @classmethod
    def of(cls, extents: Iterable[Extent]) -> Self:
        """Return the index of some extents."""
        literals: dict[tuple[int, str], list[Extent]] = defaultdict(list)
        subtrees: dict[tuple[int, str], list[Extent]] = defaultdict(list)
        for extent in extents:
            for part in extent.names:
                if isinstance(part, Literal):
                    literals[extent.resource_type, part.name].append(extent)
                else:
                    subtrees[extent.resource_type, part.prefix].append(extent)
        names: dict[int, list[str]] = defaultdict(list)
        for kind, name in sorted(literals.keys() | subtrees.keys()):
            names[kind].append(name)
        return cls(dict(literals), dict(subtrees), dict(names))

    def near(self, region: Region) -> Iterator[tuple[Extent, NamePart]]:
        """Yield extents with the part of a region with which they have names in common, or may have."""
        kind = region.resource_type
        for part in region.names:
            for extent in self._near_part(kind, part):
                yield extent, part

    def _near_part(self, kind: int, part: NamePart) -> Iterator[Extent]:
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
