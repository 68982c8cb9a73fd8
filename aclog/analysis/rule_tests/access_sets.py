"""Sets of allowed requests of one subject, and what one of them has that another has not."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import define, field

from aclog.analysis.regions.name_sets import less
from aclog.analysis.regions.names import Literal, NamePart

Place: TypeAlias = tuple[NamePart, int]
"""Names, and classes of hosts as a mask."""


@define(eq=False)
class AccessSet:
    """By resource type and operation: names with the hosts from which they are allowed. Filled, then asked."""

    _places: dict[tuple[int, int], dict[NamePart, int]] = field(factory=dict, init=False)

    def add(self, kind: int, operation: int, names: Iterable[NamePart], classes: int) -> None:
        """Add some names from some hosts."""
        if classes:
            places = self._places.setdefault((kind, operation), {})
            for part in names:
                places[part] = places.get(part, 0) | classes

    def beyond(self, other: "AccessSet") -> Iterator[tuple[int, int, Place]]:
        """Yield by resource type and operation what is in this set and not in another."""
        for key, places in self._places.items():
            others = other._places.get(key, {})
            own = [(part, mask & ~others.get(part, 0)) for part, mask in places.items()]
            left = [(part, mask) for part, mask in own if mask]
            index = _Index(others) if left else None
            for place in left:
                if index is not None:
                    yield from ((*key, each) for each in index.outside(place))


@define(eq=False)
class _Index:
    """Places by the beginning of their names."""

    places: Mapping[NamePart, int]
    _by_begin: dict[str, list[Place]] = field(factory=dict, init=False)
    _begins: list[str] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        for part, mask in self.places.items():
            self._by_begin.setdefault(_begin(part), []).append((part, mask))
        self._begins = sorted(self._by_begin)

    def outside(self, place: Place) -> list[Place]:
        """Return what of a place none of the places has."""
        left = [place]
        for part, mask in self._near(place[0]):
            left = [each for one in left for each in _less(one, part, mask)]
        return left

    def _near(self, part: NamePart) -> Iterator[Place]:
        begin = _begin(part)
        for end in range(len(begin)):
            yield from self._by_begin.get(begin[:end], ())
        for position in range(bisect_left(self._begins, begin), len(self._begins)):
            if not self._begins[position].startswith(begin):
                return
            yield from self._by_begin[self._begins[position]]


def _less(place: Place, taken: NamePart, classes: int) -> Iterator[Place]:
    part, mask = place
    if mask & ~classes:
        yield part, mask & ~classes
    if mask & classes:
        for left in less((part,), taken):
            yield left, mask & classes


def _begin(part: NamePart) -> str:
    return part.name if isinstance(part, Literal) else part.prefix
