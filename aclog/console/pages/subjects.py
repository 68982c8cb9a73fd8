"""The pages of a principal, a resource and a search."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from attrs import evolve

from aclog.analysis.intents import Intent, needs_of
from aclog.analysis.regions import (
    EVERYONE,
    EVERYWHERE,
    REQUESTED,
    Principals,
    Query,
    hosts_text,
    names_text,
    only,
    operations_of,
    operations_text,
)
from aclog.analysis.who_can import (
    SUPER_USER,
    Permission,
    RulesAbout,
    intent_permissions,
    permission_object,
    permissions,
    rules_about,
    with_extents,
)
from aclog.authorizer.acl import (
    AclBindingFilter,
    Origins,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    acl_text,
    code_name,
    places_text,
)
from aclog.authorizer.codes import SUPPORTED_OPERATIONS, WILDCARD_PRINCIPAL, AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import parse_name, pattern_text
from aclog.authorizer.standard import Premises
from aclog.console.listing import Criteria, Listing, NameKey, key_of
from aclog.console.listing import pattern_text as searched_pattern_text
from aclog.console.pages.lists import branch_tables, similar_names
from aclog.console.pages.page import (
    ANY,
    PAGE_ROWS,
    PRINCIPALS,
    BadParameterError,
    Cell,
    Column,
    Field,
    Form,
    Kind,
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
    choice_of_pattern,
    choice_of_type,
    cut,
    paged,
    principal_cell,
    principals_cell,
    resource_url,
    resource_words,
    rule_table,
    unresolved_text,
    url,
)
from aclog.console.pages.questions import FORMS, AskedRule, Question, is_question, is_rule, questions
from aclog.console.pages.span import is_settled, known_history, latest_table, since_of
from aclog.console.pages.states import Console, State
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.values import frozen

# Tables of permissions, and of the rules that grant them.


_RULES = 6
"""Rules that a cell names."""
COLUMNS = (
    Column(key="who", title="Who"),
    Column(key="operations", title="May"),
    Column(key="resource", title="On"),
    Column(key="hosts", title="From"),
    Column(key="why", title="Granted by"),
    Column(key="denies", title="Limited by (DENY)"),
)


def permission_table(
    rights: Iterable[Permission], origins: Origins, *, key: str, title: str, none: str, as_of: str = ""
) -> Table:
    """Return permissions as a table, a row for each principal that is named; super users last."""
    ordered = sorted(rights, key=lambda each: each.rules == (SUPER_USER,))
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
    # A rule whose principal has no colon makes Kafka's authorizer throw for every request.
    return rule.principal in (principal, WILDCARD_PRINCIPAL) or ":" not in rule.principal


def permission_row(permission: Permission, origins: Origins, as_of: str = "") -> Row:
    """Return the row of a permission: principal, operation, resource, host, and the rules that grant it."""
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


# The page of a principal: its permissions, folded, and every rule with its name.


PRINCIPAL_PATH = "/principal"
_MOST = 5_000


def principal_page(console: Console, parameters: Parameters) -> Page:
    """Return the permissions of a principal; without one, all principals with rules."""
    as_of = parameters.word("as_of")
    state = console.states.at(as_of)
    name = state.principal(parameters.text("name"))
    form = Form(
        key="ask",
        title="Principal",
        path=PRINCIPAL_PATH,
        fields=(
            Field(name="name", label="Principal", value=parameters.text("name"), hint=PRINCIPALS),
            Field(name="host", label="From host", value=parameters.text("host"), hint="any", is_more=True),
            as_of_field(parameters.text("as_of")),
        ),
        submit="Show permissions",
    )
    if not name:
        return _all(state, parameters, form)
    parts: list[Part] = [form]
    notices: tuple[Notice, ...] = ()
    data, answer, rules_only = [], "rules for all users apply to each principal", True
    if name != WILDCARD_PRINCIPAL:
        console.check_own(name)
    if ":" in name and name != WILDCARD_PRINCIPAL:
        query = Query(principals=only(name), host=parameters.host())
        rights = list(islice(permissions(state.policy, query), _MOST))
        data, rules_only = [permission_object(each, console.origins) for each in rights], False
        more = state.premises.turning(allowed=False)
        none = f"{more.decided('No permissions')}."
        parts.append(permission_table(rights, console.origins, key="may", title="May", none=none, as_of=as_of))
        parts += _history(console, as_of, name)
        answer = _permissions(len(rights)) if rights else more.decided("no permissions")
        if name in state.policy.settings.super_users:
            answer = "super user, all operations are allowed"
        parts.append(_denied(console, state, query, as_of))
    elif ":" not in name and name in state.listing.principals:
        notices = (Notice(text=f"Not TYPE:NAME, such as {PRINCIPALS}: no client is this principal."),)
        answer = "no client is this principal"
    elif ":" not in name:
        raise BadParameterError(unresolved_text(name))
    parts.append(_rules(console, state, name, parameters))
    return Page(
        path=PRINCIPAL_PATH,
        title=name,
        answer=f"{name}: {answer}",
        command=_what_can(console, parameters, name) if data or not rules_only else None,
        parts=tuple(parts),
        notices=notices,
        offset=state.offset,
        is_settled=is_settled(console, state.offset),
        data=data,
    )


def _what_can(console: Console, parameters: Parameters, name: str) -> str | None:
    host = parameters.host()
    flags = () if host is None else ("--host", host)
    return console.command.of("what-can", "--principal", name, *flags, as_of=parameters.word("as_of"))


_LATEST = 10
"""Changes that the page of a principal or a resource has."""


def _history(console: Console, as_of: str, about: str | ResourcePattern) -> Iterator[Table]:
    """Yield the newest changes of the rules of a principal, or on a resource, if there is a history."""
    history, current = console.history, None if as_of else known_history(console)
    if history is None or current is None:
        return
    timeline = current.timeline
    if isinstance(about, str):
        positions = history.index.positions(timeline, about)
    else:
        positions = history.index.positions_on(timeline, about)
    changes = history.at_positions(timeline, positions[-_LATEST:])
    left_off = len(positions) - len(changes)
    begin = f"known from offset {timeline.begin:,} to offset {timeline.end:,}"
    note = f"the last {_LATEST} of {len(positions):,}; {begin}" if left_off else begin
    none = "No changes in the known history."
    table = latest_table(timeline, changes, title="Last changes of these rules", none=none)
    yield evolve(table, note=note, total=len(positions), is_folded=True)


def _permissions(count: int) -> str:
    return f"the first {_MOST:,} permissions" if count == _MOST else plural(count, "permission")


def _denied(console: Console, state: State, query: Query, as_of: str) -> Table:
    denying = [StandardAclWithId(id=None, acl=acl) for acl in RulesAbout.of(state.policy, query).denying]
    none = "No DENY rules. Anything not allowed is denied by default."
    return cut(rule_table(denying, console.origins, key="denied", title="Denied", none=none, as_of=as_of))


def _rules(console: Console, state: State, name: str, parameters: Parameters) -> Table:
    as_of = parameters.word("as_of")
    rules = sorted(state.policy.acls.matching(AclBindingFilter(principal=name)), key=lambda rule: key_of(rule.acl))
    first = parameters.number("first", 0, 0, 1 << 40)
    table = rule_table(
        rules,
        console.origins,
        key="rules",
        title="Rules with this principal",
        none="No rules with this principal.",
        as_of=as_of,
        uses=None if as_of else console.uses,
        since=since_of(console, state.offset),
        first=first,
    )
    return paged(table, first, PRINCIPAL_PATH, name=name, as_of=as_of)


def _all(state: State, parameters: Parameters, form: Form) -> Page:
    as_of = parameters.word("as_of")
    principals = state.listing.principals
    first = parameters.number("first", 0, 0, 1 << 40)
    rows = tuple(
        Row(key=name, cells=(principal_cell(name, as_of), Cell(f"{count:,}")))
        for name, count in islice(principals.items(), first, first + PAGE_ROWS)
    )
    table = Table(
        key="principals",
        title="Principals with rules",
        columns=(Column(key="principal", title="Principal"), Column(key="rules", title="Rules", is_number=True)),
        rows=rows,
        none="No principals in rules.",
        total=len(principals),
    )
    return Page(
        path=PRINCIPAL_PATH,
        title="Principals",
        answer=f"{plural(len(principals), 'principal')} with rules",
        parts=(form, paged(table, first, PRINCIPAL_PATH, as_of=as_of)),
        offset=state.offset,
    )


# The page of a resource: all principals with access to it, and the rules that grant it.


RESOURCE_PATH = "/resource"
_MOST_HOLDERS = 2_000
"""Permissions that are computed; a page shows fewer."""


@frozen(kw_only=True)
class _Question:
    resource: ResourcePattern
    operation: AclOperation | None
    intent: Intent | None
    host: str | None

    @property
    def mask(self) -> int:
        return REQUESTED if self.operation is None else 1 << self.operation

    def query(self, who: Principals = EVERYONE) -> Query:
        """Return its requests by some principals; those of an intent are any operations."""
        return Query(resources=(self.resource,), operations=self.mask, principals=who, host=self.host)

    def words(self) -> tuple[str, ...]:
        """Return it as flags."""
        flags = resource_words(self.resource.resource_type, self.resource.name, self.resource.pattern_type)
        what = ("--intent", self.intent.value) if self.intent is not None else ()
        if self.operation is not None:
            what = ("--operation", self.operation.name)
        return (*what, *flags, *(() if self.host is None else ("--host", self.host)))


def resource_page(console: Console, parameters: Parameters) -> Page:
    """Return the permissions on a resource, or on a prefix. Raises BadParameterError: an invalid request."""
    as_of = parameters.word("as_of")
    state = console.states.at(as_of)
    form = _form(parameters)
    if (
        not parameters.text("name")
        and parameters.resource_type() != ResourceType.CLUSTER
        and not parameters.pattern_type()
    ):
        answer = "Enter a name, or choose one below" if state.listing.types else "No rules."
        return Page(
            path=RESOURCE_PATH,
            title="Who can",
            answer=answer,
            parts=(form, *branch_tables(state, _FIRST_NAMES, as_of)),
            offset=state.offset,
        )
    question = _question(parameters)
    who = EVERYONE if console.own is None else only(console.own.principal)
    rights, is_all = _holders(state, question, who)
    resource = question.resource
    name = pattern_text(resource)
    what = _what(question)
    everyone = any(each.region.principals.complement and each.rules != ("SuperUser",) for each in rights)
    more = state.premises.turning(allowed=False)
    answer = f"{what} {code_name(ResourceType, resource.resource_type)} {name}: " + (
        _who(rights, more, everyone=everyone) if console.own is None else _own(console.own.principal, rights, more)
    )
    none = f"{more.decided('No principals have access')}."
    table = permission_table(
        rights, console.origins, key="who", title="Who can access it, and why", none=none, as_of=as_of
    )
    return Page(
        path=RESOURCE_PATH,
        title=f"Who can access {name}",
        answer=answer + ("" if is_all else f" (the first {_MOST_HOLDERS:,})"),
        command=console.command.of("who-can", *question.words(), as_of=as_of) if console.own is None else None,
        parts=(
            form,
            *similar_names(state, resource, RESOURCE_PATH, parameters),
            _operations(parameters, question),
            *_matrix(rights, question, as_of),
            evolve(table, is_folded=bool(rights) and question.intent is None),
            *_denies(console, state, question, as_of),
            *_resource_rules(console, state, question, as_of),
            *_history(console, as_of, resource),
        ),
        offset=state.offset,
        is_settled=is_settled(console, state.offset),
        data=[permission_object(each, console.origins) for each in rights],
    )


_MATRIX = 100
"""Rows of a matrix; the table below it has more."""


def _matrix(rights: Iterable[Permission], question: _Question, as_of: str) -> Iterator[Table]:
    """Yield principals by operations, those with most operations first; not for an intent, which needs all."""
    if question.intent is not None or not rights:
        return
    cells: dict[str, tuple[Cell, dict[AclOperation, set[str]]]] = {}
    for each in (one for permission in rights for one in of_each_principal(permission)):
        region = each.region
        cell = principals_cell(region.principals, as_of)
        if each.rules == (SUPER_USER,):
            cell = evolve(cell, others=(Cell("super user"),))
        _, operations = cells.setdefault(cell.text, (cell, {}))
        for operation in operations_of(region.operations):
            operations.setdefault(operation, set()).add(_limits(each))
    kind = ResourceType(question.resource.resource_type)
    listed = SUPPORTED_OPERATIONS[kind] if question.operation is None else (question.operation,)
    ordered = sorted(cells.values(), key=lambda item: (-len(item[1]), item[0].text))
    yield Table(
        key="matrix",
        title="Access by operation",
        columns=(
            Column(key="who", title="Who"),
            *(Column(key=each.name, title=each.name) for each in listed),
        ),
        rows=tuple(
            Row(key=cell.text, cells=(cell, *(_limits_cell(operations.get(each)) for each in listed)))
            for cell, operations in ordered[:_MATRIX]
        ),
        none="",
        total=len(ordered),
        note=f"the {_MATRIX} with most operations of {len(ordered):,}" if len(ordered) > _MATRIX else "",
        is_matrix=True,
    )


def _limits(permission: Permission) -> str:
    """Return what limits a permission: its hosts, or its names; empty for every host and the whole resource."""
    hosts = permission.region.hosts
    is_partial = permission.extent is not None and not permission.extent.is_all
    return "; ".join(
        text for text in ("" if hosts == EVERYWHERE else hosts_text(hosts), "some names" * is_partial) if text
    )


def _limits_cell(limits: set[str] | None) -> Cell:
    if limits is None:
        return Cell("")
    if "" in limits:
        return Cell("yes", mark=Mark.ALLOW)
    return Cell("; ".join(sorted(limits)), mark=Mark.WARNING)


_FIRST_NAMES = 20


def _question(parameters: Parameters) -> _Question:
    kind = parameters.resource_type() or ResourceType.TOPIC
    intent, operation = parameters.word("intent"), parameters.operation()
    if operation is AclOperation.ALL:
        operation = None
    if intent and intent not in set(Intent):
        raise BadParameterError(f"intent {intent[:40]!r}: expected one of {', '.join(Intent)}")
    return _Question(
        resource=parameters.resource(kind),
        operation=operation,
        intent=Intent(intent) if intent and operation is None else None,
        host=parameters.host(),
    )


def _holders(state: State, question: _Question, who: Principals) -> tuple[list[Permission], bool]:
    """Return the permissions on it, and whether they are all."""
    if question.intent is None:
        source: Iterator[Permission] = permissions(state.policy, question.query(who))
    else:
        try:
            needs = needs_of(question.intent, (question.resource,))
        except ConfigError as error:
            raise BadParameterError(str(error)) from error
        source = intent_permissions(state.policy, needs, principals=who, host=question.host)
    rights: list[Permission] = []
    for each in with_extents(source, (question.resource,)):
        if len(rights) == _MOST_HOLDERS:
            return rights, False
        rights.append(each)
    return rights, True


def _what(question: _Question) -> str:
    if question.intent is not None:
        return f"{question.intent.value} with"
    return "any operation on" if question.operation is None else f"{question.operation.name} on"


def _who(rights: list[Permission], more: Premises, *, everyone: bool) -> str:
    """Return the answer; `more`: unknown premises that could add a principal."""
    if not rights:
        return more.decided("no principals")
    named = {each for one in rights if not one.region.principals.complement for each in one.region.principals.named}
    if everyone:
        return "all principals except those named below"
    return more.decided(plural(len(named), "principal"))


def _own(principal: str, rights: list[Permission], more: Premises) -> str:
    return f"{principal} can" if rights else more.decided(f"{principal} cannot")


def _operations(parameters: Parameters, question: _Question) -> Links:
    """Return the links to the same resource with each operation, and with each intent that uses it."""
    common = {name: parameters.text(name) for name in ("type", "name", "pattern", "host", "as_of")}
    ways = [Cell("any operation", url(RESOURCE_PATH, **common))]
    operations = SUPPORTED_OPERATIONS[ResourceType(question.resource.resource_type)]
    ways += [Cell(each.name, url(RESOURCE_PATH, **common, operation=each.name)) for each in operations]
    ways += [Cell(each.value, url(RESOURCE_PATH, **common, intent=each.value)) for each in _intents(question.resource)]
    return Links(key="operations", title="Who can", links=tuple(ways))


def _intents(resource: ResourcePattern) -> Iterator[Intent]:
    """Yield the intents that use a resource, and need no other one to be named."""
    for each in Intent:
        try:
            needs_of(each, (resource,))
        except ConfigError:
            continue
        yield each


def _denies(console: Console, state: State, question: _Question, as_of: str) -> tuple[Table, ...]:
    rules = [StandardAclWithId(id=None, acl=acl) for acl in RulesAbout.of(state.policy, question.query()).denying]
    if not rules:
        return ()
    title = "DENY rules here"
    return (cut(rule_table(rules, console.origins, key="denies", title=title, none="No rules.", as_of=as_of)),)


def _resource_rules(console: Console, state: State, question: _Question, as_of: str) -> tuple[Table, ...]:
    resource = question.resource
    if resource.pattern_type != PatternType.LITERAL:
        return ()
    about = set(rules_about(state.policy, question.query()))
    covering = state.policy.acls.candidates(resource.resource_type, resource.name)
    rules = [each for each in covering if each.acl in about]
    table = rule_table(
        rules,
        console.origins,
        key="rules",
        title="Matching rules",
        none="No matching rules.",
        as_of=as_of,
        uses=None if as_of else console.uses,
        since=since_of(console, state.offset),
    )
    return (cut(table),)


def _form(parameters: Parameters) -> Form:
    kind = parameters.resource_type() or ResourceType.TOPIC
    pattern = ResourcePattern(resource_type=kind, name=parameters.text("name") or "x")
    intents = (ANY, *((each.value, each.value) for each in _intents(pattern)))
    fields = (
        choice_of_type(parameters.word("type") or "TOPIC", any_type=False),
        Field(name="name", label="Name", value=parameters.text("name"), hint="orders, or pii-*"),
        choice_of_pattern(parameters.word("pattern"), default="as named; x* is a prefix"),
        choice_of_operation(parameters.word("operation")),
        Field(
            name="intent",
            label="Intent",
            value=parameters.word("intent"),
            kind=Kind.CHOICE,
            choices=intents,
            is_more=True,
        ),
        Field(name="host", label="From host", value=parameters.text("host"), hint="any", is_more=True),
        as_of_field(parameters.text("as_of")),
    )
    return Form(key="ask", title="Who can", path=RESOURCE_PATH, fields=fields, submit="Who can?")


# The page of a search: names and principals that contain a text.


SEARCH_PATH = "/search"


def search_page(console: Console, parameters: Parameters) -> Page:
    """Return principals and resources whose name has a text in it, in any case; or begins with it, for `pii-*`.

    A text such as `who can read orders` also has the questions that it may be.

    Raises:
        BadParameterError: a star is neither at the end nor escaped (aclog.authorizer.settings).

    """
    text, as_of = parameters.word("q"), parameters.word("as_of")
    state = console.states.at(as_of)
    parsed = questions(console, state, text, as_of)
    if is_rule(text):
        return _rule_search(console, state, parameters, parsed)
    query = _NameQuery(text, False) if parsed or is_question(text) else _NameQuery.of(text)
    principals, resources = cut(_principals(state, query, as_of)), cut(_resources(state, query, as_of))
    links = Links(key="questions", title="Questions", links=tuple(Cell(each.words, each.address) for each in parsed))
    names = " and ".join(plural(table.total or 0, table.key.removesuffix("s")) for table in (principals, resources))
    rules = () if parsed or is_question(text) else tuple(_rules_with(console, state, text, as_of))
    has_names = bool(principals.rows or resources.rows)
    is_unanswered = not parsed and (is_question(text) or (not (has_names or rules) and len(text.split()) > 1))
    return Page(
        path=SEARCH_PATH,
        title=f"Find {text}" if text else "Find",
        answer=_search_answer(text, len(parsed), f"{names} {query.have_it}"),
        notices=(Notice(text=f"Questions are such as: {'; '.join(FORMS)}"),) if is_unanswered else (),
        parts=(_search_form(parameters), links, *((principals, resources) if has_names or not rules else ()), *rules),
        offset=state.offset,
        leads_to=_destination(parsed),
    )


def _rules_with(console: Console, state: State, text: str, as_of: str) -> Iterator[Table]:
    """Yield the rules that have all words of a text, if there are any."""
    rules = state.listing.find(Criteria(anything=text)) if text else ()
    if rules:
        table = rule_table(
            rules,
            console.origins,
            key="rules",
            title="Rules",
            none="",
            as_of=as_of,
            uses=None if as_of else console.uses,
            since=since_of(console, state.offset),
        )
        yield evolve(cut(table), pages=(Cell("filter these rules", url("/rules", q=text, as_of=as_of)),))


def _search_form(parameters: Parameters) -> Form:
    return Form(
        key="search",
        title="Find",
        path=SEARCH_PATH,
        fields=(Field(name="q", label="Name", value=parameters.text("q")), as_of_field(parameters.text("as_of"))),
        submit="Find",
    )


def _rule_search(console: Console, state: State, parameters: Parameters, parsed: Sequence[Question]) -> Page:
    """Return the page of a text that begins as a rule: whether it exists, and its draft; or why it is invalid."""
    notices: list[Notice] = []
    try:
        rule = AskedRule.of(parameters.word("q"))
    except ConfigError as error:
        answer = "Not understood as a rule"
        notices.append(Notice(text=str(error), mark=Mark.ERROR))
    else:
        is_known = rule is not None and rule.is_in(state)
        known = "" if console.own is None else " among those that you see"
        answer = "The rule exists" if is_known else f"No such rule{known}"
    return Page(
        path=SEARCH_PATH,
        title="Find a rule",
        answer=answer,
        notices=tuple(notices),
        parts=(
            _search_form(parameters),
            Links(key="questions", title="Further", links=tuple(Cell(each.words, each.address) for each in parsed)),
        ),
        offset=state.offset,
        leads_to=_destination(parsed),
    )


def _search_answer(text: str, asked: int, names: str) -> str:
    if asked:
        return plural(asked, "matching question")
    # "No names have it" could be taken for "no access".
    return f"Not understood as a question; {names}" if is_question(text) else names


def _destination(asked: Sequence[Question]) -> str | None:
    """Return the address of the only question that a text states in full."""
    complete = [each.address for each in asked if each.is_complete]
    return complete[0] if len(complete) == 1 else None


@frozen
class _NameQuery:
    text: str
    is_prefix: bool

    @classmethod
    def of(cls, text: str) -> "_NameQuery":
        """Return the query of a text. Raises BadParameterError."""
        try:
            name, pattern_type = parse_name(text)
        except ConfigError as error:
            raise BadParameterError(str(error)) from error
        return cls(name, pattern_type is PatternType.PREFIXED)

    @property
    def have_it(self) -> str:
        """Return how matching names relate to the text."""
        return "begin with it" if self.is_prefix else "have it in their name"

    def is_in(self, name: str) -> bool:
        """Return whether a name has the text, or begins with it."""
        text, lower = self.text.lower(), name.lower()
        return lower.startswith(text) if self.is_prefix else text in lower

    def is_in_principal(self, principal: str) -> bool:
        """Return the same of a principal, with its type or without."""
        return self.is_in(principal) or (self.is_prefix and self.is_in(principal.partition(":")[2]))


def _principals(state: State, query: _NameQuery, as_of: str) -> Table:
    text = query.text
    names = [name for name in state.listing.principals if query.is_in_principal(name)]
    exact = sorted(names, key=lambda name: (name.partition(":")[2] != text and name != text, name))
    return Table(
        key="principals",
        title="Principals",
        columns=(Column(key="principal", title="Principal"), Column(key="rules", title="Rules", is_number=True)),
        rows=tuple(
            Row(key=name, cells=(principal_cell(name, as_of), Cell(f"{state.listing.principals[name]:,}")))
            for name in exact[:PAGE_ROWS]
        ),
        none="No matching principals in rules.",
        total=len(names),
    )


def _resources(state: State, query: _NameQuery, as_of: str) -> Table:
    text = query.text
    named = (each for each in state.listing.found_names(text) if query.is_in(each[1]))
    names = sorted(named, key=lambda each: each[1] != text)
    return Table(
        key="resources",
        title="Resources",
        columns=(
            Column(key="resourceType", title="Type"),
            Column(key="resourceName", title="Resource"),
            Column(key="rules", title="Rules", is_number=True),
        ),
        rows=tuple(_row(state.listing, each, as_of) for each in names[:PAGE_ROWS]),
        none="No rules on a matching name; rules on prefixes may still cover it.",
        total=len(names),
    )


def _row(listing: Listing, key: NameKey, as_of: str) -> Row:
    kind, name, pattern = key
    cells = (
        Cell(code_name(ResourceType, kind)),
        Cell(searched_pattern_text(name, pattern), resource_url(kind, name, pattern, as_of)),
        Cell(f"{listing.count(kind, name, pattern):,}"),
    )
    return Row(key=f"{kind} {name} {pattern}", cells=cells)
