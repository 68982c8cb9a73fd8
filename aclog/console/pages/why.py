"""The page of a request: the decision, the rules that take part, and what would change it."""

from aclog.analysis.answers.set_decision import explained
from aclog.authorizer.acl import (
    AclOperation,
    ResourcePattern,
    ResourceType,
    acl_text,
)
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.explain import explain
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import Explanation
from aclog.authorizer.explanation_text import explanation_lines
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.name_notation import is_set, pattern_text
from aclog.console.login.visibility import decides_alone
from aclog.console.pages.asked import Asked, BadAskedError, name_parameters, url
from aclog.console.pages.cells import (
    PRINCIPALS,
    RULE_COLUMNS,
    as_of_field,
    choice_of_operation,
    choice_of_type,
    principal_cell,
    rule_cells,
)
from aclog.console.pages.command_line import resource_words
from aclog.console.pages.console import Console
from aclog.console.pages.page import Cell, Column, Field, Form, Lines, Links, Mark, Page, Row, Table
from aclog.console.pages.states import State
from aclog.metalog.errors import ConfigError
from aclog.snapshots.image import Image

PATH = "/why"
_HOST = "127.0.0.1"


def why_page(console: Console, asked: Asked) -> Page:
    """Return why a request is allowed or denied. Raises BadAskedError: no such request."""
    as_of = asked.word("as_of")
    state = console.states.at(as_of)
    form = _form(asked)
    principal, operation = state.principal(asked.text("principal")), asked.operation()
    pattern = asked.resource(asked.resource_type() or ResourceType.TOPIC)
    if not principal or operation is None or not (pattern.name or is_set(pattern)):
        missing = "a principal" if not principal else "an operation" if operation is None else "a name"
        return Page(
            path=PATH,
            title="Why",
            answer=f"Who asks for what? Give {missing}.",
            parts=(form,),
            offset=state.offset,
        )
    found = _explained(console, state, asked, pattern)
    host = asked.host()
    words = ("--principal", principal, "--operation", operation.name, *_words(pattern))
    return Page(
        path=PATH,
        title=f"Why: {principal} {operation.name} {pattern_text(pattern) if is_set(pattern) else pattern.name}",
        answer=next(iter(explanation_lines(found))),
        mark=Mark.GOOD if found.allowed else Mark.DENY,
        command=console.command.of("explain", *words, *(() if host is None else ("--host", host)), as_of=as_of),
        parts=(
            form,
            _ways(console, asked, operation, pattern),
            _rules(found, as_of),
            _trace(found),
            _remedy(found),
        ),
        offset=state.offset,
        data=[found.to_dict()],
    )


def _explained(console: Console, state: State, asked: Asked, pattern: ResourcePattern) -> Explanation:
    operation, host = asked.operation(), asked.host()
    if operation is None or operation is AclOperation.ALL:
        raise BadAskedError("operation: nobody asks for ALL: expected one operation")
    principal = state.principal(asked.text("principal"))
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
        told = str(error) if console.own is None else "Kafka's authorizer fails on this, for a rule that you do not see"
        raise BadAskedError(told) from error
    return explain(state.policy.acls, decision, context, action, options=options)


def _of_set(
    console: Console, state: State, context: RequestContext, action: Action, options: ExplainOptions
) -> Explanation:
    """Return why all names that begin so are decided alike. Raises BadAskedError: they are not."""
    whole = state.whole or state.policy
    if console.own is not None and not decides_alone(Image(acls=whole.acls), whole.settings):
        # Examples could be names of rules that he does not see.
        raise BadAskedError("rules that you do not see may decide on some of these names: ask about one name")
    try:
        return explained(state.policy, context, action, options)
    except ConfigError as error:
        raise BadAskedError(str(error)) from error


def _words(pattern: ResourcePattern) -> tuple[str, ...]:
    return resource_words(pattern.resource_type, pattern.name, pattern.pattern_type)


def _ways(console: Console, asked: Asked, operation: AclOperation, pattern: ResourcePattern) -> Links:
    as_of, principal = asked.word("as_of"), asked.word("principal")
    where = name_parameters(pattern)
    when = url("/when", principal=principal, operation=operation.name, **where, host=asked.host())
    return Links(
        key="on",
        title="Further",
        links=(
            Cell(f"all that {principal} may do", principal_cell(principal, as_of).url),
            Cell(
                f"everyone who can {operation.name} it",
                url("/resource", **where, as_of=as_of, operation=operation.name),
            ),
            *((Cell("when this was allowed", when),) if console.own is None else ()),
        ),
    )


def _rules(found: Explanation, as_of: str) -> Table:
    rows = tuple(
        Row(
            key=repr(each.rule.acl),
            cells=(Cell(each.role.value), *rule_cells(each.rule.acl, as_of), Cell("; ".join(each.notes))),
        )
        for each in found.rules
    )
    total = sum(found.counts.values())
    return Table(
        key="rules",
        title="Rules that cover the resource, the one that decides first",
        columns=(Column(key="role", title="Role"), *RULE_COLUMNS, Column(key="notes", title="Notes")),
        rows=rows,
        none="No rule covers this resource.",
        total=total,
        note=f"{found.left_off:,} more are counted and not shown" if found.left_off else "",
    )


def _trace(found: Explanation) -> Lines:
    return Lines(key="trace", title="In words", lines=tuple(explanation_lines(found)))


def _remedy(found: Explanation) -> Table:
    rows = tuple(
        Row(
            key=repr(each),
            mark=Mark.ADDED if each.add else Mark.REMOVED,
            cells=(Cell("add" if each.add else "remove"), Cell(acl_text(each.acl)), Cell(each.command or "")),
        )
        for each in found.remedy.changes
    )
    return Table(
        key="remedy",
        title="It would be denied by" if found.allowed else "It would be allowed by",
        columns=(
            Column(key="change", title="Change"),
            Column(key="rule", title="Rule"),
            Column(key="command", title="Command line"),
        ),
        rows=rows,
        none="; ".join(found.remedy.notes) or "No change of a rule.",
        note="; ".join(found.remedy.notes) if rows else "",
    )


def _form(asked: Asked) -> Form:
    fields = (
        Field(name="principal", label="Principal", value=asked.text("principal"), hint=PRINCIPALS),
        choice_of_operation(asked.word("operation")),
        choice_of_type(asked.word("type") or "TOPIC", any_type=False),
        Field(name="name", label="Name", value=asked.text("name"), hint="orders, or pii-*"),
        Field(name="host", label="From host", value=asked.text("host"), hint=_HOST),
        as_of_field(asked.text("as_of")),
    )
    return Form(key="ask", title="Request", path=PATH, fields=fields, submit="Why?")
