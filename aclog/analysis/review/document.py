"""What a review or a plan says, before it is text or markdown: points first, and sections with all there is."""

from attrs import frozen

from aclog.authorizer.origin import FileOrigin

SHOWN = 40
"""Items of a section, if nothing else is said; a command shows all."""


@frozen(kw_only=True)
class Item:
    """One thing to read: a line, and lines that tell more about it."""

    text: str
    details: tuple[str, ...] = ()
    origin: FileOrigin | None = None
    """The line of a file that it is about."""


@frozen(kw_only=True)
class Section:
    """Items of one kind."""

    title: str
    items: tuple[Item, ...]
    folded: bool = False
    """Whether it is shown on demand only, where that is possible."""
    command: str | None = None
    """The command, or the flag, that shows all of it."""
    shown: int | None = SHOWN
    """How many items are shown; None: all."""


@frozen(kw_only=True)
class Document:
    """A review or a plan for people."""

    head: str
    """The verdict."""
    points: tuple[str, ...]
    """What matters most, the most important first: at most four."""
    sections: tuple[Section, ...]
    foot: tuple[str, ...]
    """What was compared with what."""
    command: str = "aclog review"
    """The command that made it."""
