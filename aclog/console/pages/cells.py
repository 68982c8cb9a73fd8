"""Cells, columns and rows that several pages have."""

from collections.abc import Iterable, Sequence

from attrs import evolve

from aclog.analysis.answers.permission_report import all_of
from aclog.analysis.regions.principals import Principals
from aclog.authorizer.acl import (
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    code_name,
)
from aclog.authorizer.origin import Origins, places_text
from aclog.console.findings.looked import Uses
from aclog.console.pages.asked import OPERATIONS, PATTERNS, PERMISSIONS, RULE_OPERATIONS, TYPES, name_parameters, url
from aclog.console.pages.page import Cell, Column, Field, Kind, Mark, Row, Table

ANY = ("", "any")
PRINCIPALS = "User:alice"
"""An example of one, for hints."""
PAGE_ROWS = 200
"""Rows of a table that are shown at once."""


def principal_cell(principal: str, as_of: str | None = None) -> Cell:
    """Return a principal with the way to all that it may do."""
    return Cell(principal, url("/principal", name=principal, as_of=as_of))


def principals_cell(principals: Principals, as_of: str | None = None) -> Cell:
    """Return a set of principals, with a link if it is one."""
    if not principals.complement and len(principals.named) == 1:
        return principal_cell(principals.named[0], as_of)
    return Cell(all_of(principals))


def resource_url(
    resource_type: int, name: str, pattern_type: int = PatternType.LITERAL, as_of: str | None = None
) -> str:
    """Return the way to everybody who can do something with what a rule is on; LITERAL `*` is every name."""
    if name == WILDCARD and pattern_type == PatternType.LITERAL:
        return url("/resource", type=code_name(ResourceType, resource_type), name=name, as_of=as_of)
    pattern = ResourcePattern(resource_type=resource_type, name=name, pattern_type=pattern_type)
    return url("/resource", **name_parameters(pattern), as_of=as_of)


def resource_cell(acl: StandardAcl, as_of: str | None = None) -> Cell:
    """Return the name, or the prefix, that a rule is for; its pattern type stands beside it."""
    return Cell(
        acl.resource_name,
        resource_url(acl.resource_type, acl.resource_name, acl.pattern_type, as_of),
    )


def permission_cell(permission: int) -> Cell:
    """Return ALLOW or DENY."""
    mark = Mark.DENY if permission == AclPermissionType.DENY else Mark.ALLOW
    return Cell(code_name(AclPermissionType, permission), mark=mark)


RULE_COLUMNS = (
    Column(key="permissionType", title="Permission"),
    Column(key="principal", title="Principal"),
    Column(key="operation", title="Operation"),
    Column(key="resourceType", title="Type"),
    Column(key="resourceName", title="Resource"),
    Column(key="patternType", title="Pattern"),
    Column(key="host", title="Host"),
)
"""Of a rule."""


def rule_cells(acl: StandardAcl, as_of: str | None = None) -> tuple[Cell, ...]:
    """Return the cells of a rule, under RULE_COLUMNS."""
    return (
        permission_cell(acl.permission_type),
        principal_cell(acl.principal, as_of),
        Cell(code_name(AclOperation, acl.operation)),
        Cell(code_name(ResourceType, acl.resource_type)),
        resource_cell(acl, as_of),
        Cell(code_name(PatternType, acl.pattern_type)),
        Cell(acl.host),
    )


_PLACE = Column(key="place", title="Stands in")
_USE = Column(key="use", title="Use")


def rule_columns(
    origins: Origins, rules: Iterable[StandardAclWithId], *, uses: Uses | None = None
) -> tuple[Column, ...]:
    """Return RULE_COLUMNS, where the rules stand if any of them says so, and their use if anybody knows of any."""
    stands = any(origins.of(rule.acl) for rule in rules)
    return (*RULE_COLUMNS, *((_PLACE,) if stands else ()), *((_USE,) if uses is not None else ()))


def rule_row(
    rule: StandardAclWithId,
    columns: Sequence[Column],
    origins: Origins,
    as_of: str | None = None,
    *,
    uses: Uses | None = None,
) -> Row:
    """Return the row of a rule."""
    acl = rule.acl
    cells = rule_cells(acl, as_of)
    if _PLACE in columns:
        cells = (*cells, Cell(places_text(acl, origins).strip(" ()")))
    if _USE in columns:
        cells = (*cells, use_cell(acl, uses))
    return Row(key=repr(acl), cells=cells, mark=Mark.DENY if acl.permission_type == AclPermissionType.DENY else None)


def rule_table(
    found: Sequence[StandardAclWithId],
    origins: Origins,
    *,
    key: str,
    title: str,
    none: str,
    as_of: str | None = None,
    uses: Uses | None = None,
    first: int = 0,
) -> Table:
    """Return a table of rules, those from `first` on, as many as are shown at once; it does not say which."""
    shown = found[first : first + PAGE_ROWS]
    columns = rule_columns(origins, shown, uses=uses)
    rows = tuple(rule_row(rule, columns, origins, as_of, uses=uses) for rule in shown)
    return Table(key=key, title=title, columns=columns, rows=rows, none=none, total=len(found))


def cut(table: Table) -> Table:
    """Return a table that says that its rows are the first, if they are not all."""
    total = table.total or 0
    return evolve(table, note=f"the first {PAGE_ROWS} of {total:,}") if total > len(table.rows) else table


def use_cell(acl: StandardAcl, uses: Uses | None) -> Cell:
    """Return what accesses say of a rule; what nobody knows does not look like a rule that is used."""
    use = None if uses is None else uses.of(acl)
    if use is None:
        return Cell("not known", mark=Mark.QUIET)
    if use.is_unused:
        return Cell(use.text, url("/findings", kind="unused", principal=acl.principal), mark=Mark.UNUSED)
    return Cell(use.text)


def choice_of_operation(value: str, *, of_rules: bool = False) -> Field:
    """Return the field in which an operation is chosen."""
    known = RULE_OPERATIONS if of_rules else OPERATIONS
    choices = (ANY, *((each.name, each.name) for each in known))
    return Field(name="operation", label="Operation", value=value, kind=Kind.CHOICE, choices=choices)


def choice_of_type(value: str, *, any_type: bool = True) -> Field:
    """Return the field in which a resource type is chosen."""
    choices = ((ANY,) if any_type else ()) + tuple((each.name, each.name) for each in TYPES)
    return Field(name="type", label="Type", value=value, kind=Kind.CHOICE, choices=choices)


def choice_of_pattern(value: str, *, default: str = "any") -> Field:
    """Return the field in which a pattern type is chosen."""
    choices = (("", default), *((each.name, each.name) for each in PATTERNS))
    return Field(name="pattern", label="Pattern", value=value, kind=Kind.CHOICE, choices=choices)


def choice_of_permission(value: str) -> Field:
    """Return the field in which a permission is chosen."""
    choices = (ANY, *((each.name, each.name) for each in PERMISSIONS))
    return Field(name="permission", label="Permission", value=value, kind=Kind.CHOICE, choices=choices)


def as_of_field(value: str) -> Field:
    """Return the field for a moment of the past."""
    return Field(name="as_of", label="As of", value=value, hint="now; or an offset, or a time such as 2026-03-01")


def paged(table: Table, first: int, path: str, **asked: object) -> Table:
    """Return a table with the ways to its other parts; its rows are those from `first` on."""
    total = table.total if table.total is not None else len(table.rows)
    last = first + len(table.rows)
    pages = []
    if first > 0:
        pages.append(Cell("previous", url(path, **asked, first=max(first - PAGE_ROWS, 0))))
    if last < total:
        pages.append(Cell("next", url(path, **asked, first=last)))
    note = table.note
    if len(table.rows) < total:
        shown = f"rows {first + 1:,} to {last:,} of {total:,}" if table.rows else f"no row after {total:,}"
        note = f"{shown}; {note}" if note else shown
    return evolve(table, pages=tuple(pages), note=note, total=total)
