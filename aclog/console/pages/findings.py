"""The page of findings: what is wrong with the rules, which of it is new, and what somebody has accepted."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from attrs import field, frozen

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report import plural
from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    ChangePlace,
    PatternType,
    ResourceType,
    acl_text,
    code_name,
)
from aclog.console.findings import Item, Kept, Kind, Lookout
from aclog.console.pages.page import (
    PAGE_ROWS,
    Asked,
    BadAskedError,
    Cell,
    Column,
    Facts,
    Field,
    Form,
    Mark,
    Notice,
    Page,
    Part,
    Row,
    Table,
    paged,
    url,
)
from aclog.console.pages.page import Kind as FieldKind
from aclog.console.pages.states import Console, State
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError
from aclog.snapshots.moments import Moment, read_moment

PATH = "/findings"
NEW = "new"
_RULES = 3
"""Rules of a finding that are shown; the search finds all of them."""
_NAMES = {Kind.LINT: "Lint", Kind.UNUSED: "Unused rules", Kind.DRIFT: "Drift", Kind.TESTS: "Failing tests"}
_MARKS = {Severity.ERROR: Mark.ERROR, Severity.WARNING: Mark.WARNING}
_DAY = timedelta(days=1)
_COLUMNS = (
    Column(key="kind", title="Found by"),
    Column(key="severity", title="Severity"),
    Column(key="finding", title="Finding"),
    Column(key="what", title="What it means"),
    Column(key="rules", title="Rules"),
    Column(key="place", title="Stands in"),
    Column(key="mend", title="Mend"),
)
_ARCHIVED = (
    Column(key="reason", title="Accepted because"),
    Column(key="expires", title="Until"),
    Column(key="where", title="Says"),
)


@frozen(kw_only=True)
class _Wanted:
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
    """The findings that are shown, and which kinds have told theirs."""

    items: list[Item] = field(factory=list)
    archived: list[Item] = field(factory=list)
    total: int = 0
    known: list[Kind] = field(factory=list)
    unknown: dict[Kind, str] = field(factory=dict)
    """Why others have told nothing."""


def findings_page(console: Console, asked: Asked) -> Page:
    """Return the findings that are asked for. Raises BadAskedError: a filter that is none, or no such moment."""
    state, lookout, chosen = console.states.now(), console.lookout, asked.word("kind")
    if chosen not in ("", NEW, *Kind):
        raise BadAskedError(f"kind {chosen[:40]!r}: expected {', '.join((*Kind, NEW))}")
    severity = asked.word("severity")
    if severity not in ("", *Severity):
        raise BadAskedError(f"severity {severity[:40]!r}: expected {', '.join(Severity)}")
    if lookout is None:
        return _page(state, asked, Notice(text="Findings are unknown: nobody looks for them here.", mark=Mark.ERROR))
    wanted = _Wanted(
        kinds=(Kind(chosen),) if chosen in list(Kind) else tuple(Kind),
        severity=severity,
        principal=asked.word("principal").lower(),
        text=asked.word("q").lower(),
    )
    is_new = chosen == NEW or bool(asked.word("since"))
    then, notices = _then(console, asked) if is_new else (None, [])
    if then is not None:
        lookout.ask(then)
    gathered = _gathered(lookout, wanted, then, is_new=is_new)
    notices += (
        Notice(text=f"{_NAMES[kind]}: {why}", mark=Mark.WARNING)
        for kind, why in gathered.unknown.items()
        if kind in lookout.finders or len(wanted.kinds) == 1  # else it stands in the table of what was looked for
    )
    notices += _errors(lookout, wanted.kinds)
    parts: list[Part] = [_status(lookout, state, wanted.kinds)]
    if gathered.known:
        parts += _tables(console.place, gathered, wanted, asked, is_new=is_new)
    answer = _answer(gathered, then, is_new=is_new)
    return _page(
        state, asked, *notices, parts=parts, answer=answer, command=_command(console, lookout, wanted.kinds[0])
    )


def _page(
    state: State,
    asked: Asked,
    *notices: Notice,
    parts: Iterable[Part] = (),
    answer: str = "Unknown so far",
    command: str | None = None,
) -> Page:
    return Page(
        path=PATH,
        title="Findings",
        answer=answer,
        command=command,
        parts=(_form(asked), *parts),
        notices=notices,
        offset=state.offset,
        is_settled=False,
    )


def _command(console: Console, lookout: Lookout, kind: Kind) -> str | None:
    """Return the command that says the same of a kind; of all kinds, that of the first."""
    words = lookout.commands.get(kind)
    if words is None:
        return None
    decides = words[0] in ("lint", "usage", "test")
    return console.command.of(*words, settings=decides)


def _form(asked: Asked) -> Form:
    kinds = (("", "any"), *((kind.value, _NAMES[kind]) for kind in Kind), (NEW, "New ones"))
    severities = (("", "any"), *((each.value, each.value) for each in Severity))
    fields = (
        Field(name="kind", label="Kind", value=asked.word("kind"), kind=FieldKind.CHOICE, choices=kinds),
        Field(
            name="severity", label="Severity", value=asked.word("severity"), kind=FieldKind.CHOICE, choices=severities
        ),
        Field(name="principal", label="Principal", value=asked.text("principal")),
        Field(name="q", label="Anything", value=asked.text("q"), hint="in the finding, its rules or its place"),
        Field(name="since", label="New since", value=asked.text("since"), hint="an offset or a time; a day ago"),
    )
    return Form(key="filter", title="Filter", path=PATH, fields=fields, submit="Filter")


def _then(console: Console, asked: Asked) -> tuple[State | None, list[Notice]]:
    """Return the state that newer findings are compared with, and what is to be said of it.

    That of `since`; by default of a day ago, or the first one of a log that is younger; None if nobody knows it. A time
    that counts from now is taken to the minute, a day ago to the hour: it is not another state with each request.
    """
    now, text = datetime.fromtimestamp(current_time_ms() / 1000, UTC), asked.word("since")
    if text:
        try:
            moment = read_moment(text, now=now.replace(second=0, microsecond=0)).moment
        except ConfigError as error:
            raise BadAskedError(f"since: {error}") from error
        return console.states.at(
            _time_text(moment) if isinstance(moment, datetime) else "" if moment is None else str(moment)
        ), []
    try:
        return console.states.at(_time_text((now - _DAY).replace(minute=0, second=0, microsecond=0))), []
    except BadAskedError as error:
        try:
            first = console.states.at("0")
        except BadAskedError:
            return None, [Notice(text=f"Which findings are new is unknown: {error}", mark=Mark.ERROR)]
        return first, [Notice(text=f"Compared with the beginning of the log: {error}")]


def _moment_text(moment: Moment | None) -> str:
    if isinstance(moment, datetime):
        return _time_text(moment)
    return "" if moment is None else str(moment)


def _time_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _gathered(lookout: Lookout, wanted: _Wanted, then: State | None, *, is_new: bool) -> _Gathered:
    found = _Gathered()
    total = 0
    for kind in wanted.kinds:
        kept = lookout.kept(kind)
        if kept is None or kept.looked is None:
            found.unknown[kind] = _unknown(lookout, kind, kept)
            continue
        items: Sequence[Item] = kept.looked.items
        if is_new:
            had = "nobody knows the state then" if then is None else kept.had.get(then.image.end_offset)
            if not isinstance(had, frozenset):
                found.unknown[kind] = f"which are new is {_not_told(had)}"
                continue
            items = [item for item in items if item.key not in had]
        total += len(items)
        found.known.append(kind)
        found.items.extend(filter(wanted.matches, items))
        found.archived.extend(filter(wanted.matches, kept.looked.archived))
    return _Gathered(items=found.items, archived=found.archived, total=total, known=found.known, unknown=found.unknown)


def _not_told(had: str | None) -> str:
    return "being looked for" if had is None else f"unknown: {had}"


def _unknown(lookout: Lookout, kind: Kind, kept: Kept | None) -> str:
    if kind not in lookout.finders:
        return f"unknown: {lookout.lacking.get(kind, 'nobody looks for them')}"
    if kept is not None and kept.error is not None:
        return "unknown: they could not be looked for"
    return "being looked for"


def _errors(lookout: Lookout, kinds: Iterable[Kind]) -> Iterable[Notice]:
    for kind in kinds:
        kept = lookout.kept(kind)
        if kept is not None and kept.error is not None:
            old = "" if kept.looked is None else f"; what is shown is of offset {kept.offset:,}"
            yield Notice(text=f"{_NAMES[kind]}: the newest look failed: {kept.error}{old}", mark=Mark.ERROR)


def _status(lookout: Lookout, state: State, kinds: Iterable[Kind]) -> Facts:
    return Facts(
        key="looked",
        title="What was looked for",
        items=tuple((_NAMES[kind], Cell(_status_text(lookout, state, kind))) for kind in kinds),
    )


def _status_text(lookout: Lookout, state: State, kind: Kind) -> str:
    kept = lookout.kept(kind)
    if kept is None or kept.looked is None:
        return _unknown(lookout, kind, kept)
    later = "" if kept.acls is state.image.acls else "; the rules have changed since"
    told = f"{kept.looked.summary}; of offset {kept.offset:,}, {_age_text(lookout.age(kept))} ago{later}"
    return "; ".join((told, *kept.looked.notes))


def _age_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _answer(gathered: _Gathered, then: State | None, *, is_new: bool) -> str:
    if not gathered.known:
        return "Unknown so far"
    counts = Counter(item.severity for item in gathered.items)
    found = ", ".join(plural(counts[each], each.value) for each in Severity if counts[each])
    told = f"{plural(len(gathered.items), 'new finding' if is_new else 'finding')}{f': {found}' if found else ''}"
    if is_new and then is not None:
        told += f", since offset {then.offset:,}"
    if gathered.unknown:
        told += f"; unknown: {', '.join(_NAMES[kind].lower() for kind in gathered.unknown)}"
    return told


def _tables(place: ChangePlace, gathered: _Gathered, wanted: _Wanted, asked: Asked, *, is_new: bool) -> Iterable[Table]:
    first = asked.number("first", 0, 0, 1 << 40)
    note = f"filtered: {len(gathered.items):,} of {gathered.total:,} findings" if wanted.narrows else ""
    if gathered.unknown:
        told = f"only {', '.join(_NAMES[kind].lower() for kind in gathered.known)}: the others are unknown, see above"
        note = f"{note}; {told}" if note else told
    others = {name: value for name, value in asked.given.items() if name not in ("first", "format", "table")}
    found = Table(
        key="findings",
        title="New findings" if is_new else "Findings",
        columns=_COLUMNS,
        rows=tuple(_row(item, place) for item in gathered.items[first : first + PAGE_ROWS]),
        none="No finding is so." if wanted.narrows else "Nothing was found.",
        total=len(gathered.items),
        note=note,
    )
    yield paged(found, first, PATH, **others)
    if Kind.LINT in gathered.known and not is_new:
        count = len(gathered.archived)
        yield Table(
            key="archived",
            title="Archived",
            columns=(*_COLUMNS[:-1], *_ARCHIVED),
            rows=tuple(_archived_row(item, place) for item in gathered.archived[:PAGE_ROWS]),
            none="No finding that is so is archived." if wanted.narrows else "No finding is archived.",
            total=count,
            note=f"the first {PAGE_ROWS} of {count:,}" if count > PAGE_ROWS else "",
        )


def _archived_row(item: Item, place: ChangePlace) -> Row:
    row, archived = _row(item, place), item.archived
    if archived is None:
        return row
    expires = "" if archived.expires is None else str(archived.expires)
    cells = Cell(archived.reason), Cell(expires or "for ever"), Cell(archived.where)
    return Row(key=row.key, cells=(*row.cells[:-1], *cells), mark=Mark.QUIET)


def _row(item: Item, place: ChangePlace) -> Row:
    stands = dict.fromkeys(text for rule in item.rules[:_RULES] if (text := rule.places_text()))
    return Row(
        key=item.key,
        cells=(
            Cell(item.kind.value),
            Cell(item.severity.value, mark=_MARKS[item.severity]),
            Cell(item.name),
            _lines(item.text.split("\n")),
            _rules(item),
            _lines((item.place,) if item.place else stands),
            _lines(item.mend(place)),
        ),
    )


def _rules(item: Item) -> Cell:
    cells = [Cell(acl_text(rule.acl), _rule_url(item, number)) for number, rule in enumerate(item.rules[:_RULES])]
    if len(item.rules) > _RULES:
        cells.append(Cell(f"and {len(item.rules) - _RULES:,} more"))
    return Cell(cells[0].text, cells[0].url, others=tuple(cells[1:])) if cells else Cell("")


def _rule_url(item: Item, number: int) -> str:
    acl = item.rules[number].acl
    return url(
        "/rules",
        principal=acl.principal,
        resource=acl.resource_name,
        type=code_name(ResourceType, acl.resource_type),
        pattern=code_name(PatternType, acl.pattern_type),
        operation=code_name(AclOperation, acl.operation),
        permission=code_name(AclPermissionType, acl.permission_type),
        host=acl.host,
    )


def _lines(texts: Iterable[str]) -> Cell:
    first, *others = [*(line for text in texts for line in text.split("\n"))] or [""]
    return Cell(first, others=tuple(map(Cell, others)))
