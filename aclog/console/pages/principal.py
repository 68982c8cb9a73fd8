"""The page of a principal: all that it may do, folded, and every rule that names it."""

from itertools import islice

from aclog.analysis.answers.permission_report import permission_object
from aclog.analysis.answers.permissions import permissions
from aclog.analysis.answers.rules_about import RulesAbout
from aclog.analysis.regions.principals import only
from aclog.analysis.regions.query import Query
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, AclBindingFilter, StandardAclWithId
from aclog.console.pages.asked import Asked, BadAskedError
from aclog.console.pages.cells import (
    PAGE_ROWS,
    PRINCIPALS,
    as_of_field,
    cut,
    paged,
    principal_cell,
    rule_table,
)
from aclog.console.pages.console import Console
from aclog.console.pages.listing import key_of
from aclog.console.pages.page import Cell, Column, Field, Form, Notice, Page, Part, Row, Table
from aclog.console.pages.permissions import permission_table
from aclog.console.pages.states import State

PATH = "/principal"
_MOST = 5_000


def principal_page(console: Console, asked: Asked) -> Page:
    """Return what a principal may do; without one, all principals that rules name."""
    as_of = asked.word("as_of")
    state = console.states.at(as_of)
    name = state.principal(asked.text("name"))
    form = Form(
        key="ask",
        title="Principal",
        path=PATH,
        fields=(
            Field(name="name", label="Principal", value=asked.text("name"), hint=PRINCIPALS),
            Field(name="host", label="From host", value=asked.text("host"), hint="any"),
            as_of_field(asked.text("as_of")),
        ),
        submit="What can it do?",
    )
    if not name:
        return _all(console, state, asked, form)
    parts: list[Part] = [form]
    notices: tuple[Notice, ...] = ()
    data, answer = [], "rules for everybody apply to each principal"
    if name != WILDCARD_PRINCIPAL:
        console.check_own(name)
    if ":" in name and name != WILDCARD_PRINCIPAL:
        query = Query(principals=only(name), host=asked.host())
        found = list(islice(permissions(state.policy, query), _MOST))
        data = [permission_object(each, console.origins) for each in found]
        more = state.premises.turning(allowed=False)
        none = f"{more.decided('It may do nothing')}."
        parts.append(permission_table(found, console.origins, key="may", title="May", none=none, as_of=as_of))
        answer = f"may do {_things(len(found))}" if found else more.decided("may do nothing")
        if name in state.policy.settings.super_users:
            answer = "is a super user, who may do everything"
        parts.append(_denied(console, state, query, as_of))
    elif ":" not in name and name in state.listing.principals:
        notices = (Notice(text=f"It is not TYPE:NAME, such as {PRINCIPALS}: no client is this principal."),)
        answer = "no client is this principal"
    elif ":" not in name:
        raise BadAskedError(f"principal {name[:80]!r}: expected TYPE:NAME, such as {PRINCIPALS}")
    parts.append(_rules(console, state, name, asked))
    return Page(
        path=PATH,
        title=name,
        answer=f"{name}: {answer}",
        command=console.command.of("what-can", "--principal", name, as_of=as_of),
        parts=tuple(parts),
        notices=notices,
        offset=state.offset,
        data=data,
    )


def _things(count: int) -> str:
    return f"the first {_MOST:,} things" if count == _MOST else f"{count:,} thing{'' if count == 1 else 's'}"


def _denied(console: Console, state: State, query: Query, as_of: str) -> Table:
    denying = [StandardAclWithId(id=None, acl=acl) for acl in RulesAbout.of(state.policy, query).denying]
    none = "No rule denies it anything; what no rule allows is denied, too."
    return cut(rule_table(denying, console.origins, key="denied", title="Denied", none=none, as_of=as_of))


def _rules(console: Console, state: State, name: str, asked: Asked) -> Table:
    as_of = asked.word("as_of")
    found = sorted(state.policy.acls.matching(AclBindingFilter(principal=name)), key=lambda rule: key_of(rule.acl))
    first = asked.number("first", 0, 0, 1 << 40)
    table = rule_table(
        found,
        console.origins,
        key="rules",
        title="Rules that name it",
        none="No rule names it.",
        as_of=as_of,
        uses=None if as_of else console.uses,
        first=first,
    )
    return paged(table, first, PATH, name=name, as_of=as_of)


def _all(console: Console, state: State, asked: Asked, form: Form) -> Page:
    as_of = asked.word("as_of")
    known = state.listing.principals
    first = asked.number("first", 0, 0, 1 << 40)
    rows = tuple(
        Row(key=name, cells=(principal_cell(name, as_of), Cell(f"{count:,}")))
        for name, count in islice(known.items(), first, first + PAGE_ROWS)
    )
    table = Table(
        key="principals",
        title="Principals that rules name",
        columns=(Column(key="principal", title="Principal"), Column(key="rules", title="Rules", is_number=True)),
        rows=rows,
        none="No rule names anybody.",
        total=len(known),
    )
    return Page(
        path=PATH,
        title="Principals",
        answer=f"{len(known):,} principals have rules",
        command=console.command.of("acls list", as_of=as_of, settings=False),
        parts=(form, paged(table, first, PATH, as_of=as_of)),
        offset=state.offset,
    )
