"""Rules by name: the one that determines an answer, and all that take part in it, in the order Kafka visits them."""

from collections.abc import Iterator

from aclog.authorizer.acl import AclPermissionType, StandardAclWithId
from aclog.authorizer.acl_records import rule_of
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index import kafka_scan_order as order
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.decision_mask import Levels, Resource, State
from aclog.authorizer.index.keys import utf16
from aclog.authorizer.index.masks import ALLOWED, DENIED, known_operation, known_pattern, known_permission, rule_mask
from aclog.authorizer.index.subject_rules import Said


def visit_key(rule: StandardAclWithId) -> tuple[int, int, bytes, bytes, int]:
    """The order of the rules on one name (StandardAcl.compareTo)."""
    acl = rule.acl
    return (
        known_pattern(acl.pattern_type),
        known_operation(acl.operation),
        utf16(acl.principal),
        utf16(acl.host),
        known_permission(acl.permission_type),
    )


def rules_of(state: State, resource: Resource, subject: Subject | None = None) -> Iterator[StandardAclWithId]:
    """The rules of a resource, in no order; with a subject, only those on its pairs."""
    base, removed = state.base, state.overlay.removed
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


def candidates(state: State, resource_type: int, name: str, *, star_always: bool) -> Iterator[StandardAclWithId]:
    """Every rule on a name, whomever it is for, in the order in which Kafka first looks at them."""
    levels = state.levels(resource_type, name, star_always=star_always)
    for level in (*levels.others, *_last_levels(state, levels, resource_type, name)):
        yield from sorted((rule for resource in level for rule in rules_of(state, resource)), key=visit_key)


def matches(rule: StandardAclWithId, operation: int) -> bool:
    """Whether a rule that is for the subject speaks of the operation."""
    return bool(rule_mask(rule.acl.operation, rule.acl.permission_type) >> operation & (ALLOWED | DENIED))


def determining(
    state: State, subject: Subject, operation: int, resource_type: int, name: str, *, star_always: bool
) -> StandardAclWithId | None:
    """The rule that Kafka names: the first that denies, else the last that allows, else None."""
    mask = state.mask(subject, resource_type, name, star_always)
    if mask & DENIED << operation:
        denying = Said(state, subject, DENIED << operation)
        levels = denying.levels(resource_type, name, star_always=star_always)
        looks = [*levels.others, *_last_levels(state, levels, resource_type, name)]
        return min(denying.rules(next(filter(None, looks))), key=visit_key)
    if mask & ALLOWED << operation:
        allowing = Said(state, subject, ALLOWED << operation)
        levels = allowing.levels(resource_type, name, star_always=star_always)
        looks = order.last_looks(state, levels, resource_type, name)
        return max(allowing.rules(next(filter(None, reversed(looks)))), key=visit_key)
    return None


def _last_levels(state: State, levels: Levels, resource_type: int, name: str) -> list[list[Resource]]:
    """LITERAL `*` and the empty prefix, in the order in which Kafka first looks at them."""
    last = [levels.star, levels.empty]
    if all(last) and order.empty_comes_first(state, resource_type, name):
        last.reverse()
    return last


def check_principals(
    state: State, subject: Subject, operation: int, resource_type: int, name: str, *, star_always: bool
) -> None:
    """Look at the rules on a name one by one, as Kafka does, up to the first that denies.

    Raises:
        InvalidRequestError: one of them has a principal without a colon, on which Kafka's authorizer throws.

    """
    for rule in candidates(state, resource_type, name, star_always=star_always):
        acl = rule.acl
        if ":" not in acl.principal:
            raise InvalidRequestError(f"a rule on the resource has principal {acl.principal!r}: expected Type:name")
        denies = acl.permission_type != AclPermissionType.ALLOW
        if denies and (acl.principal, acl.host) in subject.keys and matches(rule, operation):
            return
