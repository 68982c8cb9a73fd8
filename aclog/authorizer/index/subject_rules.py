"""The rules that say one thing to one subject, allow or deny, found in its own cells alone."""

from collections.abc import Iterable, Iterator
from itertools import chain

from attrs import frozen

from aclog.authorizer.acl import WILDCARD, StandardAclWithId
from aclog.authorizer.acl_records import rule_of
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.decision_mask import Levels, Resource, State
from aclog.authorizer.index.masks import rule_mask
from aclog.metalog.records import AccessControlEntryRecord


@frozen(eq=False)
class Said:
    """The rules that deny the subject an operation, or those that allow it."""

    state: State
    subject: Subject
    bit: int
    """The one of a mask that such a rule sets."""

    def levels(self, resource_type: int, name: str, *, star_always: bool) -> Levels:
        """As State.levels, but only the resources that have such a rule."""
        others: list[list[Resource]] = []
        empty: list[Resource] = []
        for resource in chain(self._literal(resource_type, name), self._prefixes(resource_type, name)):
            if not resource.name:
                empty.append(resource)
            elif others and others[-1][0].name == resource.name:
                others[-1].append(resource)
            else:
                others.append([resource])
        is_covered = name != WILDCARD and (star_always or name[:1] != WILDCARD)
        return Levels(others, self._star(resource_type) if is_covered else [], empty)

    def rules(self, level: list[Resource]) -> Iterator[StandardAclWithId]:
        """Such rules of these resources, in no order."""
        base = self.state.base
        for resource in level:
            for cell, row in self._rows(resource):
                yield from base.rules((row,), base.resources.key(resource.number), resource.name, cell)
            if resource.touched is not None:
                yield from map(rule_of, self._records(resource))

    def _literal(self, resource_type: int, name: str) -> list[Resource]:
        state, base = self.state, self.state.base
        low, high, _, _ = base.place(resource_type, name)
        if base.level(low, high, self.subject.pairs) & self.bit or state.overlay.changes:
            literal = state.literal(resource_type, name)
            if self._has(literal):
                return [literal]
        return []

    def _prefixes(self, resource_type: int, name: str) -> Iterable[Resource]:
        """Those of a name, longest first."""
        state, base, subject, bit = self.state, self.state.base, self.subject, self.bit
        if state.overlay.lengths[resource_type]:
            return filter(self._has, state.prefixes(resource_type, name))
        _, _, node, _ = base.place(resource_type, name)
        prefixes, first = base.prefixes[resource_type], base.first_nodes[resource_type]
        found = []
        while node >= 0 and base.chain(subject, resource_type, node) & bit:
            number = prefixes.resources[node - first]
            if base.level(*base.cells(number), subject.pairs) & bit:
                found.append(Resource(prefixes.names[node - first], literal=False, number=number, touched=None))
            parent = prefixes.parents[node - first]
            node = parent + first if parent >= 0 else -1
        return found

    def _star(self, resource_type: int) -> list[Resource]:
        state = self.state
        if state.overlay.stars[resource_type] is None and not self.subject.stars[resource_type] & self.bit:
            return []
        star = state.literal(resource_type, WILDCARD)
        return [star] if self._has(star) else []

    def _has(self, resource: Resource) -> bool:
        if resource.touched is None:
            base = self.state.base
            return bool(base.level(*base.cells(resource.number), self.subject.pairs) & self.bit)
        return bool(self._rows(resource) or self._records(resource))

    def _rows(self, resource: Resource) -> list[tuple[int, int]]:
        """Cells and rows of the base."""
        base, removed, bit = self.state.base, self.state.overlay.removed, self.bit
        return [
            (cell, row)
            for pair in self.subject.pairs
            for cell in range(*base.cell(resource.number, pair))
            for row in base.rows(cell, cell + 1)
            if rule_mask(base.operations[row], base.permissions[row]) & bit and row not in removed
        ]

    def _records(self, resource: Resource) -> list[AccessControlEntryRecord]:
        """Records of the overlay."""
        cells = resource.touched.cells if resource.touched is not None else {}
        of_subject = (cells[key].added for key in self.subject.keys if key in cells)
        return [
            record
            for added in of_subject
            for record in added
            if rule_mask(record.operation, record.permission_type) & self.bit
        ]
