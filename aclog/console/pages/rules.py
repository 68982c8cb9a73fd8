"""The page of rules: a table that is filtered by anything in it."""

from attrs import evolve

from aclog.console.pages.asked import Asked
from aclog.console.pages.cells import (
    as_of_field,
    choice_of_operation,
    choice_of_pattern,
    choice_of_permission,
    choice_of_type,
    paged,
    rule_table,
)
from aclog.console.pages.console import Console
from aclog.console.pages.listing import Wanted
from aclog.console.pages.page import Field, Form, Page

PATH = "/rules"


def rules_page(console: Console, asked: Asked) -> Page:
    """Return the rules that are asked for. Raises BadAskedError: a filter that is none."""
    as_of = asked.word("as_of")
    state = console.states.at(as_of)
    kind, pattern = asked.resource_type(), asked.pattern_type()
    wanted = Wanted(
        anything=asked.word("q"),
        principal=asked.word("principal"),
        resource=asked.word("resource"),
        host=asked.word("host"),
        resource_type=kind,
        pattern_type=pattern,
        operation=asked.operation(),
        permission=asked.permission(),
    )
    found = state.listing.find(wanted)
    first = asked.number("first", 0, 0, 1 << 40)
    total = len(state.listing)
    narrowed = "" if wanted == Wanted() else f"filtered: {len(found):,} of {total:,} rules; the others are not shown"
    none = "No rule is so." if total else "There is no rule."
    table = rule_table(found, console.origins, key="rules", title="Rules", none=none, as_of=as_of, first=first)
    table = evolve(table, note=narrowed)
    others = {name: value for name, value in asked.given.items() if name not in ("first", "format", "table")}
    return Page(
        path=PATH,
        title="Rules",
        answer=f"{len(found):,} of {total:,} rules" if narrowed else f"{total:,} rules",
        command=console.command.of("acls list", *_words(asked), as_of=as_of, settings=False),
        parts=(_form(asked), paged(table, first, PATH, **others)),
        offset=state.offset,
    )


def _form(asked: Asked) -> Form:
    fields = (
        Field(name="q", label="Anything", value=asked.text("q"), hint="in principal, resource or host"),
        Field(name="principal", label="Principal", value=asked.text("principal")),
        Field(name="resource", label="Resource", value=asked.text("resource")),
        choice_of_type(asked.word("type")),
        choice_of_pattern(asked.word("pattern")),
        choice_of_operation(asked.word("operation"), of_rules=True),
        choice_of_permission(asked.word("permission")),
        Field(name="host", label="Host", value=asked.text("host")),
        as_of_field(asked.text("as_of")),
    )
    return Form(key="filter", title="Filter", path=PATH, fields=fields, submit="Filter")


def _words(asked: Asked) -> tuple[str, ...]:
    """Return the command's flags that come nearest: it has no part of a name, but whole ones."""
    return ("--principal", asked.word("principal")) if ":" in asked.word("principal") else ()
