"""A page as a value: what HTML, JSON and CSV are made of."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeAlias

from attrs import field, frozen


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
