"""The pages of a request and of changes: the decision, when it was allowed, and the effect of a change."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice

from aclog.analysis.comparison import turning_same
from aclog.analysis.policy import only_on
from aclog.analysis.regions import Direction, Query, only
from aclog.analysis.review.comment import Judgement, by_risk, comment_of_clusters
from aclog.analysis.review.review import Review
from aclog.analysis.rows.report import TITLES, ReportRow, row_cells
from aclog.analysis.timeline import AnyAllowed, Event, Interval, explained, intervals
from aclog.analysis.who_can import rules_on
from aclog.authorizer.acl import ResourcePattern, acl_text, code_name, places_text
from aclog.authorizer.acls_image import AclsImage, RuleChange
from aclog.authorizer.codes import (
    SUPPORTED_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclog.authorizer.explain import ExplainOptions, Explanation, Role, explain, explanation_lines
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.settings import GenerationPair, controllers_decide, is_set, pattern_text
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.console.live import RuleTimeline
from aclog.console.login.guard import decides_alone
from aclog.console.pages.draft import RISK_MARKS
from aclog.console.pages.generations import KAFKA_COLUMN, of_kafka
from aclog.console.pages.lists import similar_names
from aclog.console.pages.openings import Opening, Openings, openings
from aclog.console.pages.page import (
    OPERATIONS,
    PAGE_ROWS,
    PRINCIPALS,
    RULE_COLUMNS,
    BadParameterError,
    Cell,
    Column,
    Facts,
    Field,
    File,
    Form,
    Lines,
    Links,
    Mark,
    Notice,
    Page,
    Parameters,
    Part,
    Row,
    Table,
    as_of_field,
    choice_of_operation,
    choice_of_type,
    draft_url,
    name_parameters,
    paged,
    principal_cell,
    resource_words,
    rule_cells,
    rule_url,
    unresolved_text,
    url,
    use_cell,
)
from aclog.console.pages.span import (
    CHANGES,
    Span,
    added_items,
    change_text,
    change_url,
    day_url,
    history_notices,
    is_settled,
    kind_cell,
    last_change_url,
    no_history,
    presets,
    span_facts,
    span_form,
    span_handles,
    span_of,
    steps,
    strip,
    time_of,
    who_cells,
)
from aclog.console.pages.states import Compared, Console, History, State, policy_of
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.ops.policies import difference_objects
from aclog.planning.plan import ApplyNote
from aclog.snapshots.deciding_kafka import SETTLED_BY, KafkaChange
from aclog.snapshots.history import Change
from aclog.snapshots.image import Image, Provenance

# The page of a request: the decision, the rules that contribute, and changes that would turn it.


WHY_PATH = "/why"
_HOST = "127.0.0.1"


def why_page(console: Console, parameters: Parameters) -> Page:
    """Return why a request is allowed or denied. Raises BadParameterError: no such request."""
    as_of = parameters.word("as_of")
    state = console.states.at(as_of)
    form = _form(parameters)
    principal, operation = state.principal(parameters.text("principal")), parameters.operation()
    pattern = parameters.resource(parameters.resource_type() or ResourceType.TOPIC)
    if not principal or operation is None or not (pattern.name or is_set(pattern)):
        missing = "a principal" if not principal else "an operation" if operation is None else "a name"
        return Page(
            path=WHY_PATH,
            title="Why",
            answer=f"Incomplete request: enter {missing}.",
            parts=(form, *_operation_links(parameters, WHY_PATH), _examples(state, WHY_PATH, as_of)),
            offset=state.offset,
        )
    explanation = _explained(console, state, parameters, pattern)
    host = parameters.host()
    words = ("--principal", principal, "--operation", operation.name, *_words(pattern))
    return Page(
        path=WHY_PATH,
        title=f"Why: {principal} {operation.name} {pattern_text(pattern) if is_set(pattern) else pattern.name}",
        answer=next(iter(explanation_lines(explanation))),
        mark=Mark.GOOD if explanation.allowed else Mark.DENY,
        command=console.command.of("explain", *words, *(() if host is None else ("--host", host)), as_of=as_of),
        parts=(
            form,
            *similar_names(
                state, pattern, WHY_PATH, parameters, with_prefixes=False
            ),  # a prefix may have no one answer
            _verdict(console, state, explanation),
            _remedy(console, explanation),
            *_operations(state, parameters, explanation),
            *_rules(explanation, as_of),
            _trace(explanation),
            _ways(console, parameters, operation, pattern),
        ),
        offset=state.offset,
        is_settled=is_settled(console, state.offset),
        data=[explanation.to_dict()],
    )


_EXAMPLES = 5


def _examples(state: State, path: str, as_of: str) -> Links:
    """Return requests of rules, as the next step of a page without one."""
    acls = (rule.acl for rule in state.listing if rule.acl.operation in OPERATIONS)
    some = (each for each in acls if each.pattern_type == PatternType.LITERAL and ":" in each.principal)
    requests = islice((each for each in some if WILDCARD not in (each.resource_name, each.principal[-1:])), _EXAMPLES)
    links = tuple(
        Cell(
            f"{each.principal} {code_name(AclOperation, each.operation)} {each.resource_name}",
            url(
                path,
                principal=each.principal,
                operation=code_name(AclOperation, each.operation),
                **name_parameters(ResourcePattern(resource_type=each.resource_type, name=each.resource_name)),
                as_of=as_of,
            ),
        )
        for each in requests
    )
    return Links(key="examples", title="Examples", links=links)


def _operation_links(parameters: Parameters, path: str) -> Iterator[Links]:
    """Yield the operations that complete a request without one."""
    kind = parameters.resource_type() or ResourceType.TOPIC
    given = {name: value for name, value in parameters.values.items() if name not in ("operation", "format")}
    if parameters.word("principal") and not parameters.word("operation"):
        links = tuple(Cell(each.name, url(path, **given, operation=each.name)) for each in SUPPORTED_OPERATIONS[kind])
        yield Links(key="operation", title="Operation", links=links)


def _explained(console: Console, state: State, parameters: Parameters, pattern: ResourcePattern) -> Explanation:
    operation, host = parameters.operation(), parameters.host()
    if operation is None or operation is AclOperation.ALL:
        raise BadParameterError("operation: ALL is not a request operation: choose one")
    principal = state.principal(parameters.text("principal"))
    console.check_own(principal)
    context = RequestContext(principal=principal, host=host or _HOST)
    action = Action(operation=operation, resource_pattern=pattern)
    options = ExplainOptions(
        allow_everyone=state.policy.settings.allow_everyone,
        host_given=host is not None,
        as_of=state.as_of,
        place=console.place,
        origins=console.origins,
        premises=state.premises,
    )
    try:
        if is_set(pattern):
            return _of_set(console, state, context, action, options)
        decision = state.authorizer.decide(context, action)
    except InvalidRequestError as error:
        # The error names the rule, and so its principal.
        message = (
            str(error) if console.own is None else "Kafka's authorizer fails on this, for a rule that you do not see"
        )
        raise BadParameterError(message) from error
    return explain(state.policy.acls, decision, context, action, options=options)


def _of_set(
    console: Console, state: State, context: RequestContext, action: Action, options: ExplainOptions
) -> Explanation:
    """Return why all names with a prefix are decided alike. Raises BadParameterError: they are not."""
    whole = state.whole or state.policy
    if console.own is not None and not decides_alone(Image(acls=whole.acls), whole.settings):
        # Examples could be names of hidden rules.
        raise BadParameterError("hidden rules may decide on some of these names: enter a single name")
    try:
        return explained(state.policy, context, action, options)
    except ConfigError as error:
        raise BadParameterError(str(error)) from error


def _words(pattern: ResourcePattern) -> tuple[str, ...]:
    return resource_words(pattern.resource_type, pattern.name, pattern.pattern_type)


def _ways(console: Console, parameters: Parameters, operation: AclOperation, pattern: ResourcePattern) -> Links:
    as_of, principal = parameters.word("as_of"), parameters.word("principal")
    where = name_parameters(pattern)
    when = url("/when", principal=principal, operation=operation.name, **where, host=parameters.host())
    return Links(
        key="on",
        title="Further",
        links=(
            Cell(f"all permissions of {principal}", principal_cell(principal, as_of).url),
            Cell(
                f"all principals that can {operation.name} it",
                url("/resource", **where, as_of=as_of, operation=operation.name),
            ),
            *((Cell("when this was allowed", when),) if console.own is None else ()),
        ),
    )


def _verdict(console: Console, state: State, explanation: Explanation) -> Facts:
    """Return what decides: the rule, since when it is there, and who added it."""
    deciding = next((each.rule.acl for each in explanation.rules if each.role is Role.DECIDES), None)
    if deciding is None:
        return Facts(key="verdict", title="Decision", items=(("Decided by", Cell(explanation.decision.text)),))
    text = acl_text(deciding) + places_text(deciding, console.origins)
    items = [("Decided by", Cell(text, rule_url(deciding, state.as_of)))]
    if console.uses is not None and not state.as_of:
        items.append(("Use", use_cell(deciding, console.uses)))
    items += added_items(console, state, deciding)
    return Facts(key="verdict", title="Decision", items=tuple(items))


def _operations(state: State, parameters: Parameters, explanation: Explanation) -> Iterable[Table]:
    """Return the decisions on the other operations of the resource, if it is one name."""
    pattern = explanation.action.resource_pattern
    if is_set(pattern):
        return
    columns, cells = [], []
    for each in SUPPORTED_OPERATIONS[ResourceType(pattern.resource_type)]:
        try:
            decision = state.authorizer.decide(explanation.context, Action(operation=each, resource_pattern=pattern))
        except InvalidRequestError:
            continue
        address = url(WHY_PATH, **{**_form_values(parameters), "operation": each.name})
        text, mark = ("ALLOWED", Mark.GOOD) if decision else ("DENIED", Mark.DENY)
        if each is explanation.action.operation:
            text = f"{text} (this)"
        columns.append(Column(key=each.name, title=each.name))
        cells.append(Cell(text, address, mark=mark))
    yield Table(
        key="operations",
        title="Each operation",
        columns=tuple(columns),
        rows=(Row(key="operations", cells=tuple(cells)),),
        none="",
        note=_premises_note(state),
        is_matrix=True,
    )


def _premises_note(state: State) -> str:
    return "as far as the settings of the brokers are known" if state.premises.unknown else ""


def _form_values(parameters: Parameters) -> dict[str, str]:
    names = ("principal", "type", "name", "pattern", "host", "as_of")
    return {name: parameters.text(name) for name in names}


_MATCHING = (Role.DECIDES, Role.MATCHES)


def _rules(explanation: Explanation, as_of: str) -> Iterator[Table]:
    """Yield the rules that match the request, and the other ones on the resource."""
    total = sum(explanation.counts.values())
    matching = sum(explanation.counts.get(role, 0) for role in _MATCHING)
    tables = (
        ("rules", "Matching rules (deciding rule first)", "No rule matches the request.", matching, True),
        ("others", "Other rules on the resource", "No other rules.", total - matching, False),
    )
    for key, title, none, count, matches in tables:
        if not matches and not count:
            return
        rows = tuple(
            Row(
                key=repr(each.rule.acl),
                cells=(Cell(each.role.value), *rule_cells(each.rule.acl, as_of), Cell("; ".join(each.notes))),
            )
            for each in explanation.rules
            if (each.role in _MATCHING) is matches
        )
        yield Table(
            key=key,
            title=title,
            columns=(Column(key="role", title="Role"), *RULE_COLUMNS, Column(key="notes", title="Notes")),
            rows=rows,
            none=none,
            total=count,
            note=f"{count - len(rows):,} more not shown" if count > len(rows) else "",
            is_folded=not matches,
        )


def _trace(explanation: Explanation) -> Lines:
    # The first line is the answer of the page.
    lines = tuple(explanation_lines(explanation))[1:]
    return Lines(key="trace", title="In words", lines=lines, is_folded=True)


def _remedy(console: Console, explanation: Explanation) -> Table:
    is_draft = console.own is None
    rows = tuple(
        Row(
            key=repr(each),
            mark=Mark.ADDED if each.add else Mark.REMOVED,
            cells=(
                Cell("add" if each.add else "remove"),
                Cell(acl_text(each.acl)),
                Cell(each.command or ""),
                *((Cell("try as a draft", draft_url(each.acl, added=each.add)),) if is_draft else ()),
            ),
        )
        for each in explanation.remedy.changes
    )
    return Table(
        key="remedy",
        title="To deny it" if explanation.allowed else "To allow it",
        columns=(
            Column(key="change", title="Change"),
            Column(key="rule", title="Rule"),
            Column(key="command", title="Command line"),
            *((Column(key="draft", title="Draft"),) if is_draft else ()),
        ),
        rows=rows,
        none="; ".join(explanation.remedy.notes) or "No rule change.",
        note="; ".join(explanation.remedy.notes) if rows else "",
    )


def _form(parameters: Parameters) -> Form:
    fields = (
        Field(name="principal", label="Principal", value=parameters.text("principal"), hint=PRINCIPALS),
        choice_of_operation(parameters.word("operation")),
        choice_of_type(parameters.word("type") or "TOPIC", any_type=False),
        Field(name="name", label="Name", value=parameters.text("name"), hint="orders, or pii-*"),
        Field(name="host", label="From host", value=parameters.text("host"), hint=_HOST, is_more=True),
        as_of_field(parameters.text("as_of")),
    )
    return Form(key="ask", title="Request", path=WHY_PATH, fields=fields, submit="Why?")


# The page of a request through time: the intervals in which it was allowed, and the change at each end.


WHEN_PATH = "/when"
_COLUMNS = (
    Column(key="from", title="Allowed from", is_number=True),
    Column(key="from_time", title="Time", is_whole=True),
    Column(key="from_change", title="Because"),
    Column(key="from_who", title="By"),
    Column(key="to", title="Until", is_number=True),
    Column(key="to_time", title="Time", is_whole=True),
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

    @property
    def is_of_controllers(self) -> bool:
        """Whether controllers also decide such requests."""
        return controllers_decide(self.pattern.resource_type, self.operation)

    def why_url(self, as_of: int | None) -> str:
        """Return the link to the page of the decision."""
        return url(
            "/why",
            principal=self.principal,
            operation=self.operation.name,
            **name_parameters(self.pattern),
            host=self.host,
            as_of=as_of,
        )


def when_page(console: Console, parameters: Parameters) -> Page:
    """Return when a request was allowed. Raises BadParameterError: no such request."""
    state, form = console.states.now(), _when_form(parameters)
    history = console.history
    current = None if history is None else history.current(state.offset)
    request = _request(console, state, parameters)
    if history is None or current is None:
        return no_history(console, WHEN_PATH, "When", state.offset)
    notices = history_notices(current, state.offset)
    if isinstance(request, str):
        answer = f"Incomplete request: enter {request}."
        return Page(
            path=WHEN_PATH,
            title="When",
            answer=answer,
            parts=(form, *_operation_links(parameters, WHEN_PATH), _examples(state, WHEN_PATH, "")),
            notices=notices,
            offset=state.offset,
        )
    timeline = current.timeline
    periods = list(_intervals(timeline, request, history))
    named = [notice for notice in (_kafka_of_periods(console, timeline, request, periods),) if notice is not None]
    is_allowed = bool(periods) and periods[-1].end is None
    more = state.premises.turning(allowed=False)
    pattern = request.pattern
    resource = resource_words(pattern.resource_type, pattern.name, pattern.pattern_type)
    words = ("--principal", request.principal, "--operation", request.operation.name)
    host = () if request.host is None else ("--host", request.host)
    return Page(
        path=WHEN_PATH,
        title=f"When: {request.principal} {request.operation.name} {_name(request.pattern)}",
        answer=_answer(periods, timeline, more),
        mark=Mark.GOOD if is_allowed else Mark.DENY,
        command=console.command.of("when", *words, *resource, *host),
        parts=(
            form,
            *similar_names(state, pattern, WHEN_PATH, parameters),
            _when_ways(request),
            _table((periods, more), timeline, request, history),
        ),
        notices=(*named, *notices),
        offset=timeline.end,
    )


def _name(pattern: ResourcePattern) -> str:
    return pattern_text(pattern) if is_set(pattern) else pattern.name


def _request(console: Console, state: State, parameters: Parameters) -> _Request | str:
    """Return the request, or the missing part."""
    principal, operation = console.principal(state, parameters.text("principal")), parameters.operation()
    pattern = parameters.resource(parameters.resource_type() or ResourceType.TOPIC)
    if not principal or operation is None or not (pattern.name or is_set(pattern)):
        return "a principal" if not principal else "an operation" if operation is None else "a name"
    if ":" not in principal:
        raise BadParameterError(unresolved_text(principal))
    if principal == WILDCARD_PRINCIPAL:
        raise BadParameterError("principal User:*: no client has that name")
    if operation is AclOperation.ALL:
        raise BadParameterError("operation: ALL is not a request operation: choose one")
    return _Request(principal=principal, operation=operation, pattern=pattern, host=parameters.host())


def _intervals(timeline: RuleTimeline, request: _Request, history: History) -> Iterable[Interval]:
    # Only rules that cover the name, or one of the names, can contribute: the other rules need not be read.
    settings = history.settings
    acls, pattern = timeline.acls_at(0), request.pattern
    if is_set(pattern):
        covering = AclsImage.from_acls(dict.fromkeys(rules_on(policy_of(acls, settings), pattern)))
    else:
        covering = AclsImage.from_acls(acls.candidates(pattern.resource_type, pattern.name))
    covering = covering.with_options(documented=settings.documented, cidr=settings.cidr)
    begin = Image(acls=covering, provenance=Provenance(end_offset=timeline.begin, timestamp=timeline.begin_time))

    def kafka() -> list[KafkaChange]:
        """Return which Kafka decides when: each moment is decided by that of its time."""
        return history.kafka(timeline, controllers=request.is_of_controllers)

    deciding = None if settings.is_kafka_stated else kafka
    return intervals(begin, timeline.changes, AnyAllowed(request.query), settings, deciding)


def _kafka_of_periods(
    console: Console, timeline: RuleTimeline, request: _Request, periods: list[Interval]
) -> Notice | None:
    """Return why intervals are those of one Kafka only; None if none is."""
    history = console.history
    if history is None or not any(each.only for each in periods):
        return None
    mixed = (each for each in history.kafka(timeline, controllers=request.is_of_controllers) if not each.kafka.is_known)
    *_, last = mixed
    where = "" if last.offset <= timeline.begin else f" from offset {last.offset:,} on"
    return Notice(text=f"Which Kafka decides is not known for all of the history: {last}{where}; {SETTLED_BY}")


def _answer(periods: list[Interval], timeline: RuleTimeline, more: Premises) -> str:
    """Return the answer; `more`: unknown premises that could have allowed it."""
    begin = f"offset {timeline.begin:,}, where the known history begins"
    if not periods:
        return f"{more.decided(f'Never allowed since {begin}' if timeline.begin else 'Never allowed')}."
    last = periods[-1]
    if last.end is None:
        return f"Allowed since {_event_text(last.start)}{only_on(last.only)}."
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
    """Return the intervals in which it was allowed; `answer`: these, and unknown premises that could add some."""
    periods, more = answer
    page = periods[-PAGE_ROWS:]
    remaining = len(periods) - len(page)
    by_kafka = any(each.only for each in periods)
    rows = (_row(each, timeline, request, history) for each in reversed(page))
    if by_kafka:
        rows = (of_kafka(row, each.only) for row, each in zip(rows, reversed(page), strict=True))
    return Table(
        key="intervals",
        title="Allowed, the last interval first",
        columns=(*_COLUMNS, KAFKA_COLUMN) if by_kafka else _COLUMNS,
        rows=tuple(rows),
        none=f"{more.decided('Never allowed in the known history')}.",
        total=len(periods),
        note=f"the last {PAGE_ROWS} of {len(periods):,}: the command line shows all" if remaining else "",
    )


def _row(interval: Interval, timeline: RuleTimeline, request: _Request, history: History) -> Row:
    start, end = interval.start, interval.end
    last = (Cell("now"), Cell(""), Cell("still allowed"), Cell("")) if end is None else _event(end, timeline, history)
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
        return Cell(f"{event.offset:,} or before"), time, Cell("allowed when the history begins"), Cell("")
    return (
        Cell(f"{event.offset:,}", change_url(timeline, event.end_offset)),
        time,
        Cell(_change_text(event.change)),
        Cell(_who(event, timeline, history)),
    )


def _who(event: Event, timeline: RuleTimeline, history: History) -> str:
    position = timeline.position(event.end_offset)
    pairs, unknown = history.with_applies(timeline, timeline.before(position), position)
    apply_note = next((note for change, note in pairs if change is event.change), None)
    if apply_note is None:
        return "unknown" if unknown else ""
    return f"{apply_note.who}, apply {apply_note.apply}"


def _when_ways(request: _Request) -> Links:
    return Links(key="on", title="Further", links=(Cell("why it is decided so now", request.why_url(None)),))


def _when_form(parameters: Parameters) -> Form:
    fields = (
        Field(name="principal", label="Principal", value=parameters.text("principal"), hint=PRINCIPALS),
        choice_of_operation(parameters.word("operation")),
        choice_of_type(parameters.word("type") or "TOPIC", any_type=False),
        Field(name="name", label="Name", value=parameters.text("name"), hint="orders, or pii-*"),
        Field(name="host", label="From host", value=parameters.text("host"), hint="any", is_more=True),
    )
    return Form(key="ask", title="Request", path=WHEN_PATH, fields=fields, submit="When?")


# The page of changes: the difference between two states of the past, and the changes between them.


PATH = CHANGES
AT_ONCE = 100
"""Pages compare states with at most so many different rules by default."""
MOST = 10_000
"""With more different rules, the page refers to the command line."""
_DIFFERENCE = "Access gained and lost"
_WHO_COLUMNS = (
    Column(key="who", title="By"),
    Column(key="git", title="Commit", is_whole=True),
    Column(key="apply", title="Apply", is_whole=True),
)


def changes_page(console: Console, parameters: Parameters) -> Page:
    """Return what changed between two moments. Raises BadParameterError: no such moments."""
    state = console.states.now()
    history = console.history
    if history is None:
        return no_history(console, PATH, "Changes", state.offset)
    current = history.current(state.offset)
    span = span_of(parameters, current, history.live)
    first, last = span.first, span.last
    timeline = current.timeline
    net = history.net(timeline, first.position, last.position)
    compared = _compared(history, timeline, span, net, in_full=parameters.flag("all"))
    opened = Openings() if compared is None else openings(history, timeline, first.offset, last.offset)
    table = _changes_table(history, timeline, span, parameters)
    parts: list[Part] = [span_form(parameters, timeline, span), presets(history, timeline, parameters.word("as_of"))]
    parts.append(strip(history, timeline, span))
    unknown = ALL_KNOWN if compared is None else _turning(state.premises, compared)
    why = "" if compared is None else compared.ambiguity()
    parts.append(_not_compared(span, net) if compared is None else _difference(compared, opened, unknown))
    if first.position == last.position:
        parts += _last_change(timeline)
    parts.append(table)
    parts += [*steps(timeline, span), span_facts(console, timeline, span, net)]
    return Page(
        path=PATH,
        title="Changes",
        answer=_change_answer(span, net, compared, opened, unknown),
        command=console.command.of("diff", "--to-as-of", str(last.offset), as_of=str(first.offset)),
        parts=tuple(parts),
        handles=span_handles(timeline, span),
        notices=history_notices(current, state.offset)
        + tuple(Notice(text=each) for each in (*span.notes, why, _left_off(opened)) if each),
        offset=last.offset,
        data=tuple(difference_objects(compared.comparisons))
        if compared is not None and parameters.word("format") == "json"
        else (),
    )


def comment_file(console: Console, parameters: Parameters) -> File:
    """Return what changed between two moments as the comment of a review: Markdown, the riskiest rows first.

    Raises:
        BadParameterError: no such moments, or they are not compared.

    """
    state, history = console.states.now(), console.history
    if history is None:
        raise BadParameterError("this source has no history: it is a single state")
    current = history.current(state.offset)
    span = span_of(parameters, current, history.live)
    timeline = current.timeline
    net = history.net(timeline, span.first.position, span.last.position)
    compared = _compared(history, timeline, span, net, in_full=True)
    if compared is None:
        raise BadParameterError(f"{len(net):,} rules differ: more than {MOST:,} are not compared here")
    foot = (f"{console.name}: from {span.first} to {span.last}", *filter(None, (compared.ambiguity(),)))
    # Between Kafkas of two generations there is one comparison, or its rows are marked.
    named = {each: one for each, one in compared.comparisons.items() if not isinstance(each, GenerationPair)}
    unknown = _turning(state.premises, compared)
    doubts = (
        *((unknown.decided("every request is decided the same"),) if unknown else ()),
        *(each.text for each in history_notices(current, state.offset)),
        *span.notes,
        *_opening_lines(openings(history, timeline, span.first.offset, span.last.offset)),
    )
    review = Review(
        comparisons=named or {None: next(iter(compared.comparisons.values()))},
        rows=compared.rows,
        foot=foot,
        doubts=doubts,
        fail_on=(),
    )
    content = "".join(f"{line}\n" for line in comment_of_clusters({"": review}))
    name = f"changes-{span.first.offset}-{span.last.offset}.md"
    return File(name=name, content=content, media_type="text/markdown")


def _compared(
    history: History, timeline: RuleTimeline, span: Span, net: tuple[RuleChange, ...], *, in_full: bool
) -> Compared | None:
    first, last = span.first.offset, span.last.offset
    is_cheap = len(net) <= AT_ONCE or history.was_compared(timeline, first, last)
    if not is_cheap and not (in_full and len(net) <= MOST):
        return None
    return history.compared(timeline, first, last, net)


def _turning(premises: Premises, compared: Compared) -> Premises:
    """Return the premises that could give a difference to the states, if they have none."""
    if compared.rows:
        return ALL_KNOWN
    each = (turning_same(premises, comparison) for comparison in compared.comparisons.values())
    return reduce(Premises.also, each, ALL_KNOWN)


def _opening_lines(opened: Openings) -> Iterator[str]:
    for each in opened.found:
        for row in each.rows:
            _, who, what, hosts, *_ = row_cells(row)
            yield f"{each}: {who}: {what} from {hosts}"
    if opened.left_off:
        yield _left_off(opened)


def _left_off(opened: Openings) -> str:
    """Return what of a range was not compared; empty if all was."""
    if not opened.left_off:
        return ""
    return f"{opened.left_off:,} more sets of rules came and went, which were not compared: choose a shorter range"


def _last_change(timeline: RuleTimeline) -> Iterator[Facts]:
    """Yield when the last change was, and the ways to it, for a range without one."""
    if not len(timeline):
        return
    change = timeline.changes[-1]
    time = time_of(change.timestamp)
    items = [
        (
            "Last change",
            Cell(f"{time or f'offset {change.offset:,}'}: {change_text(change)}", last_change_url(timeline)),
        )
    ]
    if time:
        items.append(("Last day with changes", Cell(time[:10], day_url(change.timestamp))))
    yield Facts(key="last-change", title="Last change", items=tuple(items))


def _change_answer(
    span: Span, net: tuple[RuleChange, ...], compared: Compared | None, opened: Openings, unknown: Premises
) -> str:
    """Return the answer; `unknown`: premises that could turn "no difference"."""
    count = sum(len(each.rows) for each in opened.found)
    answer = _net_answer(span, net, compared, unknown)
    return f"{answer.removesuffix('.')}; {count:,} opened and closed within this range" if count else answer


def _net_answer(span: Span, net: tuple[RuleChange, ...], compared: Compared | None, unknown: Premises) -> str:
    """Return the answer about the difference between the two states."""
    count = span.last.position - span.first.position
    where = f"between {span.first} and {span.last}"
    has_rows = compared is not None and bool(compared.rows)
    if not count and not has_rows:
        return f"No rule changes {where}."
    rules = f"{count:,} rule change{'' if count == 1 else 's'} {where}" if count else f"No rule changes {where}"
    if compared is not None and compared.is_upgrade:
        old, new = (each.generations[0] for each in compared.kafka)
        rules = f"{rules}, but another Kafka decides: {old}, then {new}"
    elif not net and not has_rows:
        return f"{rules}, which cancel out: every request is decided the same."
    if compared is None:
        return f"{rules}: {len(net):,} rules differ; effect not computed."
    counts = Counter(direction for report in compared.rows for direction in report.row.directions)
    if not counts:
        return f"{rules}: {unknown.decided('every request is decided the same')}."
    return f"{rules}: {counts[Direction.GAINED]:,} gained, {counts[Direction.LOST]:,} lost"


def _not_compared(span: Span, net: tuple[RuleChange, ...]) -> Facts:
    """Return the link that replaces the difference: an empty table could be taken for "no difference"."""
    if len(net) <= MOST:
        until = None if span.last.is_newest else span.last.parameter
        cell = Cell("compare them", url(PATH, since=span.first.parameter, until=until, all=True))
        why = f"{len(net):,} rules differ; more than {AT_ONCE} are compared on request only"
    else:
        cell = Cell("on the command line below")
        why = f"{len(net):,} rules differ; more than {MOST:,} are not compared here"
    return Facts(key="not-compared", title=_DIFFERENCE, items=((why, cell),))


def _difference(compared: Compared, opened: Openings, unknown: Premises) -> Table:
    """Return the access that differs between two states, or was open in between only, the riskiest first."""
    titles = ("risk", *TITLES)
    columns = tuple(Column(key=title.replace(" ", "_"), title=title.capitalize()) for title in titles)
    within = {id(row): each for each in opened.found for row in each.rows}
    every = (*compared.rows, *(row for each in opened.found for row in each.rows))
    by_kafka = any(each.only for each in every)
    page = by_risk(every)[:PAGE_ROWS]
    rows = ((_difference_row(*each, within.get(id(each[0]))), each[0].only) for each in page)
    remaining = len(every) - len(page)
    return Table(
        key="difference",
        title=_DIFFERENCE,
        columns=(*columns, KAFKA_COLUMN) if by_kafka else columns,
        rows=tuple(of_kafka(row, only) if by_kafka else row for row, only in rows),
        none=f"{unknown.decided('Every request is decided the same')}.",
        total=len(every),
        note=f"the first {PAGE_ROWS} of {len(every):,}: the command line shows all" if remaining else "",
    )


def _difference_row(report: ReportRow, judgement: Judgement, opening: Opening | None) -> Row:
    texts = row_cells(report)
    directions = set(report.row.directions)
    mark = None if len(directions) > 1 else Mark.GAINED if Direction.GAINED in directions else Mark.LOST
    look = RISK_MARKS[judgement.risk]
    if opening is not None:
        texts = (str(opening), *texts[1:])
    cells = (Cell(judgement.risk.name.lower(), mark=look), *map(Cell, texts))
    return Row(key=repr(texts), cells=cells, mark=mark, look=look)


def _changes_table(history: History, timeline: RuleTimeline, span: Span, parameters: Parameters) -> Table:
    """Return the changes between the two states, the newest first."""
    low, high = span.first.position, span.last.position
    first = parameters.number("first", 0, 0, 1 << 40)
    end = max(high - first, low)
    begin = max(end - PAGE_ROWS, low)
    pairs, unknown = history.with_applies(timeline, begin, end)
    columns = (
        Column(key="offset", title="Offset", is_number=True),
        Column(key="time", title="Time", is_whole=True),
        Column(key="change", title="Change"),
        *RULE_COLUMNS,
        *(() if unknown else _WHO_COLUMNS),
    )
    rows = tuple(_change_row(timeline, each, note, knows_who=not unknown) for each, note in reversed(pairs))
    table = Table(
        key="changes",
        title="Rule changes, the newest first",
        columns=columns,
        rows=rows,
        none="No rule changes in between.",
        total=high - low,
        note=unknown,
    )
    others = {name: value for name, value in parameters.values.items() if name not in ("first", "format", "table")}
    return paged(table, first, PATH, **others)


def _change_row(timeline: RuleTimeline, change: Change, note: ApplyNote | None, *, knows_who: bool) -> Row:
    cells = (
        Cell(f"{change.offset:,}", change_url(timeline, change.end_offset)),
        Cell(time_of(change.timestamp)),
        kind_cell(change),
        *rule_cells(change.rule.acl, str(change.end_offset)),
        *(who_cells(note) if knows_who else ()),
    )
    mark = kind_cell(change).mark
    return Row(key=f"{change.offset} {change.rule.id}", cells=cells, mark=mark)
