"""A command's page as text for a terminal, laid out as manual pages are."""

from collections.abc import Iterator
from textwrap import wrap

from aclog.cli.help.help_blocks import BlockKind, help_blocks
from aclog.cli.help.marked_text import marked
from aclog.cli.help.pages import CommandPage, FlagGroup

_INDENT, _DEEP = " " * 7, " " * 11


def page_text(page: CommandPage, width: int) -> str:
    """Return the page with lines of at most so many characters, if no word is longer."""
    return "\n".join(line.rstrip() for line in _lines(page, max(width, 40))) + "\n"


def _lines(page: CommandPage, width: int) -> Iterator[str]:
    yield from ("NAME", *_wrapped(f"{page.name} - {marked(page.summary)}", width), "")
    yield from ("SYNOPSIS", *_wrapped(page.usage, width), "")
    for block in help_blocks(page.text):
        if block.kind is BlockKind.HEADING:
            yield marked(block.text).upper()
        elif block.kind is BlockKind.EXAMPLE:
            yield from (*(_INDENT + line for line in marked(block.text).splitlines()), "")
        else:
            yield from (*_wrapped(marked(block.text), width), "")
    for group in page.groups:
        yield from _group(group, width)
    if page.below:
        yield "COMMANDS"
        for name, line in page.below:
            yield from (f"{_INDENT}{name}", *_wrapped(marked(line), width, _DEEP))
        yield ""
    if page.epilog:
        yield from ("EXIT STATUS", *_wrapped(marked(page.epilog).removeprefix("Exit codes: "), width))


def _group(group: FlagGroup, width: int) -> Iterator[str]:
    yield group.title.upper() if group.title in ("Arguments", "Options") else group.title
    for line in group.lines:
        yield from (f"{_INDENT}{line.names}", *_wrapped(marked(line.text), width, _DEEP))
    yield ""


def _wrapped(text: str, width: int, indent: str = _INDENT) -> list[str]:
    return wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
