"""Rules by name: the one that determines an answer, and all that take part in it, in the order Kafka visits them."""

from collections.abc import Iterator

from authorizer.acl import AclPermissionType, StandardAclWithId
from authorizer.errors import InvalidRequestError
from authorizer.index import order
from authorizer.index.base import Subject
from authorizer.index.deciding import Resource, State
from authorizer.index.keys import utf16
from authorizer.index.masks import ALLOWED, DENIED, known_operation, known_pattern, known_permission, rule_mask
from authorizer.index.overlay import rule_of


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
    last = [levels.star, levels.empty]
    if all(last) and order.empty_comes_first(state, resource_type, name):
        last.reverse()
    for level in (*levels.others, *last):
        yield from sorted((rule for resource in level for rule in rules_of(state, resource)), key=visit_key)


def matches(rule: StandardAclWithId, operation: int) -> bool:
    """Whether a rule that is for the subject speaks of the operation."""
    return bool(rule_mask(rule.acl.operation, rule.acl.permission_type) >> operation & (ALLOWED | DENIED))


def determining(
    state: State, subject: Subject, operation: int, resource_type: int, name: str, *, star_always: bool
) -> StandardAclWithId | None:
    """The rule that Kafka names: the first that denies, else the last that allows, else None."""

    def matching(level: list[Resource], *, allow: bool) -> list[StandardAclWithId]:
        rules = (rule for resource in level for rule in rules_of(state, resource, subject))
        is_wanted = (
            rule
            for rule in rules
            if (rule.acl.permission_type == AclPermissionType.ALLOW) is allow and matches(rule, operation)
        )
        return sorted(is_wanted, key=visit_key)

    levels = state.levels(resource_type, name, star_always=star_always)
    for level in levels.others:
        if denying := matching(level, allow=False):
            return denying[0]
    star, empty = matching(levels.star, allow=False), matching(levels.empty, allow=False)
    if star or empty:
        if star and empty and order.empty_comes_first(state, resource_type, name):
            return empty[0]
        return (star or empty)[0]
    for level in reversed(order.last_looks(state, levels, resource_type, name)):
        if allowing := matching(level, allow=True):
            return allowing[-1]
    return None


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
