"""ACLs as objects: those of a resource, those that cover a name, and the one that determines a decision."""

from collections.abc import Callable, Iterator

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acl_records import rule_of
from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.kafka_scan_order import first_visits, last_visits, scan_key
from aclog.authorizer.index.masks import ALLOWED, DENIED, rule_mask
from aclog.authorizer.index.subject_rules import SubjectRules


def rules_of(index: AclIndex, resource: Resource, subject: Subject | None = None) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of a resource pattern in no particular order; with a subject, only those that match it."""
    base, removed = index.base, index.overlay.removed
    low, high = base.cells(resource.number)
    cells: Iterator[int] | range = range(low, high)
    if subject is not None:
        found = (base.cell(resource.number, pair) for pair in subject.pairs)
        cells = (cell for cell, end in found if cell < end)
    key = base.resources.key(resource.number) if low < high else b""
    for cell in cells:
        rows = base.rows(cell, cell + 1)
        yield from base.rules(
            [row for row in rows if row not in removed] if removed else rows, key, resource.name, cell
        )
    if resource.touched is not None:
        touched = resource.touched.cells
        keys = touched.keys() if subject is None else [key for key in subject.keys if key in touched]
        for pair in keys:
            yield from map(rule_of, touched[pair].added)


def candidates(index: AclIndex, resource_type: int, name: str, *, documented: bool) -> Iterator[StandardAclWithId]:
    """Yield every ACL that covers a name, whomever it is for, in the order of Kafka's first visits."""
    levels = index.levels(resource_type, name, documented=documented)
    for level in first_visits(index, levels, resource_type, name):
        yield from sorted((rule for resource in level for rule in rules_of(index, resource)), key=scan_key)


def matches(rule: StandardAclWithId, operation: int) -> bool:
    """Return whether an ACL that matches the subject allows or denies the operation."""
    return bool(rule_mask(rule.acl.operation, rule.acl.permission_type) >> operation & (ALLOWED | DENIED))


def determining(
    index: AclIndex, subject: Subject, operation: int, *, resource_type: int, name: str, documented: bool
) -> StandardAclWithId | None:
    """Return the ACL that Kafka names: the first that denies, else the last that allows, else None."""
    # The mask says whether to look for a DENY or an ALLOW, so only resources with such an ACL are looked at, and of
    # them only the level that Kafka visits first or last.
    mask = index.mask(subject, resource_type, name, documented)
    if mask & DENIED << operation:
        denying = SubjectRules(index, subject, DENIED << operation)
        levels = denying.levels(resource_type, name, documented=documented)
        level = levels.only or next(filter(None, first_visits(index, levels, resource_type, name)))
        return _extreme(min, denying.rules(level))
    if mask & ALLOWED << operation:
        allowing = SubjectRules(index, subject, ALLOWED << operation)
        levels = allowing.levels(resource_type, name, documented=documented)
        if levels.only:
            return _extreme(max, allowing.rules(levels.only))
        for visit in reversed(last_visits(index, levels, resource_type, name)):
            last = max(filter(visit.has, allowing.rules(visit.level)), key=scan_key, default=None)
            if last is not None:
                return last
    return None


def _extreme(first_or_last: Callable[..., StandardAclWithId], rules: Iterator[StandardAclWithId]) -> StandardAclWithId:
    """Return the first (`min`) or last (`max`) of these ACLs on one name; usually there is one."""
    one, *others = rules
    return first_or_last((one, *others), key=scan_key) if others else one
