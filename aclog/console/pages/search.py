"""The page of a search: names and principals that a text is in."""

from attrs import frozen

from aclog.authorizer.acl import PatternType, ResourceType, code_name
from aclog.authorizer.name_notation import parse_name
from aclog.console.pages.asked import Asked, BadAskedError
from aclog.console.pages.cells import PAGE_ROWS, as_of_field, cut, principal_cell, resource_url
from aclog.console.pages.console import Console
from aclog.console.pages.listing import Listing, NameKey, pattern_text
from aclog.console.pages.page import Cell, Column, Field, Form, Page, Row, Table
from aclog.console.pages.states import State
from aclog.metalog.errors import ConfigError

PATH = "/search"


def search_page(console: Console, asked: Asked) -> Page:
    """Return principals and resources whose name has a text in it, in any case; or begins with it, for `pii-*`.

    Raises:
        BadAskedError: a star is neither at the end nor escaped (aclog.authorizer.name_notation).

    """
    text, as_of = asked.word("q"), asked.word("as_of")
    wanted = _Wanted.of(text)
    state = console.states.at(as_of)
    form = Form(
        key="search",
        title="Find",
        path=PATH,
        fields=(Field(name="q", label="Name", value=asked.text("q")), as_of_field(asked.text("as_of"))),
        submit="Find",
    )
    principals, resources = cut(_principals(state, wanted, as_of)), cut(_resources(state, wanted, as_of))
    return Page(
        path=PATH,
        title=f"Find {text}" if text else "Find",
        answer=f"{principals.total:,} principals and {resources.total:,} resources {wanted.have_it}",
        parts=(form, principals, resources),
        offset=state.offset,
    )


@frozen
class _Wanted:
    text: str
    is_prefix: bool

    @classmethod
    def of(cls, asked: str) -> "_Wanted":
        """Return what a text asks for. Raises BadAskedError."""
        try:
            name, pattern_type = parse_name(asked)
        except ConfigError as error:
            raise BadAskedError(str(error)) from error
        return cls(name, pattern_type is PatternType.PREFIXED)

    @property
    def have_it(self) -> str:
        """What names do that are found."""
        return "begin with it" if self.is_prefix else "have it in their name"

    def is_in(self, name: str) -> bool:
        """Return whether a name has the text, or begins with it."""
        text, lower = self.text.lower(), name.lower()
        return lower.startswith(text) if self.is_prefix else text in lower

    def is_in_principal(self, principal: str) -> bool:
        """Return the same of a principal, with its type or without."""
        return self.is_in(principal) or (self.is_prefix and self.is_in(principal.partition(":")[2]))


def _principals(state: State, wanted: _Wanted, as_of: str) -> Table:
    text = wanted.text
    found = [name for name in state.listing.principals if wanted.is_in_principal(name)]
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


def _resources(state: State, wanted: _Wanted, as_of: str) -> Table:
    text = wanted.text
    named = (each for each in state.listing.found_names(text) if wanted.is_in(each[1]))
    found = sorted(named, key=lambda each: each[1] != text)
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
