"""A review as lines of text, or as markdown for a comment on a pull request."""

from collections.abc import Iterator

from aclog.analysis.review.document import Document, Item, Section
from aclog.analysis.rows.row_report import markdown_text

SHOWN = 40
"""Items of a section; a command shows all."""

LARGEST_COMMENT = 60_000
"""In characters; a comment on GitHub may have 65,536, on GitLab a million."""

MARKER = "<!-- aclog review -->"
"""The last line, by which a job finds the comment that it wrote before."""


def text_lines(document: Document) -> Iterator[str]:
    """Yield a review as lines for a terminal."""
    yield document.head
    yield from (f"- {point}" for point in document.points)
    for section in document.sections:
        yield ""
        yield f"{section.title}:"
        for item in section.items[:SHOWN]:
            yield f"  {item.text}"
            yield from (f"    {line}" for line in item.details)
        yield from (f"  {line}" for line in _rest(section))
    yield ""
    yield from document.foot


def markdown_lines(document: Document) -> Iterator[str]:
    """Yield a review as markdown, cut to what fits into a comment, and saying so."""
    room = LARGEST_COMMENT
    for line in _markdown(document):
        room -= len(line) + 1
        if room < 0:
            yield from ("", "The rest does not fit into a comment: `aclog review` shows it.", MARKER)
            return
        yield line
    yield MARKER


def _markdown(document: Document) -> Iterator[str]:
    yield f"### {markdown_text(document.head)}"
    yield from (f"- {markdown_text(point)}" for point in document.points)
    for section in document.sections:
        yield ""
        title = f"<b>{markdown_text(section.title)}</b>"
        yield from (("<details>", f"<summary>{title}</summary>", "") if section.folded else (title, ""))
        for item in section.items[:SHOWN]:
            yield from _markdown_item(item)
        yield from (f"- {markdown_text(line)}" for line in _rest(section))
        if section.folded:
            yield from ("", "</details>")
    yield ""
    yield from (f"<sub>{markdown_text(line)}</sub><br>" for line in document.foot)


def _markdown_item(item: Item) -> Iterator[str]:
    yield f"- {markdown_text(item.text)}"
    yield from (f"  <br>{markdown_text(line)}" for line in item.details)


def _rest(section: Section) -> Iterator[str]:
    left = len(section.items) - SHOWN
    if left > 0:
        yield f"and {left:,} more" + (f": {section.command} shows all" if section.command is not None else "")
