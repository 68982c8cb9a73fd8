"""A page as a value: cells, columns, rows and the parameters of its URL."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote, unquote

from attrs import evolve, field

from aclog.analysis.lint.finding import Severity
from aclog.analysis.regions import Principals
from aclog.analysis.who_can import all_of
from aclog.authorizer.acl import (
    Origins,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    acl_text,
    code_name,
    host_address,
    parse_name,
    places_text,
    shell_word,
)
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import asked_pattern
from aclog.console.findings import Uses
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.values import frozen

# A page as a value: the source of its HTML, JSON and CSV.


class Mark(StrEnum):
    """The emphasis of a text, by word and by look, never by colour alone."""

    ALLOW = "allow"
    DENY = "deny"
    UNUSED = "unused"
    GAINED = "gained"
    LOST = "lost"
    ADDED = "added"
    REMOVED = "removed"
    ERROR = "error"
    WARNING = "warning"
    GOOD = "good"
    QUIET = "quiet"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    """The risk of a change: access for everyone, other new access, and lost access."""


SEVERITIES = tuple(Severity)
"""The most severe first."""
SEVERITY_MARKS = {Severity.ERROR: Mark.ERROR, Severity.WARNING: Mark.WARNING, Severity.INFO: Mark.UNUSED}


@frozen(cache_hash=True)
class Cell:
    """A text, perhaps with a link; texts are as they were read, and made fit to show where they are shown."""

    text: str
    url: str | None = None
    mark: Mark | None = None
    others: tuple["Cell", ...] = field(default=(), kw_only=True)
    """Further lines of the cell."""

    @property
    def whole(self) -> str:
        """Its text, and those below it."""
        return "\n".join((self.text, *(each.text for each in self.others)))


@frozen(kw_only=True)
class Column:
    """A column; `key` is its name in JSON and CSV."""

    key: str
    title: str
    is_number: bool = False
    is_whole: bool = False
    """Whether its texts are short, and not wrapped: a date, a time, a type."""


@frozen(kw_only=True, cache_hash=True)
class Row:
    """A row; `key` identifies it across versions of the page, so that a new row can be marked."""

    cells: tuple[Cell, ...]
    key: str = ""
    mark: Mark | None = None
    look: Mark | None = None
    """The emphasis in HTML; None: that of `mark`, which JSON also has."""


@frozen(kw_only=True)
class Table:
    """A table. It always states how many rows there are in all."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    none: str
    """The text of an empty table."""
    total: int | None = None
    """The number of all rows; None if none is left out."""
    note: str = ""
    """What is filtered, cut or left out, and how to see it."""
    pages: tuple[Cell, ...] = ()
    """Links to its other parts."""
    is_folded: bool = False
    """Whether the whole table is folded in HTML."""
    lines: tuple[str, ...] = ()
    """Columns of a list with one line per row in HTML, and the others in a sheet; empty for a table."""
    group: str = ""
    """The column by whose value the lines are grouped."""
    is_matrix: bool = False
    """Whether its columns are narrow, and its cells words that a reader compares."""


@frozen(kw_only=True)
class Facts:
    """Names and values."""

    key: str
    title: str
    items: tuple[tuple[str, Cell], ...]
    is_tiles: bool = False
    """Whether each value is a tile in HTML."""
    is_folded: bool = False
    """Whether they are folded in HTML."""


@frozen(kw_only=True)
class Lines:
    """Lines of a text, as a command prints it."""

    key: str
    title: str
    lines: tuple[str, ...]
    is_folded: bool = False
    """Whether they are folded in HTML."""


@frozen(kw_only=True)
class Bar:
    """A bar of a chart: how many rules were added and removed in a period."""

    label: str
    added: int = 0
    removed: int = 0
    url: str | None = None
    is_chosen: bool = False
    """Whether the page shows this period."""


@frozen(kw_only=True)
class Chart:
    """Rule changes over time, in periods of the same length."""

    key: str
    title: str
    bars: tuple[Bar, ...]
    note: str = ""
    """What is not in it."""


class Kind(StrEnum):
    """How something is entered."""

    TEXT = "text"
    CHOICE = "choice"
    AREA = "area"
    RANGE = "range"
    CHECK = "check"
    HIDDEN = "hidden"


@frozen(kw_only=True)
class Field:
    """One thing to enter."""

    name: str
    label: str
    value: str = ""
    kind: Kind = Kind.TEXT
    choices: tuple[tuple[str, str], ...] = ()
    """Values and their labels."""
    hint: str = ""
    least: int = 0
    most: int = 0
    """The maximum of a range."""
    empties: str = ""
    """The name of a text field for the same value: it is emptied when this one is moved."""
    is_open: bool = False
    """Whether the maximum of a range means "the newest": it is left out of addresses."""
    is_more: bool = False
    """Whether it is folded while it is empty."""


@frozen(kw_only=True)
class Button:
    """Another button that submits a form; it also sends its name and value."""

    name: str
    value: str
    title: str


@frozen(kw_only=True)
class Form:
    """A form: it stays in place while the answer below it is replaced."""

    key: str
    title: str
    path: str
    fields: tuple[Field, ...]
    submit: str = "Show"
    is_live: bool = True
    """Whether the answer follows while typing."""
    writes: bool = False
    """Whether it is sent as POST, with the session's token."""
    posts: bool = False
    """Whether it is sent as POST although it writes nothing: it may be too large for an address."""
    takes_file: str = ""
    """The name of the field that a file's content goes to; empty for none."""
    buttons: tuple[Button, ...] = ()
    more: str = "More"
    """What opens its folded fields."""
    is_below: bool = False
    """Whether the form is below the answer, which has to be read first."""


@frozen(kw_only=True)
class Links:
    """Ways on from here."""

    key: str
    title: str
    links: tuple[Cell, ...]


Part: TypeAlias = Table | Facts | Lines | Links | Chart | Form


@frozen(kw_only=True)
class Notice:
    """A remark that is needed to read a page rightly."""

    text: str
    mark: Mark = Mark.WARNING


@frozen(kw_only=True)
class File:
    """A file for download."""

    name: str
    content: str
    media_type: str = "application/jsonl"


@frozen(kw_only=True)
class Handle:
    """A handle of a slider: the name of its field, where it is, and where the slider begins and ends."""

    name: str
    value: int
    least: int
    most: int


@frozen(kw_only=True)
class Page:
    """A view: a title, its answer, and the equivalent command line."""

    path: str
    title: str
    answer: str = ""
    """In a sentence."""
    mark: Mark | None = None
    """The emphasis of the answer."""
    command: str | None = None
    """None if there is no equivalent command line."""
    parts: tuple[Part, ...] = ()
    handles: tuple[Handle, ...] = ()
    """The positions of the slider's handles, which follow the text fields and a growing log."""
    notices: tuple[Notice, ...] = ()
    offset: int | None = None
    """The end offset of the state that is shown; None if none is."""
    is_settled: bool = True
    """Whether the page depends on the newest state only; if not, it is made anew each time."""
    data: Sequence[object] = field(factory=tuple)
    """The answer as the command's JSON lines have it, if there is such a command."""
    leads_to: str | None = None
    """The address of the page that answers instead, to which a browser is redirected; None if this page answers."""

    def tables(self) -> tuple[Table, ...]:
        """Return its tables."""
        return tuple(part for part in self.parts if isinstance(part, Table))


# The request for a page: the parameters of its URL, parsed strictly.


_Enum = TypeVar("_Enum", bound=IntEnum)

MOST_CHARACTERS = 8192
"""The longest parameter."""
_MOST_PARAMETERS = 100
_EXACT = ".exact"
OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ALL)
"""The resource types of requests."""
RULE_OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ANY)
"""The values that a rule may have."""
TYPES = tuple(each for each in ResourceType if each > ResourceType.ANY)
PATTERNS = PatternType.LITERAL, PatternType.PREFIXED
PERMISSIONS = AclPermissionType.ALLOW, AclPermissionType.DENY


class BadParameterError(ConfigError):
    """An invalid parameter; the text has the expected values."""


@frozen
class Parameters:
    """The parameters of a URL. A lone surrogate is written as the three bytes that UTF-8 would have for it."""

    values: Mapping[str, str] = field(factory=dict)

    @classmethod
    def of(cls, query: bytes | str) -> "Parameters":
        """Read a URL's query; the last of several values counts. Raises BadParameterError: too long, or no text."""
        text = query.decode("ascii", "replace") if isinstance(query, bytes) else query
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="surrogatepass", max_num_fields=_MOST_PARAMETERS)
        except ValueError as error:  # as UnicodeDecodeError is
            raise BadParameterError(f"the address cannot be read: {error}") from error
        for name, value in pairs:
            if len(value) > MOST_CHARACTERS:
                raise BadParameterError(f"{name[:40]}: more than {MOST_CHARACTERS:,} characters")
        return cls(_exact(dict(pairs)))

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as it is."""
        return self.values.get(name, default)

    def word(self, name: str) -> str:
        """Return a parameter without blanks around it."""
        return self.text(name).strip()

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number, clamped to its limits. Raises BadParameterError: not a number."""
        text = self.word(name)
        if not text:
            return default
        if not (text.isascii() and text.lstrip("-").isdigit() and len(text) < 20):
            raise BadParameterError(f"{name} {text[:40]!r}: expected a number")
        return min(max(int(text), least), most)

    def flag(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return self.word(name) in ("1", "on", "true", "yes")

    def operation(self, name: str = "operation") -> AclOperation | None:
        """Return an operation, None for any. Raises BadParameterError: there is no such one."""
        return self._named(RULE_OPERATIONS, name)

    def resource_type(self, name: str = "type") -> ResourceType | None:
        """Return a resource type, None for any. Raises BadParameterError: there is no such one."""
        return self._named(TYPES, name)

    def pattern_type(self, name: str = "pattern") -> PatternType | None:
        """Return a pattern type, None for any. Raises BadParameterError: there is no such one."""
        return self._named(PATTERNS, name)

    def permission(self, name: str = "permission") -> AclPermissionType | None:
        """Return a permission, None for any. Raises BadParameterError: there is no such one."""
        return self._named(PERMISSIONS, name)

    def host(self, name: str = "host") -> str | None:
        """Return an address in the form that rules have, None for any. Raises BadParameterError: not an address."""
        text = self.word(name)
        if not text:
            return None
        try:
            return host_address(text)
        except (ConfigError, ValueError) as error:
            raise BadParameterError(str(error)) from error

    def resource(self, kind: ResourceType, name: str = "name") -> ResourcePattern:
        """Return the resource of a name and an optional pattern type (aclog.authorizer.settings).

        Raises:
            BadParameterError: there is no such pattern type, or a star is where none can be.

        """
        if kind is ResourceType.CLUSTER:
            return ResourcePattern(resource_type=kind, name=CLUSTER_NAME)
        try:
            return asked_pattern(kind, self.text(name), self.pattern_type())
        except ConfigError as error:
            raise BadParameterError(str(error)) from error

    def _named(self, values: Iterable[_Enum], name: str) -> _Enum | None:
        text = self.word(name)
        if not text:
            return None
        try:
            return parse_name(values, text)
        except (ConfigError, ValueError) as error:
            raise BadParameterError(f"{name}: {error}") from error


def name_parameters(pattern: ResourcePattern) -> dict[str, object]:
    """Return the parameters that `Parameters.resource` reads as this resource: type, name, and pattern type.

    The pattern type of a name is stated only if it has a star.
    """
    kind, name = code_name(ResourceType, pattern.resource_type), pattern.name
    as_it_is = pattern.pattern_type != PatternType.LITERAL or WILDCARD in name
    return {"type": kind, "name": name, "pattern": code_name(PatternType, pattern.pattern_type) if as_it_is else None}


def exact_field(name: str, value: str) -> tuple[str, str] | None:
    """Return the hidden field, and its value, that a field needs whose value cannot be shown as it is; None: none.

    A form shows such a value by escapes, and would send these. If they come back unchanged, `Parameters.of` replaces
    them by the original value.
    """
    return None if printable(value) == value else (f"{name}{_EXACT}", quote(value, safe="", errors="surrogatepass"))


def _exact(values: dict[str, str]) -> dict[str, str]:
    plain = {name: value for name, value in values.items() if not name.endswith(_EXACT)}
    for name, value in values.items():
        if name.endswith(_EXACT) and (text := plain.get(name.removesuffix(_EXACT))) is not None:
            original = unquote(value, errors="surrogatepass")
            if printable(original) == text:
                plain[name.removesuffix(_EXACT)] = original
    return plain


def url(path: str, /, **parameters: object) -> str:
    """Return an address; parameters that are None, empty or False are left out."""
    parts = [
        f"{name}={_quoted('1' if value is True else str(value))}"
        for name, value in parameters.items()
        if value is not None and value is not False and value != ""
    ]
    return f"{path}?{'&'.join(parts)}" if parts else path


_UNRESERVED = re.compile("[A-Za-z0-9_.~:-]*")


def _quoted(text: str) -> str:
    # A page has hundreds of addresses, and most texts in them need no escapes but that of the colon.
    return text.replace(":", "%3A") if _UNRESERVED.fullmatch(text) else quote(text, safe="", errors="surrogatepass")


# Cells, columns and rows that several pages have.


ANY = ("", "any")
PRINCIPALS = "User:alice"
"""An example of one, for hints."""
PAGE_ROWS = 200
"""Rows of a table that are shown at once."""


def unresolved_text(principal: str) -> str:
    """Return that a principal lacks its type: there is no rule with the name, or there are rules of several types."""
    return (
        f"principal {principal[:80]!r}: expected TYPE:NAME, such as {PRINCIPALS}; "
        "a name alone is that of the only principal in rules that has it"
    )


def principal_cell(principal: str, as_of: str | None = None) -> Cell:
    """Return a principal with the way to all that it may do."""
    return Cell(principal, url("/principal", name=principal, as_of=as_of))


def principals_cell(principals: Principals, as_of: str | None = None) -> Cell:
    """Return a set of principals, with a link if it is one."""
    if not principals.complement and len(principals.named) == 1:
        return principal_cell(principals.named[0], as_of)
    return Cell(all_of(principals))


def resource_url(
    resource_type: int, name: str, pattern_type: int = PatternType.LITERAL, as_of: str | None = None
) -> str:
    """Return the link to all principals with access to the resources of a rule; LITERAL `*` is every name."""
    if name == WILDCARD and pattern_type == PatternType.LITERAL:
        return url("/resource", type=code_name(ResourceType, resource_type), name=name, as_of=as_of)
    pattern = ResourcePattern(resource_type=resource_type, name=name, pattern_type=pattern_type)
    return url("/resource", **name_parameters(pattern), as_of=as_of)


def resource_cell(acl: StandardAcl, as_of: str | None = None) -> Cell:
    """Return the name, or the prefix, of a rule; its pattern type is in the next cell."""
    return Cell(
        acl.resource_name,
        resource_url(acl.resource_type, acl.resource_name, acl.pattern_type, as_of),
    )


def rule_url(acl: StandardAcl, as_of: str | None = None) -> str:
    """Return the link to the page of a rule."""
    return url(
        "/rules",
        principal=acl.principal,
        resource=acl.resource_name,
        type=code_name(ResourceType, acl.resource_type),
        pattern=code_name(PatternType, acl.pattern_type),
        operation=code_name(AclOperation, acl.operation),
        permission=code_name(AclPermissionType, acl.permission_type),
        host=acl.host,
        as_of=as_of,
    )


def cell_of_lines(texts: Iterable[str]) -> Cell:
    """Return a cell with a line for each line of some texts."""
    first, *others = [*(line for text in texts for line in text.split("\n"))] or [""]
    return Cell(first, others=tuple(map(Cell, others)))


def draft_url(acl: StandardAcl, *, added: bool) -> str:
    """Return the link to the draft that adds or removes a rule."""
    return url("/draft", rules=f"{'+' if added else '-'} {acl_text(acl)}")


def permission_cell(permission: int) -> Cell:
    """Return ALLOW or DENY."""
    mark = Mark.DENY if permission == AclPermissionType.DENY else Mark.ALLOW
    return Cell(code_name(AclPermissionType, permission), mark=mark)


RULE_COLUMNS = (
    Column(key="permissionType", title="Permission"),
    Column(key="principal", title="Principal"),
    Column(key="operation", title="Operation"),
    Column(key="resourceType", title="Type"),
    Column(key="resourceName", title="Resource"),
    Column(key="patternType", title="Pattern"),
    Column(key="host", title="Host"),
)
"""The columns of a rule."""


def rule_cells(acl: StandardAcl, as_of: str | None = None) -> tuple[Cell, ...]:
    """Return the cells of a rule, under RULE_COLUMNS."""
    return (
        permission_cell(acl.permission_type),
        principal_cell(acl.principal, as_of),
        Cell(code_name(AclOperation, acl.operation)),
        Cell(code_name(ResourceType, acl.resource_type)),
        resource_cell(acl, as_of),
        Cell(code_name(PatternType, acl.pattern_type)),
        Cell(acl.host),
    )


_SHARED_ROWS, _SHORT = 4_096, 300
"""Rows of rules that are kept for the next page, and the most characters of texts in one."""
_PLACE = Column(key="place", title="Location")
_USE = Column(key="use", title="Use", is_whole=True)
_SINCE = Column(key="since", title="Since", is_whole=True)

Since: TypeAlias = Callable[[StandardAcl], Cell]
"""Since when a rule is there."""


def rule_columns(
    origins: Origins, rules: Iterable[StandardAclWithId], *, uses: Uses | None = None, since: Since | None = None
) -> tuple[Column, ...]:
    """Return RULE_COLUMNS, with the location, the use and the age of rules where any are known."""
    stands = any(origins.of(rule.acl) for rule in rules)
    others = ((_PLACE, stands), (_USE, uses is not None), (_SINCE, since is not None))
    return (*RULE_COLUMNS, *(column for column, is_there in others if is_there))


def rule_row(
    rule: StandardAclWithId,
    columns: Sequence[Column],
    origins: Origins,
    as_of: str | None = None,
    *,
    uses: Uses | None = None,
    since: Since | None = None,
) -> Row:
    """Return the row of a rule."""
    acl, others = rule.acl, list[Cell]()
    if _PLACE in columns:
        others.append(Cell(places_text(acl, origins).strip(" ()")))
    if _USE in columns:
        others.append(use_cell(acl, uses))
    if since is not None:
        others.append(since(acl))
    is_short = len(acl.resource_name) + len(acl.principal) + len(acl.host) <= _SHORT
    if as_of or not is_short or any(len(cell.text) > _SHORT for cell in others):
        return _rule_row(acl, as_of, tuple(others))
    return _short_row(acl, tuple(others))


@lru_cache(_SHARED_ROWS)
def _short_row(acl: StandardAcl, others: tuple[Cell, ...]) -> Row:
    """Return the row of a rule of the newest state: most are as in the state before."""
    return _rule_row(acl, None, others)


def _rule_row(acl: StandardAcl, as_of: str | None, others: tuple[Cell, ...]) -> Row:
    mark = Mark.DENY if acl.permission_type == AclPermissionType.DENY else None
    permission, *cells = rule_cells(acl, as_of)
    if not any(cell.url for cell in others):  # the use links to the page of the rule, where it is known
        permission = evolve(permission, url=rule_url(acl, as_of))
    return Row(key=_row_key(acl), cells=(permission, *cells, *others), mark=mark)


def _row_key(acl: StandardAcl) -> str:
    # As short as can be: a page has one for each of its rows.
    codes = f"{acl.resource_type} {acl.pattern_type} {acl.operation} {acl.permission_type}"
    return f"{codes} {acl.principal!r} {acl.resource_name!r} {acl.host!r}"


def rule_table(
    rules: Sequence[StandardAclWithId],
    origins: Origins,
    *,
    key: str,
    title: str,
    none: str,
    as_of: str | None = None,
    uses: Uses | None = None,
    since: Since | None = None,
    first: int = 0,
) -> Table:
    """Return a table of rules, from `first` on, cut to one page; its note does not name the range of rows."""
    page = rules[first : first + PAGE_ROWS]
    columns = rule_columns(origins, page, uses=uses, since=since)
    rows = tuple(rule_row(rule, columns, origins, as_of, uses=uses, since=since) for rule in page)
    return Table(key=key, title=title, columns=columns, rows=rows, none=none, total=len(rules))


def cut(table: Table) -> Table:
    """Return a table with a note if rows are left out."""
    total = table.total or 0
    return evolve(table, note=f"the first {PAGE_ROWS} of {total:,}") if total > len(table.rows) else table


def use_cell(acl: StandardAcl, uses: Uses | None) -> Cell:
    """Return the use of a rule, with the link to its page; an unknown use must not look like a rule that is used."""
    use = None if uses is None else uses.of(acl)
    if use is None:
        return Cell("unknown", mark=Mark.QUIET)
    return Cell(use.brief or use.text, rule_url(acl), mark=Mark.UNUSED if use.is_unused else None)


def choice_of_operation(value: str, *, of_rules: bool = False) -> Field:
    """Return the field in which an operation is chosen."""
    operations = RULE_OPERATIONS if of_rules else OPERATIONS
    choices = (ANY, *((each.name, each.name) for each in operations))
    return Field(name="operation", label="Operation", value=value, kind=Kind.CHOICE, choices=choices)


def choice_of_type(value: str, *, any_type: bool = True) -> Field:
    """Return the field in which a resource type is chosen."""
    choices = ((ANY,) if any_type else ()) + tuple((each.name, each.name) for each in TYPES)
    return Field(name="type", label="Type", value=value, kind=Kind.CHOICE, choices=choices)


def choice_of_pattern(value: str, *, default: str = "any") -> Field:
    """Return the field in which a pattern type is chosen."""
    choices = (("", default), *((each.name, each.name) for each in PATTERNS))
    return Field(name="pattern", label="Pattern", value=value, kind=Kind.CHOICE, choices=choices, is_more=True)


def choice_of_permission(value: str) -> Field:
    """Return the field in which a permission is chosen."""
    choices = (ANY, *((each.name, each.name) for each in PERMISSIONS))
    return Field(name="permission", label="Permission", value=value, kind=Kind.CHOICE, choices=choices)


def as_of_field(value: str) -> Field:
    """Return the field that keeps a moment of the past, which is chosen in the header."""
    return Field(name="as_of", label="As of", value=value, kind=Kind.HIDDEN)


def paged(table: Table, first: int, path: str, **parameters: object) -> Table:
    """Return a table with the ways to its other parts; its rows are those from `first` on."""
    total = table.total if table.total is not None else len(table.rows)
    last = first + len(table.rows)
    pages = []
    if first > 0:
        pages.append(Cell("previous", url(path, **parameters, first=max(first - PAGE_ROWS, 0))))
    if last < total:
        pages.append(Cell("next", url(path, **parameters, first=last)))
    note = table.note
    if len(table.rows) < total:
        bounds = f"rows {first + 1:,} to {last:,} of {total:,}" if table.rows else f"no row after {total:,}"
        note = f"{bounds}; {note}" if note else bounds
    return evolve(table, pages=tuple(pages), note=note, total=total)


# The equivalent command lines of pages.


_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}
_SUPER_USERS = "--super-users"


@frozen(kw_only=True)
class CommandLine:
    """How the console's source and settings are named on a command line."""

    source: tuple[str, ...]
    """The flags of the source, such as `--log`, `DIR`."""
    settings: tuple[str, ...] = ()
    """The flags of the authorizer."""

    def without_super_users(self) -> "CommandLine":
        """Return the same without super users, for viewers who may not see them."""
        before = ("", *self.settings)
        words = (word for last, word in zip(before, self.settings, strict=False) if _SUPER_USERS not in (last, word))
        return evolve(self, settings=tuple(words))

    def of(self, command: str, *flags: str, as_of: str | None = None, settings: bool = True) -> str | None:
        """Return a command with the source and further flags; None if no shell can express it.

        `settings`: whether the command decides, and so takes those of the authorizer.
        """
        moment = ("--as-of", as_of) if as_of else ()
        quoted = [shell_word(part) for part in (*self.source, *moment, *(self.settings if settings else ()), *flags)]
        if any(part is None for part in quoted):
            return None
        return " ".join(["aclog", command, *(part for part in quoted if part is not None)])


def resource_words(resource_type: int, name: str, pattern_type: int = PatternType.LITERAL) -> tuple[str, ...]:
    """Return the flags that name a resource in a question."""
    if resource_type == ResourceType.CLUSTER:
        return ("--cluster",)
    words = (_FLAGS[ResourceType(resource_type)], name)
    if pattern_type == PatternType.PREFIXED:
        return (*words, "--resource-pattern-type", "prefixed")
    # Without the type a star would be a prefix.
    return (*words, "--resource-pattern-type", "literal") if WILDCARD in name else words
