"""The views by path, and the first page."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from aclog.authorizer.acl import ResourceType, code_name
from aclog.console.pages import draft, findings, lists, subjects, why
from aclog.console.pages.generations import View, asked_at, of_each_kafka
from aclog.console.pages.lists import NAMES_PATH as NAMES
from aclog.console.pages.lists import branch_table
from aclog.console.pages.page import (
    PAGE_ROWS,
    Cell,
    Column,
    Facts,
    Field,
    File,
    Form,
    Links,
    Page,
    Parameters,
    Row,
    Table,
    choice_of_operation,
    principal_cell,
    url,
)
from aclog.console.pages.states import Console, State
from aclog.metalog.errors import plural

# The first page: an overview, and links to the views.


PATH = "/"
_OF_ALL = ("/draft", "/findings")
"""Views that show all rules: not for viewers who see their own permissions only."""
_ROWS = 40
"""The most rows of each table here."""
_FINDINGS = (
    ("Which findings do the rules have?", url("/findings")),
    ("Which rules are unused?", url("/findings", kind="unused")),
    ("Which findings are new?", url("/findings", kind="new")),
)
_PAST = (
    ("What changed last night?", url("/changes", since="yesterday 18:00")),
    ("What changed last?", url("/changes")),
    ("When was a request allowed, and what ended it?", url("/when")),
)
"""They show all rules, as the findings do."""


def start_page(console: Console, parameters: Parameters) -> Page:  # noqa: ARG001 - as every page
    """Return the first page: a search, names, principals, and the most frequent questions."""
    state = console.states.now()
    listing = state.listing
    kinds = ", ".join(f"{count:,} on {code_name(ResourceType, kind)}" for kind, count in listing.types.items())
    facts = Facts(
        key="facts",
        title="Overview",
        items=(
            ("Source", Cell(console.name)),
            ("Rules", Cell(f"{len(listing):,}" + (f": {kinds}" if kinds else ""), url("/rules"))),
            ("Principals", Cell(f"{len(listing.principals):,}", url("/principal"))),
            ("State", Cell(f"offset {state.offset:,}", url("/changes") if console.own is None else None)),
        ),
    )
    return Page(
        path=PATH,
        title="aclog",
        answer=f"{plural(len(listing), 'rule')} for {plural(len(listing.principals), 'principal')}",
        command=console.command.of("acls list", settings=False),
        parts=(_search(), _why(), facts, _questions(console), *_names(state), _principals(state)),
        offset=state.offset,
    )


def _search() -> Form:
    return Form(
        key="search",
        title="Find a principal or a resource",
        path="/search",
        fields=(Field(name="q", label="Name", hint="User:alice, or orders"),),
        submit="Find",
        is_live=False,
    )


def _why() -> Form:
    return Form(
        key="why",
        title="Why is a request allowed or denied?",
        path="/why",
        fields=(
            Field(name="principal", label="Principal", hint="User:alice"),
            choice_of_operation("READ"),
            Field(name="name", label="Topic"),
        ),
        submit="Why?",
        is_live=False,
    )


def _questions(console: Console) -> Links:
    ways = (
        *(_PAST if console.own is None else ()),
        ("What would a change grant or revoke?", url("/draft")),
        *(_FINDINGS if console.own is None else ()),
        ("All rules", url("/rules")),
    )
    visible = [way for way in ways if console.own is None or not way[1].startswith(_OF_ALL)]
    return Links(key="questions", title="Questions", links=tuple(Cell(*way) for way in visible))


def _names(state: State) -> list[Table]:
    tables = []
    for kind in state.listing.types:
        table = branch_table(state, kind, "")
        name = code_name(ResourceType, kind)
        rest = len(table.rows) - _ROWS
        tables.append(
            Table(
                key=f"names-{name.lower()}",
                title=f"{name} names",
                columns=table.columns,
                rows=table.rows[:_ROWS],
                none=table.none,
                total=len(table.rows),
                note=f"the first {_ROWS} of {len(table.rows):,}" if rest > 0 else "",
                pages=(Cell("all", url(NAMES, type=name)),),
            )
        )
    return tables


def _principals(state: State) -> Table:
    principals = sorted(state.listing.principals.items(), key=lambda item: (-item[1], item[0]))
    return Table(
        key="principals",
        title="Principals with most rules",
        columns=(Column(key="principal", title="Principal"), Column(key="rules", title="Rules", is_number=True)),
        rows=tuple(
            Row(key=name, cells=(principal_cell(name), Cell(f"{count:,}", url("/rules", principal=name))))
            for name, count in principals[: min(_ROWS, PAGE_ROWS)]
        ),
        none="No principals in rules.",
        total=len(principals),
        note=f"the {_ROWS} with most of {len(principals):,}" if len(principals) > _ROWS else "",
        pages=(Cell("all", url("/principal")),),
    )


# The views by path.


Download: TypeAlias = Callable[[Console, Parameters], File]

VIEWS: Mapping[str, View] = {
    PATH: start_page,
    subjects.SEARCH_PATH: subjects.search_page,
    lists.NAMES_PATH: lists.names_page,
    subjects.RESOURCE_PATH: of_each_kafka(subjects.resource_page, asked_at),
    subjects.PRINCIPAL_PATH: of_each_kafka(subjects.principal_page, asked_at),
    why.WHY_PATH: of_each_kafka(why.why_page, asked_at),
    lists.RULES_PATH: lists.rules_page,
    why.PATH: why.changes_page,
    why.WHEN_PATH: why.when_page,
    findings.PATH: findings.findings_page,
    draft.DRAFT_PATH: of_each_kafka(draft.draft_page, draft.asked_now),
    draft.PLAN_PATH: draft.plan_page,
}
"""Pure except for the source; each may be called in any thread."""

DOWNLOADS: Mapping[str, Mapping[str, Download]] = {
    draft.DRAFT_PATH: {"change": draft.change_file, "plan": draft.plan_file},
    draft.PLAN_PATH: {"plan": draft.kept_plan_file},
}
"""Downloadable files, by path and `format`."""

MENU = (
    ("/", "Start"),
    ("/names", "Names"),
    ("/resource", "Who can"),
    ("/principal", "Principals"),
    ("/why", "Why"),
    ("/rules", "Rules"),
    ("/changes", "Changes"),
    ("/when", "When"),
    ("/findings", "Findings"),
    ("/draft", "Draft"),
)
"""The menu of every page."""

OWN_VIEWS = frozenset(
    (
        PATH,
        subjects.SEARCH_PATH,
        lists.NAMES_PATH,
        subjects.RESOURCE_PATH,
        subjects.PRINCIPAL_PATH,
        why.WHY_PATH,
        lists.RULES_PATH,
    )
)
"""Views that are also for viewers who see their own permissions only; any other view shows other principals."""
