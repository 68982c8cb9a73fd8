"""`aclog help`: a command's page, as a manual page."""

import re
from collections.abc import Iterator
from enum import Enum
from textwrap import dedent, wrap
from typing import Annotated, Any

import click

from aclog.cli.app import LazyCommand
from aclog.cli.listing import FORMER
from aclog.cli.options import Argument, Group
from aclog.metalog.values import frozen

# `aclog help`: a command's page, as the manual has it.


app = Group()


def _complete(context: click.Context, incomplete: str) -> list[str]:

    try:
        page = command_page(context.find_root().command, tuple(context.params.get("words") or ()))
    except KeyError:
        return []
    return [name for name, _ in page.below if name.startswith(incomplete)]


@app.command("help")
def help_(
    context: click.Context,
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="COMMAND...", help="The command, such as acls list; all if left out.", autocompletion=_complete
        ),
    ] = None,
) -> None:
    """Show the page of a command: what it does, each of its flags, and examples.

    The manual pages (`man aclog-acls-list`) have the same text. For a group
    of commands the page lists them.

    [bold]Examples[/]

      aclog help acls list
      aclog help check
      aclog help
    """
    from shutil import get_terminal_size

    from aclog.metalog.errors import ConfigError
    from aclog.terminal.output import emit, page_output

    root = context.find_root()
    try:
        page = command_page(root.command, tuple(words or ()))
    except KeyError as error:
        raise ConfigError(_unknown(root.command, error.args[0])) from None
    page_output()
    emit(page_text(page, min(get_terminal_size().columns, 100)).rstrip("\n"))


def _unknown(root: object, words: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    names = [name for name, _ in command_page(root, words[:-1]).below]
    called = " ".join(("aclog", *words))
    if not names:
        return f"{called}: no such command: {' '.join(('aclog', *words[:-1]))} has none below it"
    near = get_close_matches(words[-1], names, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{called}: no such command{hint}: expected one of {', '.join(names)}"


# The text of a help in its parts: paragraphs, headings, and examples that keep their lines.


class BlockKind(Enum):
    """What a part is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    EXAMPLE = "example"


@frozen(kw_only=True)
class Block:
    """A part in rich's markup; a paragraph is one line, however long."""

    kind: BlockKind
    text: str


def help_blocks(text: str) -> Iterator[Block]:
    """Yield the parts of a help after its first paragraph, in order. Only what is marked as bold, alone, is a heading.

    What follows the first paragraph directly is under the heading "Description".
    """
    parts = text.split("\n\n")[1:]
    if parts and not parts[0].startswith("[bold]"):
        parts.insert(0, "[bold]Description[/]")
    for part in parts:
        if part.startswith("[bold]") and part.endswith("[/]"):
            yield Block(kind=BlockKind.HEADING, text=part.removeprefix("[bold]").removesuffix("[/]"))
        elif part.startswith(" "):
            yield Block(kind=BlockKind.EXAMPLE, text=dedent(part).rstrip())
        elif part.strip():
            yield Block(kind=BlockKind.PARAGRAPH, text=" ".join(part.split()))


# Help texts as commands have them, in rich's markup, for output without markup.


_SPAN = re.compile(r"(?<!\\)\[(cyan|bold|dim)\](.*?)(?<!\\)\[/\1?\]", re.DOTALL)


def marked(text: str, begin: str = "", end: str = "") -> str:
    """Return a text in rich's markup as plain text, with what is literal in it (cyan) between two marks."""

    def span(match: re.Match[str]) -> str:
        """Return one marked part."""
        inner = match[2].replace("\\[", "[")
        return f"{begin}{inner}{end}" if match[1] == "cyan" else inner

    return _SPAN.sub(span, text).replace("\\[", "[")


# The help of each command, read from the tree of commands that runs.


_OTHER = "Options"


@frozen(kw_only=True)
class FlagLine:
    """A flag or an argument: `names` as they are typed, with what follows, and its `text` in rich's markup."""

    names: str
    text: str
    options: tuple[str, ...] = ()
    """The flag's own names, those that switch it off included; none for an argument."""


@frozen(kw_only=True)
class FlagGroup:
    """Flags under one title."""

    title: str
    lines: tuple[FlagLine, ...]


@frozen(kw_only=True)
class CommandPage:
    """One command: `words` call it, `usage` is its synopsis, `text` its help in rich's markup, examples included."""

    words: tuple[str, ...]
    usage: str
    text: str
    groups: tuple[FlagGroup, ...]
    below: tuple[tuple[str, str], ...] = ()
    """Of a group of commands, their names and first lines."""
    epilog: str = ""

    @property
    def name(self) -> str:
        """The words as typed, such as `aclog acls list`."""
        return " ".join(self.words)

    @property
    def summary(self) -> str:
        """The first line of the help, in one line."""
        return " ".join(self.text.partition("\n\n")[0].split())


def command_pages(root: Any) -> Iterator[CommandPage]:
    """Yield the page of each command below a click group, groups before what is in them. Imports all commands."""
    yield from _pages(root, _context(root, "aclog", None))


def command_page(root: Any, words: tuple[str, ...]) -> CommandPage:
    """Return the page of the command that these words after `aclog` call.

    Raises:
        KeyError: there is no such command; its argument has the words up to the first that is wrong.

    """
    command, context = root, _context(root, "aclog", None)
    words = FORMER.get(words[0], words[:1]) + words[1:] if words else words
    for place, word in enumerate(words, 1):
        if word not in getattr(command, "commands", {}):
            raise KeyError(words[:place])
        command = _loaded(command.commands[word])
        context = _context(command, word, context)
    return _page(command, context)


def _pages(command: Any, context: Any) -> Iterator[CommandPage]:
    yield _page(command, context)
    for name, below in getattr(command, "commands", {}).items():
        loaded = _loaded(below)
        yield from _pages(loaded, _context(loaded, name, context))


def _loaded(command: Any) -> Any:
    return command.load() if isinstance(command, LazyCommand) else command


def _context(command: Any, name: str, parent: Any) -> Any:
    # What --help names the command by.
    return command.context_class(command, info_name=name, parent=parent, **command.context_settings)


def _page(command: Any, context: Any) -> CommandPage:
    groups: dict[str, list[FlagLine]] = {}
    for parameter in command.get_params(context):
        line = _line(parameter, context)
        if line is not None:
            title = "Arguments" if parameter.param_type_name == "argument" else None
            groups.setdefault(title or getattr(parameter, "rich_help_panel", None) or _OTHER, []).append(line)
    return CommandPage(
        words=tuple(context.command_path.split()),
        usage=" ".join([context.command_path, "[OPTIONS]", *_operands(command)]),
        text=(command.help or "").strip(),
        groups=tuple(FlagGroup(title=title, lines=tuple(lines)) for title, lines in groups.items()),
        below=tuple((name, _first_line(each)) for name, each in getattr(command, "commands", {}).items()),
        epilog=command.epilog or "",
    )


def _operands(command: Any) -> Iterator[str]:
    if hasattr(command, "commands"):
        yield "COMMAND ..."
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            name = _operand(parameter)
            yield name if parameter.required else f"[{name}]"


def _operand(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[].")
    return f"{name}..." if parameter.nargs < 0 else name


def _line(parameter: Any, context: Any) -> FlagLine | None:
    record = None if getattr(parameter, "hidden", False) else parameter.get_help_record(context)
    if record is None:
        return None
    names, text = record
    if parameter.param_type_name == "argument":
        return FlagLine(names=_operand(parameter), text=text)
    return FlagLine(names=names, text=text, options=(*parameter.opts, *parameter.secondary_opts))


def _first_line(command: Any) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split())


# A command's page in roff, for man(1): the macros of man(7), which groff and mandoc both read.


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
        yield from (".SH EXIT STATUS", _text(page.epilog.partition("Exit codes: ")[2]))
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


# A command's page as text for a terminal, laid out as manual pages are.


_INDENT, _DEEP = " " * 7, " " * 11


def page_text(page: CommandPage, width: int) -> str:
    """Return the page with lines of at most so many characters, if no word is longer."""
    return "\n".join(line.rstrip() for line in _page_lines(page, max(width, 40))) + "\n"


def _page_lines(page: CommandPage, width: int) -> Iterator[str]:
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
        yield from _page_group(group, width)
    if page.below:
        yield "COMMANDS"
        for name, line in page.below:
            yield from (f"{_INDENT}{name}", *_wrapped(marked(line), width, _DEEP))
        yield ""
    if page.epilog:
        yield from ("EXIT STATUS", *_wrapped(marked(page.epilog).partition("Exit codes: ")[2], width))


def _page_group(group: FlagGroup, width: int) -> Iterator[str]:
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
