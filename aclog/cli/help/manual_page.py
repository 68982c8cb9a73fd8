"""A command's page in roff, for man(1): the macros of man(7), which groff and mandoc both read."""

from collections.abc import Iterator

from aclog.cli.help.help_blocks import BlockKind, help_blocks
from aclog.cli.help.marked_text import marked
from aclog.cli.help.pages import CommandPage, FlagGroup, FlagLine

_BOLD, _PLAIN = "\x01", "\x02"
"""Marks in a text that is not escaped yet."""


def manual_page(page: CommandPage, version: str, day: str) -> str:
    """Return the page as the source of a manual page, `aclog-acls-list.1` of `aclog acls list`; `day` is its date."""
    return "\n".join(_lines(page, version, day)) + "\n"


def manual_name(page: CommandPage) -> str:
    """Return the name of a command's manual page: `aclog-acls-list`."""
    return "-".join(page.words)


def _lines(page: CommandPage, version: str, day: str) -> Iterator[str]:
    yield f'.TH "{_escaped(manual_name(page).upper())}" 1 "{day}" "{_escaped(f"aclog {version}")}" "aclog"'
    yield from (".SH NAME", f"{_escaped(manual_name(page))} \\- {_text(page.summary)}")
    yield from (".SH SYNOPSIS", f".B {_escaped(page.name)}", _escaped(page.usage.removeprefix(page.name).strip()))
    above = BlockKind.HEADING
    for block in help_blocks(page.text):
        if BlockKind.HEADING not in (above, block.kind):
            yield ".PP"
        above = block.kind
        if block.kind is BlockKind.HEADING:
            yield f'.SH "{_text(block.text).upper()}"'
        elif block.kind is BlockKind.EXAMPLE:
            yield from (".nf", *(_text(line) for line in block.text.splitlines()), ".fi")
        else:
            yield _text(block.text)
    for group in page.groups:
        yield from _group(group)
    if page.below:
        yield ".SH COMMANDS"
        for name, line in page.below:
            yield from (".TP", f"\\fB{_escaped(f'{manual_name(page)}-{name}')}\\fR(1)", _text(line))
    if page.epilog:
        yield from (".SH EXIT STATUS", _text(page.epilog.removeprefix("Exit codes: ")))
    if len(page.words) > 1:
        yield from (".SH SEE ALSO", f"\\fB{_escaped('-'.join(page.words[:-1]))}\\fR(1)")


def _group(group: FlagGroup) -> Iterator[str]:
    yield f'.SH "{_text(group.title).upper()}"'
    for line in group.lines:
        yield from (".TP", _names(line), _text(line.text))


def _names(line: FlagLine) -> str:
    words = (f"\\fB{_escaped(word)}\\fR" if word.startswith("-") else _escaped(word) for word in line.names.split(" "))
    return " ".join(words)


def _text(text: str) -> str:
    """Return a text in rich's markup as one line of roff, what is literal in it in bold."""
    escaped = _escaped(marked(text, _BOLD, _PLAIN))
    return escaped.replace(_BOLD, "\\fB").replace(_PLAIN, "\\fR")


def _escaped(text: str) -> str:
    plain = (
        text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("^", "\\(ha").replace("~", "\\(ti")
    )
    quoted = plain.replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{quoted}" if quoted.startswith(".") else quoted
