"""A review or a plan as text or Markdown."""

import re
from collections.abc import Iterator

from attrs import frozen

from aclog.analysis.rows.report import markdown_text
from aclog.authorizer.origin import FileOrigin
from aclog.metalog.errors import printable

# A document: the content of a review or a plan before formatting; points first, then complete sections.


ITEM_LIMIT = 40
"""How many items of a section are shown by default."""


@frozen(kw_only=True)
class Item:
    """One item: a line, and lines with details."""

    text: str
    details: tuple[str, ...] = ()
    origin: FileOrigin | None = None
    """The line of a file that the item refers to."""


@frozen(kw_only=True)
class Section:
    """Items of one kind."""

    title: str
    items: tuple[Item, ...]
    folded: bool = False
    """Whether the section is collapsed, where the format supports it."""
    command: str | None = None
    """The command, or the flag, that shows all items."""
    limit: int | None = ITEM_LIMIT
    """How many items are shown; None: all."""


@frozen(kw_only=True)
class Document:
    """A review or a plan for people."""

    head: str
    """The verdict."""
    points: tuple[str, ...]
    """The most important findings, in descending order: at most four."""
    sections: tuple[Section, ...]
    foot: tuple[str, ...]
    """The compared states."""
    command: str = "aclog review"
    """The command that wrote the document."""


# Documents as lines of text, or as Markdown for a comment on a pull request.


LARGEST_COMMENT = 60_000
"""In characters; a comment on GitHub may have 65,536, on GitLab a million."""

LONGEST = 2_000
"""The longest line, in characters; a name may have 32,767."""

_LIST = re.compile(r"^[+-](?= )")
"""The beginning of a list item in Markdown."""
_ESCAPED = r"\\\g<0>"
_FOLD, _UNFOLD = "<details>", "</details>"


def text_lines(document: Document) -> Iterator[str]:
    """Yield a document as lines for a terminal; collapsed sections with a command are only counted."""
    yield from map(_cut, _text(document))


def markdown_lines(document: Document) -> Iterator[str]:
    """Yield a document as Markdown, cut with a notice if it is too long for a comment; `marker` is the last line."""
    room, is_folded = LARGEST_COMMENT, False
    for line in _markdown(document):
        room -= len(line) + 1
        if room < 0:
            yield from ("", _UNFOLD) if is_folded else ()
            yield from ("", f"The rest does not fit into a comment: `{document.command}` shows it.", marker(document))
            return
        is_folded = line == _FOLD or (is_folded and line != _UNFOLD)
        yield line
    yield marker(document)


def marker(document: Document) -> str:
    """Return the line by which a job finds its previous comment."""
    return f"<!-- {document.command} -->"


def _text(document: Document) -> Iterator[str]:
    yield document.head
    yield from (f"- {point}" for point in document.points)
    for section in document.sections:
        yield ""
        if section.folded and section.command is not None:
            yield f"{section.title}: {len(section.items):,}: {section.command} shows them"
            continue
        yield f"{section.title}:"
        for item in section.items[: section.limit]:
            yield f"  {item.text}"
            yield from (f"    {line}" for line in item.details)
        yield from (f"  {line}" for line in _rest(section))
    yield ""
    yield from document.foot


def _markdown(document: Document) -> Iterator[str]:
    yield f"### {_escaped(document.head)}"
    yield from (f"- {_escaped(point)}" for point in document.points)
    for section in document.sections:
        yield ""
        title = f"<b>{_escaped(section.title)}</b>"
        yield from ((_FOLD, f"<summary>{title}</summary>", "") if section.folded else (title, ""))
        for item in section.items[: section.limit]:
            yield from _markdown_item(item)
        yield from (f"- {_escaped(line)}" for line in _rest(section))
        if section.folded:
            yield from ("", _UNFOLD)
    yield ""
    yield from (f"<sub>{_escaped(line)}</sub><br>" for line in document.foot)


def _markdown_item(item: Item) -> Iterator[str]:
    yield f"- {_LIST.sub(_ESCAPED, _escaped(item.text))}"
    yield from (f"  <br>{_escaped(line)}" for line in item.details)


def _escaped(line: str) -> str:
    return markdown_text(_cut(line))


def _cut(line: str) -> str:
    """Return a line without control characters, and cut to the longest length."""
    text = printable(line[: LONGEST + 1])
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(line):,} characters)"


def _rest(section: Section) -> Iterator[str]:
    remaining = 0 if section.limit is None else len(section.items) - section.limit
    if remaining > 0:
        yield f"and {remaining:,} more" + (f": {section.command} shows all" if section.command is not None else "")
