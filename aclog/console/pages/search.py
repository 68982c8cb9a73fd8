"""The page of a search: names and principals that a text is in."""

from aclog.authorizer.acl import ResourceType, code_name
from aclog.console.pages.asked import Asked
from aclog.console.pages.cells import PAGE_ROWS, as_of_field, cut, principal_cell, resource_url
from aclog.console.pages.console import Console
from aclog.console.pages.listing import Listing, NameKey, pattern_text
from aclog.console.pages.page import Cell, Column, Field, Form, Page, Row, Table
from aclog.console.pages.states import State

PATH = "/search"


def search_page(console: Console, asked: Asked) -> Page:
    """Return principals and resources whose name has a text in it, in any case."""
    text, as_of = asked.word("q"), asked.word("as_of")
    state = console.states.at(as_of)
    form = Form(
        key="search",
        title="Find",
        path=PATH,
        fields=(Field(name="q", label="Name", value=asked.text("q")), as_of_field(asked.text("as_of"))),
        submit="Find",
    )
    principals, resources = cut(_principals(state, text, as_of)), cut(_resources(state, text, as_of))
    return Page(
        path=PATH,
        title=f"Find {text}" if text else "Find",
        answer=f"{principals.total:,} principals and {resources.total:,} resources have it in their name",
        parts=(form, principals, resources),
        offset=state.offset,
    )


def _principals(state: State, text: str, as_of: str) -> Table:
    found = [name for name in state.listing.principals if text.lower() in name.lower()]
    exact = sorted(found, key=lambda name: (name.partition(":")[2] != text and name != text, name))
    return Table(
        key="principals",
        title="Principals",
        columns=(Column(key="principal", title="Principal"), Column(key="rules", title="Rules", is_number=True)),
        rows=tuple(
            Row(key=name, cells=(principal_cell(name, as_of), Cell(f"{state.listing.principals[name]:,}")))
            for name in exact[:PAGE_ROWS]
        ),
        none="No rule names such a principal.",
        total=len(found),
    )


def _resources(state: State, text: str, as_of: str) -> Table:
    found = sorted(state.listing.found_names(text), key=lambda each: each[1] != text)
    return Table(
        key="resources",
        title="Resources",
        columns=(
            Column(key="resourceType", title="Type"),
            Column(key="resourceName", title="Resource"),
            Column(key="rules", title="Rules", is_number=True),
        ),
        rows=tuple(_row(state.listing, each, as_of) for each in found[:PAGE_ROWS]),
        none="No rule is about such a name; rules on prefixes may cover it all the same.",
        total=len(found),
    )


def _row(listing: Listing, found: NameKey, as_of: str) -> Row:
    kind, name, pattern = found
    cells = (
        Cell(code_name(ResourceType, kind)),
        Cell(pattern_text(name, pattern), resource_url(kind, name, pattern, as_of)),
        Cell(f"{listing.count(kind, name, pattern):,}"),
    )
    return Row(key=f"{kind} {name} {pattern}", cells=cells)
