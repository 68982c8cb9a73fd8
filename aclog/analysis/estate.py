"""The rules of one image, as the engine reads them: cells of a principal and a host on a resource pattern."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from attrs import define, field

from aclog.analysis.base_readings import BaseReadings
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, PatternType
from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.keys import resource_name, split_pair
from aclog.authorizer.index.masks import ALL_OPERATIONS
from aclog.authorizer.index.name_ranks import name_ranks
from aclog.authorizer.index.touched_names import TouchedNames, touched_names

_DENY_ALL = ALL_OPERATIONS << 16
_LITERAL = int(PatternType.LITERAL)


class Cell(NamedTuple):
    """All rules of one principal and host on one resource pattern."""

    name: str
    literal: bool
    host: str
    mask: int
    """Denied << 16 | allowed (aclog.authorizer.index.masks); never 0."""


@define(eq=False, slots=False)
class Estate:
    """Reads cells from the index of an image. Cheap to make; what it caches lives as long as it does."""

    index: AclIndex
    _touched: dict[tuple[int, str], list[Resource]] = field(factory=dict, init=False)

    def covering(self, root: Root) -> list[Resource]:
        """Return the patterns that cover every name of a root, but for LITERAL `*`."""
        found = list(self.index.prefixes(root.kind, root.name))
        if root.literal:
            found.append(self.index.literal(root.kind, root.name))
        return found

    def wildcard(self, kind: int) -> Resource:
        """Return LITERAL `*`, whether it has rules or not."""
        return self.index.literal(kind, WILDCARD)

    def under(self, root: Root) -> list[Resource]:
        """Return the patterns that cover some names of a root and not all; none for a single name."""
        if root.literal:
            return []
        base = self.index.base
        numbers = self._named_under(root)
        if numbers.size:
            kinds = np.frombuffer(base.resources.data, np.uint8)[np.asarray(base.resources.offsets)[numbers]]
            numbers = numbers[kinds == root.kind]
        return self._joined(root, numbers.tolist())

    def under_of(self, root: Root, principal: str) -> list[Resource]:
        """Return at least those of `under` on which a principal has cells, in time that follows its rules."""
        if root.literal:
            return []
        return self._joined(root, self._readings.under_of(self.index.base, root, principal))

    def has_at_most(self, root: Root, most: int) -> bool:
        """Return whether no more cells than this stand on all patterns that cover names of a root."""
        if not root.literal and self._named_under(root).size > most:
            return False
        left = most
        for resource in (*self.covering(root), self.wildcard(root.kind), *self.under(root)):
            low, high = self.index.base.cells(resource.number)
            left -= high - low + (0 if resource.touched is None else len(resource.touched.cells))
            if left < 0:
                return False
        return True

    def cells(self, resource: Resource) -> Iterator[tuple[str, Cell]]:
        """Yield the principal and the cell of each pair on a pattern."""
        base, touched = self.index.base, resource.touched
        for number in range(*base.cells(resource.number)):
            principal, host = split_pair(base.pairs.key(base.cell_pairs[number]))
            if touched is None or (principal, host) not in touched.cells:
                yield principal, Cell(resource.name, resource.literal, host, base.cell_masks[number])
        if touched is not None:
            for (principal, host), cell in touched.cells.items():
                if cell.mask:
                    yield principal, Cell(resource.name, resource.literal, host, cell.mask)

    def cells_of(self, resource: Resource, principal: str) -> Iterator[Cell]:
        """Yield the cells of one principal on a pattern."""
        base, touched = self.index.base, resource.touched
        if resource.number >= 0:
            for pair, host in self._readings.pairs(self.index.base, principal):
                low, high = base.cell(resource.number, pair)
                if low < high and (touched is None or (principal, host) not in touched.cells):
                    yield Cell(resource.name, resource.literal, host, base.cell_masks[low])
        if touched is not None:
            for (who, host), cell in touched.cells.items():
                if who == principal and cell.mask:
                    yield Cell(resource.name, resource.literal, host, cell.mask)

    def cells_of_everyone(self, resource: Resource) -> Iterator[Cell]:
        """Yield the cells of `User:*` on a pattern.

        An ACL whose principal has no colon counts as a DENY of everything to everyone: Kafka's authorizer visits every
        candidate before it allows, and throws on that one.
        """
        yield from self.cells_of(resource, WILDCARD_PRINCIPAL)
        if self.index.has_colonless and any(":" not in principal for principal, _ in self.cells(resource)):
            yield Cell(resource.name, resource.literal, WILDCARD, _DENY_ALL)

    def exists(self, resource: Resource) -> bool:
        """Return whether a pattern has any rule: it is a candidate then, whomever its rules are for."""
        return self.index.count(resource) > 0

    def _named_under(self, root: Root) -> Int32s:
        low, high = self._readings.bounds(self.index.base, root.name)
        return name_ranks(self.index.base).order[low:high]

    def _joined(self, root: Root, numbers: Iterable[int]) -> list[Resource]:
        """Return resources of the base by number and those of the overlay under a root, but for the root itself."""
        touched = self._touched_under(root)
        seen = {resource.number for resource in touched}
        base, found = self.index.base, [*touched]
        for number in numbers:
            if number not in seen:
                key = base.resources.key(number)
                found.append(Resource(resource_name(key), literal=key[-1] == _LITERAL, number=number, touched=None))
        return [each for each in found if each.literal or each.name != root.name]

    def _touched_under(self, root: Root) -> list[Resource]:
        known = self._touched.get((root.kind, root.name))
        if known is None:
            known = self._touched[root.kind, root.name] = self._touched_names.under(root.kind, root.name)
        return known

    @cached_property
    def _readings(self) -> BaseReadings:
        return BaseReadings.of(self.index.base)

    @cached_property
    def _touched_names(self) -> TouchedNames:
        return touched_names(self.index)
