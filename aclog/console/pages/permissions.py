"""Tables of what is allowed, and by which rules."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from attrs import evolve

from aclog.analysis.answers.permissions import SUPER_USER, Permission
from aclog.analysis.regions.principals import only
from aclog.analysis.regions.region_text import hosts_text, names_text, operations_text
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, ResourceType, StandardAcl, acl_text, code_name
from aclog.authorizer.origin import Origins, places_text
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
    """Return permissions as a table, a row for each principal that is named; super users last."""
    ordered = sorted(found, key=lambda each: each.rules == (SUPER_USER,))
    total = sum(1 if each.region.principals.complement else len(each.region.principals.named) for each in ordered)
    each_of_one = (one for each in ordered for one in of_each_principal(each))
    rows = tuple(permission_row(each, origins, as_of) for each in islice(each_of_one, PAGE_ROWS))
    note = f"the first {PAGE_ROWS} of {total:,}: the command line shows all" if total > len(rows) else ""
    return Table(key=key, title=title, columns=COLUMNS, rows=rows, none=none, total=total, note=note)


def of_each_principal(permission: Permission) -> Iterator[Permission]:
    """Yield a permission for each principal that it names, with the rules that are for it; else itself."""
    principals = permission.region.principals
    if principals.complement or len(principals.named) == 1:
        yield permission
        return
    for name in principals.named:
        yield evolve(
            permission,
            region=evolve(permission.region, principals=only(name)),
            rules=tuple(rule for rule in permission.rules if isinstance(rule, str) or _is_for(rule, name)),
            denies=tuple(rule for rule in permission.denies if _is_for(rule, name)),
        )


def _is_for(rule: StandardAcl, principal: str) -> bool:
    # A rule whose principal has no colon makes Kafka's authorizer throw, for everybody.
    return rule.principal in (principal, WILDCARD_PRINCIPAL) or ":" not in rule.principal


def permission_row(permission: Permission, origins: Origins, as_of: str = "") -> Row:
    """Return a permission: who, what, on what, from where, and why."""
    region = permission.region
    kind = code_name(ResourceType, region.resource_type)
    names = "" if region.resource_type == ResourceType.CLUSTER else f" {names_text(region.names)}"
    extent = "" if permission.extent is None else f" ({permission.extent.text})"
    cells = (
        principals_cell(region.principals, as_of),
        Cell(operations_text(region.operations)),
        Cell(f"{kind}{names}{extent}"),
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
