"""What a review says, before it is text or markdown: points that come first, and sections with all there is."""

from attrs import frozen

from aclog.authorizer.origin import FileOrigin


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
    """The command that shows all of it."""


@frozen(kw_only=True)
class Document:
    """A review for people."""

    head: str
    """The verdict."""
    points: tuple[str, ...]
    """What matters most, the most important first: at most four."""
    sections: tuple[Section, ...]
    foot: tuple[str, ...]
    """What was compared with what."""
