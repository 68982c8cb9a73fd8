"""The pages of ACLs and of names."""

from collections.abc import Iterator

from attrs import evolve

from aclog.authorizer.acl import ResourcePattern, code_name
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.settings import name_text, parse_name
from aclog.console.listing import Branch, Criteria, FoundRules, pattern_text
from aclog.console.pages.page import (
    PAGE_ROWS,
    BadParameterError,
    Cell,
    Column,
    Field,
    Form,
    Links,
    Page,
    Parameters,
    Row,
    Table,
    as_of_field,
    choice_of_operation,
    choice_of_pattern,
    choice_of_permission,
    choice_of_type,
    name_parameters,
    paged,
    principal_cell,
    resource_url,
    rule_table,
    url,
)
from aclog.console.pages.rule import RULES_PATH, rule_page, stated_rule
from aclog.console.pages.span import is_settled, since_of
from aclog.console.pages.states import SEPARATORS, Console, State
from aclog.metalog.errors import ConfigError, plural

# The page of rules: a table that is filtered by anything in it.


def rules_page(console: Console, parameters: Parameters) -> Page:
    """Return the page of the matching rules, or of the one that is stated. Raises BadParameterError: a bad filter."""
    as_of = parameters.word("as_of")
    state = console.states.at(as_of)
    if (stated := stated_rule(parameters)) is not None:
        return rule_page(console, state, stated, parameters)
    kind, pattern = parameters.resource_type(), parameters.pattern_type()
    criteria = Criteria(
        anything=parameters.word("q"),
        principal=parameters.word("principal"),
        resource=parameters.word("resource"),
        host=parameters.word("host"),
        resource_type=kind,
        pattern_type=pattern,
        operation=parameters.operation(),
        permission=parameters.permission(),
    )
    rules = state.listing.find(criteria)
    first = parameters.number("first", 0, 0, 1 << 40)
    total = len(state.listing)
    narrowed = "" if criteria == Criteria() else f"filtered: {len(rules):,} of {plural(total, 'rule')} shown"
    none = "No matching rules." if total else "No rules."
    table = rule_table(
        rules,
        console.origins,
        key="rules",
        title="Rules",
        none=none,
        as_of=as_of,
        uses=None if as_of else console.uses,
        since=since_of(console, state.offset),
        first=first,
    )
    table = evolve(table, note=narrowed)
    others = {name: value for name, value in parameters.values.items() if name not in ("first", "format", "table")}
    return Page(
        path=RULES_PATH,
        title="Rules",
        answer=f"{len(rules):,} of {plural(total, 'rule')}" if narrowed else plural(total, "rule"),
        command=_command(console, parameters, rules, criteria),
        parts=(_form(parameters), _with_all(paged(table, first, RULES_PATH, **others), as_of, narrowed)),
        offset=state.offset,
        is_settled=is_settled(console, state.offset),
    )


def _with_all(table: Table, as_of: str, narrowed: str) -> Table:
    return evolve(table, pages=(*table.pages, Cell("all rules", url(RULES_PATH, as_of=as_of)))) if narrowed else table


def _form(parameters: Parameters) -> Form:
    fields = (
        Field(name="q", label="Anything", value=parameters.text("q"), hint="part of a name"),
        choice_of_permission(parameters.word("permission")),
        choice_of_operation(parameters.word("operation"), of_rules=True),
        choice_of_type(parameters.word("type")),
        Field(name="principal", label="Principal", value=parameters.text("principal"), is_more=True),
        Field(name="resource", label="Resource", value=parameters.text("resource"), is_more=True),
        choice_of_pattern(parameters.word("pattern")),
        Field(name="host", label="Host", value=parameters.text("host"), is_more=True),
        as_of_field(parameters.text("as_of")),
    )
    return Form(key="filter", title="Filter", path=RULES_PATH, fields=fields, submit="Filter")


def _command(console: Console, parameters: Parameters, rules: FoundRules, criteria: Criteria) -> str | None:
    """Return the command that lists the same rules; None: a part of a name, or another filter, has no flag.

    A viewer who sees a part of the rules would see the same part on no command line.
    """
    as_of, principal = parameters.word("as_of"), criteria.principal
    if console.own is not None or (criteria != Criteria() and criteria != Criteria(principal=principal)):
        return None
    flags: tuple[str, ...] = ()
    if principal:
        if any(rule.acl.principal != principal for rule in rules) or not len(rules):
            return None
        flags = ("--principal", principal)
    return console.command.of("acls list", *flags, as_of=as_of, settings=False)


# The page of names: a tree of prefixes, a level at a time, with the number of rules below each.


NAMES_PATH = "/names"
_COLUMNS = (
    Column(key="name", title="Prefix or name"),
    Column(key="names", title="Names", is_number=True),
    Column(key="rules", title="Rules", is_number=True),
    Column(key="who", title="Access"),
)


def names_page(console: Console, parameters: Parameters) -> Page:
    """Return a level of the tree of names. Raises BadParameterError: no such type, or no such prefix."""
    as_of, prefix = parameters.word("as_of"), _prefix(parameters)
    state = console.states.at(as_of)
    kind = parameters.resource_type() or _first_type(state)
    first = parameters.number("first", 0, 0, 1 << 40)
    name = code_name(ResourceType, kind)
    table = branch_table(state, kind, prefix, as_of, first=first)
    cut = paged(table, first, NAMES_PATH, type=name, prefix=name_text(prefix), as_of=as_of)
    form = Form(
        key="where",
        title="Where",
        path=NAMES_PATH,
        fields=(
            choice_of_type(name, any_type=False),
            Field(name="prefix", label="Begins with", value=parameters.text("prefix"), hint="pii-, or pii-*"),
            as_of_field(parameters.text("as_of")),
        ),
    )
    count = state.listing.count_names(kind, prefix)
    return Page(
        path=NAMES_PATH,
        title=f"{name} names",
        answer=f"{count:,} {name} names or prefixes in rules" + (f" begin with {prefix}" if prefix else ""),
        parts=(
            form,
            _types(state, prefix, as_of),
            _up(name, prefix, as_of),
            cut,
            *_sharing(state, kind, prefix, as_of),
        ),
        offset=state.offset,
    )


def _prefix(parameters: Parameters) -> str:
    """Return the prefix; a star at the end adds nothing. Raises BadParameterError: a star elsewhere."""
    try:
        return parse_name(parameters.text("prefix"))[0]
    except ConfigError as error:
        raise BadParameterError(str(error)) from error


def branch_table(
    state: State, kind: int, prefix: str, as_of: str = "", *, first: int = 0, most: int = PAGE_ROWS
) -> Table:
    """Return a level of the tree as a table, with `most` rows from the row `first`."""
    name = code_name(ResourceType, kind)
    branches = state.listing.branches(kind, prefix, SEPARATORS)
    return Table(
        key="names",
        title=f"{name} names" + (f" that begin with {prefix}" if prefix else ""),
        columns=_COLUMNS,
        rows=tuple(_row(kind, name, branch, as_of) for branch in branches[first : first + most]),
        none="No rules on such a name.",
        total=len(branches),
    )


def branch_tables(state: State, most: int, as_of: str = "") -> Iterator[Table]:
    """Yield the first level of names of each type: its first rows, and the link to all."""
    for kind in state.listing.types:
        name, table = code_name(ResourceType, kind), branch_table(state, kind, "", as_of, most=most)
        total = table.total or 0
        yield evolve(
            table,
            key=f"names-{name.lower().replace('_', '-')}",
            note=f"the first {most} of {total:,}" if total > most else "",
            pages=(Cell("all names", url(NAMES_PATH, type=name, as_of=as_of)),),
        )


def _row(kind: int, name: str, branch: Branch, as_of: str) -> Row:
    pattern = branch.pattern_type
    if pattern is None:
        way = Cell(branch.text, url(NAMES_PATH, type=name, prefix=name_text(branch.text), as_of=as_of))
        who = Cell("who can access names below", resource_url(kind, branch.text, PatternType.PREFIXED, as_of))
    else:
        way = Cell(pattern_text(branch.text, pattern), resource_url(kind, branch.text, pattern, as_of))
        who = Cell("who can access it", resource_url(kind, branch.text, pattern, as_of))
    return Row(
        key=f"{branch.text} {pattern}",
        cells=(way, Cell(f"{branch.names:,}"), Cell(f"{branch.rules:,}"), who),
    )


_MOST_SIMILAR = 6


def similar_names(
    state: State, pattern: ResourcePattern, path: str, parameters: Parameters, *, with_prefixes: bool = True
) -> Iterator[Links]:
    """Yield links to the same question about names in rules that contain a name, if no rule has the name itself."""
    kind, name = pattern.resource_type, pattern.name
    is_known = pattern.pattern_type == PatternType.PREFIXED or state.listing.count(kind, name, PatternType.LITERAL)
    if is_known or not name or kind == ResourceType.CLUSTER:
        return
    entries = state.listing.names_index.find(name, 4 * _MOST_SIMILAR)
    names = [each for each in entries if not isinstance(each, str) and each[0] == kind]
    names = [each for each in names if with_prefixes or each[2] != PatternType.PREFIXED][:_MOST_SIMILAR]
    changed = ("type", "name", "pattern", "format")
    others = {key: value for key, value in parameters.values.items() if key not in changed}

    def link(text: str, found: int) -> Cell:
        """Return the link to the question about another name."""
        parts = name_parameters(ResourcePattern(resource_type=kind, name=text, pattern_type=found))
        return Cell(pattern_text(text, found), url(path, **parts, **others))

    if names:
        title = "No rule has this name itself; similar names in rules"
        yield Links(key="similar", title=title, links=tuple(link(text, found) for _, text, found in names))


def _first_type(state: State) -> int:
    types = state.listing.types
    return ResourceType.TOPIC if ResourceType.TOPIC in types or not types else next(iter(types))


def _types(state: State, prefix: str, as_of: str) -> Links:
    """Return the ways to the names of each type, with how many rules are on them."""
    types = state.listing.types if not prefix else {}
    ways = [(code_name(ResourceType, kind), count) for kind, count in types.items()]
    links = tuple(
        Cell(f"{name} ({plural(count, 'rule')})", url(NAMES_PATH, type=name, as_of=as_of)) for name, count in ways
    )
    return Links(key="types", title="Types", links=links if len(links) > 1 else ())


def _up(name: str, prefix: str, as_of: str) -> Links:
    """Return the ways back up, one a separator."""
    cuts = [0, *(place + 1 for place, letter in enumerate(prefix[:-1]) if letter in SEPARATORS)]
    ways = [
        Cell(prefix[:cut] or "all", url(NAMES_PATH, type=name, prefix=name_text(prefix[:cut]), as_of=as_of))
        for cut in cuts
    ]
    return Links(key="up", title="Up", links=tuple(ways) if prefix else ())


def _sharing(state: State, kind: int, prefix: str, as_of: str) -> tuple[Table, ...]:
    """Return the principals with rules on names with a prefix."""
    if not prefix:
        return ()
    counts = state.listing.sharing(kind, prefix)
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    name = code_name(ResourceType, kind)
    rows = tuple(
        Row(
            key=who,
            cells=(
                principal_cell(who, as_of),
                Cell(f"{count:,}", url("/rules", principal=who, resource=prefix, type=name, as_of=as_of)),
            ),
        )
        for who, count in most[:PAGE_ROWS]
    )
    return (
        Table(
            key="sharing",
            title=f"Principals with rules on names that begin with {prefix}",
            columns=(Column(key="principal", title="Principal"), Column(key="rules", title="Rules", is_number=True)),
            rows=rows,
            none="No principals.",
            total=len(most),
            note="" if len(most) <= PAGE_ROWS else f"the {PAGE_ROWS} with most rules of {len(most):,}",
        ),
    )
