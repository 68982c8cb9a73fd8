"""A page as a value: cells, columns, rows and the parameters of its URL."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote, unquote

from attrs import evolve, field, frozen

from aclog.analysis.regions import Principals
from aclog.analysis.who_can import all_of
from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    code_name,
    host_address,
    parse_name,
    shell_word,
)
from aclog.authorizer.origin import Origins, places_text
from aclog.authorizer.settings import asked_pattern
from aclog.console.findings import Uses
from aclog.metalog.errors import ConfigError, printable

# A page as a value: what HTML, JSON and CSV are made of.


class Mark(StrEnum):
    """What stands out, by word and by look, never by colour alone."""

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


@frozen
class Cell:
    """A text, perhaps with a link; texts are as they were read, and made fit to show where they are shown."""

    text: str
    url: str | None = None
    mark: Mark | None = None
    others: tuple["Cell", ...] = field(default=(), kw_only=True)
    """What stands below it, each on a line of its own."""

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


@frozen(kw_only=True)
class Row:
    """A row; `key` is the same whenever it says the same of the same thing, so that a new one can be marked."""

    cells: tuple[Cell, ...]
    key: str = ""
    mark: Mark | None = None


@frozen(kw_only=True)
class Table:
    """A table. It always says of how many its rows are."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    none: str
    """What it means that there is no row."""
    total: int | None = None
    """Of how many rows; None if these are all."""
    note: str = ""
    """What is filtered, cut or left out besides, and how to see it."""
    pages: tuple[Cell, ...] = ()
    """Links to its other parts."""


@frozen(kw_only=True)
class Facts:
    """Names and what is known of them."""

    key: str
    title: str
    items: tuple[tuple[str, Cell], ...]


@frozen(kw_only=True)
class Lines:
    """Lines of a text, as a command prints it."""

    key: str
    title: str
    lines: tuple[str, ...]


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
    """Values and what they are called."""
    hint: str = ""
    least: int = 0
    most: int = 0
    """Of a range."""
    empties: str = ""
    """The name of a field that says the same in words: it is emptied when this one is moved."""
    is_open: bool = False
    """Whether the greatest value of a range stands for whatever is newest: it is left out of addresses."""


@frozen(kw_only=True)
class Button:
    """A way to send a form besides the first one; it sends its name and value, too."""

    name: str
    value: str
    title: str


@frozen(kw_only=True)
class Form:
    """What is asked, to be changed: it stays where it is while the answer below it is exchanged."""

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
    """Whether it is sent as POST, too, though it writes nothing: it may be too large for an address."""
    takes_file: str = ""
    """The name of the field that a file's content goes to; empty for none."""
    buttons: tuple[Button, ...] = ()
    is_below: bool = False
    """Whether it stands below the answer, which has to be read first."""


@frozen(kw_only=True)
class Links:
    """Ways on from here."""

    key: str
    title: str
    links: tuple[Cell, ...]


Part: TypeAlias = Table | Facts | Lines | Links | Form


@frozen(kw_only=True)
class Notice:
    """What must be known to read a page rightly."""

    text: str
    mark: Mark = Mark.WARNING


@frozen(kw_only=True)
class File:
    """What is saved as a file."""

    name: str
    content: str


@frozen(kw_only=True)
class Handle:
    """A handle of a slider: the name of its field, where it is, and where the slider begins and ends."""

    name: str
    value: int
    least: int
    most: int


@frozen(kw_only=True)
class Page:
    """A view: a question, its answer, and the command line that says the same."""

    path: str
    title: str
    answer: str = ""
    """In a sentence."""
    mark: Mark | None = None
    """Of the answer."""
    command: str | None = None
    """None if no command line says the same."""
    parts: tuple[Part, ...] = ()
    handles: tuple[Handle, ...] = ()
    """Where the handles of its sliders are, which follow what was said in words, and a log that grows."""
    notices: tuple[Notice, ...] = ()
    offset: int | None = None
    """The end offset of the state that is shown; None if none is."""
    is_settled: bool = True
    """Whether it says the same as long as the newest state does; if not, it is made anew each time."""
    data: Sequence[object] = field(factory=tuple)
    """The answer as the command's JSON lines have it, if there is such a command."""

    def tables(self) -> tuple[Table, ...]:
        """Return its tables."""
        return tuple(part for part in self.parts if isinstance(part, Table))


# What is asked of a page: the parameters of its URL, read with care.


_Enum = TypeVar("_Enum", bound=IntEnum)

MOST_CHARACTERS = 8192
"""Of one parameter."""
_MOST_PARAMETERS = 100
_EXACT = ".exact"
OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ALL)
"""What can be asked for."""
RULE_OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ANY)
"""What a rule may have."""
TYPES = tuple(each for each in ResourceType if each > ResourceType.ANY)
PATTERNS = PatternType.LITERAL, PatternType.PREFIXED
PERMISSIONS = AclPermissionType.ALLOW, AclPermissionType.DENY


class BadParameterError(ConfigError):
    """What a URL asks makes no sense; the text says what is expected."""


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
        """Return a whole number, brought within its limits. Raises BadParameterError: it is none."""
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
        """Return an address in the form that rules have, None for any. Raises BadParameterError: it is none."""
        text = self.word(name)
        if not text:
            return None
        try:
            return host_address(text)
        except (ConfigError, ValueError) as error:
            raise BadParameterError(str(error)) from error

    def resource(self, kind: ResourceType, name: str = "name") -> ResourcePattern:
        """Return the resource that a name, and maybe a pattern type, stand for (aclog.authorizer.settings).

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

    A form shows such a value by escapes, and would send these. If they come back unchanged, what they stand for is
    meant, and `Parameters.of` puts it in their place.
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


_UNRESERVED = re.compile("[A-Za-z0-9_.~-]*")


def _quoted(text: str) -> str:
    # A page has hundreds of addresses, and most texts in them are what they are.
    return text if _UNRESERVED.fullmatch(text) else quote(text, safe="", errors="surrogatepass")


# Cells, columns and rows that several pages have.


ANY = ("", "any")
PRINCIPALS = "User:alice"
"""An example of one, for hints."""
PAGE_ROWS = 200
"""Rows of a table that are shown at once."""


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
    """Return the way to everybody who can do something with what a rule is on; LITERAL `*` is every name."""
    if name == WILDCARD and pattern_type == PatternType.LITERAL:
        return url("/resource", type=code_name(ResourceType, resource_type), name=name, as_of=as_of)
    pattern = ResourcePattern(resource_type=resource_type, name=name, pattern_type=pattern_type)
    return url("/resource", **name_parameters(pattern), as_of=as_of)


def resource_cell(acl: StandardAcl, as_of: str | None = None) -> Cell:
    """Return the name, or the prefix, that a rule is for; its pattern type stands beside it."""
    return Cell(
        acl.resource_name,
        resource_url(acl.resource_type, acl.resource_name, acl.pattern_type, as_of),
    )


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
"""Of a rule."""


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


_PLACE = Column(key="place", title="Stands in")
_USE = Column(key="use", title="Use")


def rule_columns(
    origins: Origins, rules: Iterable[StandardAclWithId], *, uses: Uses | None = None
) -> tuple[Column, ...]:
    """Return RULE_COLUMNS, where the rules stand if any of them says so, and their use if anybody knows of any."""
    stands = any(origins.of(rule.acl) for rule in rules)
    return (*RULE_COLUMNS, *((_PLACE,) if stands else ()), *((_USE,) if uses is not None else ()))


def rule_row(
    rule: StandardAclWithId,
    columns: Sequence[Column],
    origins: Origins,
    as_of: str | None = None,
    *,
    uses: Uses | None = None,
) -> Row:
    """Return the row of a rule."""
    acl = rule.acl
    cells = rule_cells(acl, as_of)
    if _PLACE in columns:
        cells = (*cells, Cell(places_text(acl, origins).strip(" ()")))
    if _USE in columns:
        cells = (*cells, use_cell(acl, uses))
    return Row(key=repr(acl), cells=cells, mark=Mark.DENY if acl.permission_type == AclPermissionType.DENY else None)


def rule_table(
    rules: Sequence[StandardAclWithId],
    origins: Origins,
    *,
    key: str,
    title: str,
    none: str,
    as_of: str | None = None,
    uses: Uses | None = None,
    first: int = 0,
) -> Table:
    """Return a table of rules, those from `first` on, as many as are shown at once; it does not say which."""
    page = rules[first : first + PAGE_ROWS]
    columns = rule_columns(origins, page, uses=uses)
    rows = tuple(rule_row(rule, columns, origins, as_of, uses=uses) for rule in page)
    return Table(key=key, title=title, columns=columns, rows=rows, none=none, total=len(rules))


def cut(table: Table) -> Table:
    """Return a table that says that its rows are the first, if they are not all."""
    total = table.total or 0
    return evolve(table, note=f"the first {PAGE_ROWS} of {total:,}") if total > len(table.rows) else table


def use_cell(acl: StandardAcl, uses: Uses | None) -> Cell:
    """Return what accesses say of a rule; what nobody knows does not look like a rule that is used."""
    use = None if uses is None else uses.of(acl)
    if use is None:
        return Cell("not known", mark=Mark.QUIET)
    if use.is_unused:
        return Cell(use.text, url("/findings", kind="unused", principal=acl.principal), mark=Mark.UNUSED)
    return Cell(use.text)


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
    return Field(name="pattern", label="Pattern", value=value, kind=Kind.CHOICE, choices=choices)


def choice_of_permission(value: str) -> Field:
    """Return the field in which a permission is chosen."""
    choices = (ANY, *((each.name, each.name) for each in PERMISSIONS))
    return Field(name="permission", label="Permission", value=value, kind=Kind.CHOICE, choices=choices)


def as_of_field(value: str) -> Field:
    """Return the field for a moment of the past."""
    return Field(name="as_of", label="As of", value=value, hint="now; or an offset, or a time such as 2026-03-01")


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


# The command lines that say what pages say.


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
    """Such as `--log`, `DIR`."""
    settings: tuple[str, ...] = ()
    """Those of the authorizer."""

    def without_super_users(self) -> "CommandLine":
        """Return the same for who may not know the super users; they are others, so that his answers are the same."""
        before = ("", *self.settings)
        words = (word for last, word in zip(before, self.settings, strict=False) if _SUPER_USERS not in (last, word))
        return evolve(self, settings=tuple(words))

    def of(self, command: str, *flags: str, as_of: str | None = None, settings: bool = True) -> str | None:
        """Return a command with the source, and what else it takes; None if no shell can say it.

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
