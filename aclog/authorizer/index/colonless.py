"""ACLs whose principal has no colon, on which Kafka's authorizer throws when its scan comes to one.

CreateAcls refuses them, so hardly any log has one. But one is enough to ask, at each decision, whether Kafka would
throw: whether its scan comes to such an ACL before the first DENY that matches.
"""

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from aclog.authorizer.acl import WILDCARD, PatternType, StandardAcl
from aclog.authorizer.acl_records import rule_of
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.base import Base, Subject
from aclog.authorizer.index.kafka_scan_order import ScanKey, first_visits, scan_key
from aclog.authorizer.index.keys import resource_name, split_pair
from aclog.authorizer.index.masks import DENIED
from aclog.authorizer.index.overlay import ResourceKey, TouchedResource
from aclog.authorizer.index.subject_rules import SubjectRules

_MAX_PATTERNS = 256
"""With more resource patterns of a type that have such an ACL, none is compared with a name beforehand."""


class Patterns(NamedTuple):
    """The resource patterns of one type in the base that have such an ACL."""

    literal: frozenset[str]
    prefixes: tuple[str, ...]


class Place(NamedTuple):
    """Such an ACL and its place among the ACLs on its name."""

    key: ScanKey
    acl: StandardAcl
    row: int
    """Of the base, or -1."""


def check_principals(
    index: AclIndex, subject: Subject, operation: int, *, resource_type: int, name: str, documented: bool
) -> None:
    """Check the principals of the ACLs that Kafka would visit, up to the first DENY that matches.

    Raises:
        InvalidRequestError: a principal without a colon, on which Kafka's authorizer throws.

    """
    if not index.overlay.colonless and not _may_cover(index.base, resource_type, name):
        return
    levels = index.levels(resource_type, name, documented=documented)
    denying = SubjectRules(index, subject, DENIED << operation)
    for level in first_visits(index, levels, resource_type, name):
        # Not all ACLs of the level are sorted, only those that end the scan: a level may have 100,000.
        places = (place for resource in level for place in _places(index, resource_type, resource))
        odd = min(places, key=attrgetter("key"), default=None)
        denied = min(map(scan_key, denying.rules(level)), default=None)
        if odd is not None and (denied is None or odd.key < denied):
            raise InvalidRequestError(
                f"an ACL on the resource has the principal {odd.acl.principal!r}: expected principalType:principalName"
            )
        if denied is not None:
            return


def of_type(index: AclIndex, resource_type: int) -> Iterator[StandardAcl]:
    """Yield such ACLs on resources of a type."""
    base, overlay = index.base, index.overlay
    for number in base.colonless_resources:
        key = base.resources.key(number)
        if key[0] == resource_type:
            yield from (place.acl for place in _of_base(base, number, key) if place.row not in overlay.removed)
    if overlay.colonless:
        for touched in chain.from_iterable(overlay.touched[2 * resource_type + literal].values() for literal in (0, 1)):
            yield from (place.acl for place in _of_cells(touched))


def _may_cover(base: Base, resource_type: int, name: str) -> bool:
    """Return whether a resource pattern of the base that has such an ACL may cover a name; usually none does."""
    known = base.memo.colonless_patterns.get(resource_type)
    if known is None:
        known = base.memo.colonless_patterns[resource_type] = _patterns(base, resource_type)
    literal, prefixes = known
    return name in literal or WILDCARD in literal or len(prefixes) > _MAX_PATTERNS or name.startswith(prefixes)


def _patterns(base: Base, resource_type: int) -> Patterns:
    keys = [key for key in map(base.resources.key, base.colonless_resources) if key[0] == resource_type]
    literal = frozenset(resource_name(key) for key in keys if key[-1] == PatternType.LITERAL)
    return Patterns(literal, tuple(resource_name(key) for key in keys if key[-1] != PatternType.LITERAL))


def _places(index: AclIndex, resource_type: int, resource: Resource) -> Iterator[Place]:
    base, removed = index.base, index.overlay.removed
    if resource.number in base.colonless_resources:
        key = base.resources.key(resource.number)
        yield from (place for place in _of_base(base, resource.number, key) if place.row not in removed)
    if resource.touched is not None and index.overlay.colonless:
        known: dict[ResourceKey, list[Place]] = index.memo.setdefault("colonless", {})
        resource_key = resource_type, resource.name, resource.literal
        found = known.get(resource_key)
        if found is None:
            found = known[resource_key] = _of_cells(resource.touched)
        yield from found


def _of_base(base: Base, number: int, key: bytes) -> list[Place]:
    """Return those of a resource in the base, found once: its pairs have to be read one by one."""
    known = base.memo.colonless.get(number)
    if known is None:
        known, name = [], resource_name(key)
        for cell in range(*base.cells(number)):
            pair = base.pairs.key(base.cell_pairs[cell])
            if b":" not in pair[: pair[0]] and ":" not in split_pair(pair)[0]:  # the first test is the faster one
                rows = base.rows(cell, cell + 1)
                rules = base.rules(rows, key, name, cell)
                known += [Place(scan_key(rule), rule.acl, row) for row, rule in zip(rows, rules, strict=True)]
        base.memo.colonless[number] = known
    return known


def _of_cells(touched: TouchedResource) -> list[Place]:
    """Return those that were added to a resource."""
    return [
        Place(scan_key(rule), rule.acl, -1)
        for (principal, _), cell in touched.cells.items()
        if ":" not in principal
        for rule in map(rule_of, cell.added)
    ]
