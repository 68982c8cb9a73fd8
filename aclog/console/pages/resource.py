"""The page of a resource: everybody who can do something with it, and why."""

from collections.abc import Iterator

from attrs import frozen

from aclog.analysis.answers.intents import Intent, needs_of
from aclog.analysis.answers.permission_report import permission_object
from aclog.analysis.answers.permissions import Permission, intent_permissions, permissions, with_extents
from aclog.analysis.answers.rules_about import RulesAbout
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.principals import EVERYONE, Principals, only
from aclog.analysis.regions.query import Query
from aclog.authorizer.acl import (
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAclWithId,
    code_name,
)
from aclog.authorizer.name_notation import pattern_text
from aclog.authorizer.premises import Premises
from aclog.console.pages.asked import Asked, BadAskedError, url
from aclog.console.pages.cells import (
    ANY,
    as_of_field,
    choice_of_operation,
    choice_of_pattern,
    choice_of_type,
    cut,
    rule_table,
)
from aclog.console.pages.command_line import resource_words
from aclog.console.pages.console import Console
from aclog.console.pages.page import Cell, Field, Form, Kind, Links, Page, Table
from aclog.console.pages.permissions import permission_table
from aclog.console.pages.states import State
from aclog.metalog.errors import ConfigError

PATH = "/resource"
_MOST = 2_000
"""Permissions that are looked for; a page shows fewer."""


@frozen(kw_only=True)
class _Question:
    resource: ResourcePattern
    operation: AclOperation | None
    intent: Intent | None
    host: str | None

    @property
    def mask(self) -> int:
        return REQUESTED if self.operation is None else 1 << self.operation

    def words(self) -> tuple[str, ...]:
        """Return it as flags."""
        found = resource_words(self.resource.resource_type, self.resource.name, self.resource.pattern_type)
        what = ("--intent", self.intent.value) if self.intent is not None else ()
        if self.operation is not None:
            what = ("--operation", self.operation.name)
        return (*what, *found, *(() if self.host is None else ("--host", self.host)))


def resource_page(console: Console, asked: Asked) -> Page:
    """Return who can do what with a resource, or with all that begin so. Raises BadAskedError: no such question."""
    as_of = asked.word("as_of")
    state = console.states.at(as_of)
    form = _form(asked)
    if not asked.text("name") and asked.resource_type() != ResourceType.CLUSTER and not asked.pattern_type():
        return Page(path=PATH, title="Who can", answer="Which resource?", parts=(form,), offset=state.offset)
    question = _question(asked)
    who = EVERYONE if console.own is None else only(console.own.principal)
    found, is_all = _found(state, question, who)
    resource = question.resource
    name = pattern_text(resource)
    what = _what(question)
    everyone = any(each.region.principals.complement and each.rules != ("SuperUser",) for each in found)
    more = state.premises.turning(allowed=False)
    answer = f"{what} {code_name(ResourceType, resource.resource_type)} {name}: " + (
        _who(found, more, everyone=everyone) if console.own is None else _own(console.own.principal, found, more)
    )
    none = f"{more.decided('Nobody can')}."
    table = permission_table(found, console.origins, key="who", title="Who can, and why", none=none, as_of=as_of)
    command = None
    if question.operation is not None or question.intent is not None:
        command = console.command.of("who-can", *question.words(), as_of=as_of)
    else:
        command = console.command.of("who-can", "--operation", "READ", *question.words(), as_of=as_of)
    return Page(
        path=PATH,
        title=f"Who can, on {name}",
        answer=answer + ("" if is_all else f" (the first {_MOST:,})"),
        command=command,
        parts=(
            form,
            _operations(asked),
            table,
            *_denies(console, state, question, as_of),
            *_rules(console, state, question, as_of),
        ),
        offset=state.offset,
        data=[permission_object(each, console.origins) for each in found],
    )


def _question(asked: Asked) -> _Question:
    kind = asked.resource_type() or ResourceType.TOPIC
    intent, operation = asked.word("intent"), asked.operation()
    if operation is AclOperation.ALL:
        operation = None
    if intent and intent not in set(Intent):
        raise BadAskedError(f"intent {intent[:40]!r}: expected one of {', '.join(Intent)}")
    return _Question(
        resource=asked.resource(kind),
        operation=operation,
        intent=Intent(intent) if intent and operation is None else None,
        host=asked.host(),
    )


def _found(state: State, question: _Question, who: Principals) -> tuple[list[Permission], bool]:
    """Return who is allowed something of it, and whether these are all."""
    if question.intent is None:
        query = Query(resources=(question.resource,), operations=question.mask, principals=who, host=question.host)
        source: Iterator[Permission] = permissions(state.policy, query)
    else:
        try:
            needs = needs_of(question.intent, (question.resource,))
        except ConfigError as error:
            raise BadAskedError(str(error)) from error
        source = intent_permissions(state.policy, needs, principals=who, host=question.host)
    found: list[Permission] = []
    for each in with_extents(source, (question.resource,)):
        if len(found) == _MOST:
            return found, False
        found.append(each)
    return found, True


def _what(question: _Question) -> str:
    if question.intent is not None:
        return f"{question.intent.value} with"
    return "anything on" if question.operation is None else f"{question.operation.name} on"


def _who(found: list[Permission], more: Premises, *, everyone: bool) -> str:
    """Return who can; `more`: what is unknown and could add somebody."""
    if not found:
        return more.decided("nobody")
    named = {each for one in found if not one.region.principals.complement for each in one.region.principals.named}
    if everyone:
        return "anyone, but for those named below"
    return more.decided(f"{len(named):,} principal{'' if len(named) == 1 else 's'}, and nobody else")


def _own(principal: str, found: list[Permission], more: Premises) -> str:
    return f"{principal} can" if found else more.decided(f"{principal} cannot")


def _operations(asked: Asked) -> Links:
    """Return the ways to each intent, and to those whom nobody named."""
    kept = {name: asked.text(name) for name in ("type", "name", "pattern", "host", "as_of")}
    ways = [Cell("anything", url(PATH, **kept))]
    operations = AclOperation.READ, AclOperation.WRITE
    ways += [Cell(each.name, url(PATH, **kept, operation=each.name)) for each in operations]
    ways += [Cell(intent.value, url(PATH, **kept, intent=intent.value)) for intent in Intent]
    return Links(key="operations", title="Who can", links=tuple(ways))


def _denies(console: Console, state: State, question: _Question, as_of: str) -> tuple[Table, ...]:
    query = Query(resources=(question.resource,), operations=question.mask, host=question.host)
    found = [StandardAclWithId(id=None, acl=acl) for acl in RulesAbout.of(state.policy, query).denying]
    if not found:
        return ()
    title = "What denies something here"
    return (cut(rule_table(found, console.origins, key="denies", title=title, none="No rule.", as_of=as_of)),)


def _rules(console: Console, state: State, question: _Question, as_of: str) -> tuple[Table, ...]:
    resource = question.resource
    if resource.pattern_type != PatternType.LITERAL:
        return ()
    found = list(state.policy.acls.candidates(resource.resource_type, resource.name))
    table = rule_table(
        found,
        console.origins,
        key="rules",
        title="Every rule that covers it",
        none="No rule covers it.",
        as_of=as_of,
        uses=None if as_of else console.uses,
    )
    return (cut(table),)


def _form(asked: Asked) -> Form:
    intents = (ANY, *((each.value, each.value) for each in Intent))
    fields = (
        choice_of_type(asked.word("type") or "TOPIC", any_type=False),
        Field(name="name", label="Name", value=asked.text("name"), hint="orders, or pii-*"),
        choice_of_pattern(asked.word("pattern"), default="as named; x* is a prefix"),
        choice_of_operation(asked.word("operation")),
        Field(name="intent", label="Intent", value=asked.word("intent"), kind=Kind.CHOICE, choices=intents),
        Field(name="host", label="From host", value=asked.text("host"), hint="any"),
        as_of_field(asked.text("as_of")),
    )
    return Form(key="ask", title="Who can", path=PATH, fields=fields, submit="Who can?")
