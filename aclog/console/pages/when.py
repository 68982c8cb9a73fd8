"""The page of a request through time: the intervals in which it was allowed, and what made each end."""

from collections.abc import Iterable

from attrs import frozen

from aclog.analysis.answers.questions import AnyAllowed
from aclog.analysis.answers.rules_about import rules_on
from aclog.analysis.answers.timeline import Event, Interval, intervals
from aclog.analysis.policy import Policy
from aclog.analysis.regions.principals import only
from aclog.analysis.regions.query import Query
from aclog.authorizer.acl import (
    WILDCARD_PRINCIPAL,
    AclOperation,
    ResourcePattern,
    ResourceType,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.name_notation import is_set, pattern_text
from aclog.authorizer.premises import Premises
from aclog.console.pages.asked import Asked, BadAskedError, name_parameters, url
from aclog.console.pages.cells import PAGE_ROWS, PRINCIPALS, choice_of_operation, choice_of_type
from aclog.console.pages.command_line import resource_words
from aclog.console.pages.console import Console
from aclog.console.pages.history import History
from aclog.console.pages.no_history import history_notices, no_history
from aclog.console.pages.page import Cell, Column, Field, Form, Links, Mark, Page, Row, Table
from aclog.console.pages.past_cells import change_text, change_url, time_of
from aclog.console.rule_timeline import RuleTimeline
from aclog.snapshots.image import Image
from aclog.snapshots.kafka_history import KafkaChange
from aclog.snapshots.provenance import Provenance
from aclog.snapshots.rule_history import Change

PATH = "/when"
_COLUMNS = (
    Column(key="from", title="Allowed from", is_number=True),
    Column(key="from_time", title="Time"),
    Column(key="from_change", title="Because"),
    Column(key="from_who", title="By"),
    Column(key="to", title="Until", is_number=True),
    Column(key="to_time", title="Time"),
    Column(key="to_change", title="Because"),
    Column(key="to_who", title="By"),
    Column(key="why", title="Then"),
)


@frozen(kw_only=True)
class _Request:
    principal: str
    operation: AclOperation
    pattern: ResourcePattern
    host: str | None

    @property
    def query(self) -> Query:
        return Query(
            resources=(self.pattern,),
            operations=1 << self.operation,
            principals=only(self.principal),
            host=self.host,
        )

    def why_url(self, as_of: int | None) -> str:
        """Return the way to why it is decided so."""
        return url(
            "/why",
            principal=self.principal,
            operation=self.operation.name,
            **name_parameters(self.pattern),
            host=self.host,
            as_of=as_of,
        )


def when_page(console: Console, asked: Asked) -> Page:
    """Return when a request was allowed. Raises BadAskedError: no such request."""
    state, form = console.states.now(), _form(asked)
    request = _request(asked)
    history = console.history
    if history is None:
        return no_history(console, PATH, "When", state.offset)
    known = history.known(state.offset)
    notices = history_notices(known, state.offset)
    if isinstance(request, str):
        answer = f"Who asks for what? Give {request}."
        return Page(path=PATH, title="When", answer=answer, parts=(form,), notices=notices, offset=state.offset)
    timeline = known.timeline
    found = list(_intervals(timeline, request, history))
    is_allowed = bool(found) and found[-1].end is None
    more = state.premises.turning(allowed=False)
    pattern = request.pattern
    resource = resource_words(pattern.resource_type, pattern.name, pattern.pattern_type)
    words = ("--principal", request.principal, "--operation", request.operation.name)
    host = () if request.host is None else ("--host", request.host)
    return Page(
        path=PATH,
        title=f"When: {request.principal} {request.operation.name} {_name(request.pattern)}",
        answer=_answer(found, timeline, more),
        mark=Mark.GOOD if is_allowed else Mark.DENY,
        command=console.command.of("when", *words, *resource, *host),
        parts=(form, _ways(request), _table((found, more), timeline, request, history)),
        notices=notices,
        offset=timeline.end,
    )


def _name(pattern: ResourcePattern) -> str:
    return pattern_text(pattern) if is_set(pattern) else pattern.name


def _request(asked: Asked) -> _Request | str:
    """Return the request, or what is missing of it."""
    principal, operation = asked.word("principal"), asked.operation()
    pattern = asked.resource(asked.resource_type() or ResourceType.TOPIC)
    if not principal or operation is None or not (pattern.name or is_set(pattern)):
        return "a principal" if not principal else "an operation" if operation is None else "a name"
    if ":" not in principal:
        raise BadAskedError(f"principal {principal[:80]!r}: expected TYPE:NAME, such as {PRINCIPALS}")
    if principal == WILDCARD_PRINCIPAL:
        raise BadAskedError("principal User:*: no client has that name")
    if operation is AclOperation.ALL:
        raise BadAskedError("operation: nobody asks for ALL: expected one operation")
    return _Request(principal=principal, operation=operation, pattern=pattern, host=asked.host())


def _intervals(timeline: RuleTimeline, request: _Request, history: History) -> Iterable[Interval]:
    # All that can have a part in it covers the name, or one of the names: the other rules need not be looked at.
    settings = history.decided()
    acls = timeline.acls_at(0).with_options(documented=settings.documented, cidr=settings.cidr)
    pattern = request.pattern
    if is_set(pattern):
        covering = AclsImage.from_acls(dict.fromkeys(rules_on(Policy(acls, settings), pattern)))
    else:
        covering = AclsImage.from_acls(acls.candidates(pattern.resource_type, pattern.name))
    begin = Image(acls=covering, provenance=Provenance(end_offset=timeline.begin, timestamp=timeline.begin_time))
    return intervals(begin, timeline.changes, AnyAllowed(request.query), settings)


def _answer(found: list[Interval], timeline: RuleTimeline, more: Premises) -> str:
    """Return the answer; `more`: what is unknown and could have allowed it."""
    begin = f"offset {timeline.begin:,}, from where on the history is known"
    if not found:
        return f"{more.decided(f'Never allowed since {begin}' if timeline.begin else 'Never allowed')}."
    last = found[-1]
    if last.end is None:
        return f"Allowed since {_event_text(last.start)}."
    return f"{more.decided(f'Not allowed since {_event_text(last.end)}')}."


def _event_text(event: Event) -> str:
    time = time_of(event.timestamp)
    where = f"offset {event.offset:,}" + (f", {time}" if time else "")
    return f"{where} or before" if event.change is None else f"{where}: {_change_text(event.change)}"


def _change_text(change: Change | KafkaChange) -> str:
    return str(change) if isinstance(change, KafkaChange) else change_text(change)


def _table(
    answer: tuple[list[Interval], Premises], timeline: RuleTimeline, request: _Request, history: History
) -> Table:
    """Return the intervals in which it was allowed; `answer`: these, and what is unknown and could add some."""
    found, more = answer
    shown = found[-PAGE_ROWS:]
    left = len(found) - len(shown)
    return Table(
        key="intervals",
        title="Allowed, the last interval first",
        columns=_COLUMNS,
        rows=tuple(_row(each, timeline, request, history) for each in reversed(shown)),
        none=f"{more.decided('It was never allowed in what is known of the history')}.",
        total=len(found),
        note=f"the last {PAGE_ROWS} of {len(found):,}: the command line shows all" if left else "",
    )


def _row(interval: Interval, timeline: RuleTimeline, request: _Request, history: History) -> Row:
    start, end = interval.start, interval.end
    last = (Cell("now"), Cell(""), Cell("it still is"), Cell("")) if end is None else _event(end, timeline, history)
    as_of = None if end is None else end.end_offset
    return Row(
        key=str(start.offset),
        cells=(
            *_event(start, timeline, history),
            *last,
            Cell("why" if end is None else "why not", request.why_url(as_of)),
        ),
        mark=Mark.GOOD if end is None else None,
    )


def _event(event: Event, timeline: RuleTimeline, history: History) -> tuple[Cell, ...]:
    time = Cell(time_of(event.timestamp))
    if event.change is None:
        return Cell(f"{event.offset:,} or before"), time, Cell("it was when the history begins"), Cell("")
    return (
        Cell(f"{event.offset:,}", change_url(timeline, event.end_offset)),
        time,
        Cell(_change_text(event.change)),
        Cell(_who(event, timeline, history)),
    )


def _who(event: Event, timeline: RuleTimeline, history: History) -> str:
    position = timeline.position(event.end_offset)
    told, unknown = history.with_applies(timeline, timeline.before(position), position)
    found = next((note for change, note in told if change is event.change), None)
    if found is None:
        return "unknown" if unknown else ""
    return f"{found.who}, apply {found.apply}"


def _ways(request: _Request) -> Links:
    return Links(key="on", title="Further", links=(Cell("why it is decided so now", request.why_url(None)),))


def _form(asked: Asked) -> Form:
    fields = (
        Field(name="principal", label="Principal", value=asked.text("principal"), hint=PRINCIPALS),
        choice_of_operation(asked.word("operation")),
        choice_of_type(asked.word("type") or "TOPIC", any_type=False),
        Field(name="name", label="Name", value=asked.text("name"), hint="orders, or pii-*"),
        Field(name="host", label="From host", value=asked.text("host"), hint="any"),
    )
    return Form(key="ask", title="Request", path=PATH, fields=fields, submit="When?")
