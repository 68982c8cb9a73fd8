"""The ACLs that deny, or allow, one subject one operation; only the subject's own cells are read."""

from collections.abc import Iterable, Iterator
from itertools import chain

from attrs import frozen

from aclog.authorizer.acl import WILDCARD, StandardAclWithId
from aclog.authorizer.acl_records import rule_of
from aclog.authorizer.index.acl_index import AclIndex, Levels, Resource
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.masks import rule_mask
from aclog.metalog.records import AccessControlEntryRecord


@frozen(eq=False)
class SubjectRules:
    """The ACLs that match a subject and set one bit of the mask."""

    index: AclIndex
    subject: Subject
    bit: int
    """ALLOWED or DENIED, shifted by the operation."""

    def levels(self, resource_type: int, name: str, *, documented: bool) -> Levels:
        """Return AclIndex.levels, reduced to the patterns that have such an ACL."""
        named: list[list[Resource]] = []
        empty: list[Resource] = []
        for resource in chain(self._literal(resource_type, name), self._prefixes(resource_type, name)):
            if not resource.name:
                empty.append(resource)
            elif named and named[-1][0].name == resource.name:
                named[-1].append(resource)
            else:
                named.append([resource])
        is_covered = name != WILDCARD and (documented or name[:1] != WILDCARD)
        return Levels(named, self._wildcard(resource_type) if is_covered else [], empty)

    def rules(self, level: list[Resource]) -> Iterator[StandardAclWithId]:
        """Yield such ACLs of these patterns in no particular order."""
        base = self.index.base
        for resource in level:
            for cell, row in self._rows(resource):
                yield from base.rules((row,), base.resources.key(resource.number), resource.name, cell)
            if resource.touched is not None:
                yield from map(rule_of, self._records(resource))

    def _literal(self, resource_type: int, name: str) -> list[Resource]:
        index, base = self.index, self.index.base
        low, high, _, _ = base.lookup(resource_type, name)
        if index.overlay.changes:
            literal = index.literal(resource_type, name)
            return [literal] if self._has(literal) else []
        if not base.cells_mask(low, high, self.subject.pairs) & self.bit:
            return []
        return [Resource(name, literal=True, number=base.resource_of(low), touched=None)]

    def _prefixes(self, resource_type: int, name: str) -> Iterable[Resource]:
        """Return the prefixes of a name with such an ACL, longest first."""
        index, base, subject, bit = self.index, self.index.base, self.subject, self.bit
        if index.overlay.lengths[resource_type]:
            return filter(self._has, index.prefixes(resource_type, name))
        _, _, node, _ = base.lookup(resource_type, name)
        prefixes = base.prefixes
        found = []
        # The mask of a chain covers all shorter prefixes: without the bit, the rest of the chain can be skipped.
        while node >= 0 and base.chain_mask(subject, node) & bit:
            number = prefixes.resources[node]
            if base.cells_mask(*base.cells(number), subject.pairs) & bit:
                found.append(Resource(prefixes.name(node).decode(), literal=False, number=number, touched=None))
            node = prefixes.parents[node]
        return found

    def _wildcard(self, resource_type: int) -> list[Resource]:
        index = self.index
        untouched = index.overlay.wildcards[resource_type] is None
        if untouched and not index.base.wildcard_mask(self.subject, resource_type) & self.bit:
            return []
        wildcard = index.literal(resource_type, WILDCARD)
        return [wildcard] if self._has(wildcard) else []

    def _has(self, resource: Resource) -> bool:
        if resource.touched is None:
            base = self.index.base
            return bool(base.cells_mask(*base.cells(resource.number), self.subject.pairs) & self.bit)
        return bool(self._rows(resource) or self._records(resource))

    def _rows(self, resource: Resource) -> list[tuple[int, int]]:
        """Return (cell, row) of such ACLs in the base."""
        base, removed, bit = self.index.base, self.index.overlay.removed, self.bit
        return [
            (cell, row)
            for pair in self.subject.pairs
            for cell in range(*base.cell(resource.number, pair))
            for row in base.rows(cell, cell + 1)
            if rule_mask(base.operations[row], base.permissions[row]) & bit and row not in removed
        ]

    def _records(self, resource: Resource) -> list[AccessControlEntryRecord]:
        """Return the records of such ACLs in the overlay."""
        if resource.touched is None:
            return []
        cells = resource.touched.cells
        of_subject = (cells[key].added for key in self.subject.keys if key in cells)
        return [
            record
            for added in of_subject
            for record in added
            if rule_mask(record.operation, record.permission_type) & self.bit
        ]
