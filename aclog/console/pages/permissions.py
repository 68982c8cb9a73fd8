"""Tables of what is allowed, and by which rules."""

from collections.abc import Iterable, Sequence

from aclog.analysis.answers.permissions import SUPER_USER, Permission
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.region_text import hosts_text, names_text, operations_text
from aclog.authorizer.acl import AclPermissionType, ResourceType, StandardAcl, acl_text, code_name
from aclog.authorizer.origin import Origins, places_text
from aclog.console.pages.asked import url
from aclog.console.pages.cells import PAGE_ROWS, principals_cell
from aclog.console.pages.page import Cell, Column, Mark, Row, Table

_RULES = 6
"""Rules that a cell names."""
COLUMNS = (
    Column(key="who", title="Who"),
    Column(key="operations", title="May"),
    Column(key="resource", title="On"),
    Column(key="hosts", title="From"),
    Column(key="why", title="Because of"),
    Column(key="denies", title="Less what is denied by"),
)


def permission_table(
    found: Iterable[Permission], origins: Origins, *, key: str, title: str, none: str, as_of: str = ""
) -> Table:
    """Return permissions as a table; super users last."""
    ordered = sorted(found, key=lambda each: each.rules == (SUPER_USER,))
    rows = tuple(permission_row(each, origins, as_of) for each in ordered[:PAGE_ROWS])
    left = len(ordered) - len(rows)
    note = f"the first {PAGE_ROWS} of {len(ordered):,}: the command line shows all" if left else ""
    return Table(key=key, title=title, columns=COLUMNS, rows=rows, none=none, total=len(ordered), note=note)


def permission_row(permission: Permission, origins: Origins, as_of: str = "") -> Row:
    """Return a permission: who, what, on what, from where, and why."""
    region = permission.region
    kind = code_name(ResourceType, region.resource_type)
    names = "" if region.resource_type == ResourceType.CLUSTER else f" {names_text(region.names)}"
    cells = (
        principals_cell(region.principals, as_of),
        Cell(operations_text(region.operations)),
        Cell(f"{kind}{names}"),
        Cell(hosts_text(region.hosts)),
        Cell(rules_text(permission.rules, origins), mark=Mark.ALLOW),
        Cell(rules_text(permission.denies, origins), mark=Mark.DENY if permission.denies else None),
    )
    return Row(key=repr(region), cells=cells)


def rules_text(rules: Sequence[StandardAcl | str], origins: Origins) -> str:
    """Return rules in a line, and how many more there are."""
    texts = [each if isinstance(each, str) else acl_text(each) + places_text(each, origins) for each in rules[:_RULES]]
    more = len(rules) - len(texts)
    return "; ".join(texts) + (f"; and {more:,} more" if more else "")


def why_url(principal: str, operation: int, resource_type: int, name: str, as_of: str = "") -> str:
    """Return the way to why a request is decided as it is."""
    first = next(iter(operations_of(1 << operation)))
    return url(
        "/why",
        principal=principal,
        operation=first.name,
        type=code_name(ResourceType, resource_type),
        name=name,
        as_of=as_of,
    )


def denies(rules: Iterable[StandardAcl]) -> list[StandardAcl]:
    """Return those that deny."""
    return [each for each in rules if each.permission_type == AclPermissionType.DENY]
