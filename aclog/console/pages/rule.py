"""The page of a rule: whether it is used, since when it is in force, its findings, and what its removal would do."""

from collections.abc import Iterator, Sequence

from attrs import evolve

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, acl_text, places_text
from aclog.authorizer.codes import ResourceType
from aclog.console.findings import Kind
from aclog.console.listing import pattern_text
from aclog.console.pages.page import (
    PAGE_ROWS,
    SEVERITIES,
    SEVERITY_MARKS,
    Cell,
    Column,
    Facts,
    Links,
    Mark,
    Page,
    Parameters,
    Row,
    Table,
    cell_of_lines,
    draft_url,
    principal_cell,
    resource_url,
    url,
)
from aclog.console.pages.span import added_items, is_settled, known_history, latest_table, without_rule
from aclog.console.pages.states import Console, State

RULES_PATH = "/rules"
_FIELDS = ("principal", "resource", "type", "pattern", "operation", "permission", "host")
"""The parameters that state a rule."""
_LATEST = 10
"""The most changes of the rule that its page has."""


def stated_rule(parameters: Parameters) -> StandardAcl | None:
    """Return the rule whose parts all are in a filter; None: a part is open. Raises BadParameterError: no such part."""
    kind, pattern = parameters.resource_type(), parameters.pattern_type()
    operation, permission = parameters.operation(), parameters.permission()
    if not all(map(parameters.text, _FIELDS)) or parameters.word("q"):
        return None
    if kind is None or pattern is None or operation is None or permission is None:
        return None
    return StandardAcl(
        resource_type=kind,
        resource_name=parameters.text("resource"),
        pattern_type=pattern,
        principal=parameters.text("principal"),
        host=parameters.text("host"),
        operation=operation,
        permission_type=permission,
    )


def is_in(acl: StandardAcl, state: State) -> bool:
    """Return whether a state has a rule, as far as the viewer sees it."""
    return next(state.image.acls.matching(AclBindingFilter.of(acl)), None) is not None  # it may have no id


def rule_page(console: Console, state: State, acl: StandardAcl, parameters: Parameters) -> Page:
    """Return the page of a rule of a state."""
    as_of = parameters.word("as_of")
    has_it = is_in(acl, state)
    answer, mark = _use(console, acl, as_of) if has_it else ("No such rule in this state.", Mark.QUIET)
    return Page(
        path=RULES_PATH,
        title=acl_text(acl),
        answer=answer,
        mark=mark,
        parts=(
            *((_facts(console, state, acl),) if has_it else ()),
            _ways(console, acl, as_of, has_it=has_it),
            *(() if as_of else (*_findings(console, acl), *_changes(console, acl))),
        ),
        offset=state.offset,
        is_settled=is_settled(console, state.offset),
    )


def _use(console: Console, acl: StandardAcl, as_of: str) -> tuple[str, Mark | None]:
    """Return whether the rule is used, with the period of the accesses; what is not known is not "not used"."""
    lookout, uses = console.lookout, console.uses
    if as_of:
        return "The use of a rule is known of the newest state only.", Mark.QUIET
    if uses is None:
        if lookout is None or console.own is not None:
            return "Its use is not shown here.", Mark.QUIET
        look = lookout.last_look(Kind.UNUSED)
        error = None if look is None else look.error
        why = f"the scan failed: {error}" if error else lookout.lacking.get(Kind.UNUSED, "being scanned")
        return f"Use unknown: {why}.", Mark.QUIET
    use = uses.of(acl)
    if use is None:
        return "Use unknown: the accesses were counted before this rule was added.", Mark.QUIET
    period = f" from {uses.since[:10]} to {uses.until[:10]}" if use.verdict != "Used" and uses.since else ""
    answer = f"{use.verdict}{period}: {use.detail or use.text}."
    if use.is_unused:
        return answer, Mark.WARNING
    return answer, Mark.GOOD if use.verdict == "Used" else Mark.QUIET


def _facts(console: Console, state: State, acl: StandardAcl) -> Facts:
    items = added_items(console, state, acl)
    if place := places_text(acl, console.origins).strip(" ()"):
        items.append(("Location", Cell(place)))
    if console.uses is not None and not state.as_of:
        notes = tuple(Cell(note) for note in console.uses.notes)
        items.append(("Accesses", Cell(console.uses.window, others=notes)))
    return Facts(key="rule", title="This rule", items=tuple(items))


def _ways(console: Console, acl: StandardAcl, as_of: str, *, has_it: bool) -> Links:
    resource = (
        "the cluster"
        if acl.resource_type == ResourceType.CLUSTER
        else pattern_text(acl.resource_name, acl.pattern_type)
    )
    who = resource_url(acl.resource_type, acl.resource_name, acl.pattern_type, as_of)
    principal = principal_cell(acl.principal, as_of)
    ways = [Cell(f"who can access {resource}", who), evolve(principal, text=f"what can {principal.text} do")]
    if console.own is None:
        draft = "what would its removal change" if has_it else "what would this rule change"
        ways.append(Cell(draft, draft_url(acl, added=not has_it)))
    ways.append(Cell("all rules", url(RULES_PATH, as_of=as_of)))
    return Links(key="further", title="Further", links=tuple(ways))


def _findings(console: Console, acl: StandardAcl) -> Iterator[Table]:
    """Yield the findings about the rule, if it has any."""
    if console.lookout is None or console.own is not None:
        return
    items = [
        item
        for look in map(console.lookout.last_look, Kind)
        if look is not None and look.result is not None
        for item in look.result.items
        if any(each.acl == acl for each in item.rules)
    ]
    items.sort(key=lambda item: SEVERITIES.index(item.severity))
    if items:
        yield Table(
            key="findings",
            title="Findings about this rule",
            columns=(
                Column(key="severity", title="Severity"),
                Column(key="finding", title="Finding"),
                Column(key="text", title="Meaning"),
            ),
            rows=tuple(
                Row(
                    key=item.key,
                    cells=(
                        Cell(item.severity.value, mark=SEVERITY_MARKS[item.severity]),
                        Cell(item.name, url("/findings", kind=item.kind.value, q=item.name)),
                        cell_of_lines(item.text.split("\n")),
                    ),
                )
                for item in items[:PAGE_ROWS]
            ),
            none="",
            total=len(items),
        )


def _changes(console: Console, acl: StandardAcl) -> Iterator[Table]:
    """Yield the changes of the rule itself, if any are known."""
    history, current = console.history, known_history(console)
    if history is None or current is None:
        return
    timeline = current.timeline
    positions: Sequence[int] = history.index.positions(timeline, acl)
    if positions:
        changes = history.at_positions(timeline, positions[-_LATEST:])
        table = without_rule(latest_table(timeline, changes, title="Changes of this rule", none=""))
        cut = f"the last {_LATEST} of {len(positions):,}" if len(positions) > _LATEST else ""
        yield evolve(table, total=len(positions), note=cut)
