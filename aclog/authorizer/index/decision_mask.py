"""The decision: which operations a resource's rules allow and deny a subject, as one mask."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from attrs import define, field

from aclog.authorizer.acl import WILDCARD, PatternType
from aclog.authorizer.index.base import Base, Subject
from aclog.authorizer.index.keys import pair_key, resource_name
from aclog.authorizer.index.masks import known_type
from aclog.authorizer.index.overlay import Overlay, Touched


class Resource(NamedTuple):
    """A resource pattern with rules: its number in the base (or -1) and what the overlay says of it."""

    name: str
    literal: bool
    number: int
    touched: Touched | None


class Levels(NamedTuple):
    """The resources with rules on a name, those of one name together."""

    others: list[list[Resource]]
    """The name itself and shorter prefixes, longest first."""
    star: list[Resource]
    empty: list[Resource]


@define(eq=False)
class State:
    """A base and what changed since. Nobody assigns to one that is made, which is not frozen as Image is not."""

    base: Base
    overlay: Overlay = field(factory=Overlay)
    memo: dict[str, Any] = field(factory=dict)
    """What is seldom asked for, and kept once it was."""

    @property
    def throws(self) -> bool:
        """Whether there is a rule whose principal has no colon: a decision that looks at it is an error."""
        return self.overlay.colonless > 0 or len(self.base.throwing) > 0

    def mask(self, subject: Subject, resource_type: int, name: str, star_always: bool) -> int:
        """What all rules on a name say to the subject, denied << 16 | allowed.

        `star_always`: LITERAL `*` matches names that begin with `*` too (documented semantics).
        """
        base = self.base
        try:
            low, high, node, quirk = base.memo.places[resource_type][name]
        except KeyError:
            resource_type = known_type(resource_type)
            low, high, node, quirk = base.place(resource_type, name)
        if self.overlay.changes:
            return self._changed_mask(subject, resource_type, name, star=star_always or not quirk)
        try:
            mask = subject.chains[node]
        except KeyError:
            mask = base.chain(subject, resource_type, node)
        if not quirk or star_always:
            mask |= subject.stars[resource_type]
        if low != high:
            mask |= base.level(low, high, subject.pairs)
        return mask

    def _changed_mask(self, subject: Subject, resource_type: int, name: str, *, star: bool) -> int:
        """The same, where an overlay may know better."""
        mask = self.literal_mask(subject, resource_type, name) | self.prefix_mask(subject, resource_type, name)
        if not star:
            return mask
        touched = self.overlay.stars[resource_type]
        if touched is None:
            return mask | subject.stars[resource_type]
        return mask | self._level(*self.base.cells(self.base.stars[resource_type]), touched, subject)

    def literal_mask(self, subject: Subject, resource_type: int, name: str) -> int:
        """What the LITERAL rules of exactly this name say."""
        low, high, _, _ = self.base.place(resource_type, name)
        return self._level(low, high, self.overlay.touched.get((resource_type, name, True)), subject)

    def prefix_mask(self, subject: Subject, resource_type: int, name: str) -> int:
        """What the rules on prefixes of a name say."""
        base, mask = self.base, 0
        touched = self._touched_prefixes(resource_type, name)
        if any(resource.touched.shrunk for resource in touched if resource.touched is not None):
            for resource in self.prefixes(resource_type, name):
                mask |= self._level(*base.cells(resource.number), resource.touched, subject)
            return mask
        _, _, node, _ = base.place(resource_type, name)
        known = subject.chains.get(node)
        mask = base.chain(subject, resource_type, node) if known is None else known
        for resource in touched:
            mask |= self._level(0, 0, resource.touched, subject)
        return mask

    def _level(self, low: int, high: int, touched: Touched | None, subject: Subject) -> int:
        """What one resource says: the base's cells, but where the overlay knows better."""
        base = self.base
        if touched is None:
            return base.level(low, high, subject.pairs)
        mask = 0
        shrunk = touched.shrunk
        for key in subject.keys:
            cell = touched.cells.get(key)
            if cell is not None:
                mask |= cell.mask
            elif shrunk and low < high:
                mask |= base.level(low, high, (base.pairs.find(pair_key(*key)),))
        return mask if shrunk else mask | base.level(low, high, subject.pairs)

    def _touched_prefixes(self, resource_type: int, name: str) -> list[Resource]:
        """The prefixes of a name that the overlay knows of, longest first."""
        found = []
        for length in self.overlay.lengths[resource_type]:
            if length <= len(name):
                touched = self.overlay.touched.get((resource_type, name[:length], False))
                if touched is not None:
                    found.append(Resource(name[:length], literal=False, number=touched.number, touched=touched))
        return found

    def prefixes(self, resource_type: int, name: str) -> Iterator[Resource]:
        """All prefixes of a name, longest first."""
        prefixes = self.base.prefixes[resource_type]
        touched = {resource.name: resource for resource in self._touched_prefixes(resource_type, name)}
        for node in prefixes.chain(name):
            text = prefixes.names[node]
            longer = [known for known in touched if len(known) > len(text)]
            for known in longer:
                yield touched.pop(known)
            yield touched.pop(text, Resource(text, literal=False, number=prefixes.resources[node], touched=None))
        yield from touched.values()

    def literal(self, resource_type: int, name: str) -> Resource:
        """The LITERAL resource of exactly this name, whether it has rules or not."""
        number = self.base.resource(resource_type, name, literal=True)
        return Resource(
            name, literal=True, number=number, touched=self.overlay.touched.get((resource_type, name, True))
        )

    def count(self, resource: Resource) -> int:
        """How many rules a resource has."""
        if resource.touched is not None:
            return resource.touched.rules
        return len(self.base.rows(*self.base.cells(resource.number)))

    def named(self, resource_type: int, name: str) -> tuple[Resource, Resource]:
        """The two resources of exactly this name, LITERAL first, whether they have rules or not."""
        key = (resource_type, name, False)
        number = self.base.resource(resource_type, name, literal=False)
        prefixed = Resource(name, literal=False, number=number, touched=self.overlay.touched.get(key))
        return self.literal(resource_type, name), prefixed

    def levels(self, resource_type: int, name: str, *, star_always: bool) -> Levels:
        """The resources with rules on a name."""
        by_name: dict[str, list[Resource]] = {name: [self.literal(resource_type, name)]}
        for resource in self.prefixes(resource_type, name):
            by_name.setdefault(resource.name, []).append(resource)
        levels = {text: [r for r in level if self.count(r)] for text, level in by_name.items()}
        empty = levels.pop("", [])
        star = []
        if name != WILDCARD and (star_always or name[:1] != WILDCARD):
            star = [r for r in (self.literal(resource_type, WILDCARD),) if self.count(r)]
        return Levels([level for level in levels.values() if level], star, empty)

    def resources(self) -> Iterator[tuple[int, Resource]]:
        """Every resource with rules, and its type, in no order."""
        base, touched = self.base, self.overlay.touched
        seen = set()
        for number in range(len(base.resources)):
            key = base.resources.key(number)
            place = key[0], resource_name(key), key[-1] == PatternType.LITERAL
            known = touched.get(place) if touched else None
            if known is not None:
                seen.add(place)
            resource = Resource(place[1], literal=place[2], number=number, touched=known)
            if self.count(resource):
                yield key[0], resource
        for (kind, name, literal), known in touched.items():
            if known.rules and (kind, name, literal) not in seen:
                yield kind, Resource(name, literal=literal, number=-1, touched=known)
