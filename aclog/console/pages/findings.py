"""The page of findings: all problems of the rules, new ones, and accepted ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from attrs import field

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report import severity_count, suppression_lines
from aclog.authorizer.acl import ChangePlace, StandardAcl, acl_text
from aclog.console.findings import Item, Kind, LastLook, Lookout, Use
from aclog.console.pages.page import (
    PAGE_ROWS,
    SEVERITIES,
    SEVERITY_MARKS,
    BadParameterError,
    Cell,
    Column,
    Facts,
    Field,
    Form,
    Lines,
    Mark,
    Notice,
    Page,
    Parameters,
    Part,
    Row,
    Table,
    cell_of_lines,
    paged,
    rule_url,
    url,
)
from aclog.console.pages.page import Kind as FieldKind
from aclog.console.pages.states import Console, State
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import frozen
from aclog.snapshots.moments import read_moment

PATH = "/findings"
NEW = "new"
_RULES = 3
"""Rules shown per finding; the search finds all its rules."""
_NAMES = {Kind.LINT: "Lint", Kind.UNUSED: "Unused rules", Kind.DRIFT: "Drift", Kind.TESTS: "Failing tests"}
_DAY = timedelta(days=1)
_COLUMNS = (
    Column(key="kind", title="Source"),
    Column(key="severity", title="Severity"),
    Column(key="finding", title="Finding"),
    Column(key="what", title="Meaning"),
    Column(key="rules", title="Rules"),
    Column(key="place", title="Location"),
    Column(key="mend", title="Fix"),
    Column(key="accept", title="Accept"),
)
_ARCHIVED = (
    Column(key="reason", title="Reason"),
    Column(key="expires", title="Until"),
    Column(key="where", title="Says"),
)


@frozen(kw_only=True)
class _Criteria:
    """Which findings are shown."""

    kinds: tuple[Kind, ...]
    severity: str
    principal: str
    text: str

    def matches(self, item: Item) -> bool:
        """Return whether a finding of one of the kinds is shown."""
        return (
            (not self.severity or item.severity.value == self.severity)
            and (not self.principal or item.names(self.principal))
            and (not self.text or self.text in item.searched)
        )

    @property
    def narrows(self) -> bool:
        """Whether findings of these kinds are left out."""
        return bool(self.severity or self.principal or self.text)


@frozen(kw_only=True)
class _Gathered:
    """The findings on the page, and the kinds that have results."""

    items: list[Item] = field(factory=list)
    archived: list[Item] = field(factory=list)
    total: int = 0
    kinds: list[Kind] = field(factory=list)
    unknown: dict[Kind, str] = field(factory=dict)
    """Why other kinds have no results."""


def findings_page(console: Console, parameters: Parameters) -> Page:
    """Return the page of the requested findings. Raises BadParameterError: an invalid filter, or no such moment."""
    state, lookout, selection = console.states.now(), console.lookout, parameters.word("kind")
    if selection not in ("", NEW, *Kind):
        raise BadParameterError(f"kind {selection[:40]!r}: expected {', '.join((*Kind, NEW))}")
    severity = parameters.word("severity")
    if severity not in ("", *Severity):
        raise BadParameterError(f"severity {severity[:40]!r}: expected {', '.join(Severity)}")
    if lookout is None:
        return _page(
            state, parameters, Notice(text="Findings are unknown: scanning is not enabled here.", mark=Mark.ERROR)
        )
    if parameters.word("accept"):
        return _accept_page(state, lookout, parameters)
    criteria = _Criteria(
        kinds=(Kind(selection),) if selection in list(Kind) else tuple(Kind),
        severity=severity,
        principal=parameters.word("principal").lower(),
        text=parameters.word("q").lower(),
    )
    is_new = selection == NEW or bool(parameters.word("since"))
    then, notices = _then(console, parameters) if is_new else (None, [])
    if then is not None:
        lookout.ask(then)
    gathered = _gathered(lookout, criteria, then, is_new=is_new)
    notices += (
        Notice(text=f"{_NAMES[kind]}: {why}", mark=Mark.WARNING)
        for kind, why in gathered.unknown.items()
        if kind in lookout.finders or len(criteria.kinds) == 1  # otherwise the table of scans shows it
    )
    notices += _errors(lookout, criteria.kinds)
    parts: list[Part] = []
    if gathered.kinds:
        parts += _tables(console.place, gathered, criteria, parameters, is_new=is_new)
    if criteria.kinds == (Kind.UNUSED,) and not is_new:
        parts += _unjudged(lookout, criteria)
    parts.append(_status(lookout, state, criteria.kinds))
    answer = _answer(gathered, then, is_new=is_new)
    return _page(
        state,
        parameters,
        *notices,
        parts=parts,
        answer=answer,
        command=_command(console, lookout, criteria, is_new=is_new),
    )


def _page(
    state: State,
    parameters: Parameters,
    *notices: Notice,
    parts: Iterable[Part] = (),
    answer: str = "Not scanned yet",
    command: str | None = None,
) -> Page:
    return Page(
        path=PATH,
        title="Findings",
        answer=answer,
        command=command,
        parts=(_form(parameters), *parts),
        notices=notices,
        offset=state.offset,
        is_settled=False,
    )


def _command(console: Console, lookout: Lookout, criteria: _Criteria, *, is_new: bool) -> str | None:
    """Return the command with the same findings: those of one kind, without a filter."""
    words = lookout.commands.get(criteria.kinds[0]) if len(criteria.kinds) == 1 else None
    if words is None or is_new or criteria.narrows:
        return None
    decides = words[0] in ("lint", "test", "accesses usage")
    return console.command.of(*words, settings=decides)


def _form(parameters: Parameters) -> Form:
    kinds = (("", "any"), *((kind.value, _NAMES[kind]) for kind in Kind), (NEW, "New ones"))
    severities = (("", "any"), *((each.value, each.value) for each in Severity))
    fields = (
        Field(name="kind", label="Kind", value=parameters.word("kind"), kind=FieldKind.CHOICE, choices=kinds),
        Field(
            name="severity",
            label="Severity",
            value=parameters.word("severity"),
            kind=FieldKind.CHOICE,
            choices=severities,
        ),
        Field(name="principal", label="Principal", value=parameters.text("principal"), is_more=True),
        Field(name="q", label="Anything", value=parameters.text("q"), hint="finding, rule, file"),
        Field(
            name="since",
            label="New since",
            value=parameters.text("since"),
            hint="a day ago",
            is_more=True,
        ),
    )
    return Form(key="filter", title="Filter", path=PATH, fields=fields, submit="Filter")


# Accepting a finding: the lines of a file of suppressions, which a commit adds.


def _accept_page(state: State, lookout: Lookout, parameters: Parameters) -> Page:
    """Return how to accept a finding. Raises BadParameterError: no such finding, or an invalid date."""
    key, reason, until = parameters.text("accept"), parameters.word("reason"), parameters.word("until")
    look = lookout.last_look(Kind.LINT)
    items = () if look is None or look.result is None else look.result.items
    item = next((each for each in items if each.key == key and _is_acceptable(each)), None)
    if item is None:
        raise BadParameterError("finding not found: it may be fixed, or accepted already")
    form = Form(
        key="accept",
        title="Accept",
        path=PATH,
        fields=(
            Field(name="accept", label="Finding", value=key, kind=FieldKind.HIDDEN),
            Field(name="reason", label="Reason", value=parameters.text("reason"), hint="why this is intended"),
            Field(name="until", label="Until (empty: for ever)", value=parameters.text("until"), hint="2027-01-31"),
        ),
        submit="Show the lines",
    )
    file = lookout.suppressions.path
    facts = Facts(
        key="finding",
        title=item.name,
        items=(("Meaning", cell_of_lines(item.text.split("\n"))), ("Rules", _rules(item))),
    )
    parts: list[Part] = [form, facts]
    if reason:
        lint, acl = item.name.partition(" ")[0], item.rules[0].acl
        try:
            lines = tuple(suppression_lines(lint, acl, reason, table=lookout.suppressions.table, expires=_day(until)))
        except ConfigError as error:
            raise BadParameterError(str(error)) from error
        parts.insert(1, Lines(key="lines", title=f"Append to {file}, and commit it", lines=lines))
    return Page(
        path=PATH,
        title=f"Accept {item.name}",
        answer=f"{item.name}: " + (f"accepted by these lines in {file}" if reason else "enter a reason"),
        parts=tuple(parts),
        offset=state.offset,
        is_settled=False,
    )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise BadParameterError(f"until {text[:40]!r}: expected a day, such as 2027-01-31") from error


def _then(console: Console, parameters: Parameters) -> tuple[State | None, list[Notice]]:
    """Return the state that newer findings are compared with, and notices about it.

    That of `since`; by default of a day ago, or the first one of a log that is younger; None if that state is unknown.
    A relative time is rounded to the minute, a day ago to the hour, so that it is not another state with each request.
    """
    now, text = datetime.fromtimestamp(current_time_ms() / 1000, UTC), parameters.word("since")
    if text:
        try:
            moment = read_moment(text, now=now.replace(second=0, microsecond=0)).moment
        except ConfigError as error:
            raise BadParameterError(f"since: {error}") from error
        return console.states.at(
            _time_text(moment) if isinstance(moment, datetime) else "" if moment is None else str(moment)
        ), []
    try:
        return console.states.at(_time_text((now - _DAY).replace(minute=0, second=0, microsecond=0))), []
    except BadParameterError as error:
        try:
            first = console.states.at("0")
        except BadParameterError:
            return None, [Notice(text=f"New findings cannot be determined: {error}", mark=Mark.ERROR)]
        return first, [Notice(text=f"Compared with the beginning of the log: {error}")]


def _time_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _gathered(lookout: Lookout, criteria: _Criteria, then: State | None, *, is_new: bool) -> _Gathered:
    gathered = _Gathered()
    total = 0
    for kind in criteria.kinds:
        look = lookout.last_look(kind)
        if look is None or look.result is None:
            gathered.unknown[kind] = _unknown(lookout, kind, look)
            continue
        items: Sequence[Item] = look.result.items
        if is_new:
            had = "no state at that time" if then is None else look.had.get(then.image.end_offset)
            if not isinstance(had, frozenset):
                gathered.unknown[kind] = f"new ones are {_not_told(had)}"
                continue
            items = [item for item in items if item.key not in had]
        total += len(items)
        gathered.kinds.append(kind)
        gathered.items.extend(filter(criteria.matches, items))
        gathered.archived.extend(filter(criteria.matches, look.result.archived))
    return _Gathered(
        items=gathered.items, archived=gathered.archived, total=total, kinds=gathered.kinds, unknown=gathered.unknown
    )


def _unjudged(lookout: Lookout, criteria: _Criteria) -> Iterable[Table]:
    """Yield the rules whose use is not judged, each with its known use; they are not findings."""
    look = lookout.last_look(Kind.UNUSED)
    uses = None if look is None or look.result is None else look.result.uses
    if uses is None:
        return
    rules = [(acl, use) for acl, use in uses.by_rule.items() if not use.is_unused and _is_shown(acl, use, criteria)]
    if rules:
        yield Table(
            key="unjudged",
            title="Rules not judged",
            columns=(Column(key="rule", title="Rule"), Column(key="use", title="Use")),
            rows=tuple(
                Row(key=acl_text(acl), cells=(Cell(acl_text(acl), rule_url(acl)), Cell(use.text)))
                for acl, use in rules[:PAGE_ROWS]
            ),
            none="",
            total=len(rules),
            note=f"the first {PAGE_ROWS} of {len(rules):,}" if len(rules) > PAGE_ROWS else "",
        )


def _is_shown(acl: StandardAcl, use: Use, criteria: _Criteria) -> bool:
    """Return whether a rule that is not judged matches the filter; it has no severity."""
    text = f"{acl_text(acl)}\n{use.text}".lower()
    return not criteria.severity and criteria.principal in acl.principal.lower() and criteria.text in text


def _not_told(had: str | None) -> str:
    return "being scanned" if had is None else f"unknown: {had}"


def _unknown(lookout: Lookout, kind: Kind, look: LastLook | None) -> str:
    if kind not in lookout.finders:
        return f"unknown: {lookout.lacking.get(kind, 'scanning is not enabled')}"
    if look is not None and look.error is not None:
        return "unknown: the scan failed"
    return "being scanned"


def _errors(lookout: Lookout, kinds: Iterable[Kind]) -> Iterable[Notice]:
    for kind in kinds:
        look = lookout.last_look(kind)
        if look is not None and look.error is not None:
            old = "" if look.result is None else f"; the findings shown are of offset {look.offset:,}"
            yield Notice(text=f"{_NAMES[kind]}: the newest scan failed: {look.error}{old}", mark=Mark.ERROR)


def _status(lookout: Lookout, state: State, kinds: Iterable[Kind]) -> Facts:
    return Facts(
        key="looked",
        title="Scans",
        items=tuple((_NAMES[kind], Cell(_status_text(lookout, state, kind))) for kind in kinds),
    )


def _status_text(lookout: Lookout, state: State, kind: Kind) -> str:
    look = lookout.last_look(kind)
    if look is None or look.result is None:
        return _unknown(lookout, kind, look)
    later = "" if look.acls is state.image.acls else "; the rules have changed since"
    text = f"{look.result.summary}; of offset {look.offset:,}, {_age_text(lookout.age(look))} ago{later}"
    return "; ".join((text, *look.result.notes))


def _age_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _answer(gathered: _Gathered, then: State | None, *, is_new: bool) -> str:
    if not gathered.kinds:
        return "Not scanned yet"
    counts = Counter(item.severity for item in gathered.items)
    parts = ", ".join(severity_count(each, counts[each]) for each in Severity if counts[each])
    text = f"{plural(len(gathered.items), 'new finding' if is_new else 'finding')}{f': {parts}' if parts else ''}"
    if is_new and then is not None:
        text += f", since offset {then.offset:,}"
    if gathered.unknown:
        text += f"; unknown: {', '.join(_NAMES[kind].lower() for kind in gathered.unknown)}"
    return text


def _tables(
    place: ChangePlace, gathered: _Gathered, criteria: _Criteria, parameters: Parameters, *, is_new: bool
) -> Iterable[Table]:
    first = parameters.number("first", 0, 0, 1 << 40)
    note = f"filtered: {len(gathered.items):,} of {gathered.total:,} findings" if criteria.narrows else ""
    if gathered.unknown:
        remark = f"only {', '.join(_NAMES[kind].lower() for kind in gathered.kinds)}: the others are unknown, see below"
        note = f"{note}; {remark}" if note else remark
    others = {name: value for name, value in parameters.values.items() if name not in ("first", "format", "table")}
    items = sorted(gathered.items, key=lambda item: SEVERITIES.index(item.severity))
    table = Table(
        key="findings",
        title="New findings" if is_new else "Findings",
        columns=_COLUMNS,
        lines=("finding", "rules"),
        group="severity",
        rows=tuple(_row(item, place) for item in items[first : first + PAGE_ROWS]),
        none="No matching findings." if criteria.narrows else "No findings.",
        total=len(gathered.items),
        note=note,
    )
    yield paged(table, first, PATH, **others)
    if Kind.LINT in gathered.kinds and not is_new:
        count = len(gathered.archived)
        yield Table(
            key="archived",
            title="Archived",
            is_folded=True,
            columns=(*_COLUMNS[:-2], *_ARCHIVED),
            rows=tuple(_archived_row(item, place) for item in gathered.archived[:PAGE_ROWS]),
            none="No matching archived findings." if criteria.narrows else "No archived findings.",
            total=count,
            note=f"the first {PAGE_ROWS} of {count:,}" if count > PAGE_ROWS else "",
        )


def _archived_row(item: Item, place: ChangePlace) -> Row:
    row, archived = _row(item, place), item.archived
    if archived is None:
        return row
    expires = "" if archived.expires is None else str(archived.expires)
    cells = Cell(archived.reason), Cell(expires or "for ever"), Cell(archived.where)
    return Row(key=row.key, cells=(*row.cells[:-2], *cells), mark=Mark.QUIET)


def _row(item: Item, place: ChangePlace) -> Row:
    stands = dict.fromkeys(text for rule in item.rules[:_RULES] if (text := rule.places_text()))
    return Row(
        key=item.key,
        cells=(
            Cell(item.kind.value),
            Cell(item.severity.value, mark=SEVERITY_MARKS[item.severity]),
            Cell(item.name),
            cell_of_lines(item.text.split("\n")),
            _rules(item),
            cell_of_lines((item.place,) if item.place else stands),
            cell_of_lines(item.fix(place)),
            Cell("with a reason", url(PATH, accept=item.key)) if _is_acceptable(item) else Cell(""),
        ),
    )


def _is_acceptable(item: Item) -> bool:
    return item.kind is Kind.LINT and bool(item.rules) and item.archived is None


def _rules(item: Item) -> Cell:
    cells = [Cell(acl_text(rule.acl), rule_url(rule.acl)) for rule in item.rules[:_RULES]]
    if len(item.rules) > _RULES:
        cells.append(Cell(f"and {len(item.rules) - _RULES:,} more"))
    return Cell(cells[0].text, cells[0].url, others=tuple(cells[1:])) if cells else Cell("")
