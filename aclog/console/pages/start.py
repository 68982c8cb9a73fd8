"""The first page: what the rules are, what changed, and what needs attention."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import nsmallest

from attrs import evolve

from aclog.analysis.lint.finding import Severity
from aclog.authorizer.acl import AclBindingFilter, acl_text, code_name
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, AclPermissionType, ResourceType
from aclog.console.findings import Item, Kind, LookResult
from aclog.console.pages.lists import branch_tables
from aclog.console.pages.page import (
    SEVERITIES,
    SEVERITY_MARKS,
    Bar,
    Cell,
    Chart,
    Column,
    Facts,
    Links,
    Page,
    Parameters,
    Part,
    Row,
    Table,
    principal_cell,
    rule_url,
    url,
)
from aclog.console.pages.span import CHANGES, begin_text, day_url, latest_table
from aclog.console.pages.states import DAY_MS, Console, History, NotReadyError, State
from aclog.metalog.errors import plural
from aclog.metalog.primitives import current_time_ms

PATH = "/"
_ROWS, _FINDINGS, _CHANGES = 10, 5, 10
"""The most rows of each table here."""
_DAYS = 90
_ADMIN = (AclOperation.ALTER, AclOperation.ALL)
_UNKNOWN = "unknown"
_WITHOUT_USE = "rules without a use"


def start_page(console: Console, parameters: Parameters) -> Page:
    """Return the first page: figures, changes over time, findings, and where the rules are."""
    as_of = parameters.word("as_of")
    state = console.states.at(as_of)
    listing = state.listing
    parts: list[Part] = [_tiles(console, state, as_of)]
    is_settled = True
    if console.history is not None and not as_of:
        is_settled = _add_history(console.history, state, parts)
    if console.lookout is not None and not as_of:
        parts.insert(2, _findings(console))
    parts.insert(1, _questions(console, as_of))
    parts += [*branch_tables(state, _ROWS, as_of), _principals(state, as_of)]
    return Page(
        path=PATH,
        title="aclog",
        answer=f"{plural(len(listing), 'rule')} for {plural(len(listing.principals), 'principal')}",
        parts=tuple(parts),
        offset=state.offset,
        is_settled=is_settled,
    )


# Tiles: figures, each with the page behind it.


def _tiles(console: Console, state: State, as_of: str) -> Facts:
    listing = state.listing
    kinds = ", ".join(f"{count:,} on {code_name(ResourceType, kind)}" for kind, count in listing.types.items())
    everyone = sum(
        rule.acl.permission_type == AclPermissionType.ALLOW
        for rule in state.policy.acls.matching(AclBindingFilter(principal=WILDCARD_PRINCIPAL))
    )
    open_url = url("/rules", principal=WILDCARD_PRINCIPAL, permission="ALLOW", as_of=as_of)
    items = [
        ("ACLs", _tile(len(listing), kinds or "no rules", url("/rules", as_of=as_of))),
        ("Principals", _tile(len(listing.principals), "named in rules", url("/principal", as_of=as_of))),
        ("Open to everyone", _tile(everyone, "ALLOW rules for User:*", open_url)),
    ]
    if console.own is None:
        items += [("Admins", _admins(state, as_of)), *(() if as_of else _scanned(console))]
    return Facts(key="tiles", title="Overview", items=tuple(items), is_tiles=True)


def _tile(value: int | str, note: str, address: str | None = None) -> Cell:
    return Cell(f"{value:,}" if isinstance(value, int) else value, address, others=(Cell(note),))


def _admins(state: State, as_of: str) -> Cell:
    """Return how many principals may alter the cluster, by a rule or as super users."""
    named = {
        rule.acl.principal
        for key in state.listing.on_type(ResourceType.CLUSTER)
        for rule in (state.listing.rule(key),)
        if rule.acl.permission_type == AclPermissionType.ALLOW and rule.acl.operation in _ADMIN
    }
    supers = state.policy.settings.super_users
    note = "rules allow ALTER on the cluster" + (f"; {plural(len(supers), 'super user')}" if supers else "")
    if state.premises.unknown:
        note += "; super users may be unknown"
    return _tile(len(named | supers), note, url("/resource", type="CLUSTER", operation="ALTER", as_of=as_of))


def _scanned(console: Console) -> Iterator[tuple[str, Cell]]:
    """Yield the tiles of findings; what was not scanned is unknown, never none."""
    if console.lookout is None:
        return
    for kind, title in ((Kind.UNUSED, "Unused"), (Kind.LINT, "Lint findings")):
        look = console.lookout.last_look(kind)
        address = url("/findings", kind=kind.value)
        if look is None or look.result is None:
            yield title, _tile(_UNKNOWN, console.lookout.lacking.get(kind, "being scanned"), address)
            continue
        items = look.result.items
        if kind is Kind.UNUSED:
            yield title, _unused(look.result, address)
            continue
        errors = sum(item.severity is Severity.ERROR for item in items)
        yield title, _tile(len(items), plural(errors, "error"), address)


def _unused(result: LookResult, address: str) -> Cell:
    """Return how many rules are unused, and how many are not judged, with the most frequent reason."""
    unused, by_rule = len(result.items), {} if result.uses is None else result.uses.by_rule
    reasons = Counter(use.why for use in by_rule.values() if not use.is_unused)
    unjudged = sum(reasons.values())
    if not unjudged:
        return _tile(unused, _WITHOUT_USE, address)
    why = reasons.most_common(1)[0][0]
    if not unused:  # "0" could be taken for "all are used"
        return _tile(f"{unjudged:,} not judged", why, address)
    return _tile(unused, f"{_WITHOUT_USE}; {unjudged:,} not judged: {why}", address)


# Changes over the last days, and the newest ones.


def _add_history(history: History, state: State, parts: list[Part]) -> bool:
    """Append the chart and the newest changes; return whether they are of the newest state."""
    try:
        current = history.current(state.offset)
    except NotReadyError:
        return False
    timeline = current.timeline
    days, today = history.index.days(timeline), current_time_ms() // DAY_MS
    bars = tuple(_bar(day, days.get(day, (0, 0))) for day in range(today - _DAYS + 1, today + 1))
    begin = begin_text(current)
    parts.append(Chart(key="activity", title=f"Rule changes of the last {_DAYS} days", bars=bars, note=begin))
    pairs, unknown = history.with_applies(timeline, max(len(timeline) - _CHANGES, 0), len(timeline))
    none = "No rule changes in the known history."
    table = latest_table(timeline, list(reversed(pairs)), title="Last changes", none=none)
    pages = (Cell("all changes", url(CHANGES)),)
    parts.append(evolve(table, total=len(timeline), note=unknown if pairs else "", pages=pages))
    return timeline.end >= state.offset and not current.is_reading


def _bar(day: int, counts: tuple[int, int]) -> Bar:
    begin, (added, removed) = day * DAY_MS, counts
    label = f"{datetime.fromtimestamp(begin // 1000, UTC):%Y-%m-%d}"
    return Bar(label=label, added=added, removed=removed, url=day_url(begin) if added or removed else None)


# Findings, questions, and where the rules are.


def _findings(console: Console) -> Table:
    """Return the most severe findings; those of kinds that were not scanned are unknown."""
    items: list[Item] = []
    unknown = []
    assert console.lookout is not None  # noqa: S101 - checked by the caller
    for kind in Kind:
        look = console.lookout.last_look(kind)
        if look is not None and look.result is not None:
            items += look.result.items
        else:
            unknown.append(kind.value)
    items.sort(key=lambda item: SEVERITIES.index(item.severity))
    rows = tuple(
        Row(
            key=item.key,
            cells=(
                Cell(item.severity.value, mark=SEVERITY_MARKS[item.severity]),
                Cell(item.name, url("/findings", kind=item.kind.value, q=item.name)),
                _subject(item),
            ),
        )
        for item in items[:_FINDINGS]
    )
    caption = f"the first {_FINDINGS} of {len(items):,}" if len(items) > _FINDINGS else ""
    return Table(
        key="attention",
        title="Findings that matter",
        columns=(
            Column(key="severity", title="Severity"),
            Column(key="finding", title="Finding"),
            Column(key="rule", title="Rule"),
        ),
        rows=rows,
        none="No findings." if not unknown else "No findings in what was scanned.",
        total=len(items),
        note="; ".join(filter(None, (caption, f"unknown: {', '.join(unknown)}" if unknown else ""))),
        pages=(Cell("all findings", url("/findings")),),
    )


def _subject(item: Item) -> Cell:
    """Return the first rule of a finding, or its text."""
    if not item.rules:
        return Cell(item.text.partition("\n")[0])
    acl = item.rules[0].acl
    return Cell(acl_text(acl), rule_url(acl))


def _questions(console: Console, as_of: str) -> Links:
    ways = [
        ("Why is a request denied?", url("/why", as_of=as_of)),
        ("Who has access to a resource?", url("/resource", as_of=as_of)),
        *([("Is a rule used?", url("/rules"))] if console.uses is not None and not as_of else []),
    ]
    if console.own is None:
        ways += [
            ("What changed last night?", url(CHANGES, since="yesterday 18:00", as_of=as_of)),
            ("When was a request allowed, and what ended it?", url("/when")),
            ("What would a change grant or revoke?", url("/draft")),
            ("Which rules are unused?", url("/findings", kind="unused")),
            ("Which findings are new?", url("/findings", kind="new")),
        ]
    return Links(key="questions", title="Questions", links=tuple(Cell(*way) for way in ways))


def _principals(state: State, as_of: str) -> Table:
    counts = state.listing.principals
    principals = nsmallest(_ROWS, counts.items(), key=lambda item: (-item[1], item[0]))
    return Table(
        key="principals",
        title="Principals with most rules",
        columns=(Column(key="principal", title="Principal"), Column(key="rules", title="Rules", is_number=True)),
        rows=tuple(
            Row(
                key=name,
                cells=(principal_cell(name, as_of), Cell(f"{count:,}", url("/rules", principal=name, as_of=as_of))),
            )
            for name, count in principals
        ),
        none="No principals in rules.",
        total=len(counts),
        note=f"the {_ROWS} with most of {len(counts):,}" if len(counts) > _ROWS else "",
        pages=(Cell("all principals", url("/principal", as_of=as_of)),),
    )
