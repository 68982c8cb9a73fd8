"""The page that `--help` prints: usage, text, and panels of arguments, options and commands."""

from collections.abc import Iterable, Iterator
from inspect import cleandoc
from io import StringIO
from os import environ
from typing import Any

import click
from rich.align import Align
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.highlighter import RegexHighlighter
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from aclog.cli.listing import MORE
from aclog.terminal.output import ColorChoice, color_choice, emit

_THEME = Theme({
    "option": "bold cyan", "switch": "bold green", "negative_option": "bold magenta", "negative_switch": "bold red",
    "types": "bold yellow", "types_sep": "dim", "usage": "yellow",
})  # fmt: skip


class _Options(RegexHighlighter):
    highlights = [  # noqa: RUF012 - as rich has it
        r"(^|\W)(?P<switch>\-\w+)(?![a-zA-Z0-9])",
        r"(^|\W)(?P<option>\-\-[\w\-]+)(?![a-zA-Z0-9])",
        r"(?P<types>\<[^\>]+\>)",
        r"(?P<usage>Usage: )",
    ]


class _Negatives(RegexHighlighter):
    highlights = [  # noqa: RUF012
        r"(^|\W)(?P<negative_switch>\-\w+)(?![a-zA-Z0-9])",
        r"(^|\W)(?P<negative_option>\-\-[\w\-]+)(?![a-zA-Z0-9])",
    ]


class _Types(RegexHighlighter):
    highlights = [  # noqa: RUF012
        r"^(?P<types_sep>(\[|<))",
        r"(?P<types_sep>\|)",
        r"(?P<types_sep>(\]|>))(\.\.\.)?$",
    ]


_OPTIONS, _NEGATIVES, _TYPES = _Options(), _Negatives(), _Types()


LINES = 57
"""Of a page of `--help` on a terminal of 80 columns, at most: it fits a window."""
_LONGEST_VALUE = 24
"""Of a placeholder that is beside its flag; a longer one, of many choices, is below the text."""
_EXAMPLES = 6
"""Lines of examples on a page of `--help`."""
_OUTPUT = "Output"
_SHARED = ("State source", "Rule files", "Authorizer", "Second state", "Settings", "Aliases", _OUTPUT)
"""How the titles of groups begin that are in many commands: they are described last."""


def print_help(command: click.Command, context: click.Context, *, is_complete: bool = False) -> None:
    """Print the page of a command on stdout, in color on a terminal and where FORCE_COLOR or the like is set.

    It begins with usage, examples and the flags of the request. Groups of flags that have no room are listed by name,
    unless the page `is_complete`.
    """
    choice = color_choice()
    forced = choice is ColorChoice.ALWAYS or any(map(environ.get, ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS")))
    width = environ.get("TERMINAL_WIDTH")
    console = Console(
        theme=_THEME,
        highlighter=_OPTIONS,
        emoji=False,  # no help has one, and their table takes 2 ms
        force_terminal=True if forced else None,
        color_system=None if choice == "never" else "auto",
        width=int(width) if width else None,
    )
    # As click has it, which would import what packs files, to find the width.
    context.terminal_width = max(min(console.width, 80) - 2, 50)
    if is_complete:
        _print_complete(command, context, console)
    elif isinstance(command, click.Group):
        _print_group(command, context, console)
    else:
        _print_brief(command, context, console)


def _print_complete(command: click.Command, context: click.Context, console: Console) -> None:
    console.print(Padding(_OPTIONS(command.get_usage(context)), 1), style="bold")
    if command.help:
        console.print(Padding(Align(Group(*_paragraphs(command.help)), "left", pad=False), (0, 1, 1, 1)))
    for title, parameters in _panels(command.get_params(context)):
        console.print(_panel(title, _parameter_table(parameters)))
    if isinstance(command, click.Group):
        for title, below in _commands(command, context):
            console.print(_panel(title, _command_table(below)))
    if command.epilog:
        console.print(Padding(Align(_marked(command.epilog), "left", pad=False), 1))


def _print_group(command: click.Group, context: click.Context, console: Console) -> None:
    """Print the page of a group of commands, without the panels that only the complete page has."""
    summary, examples, _ = _parts(command.help or "")
    groups = [(title, below) for title, below in _commands(command, context) if title != MORE]
    flags = [_group(title, parameters) for title, parameters in _panels(command.get_params(context))]
    commands = _titled_commands(groups) if len(groups) > 1 else _command_table(groups[0][1])
    epilog = [Text(""), _marked(command.epilog)] if command.epilog else []
    head = [_usage(command, context), summary, *_titled("Examples", examples), _title("Commands"), _indented(commands)]
    _print(console, (*head, *flags, *epilog))


def _print_brief(command: click.Command, context: click.Context, console: Console) -> None:
    """Print the page of a command in at most LINES lines of 80 columns, if no more are needed to name its flags."""
    summary, examples, description = _parts(command.help or "")
    head: list[RenderableType] = [_usage(command, context), summary, *_titled("Examples", examples)]
    groups = _merged(_panels(command.get_params(context)))
    narrow = Console(theme=_THEME, emoji=False, width=80, file=StringIO())
    room = LINES - sum(_height(each, narrow) for each in head) - 2
    room -= sum(map(_folded_height, groups.values()))
    about = description
    has_about = (lines := sum(_height(each, narrow) for each in about)) <= room // 3
    room -= lines * has_about
    parts, folded = [], dict[str, list[click.Parameter]]()
    # The format of the output has room before the last flags of other groups.
    output = groups.get(_OUTPUT, [])
    output.sort(key=lambda each: "--format" not in each.opts)
    reserved = _height(_group(_OUTPUT, output[:1]), narrow) if output else 0
    room -= reserved
    for title, parameters in groups.items():
        room += _folded_height(parameters) + reserved * (title == _OUTPUT)
        count = _fitting(title, parameters, room, narrow)
        if count:
            parts.append(_group(title, parameters[:count]))
            room -= _height(parts[-1], narrow)
        if rest := parameters[count:]:
            folded[title] = rest
            room -= _folded_height(rest)
    end: list[RenderableType] = []
    if folded:
        end = [_title(f"More flags ({context.command_path} --help-all)"), _indented(_names_table(folded))]
    _print(console, (*head, *(about if has_about else ()), *parts, *end))


def _group(title: str, parameters: list[click.Parameter]) -> Group:
    return Group(_title(title), _indented(_brief_table(parameters)))


def _fitting(title: str, parameters: list[click.Parameter], room: int, console: Console) -> int:
    """Return how many of a group's flags, from the first on, have room; of what many commands share, all or none.

    Of the group of output it may also be the first, the format.
    """
    total = len(parameters)
    shared = (total, 1, 0) if title == _OUTPUT else (total, 0)
    for count in shared if title.startswith(_SHARED) else range(total, 0, -1):
        rest = _folded_height(parameters[count:]) if count < total else 0
        if not count or _height(_group(title, parameters[:count]), console) + rest <= room:
            return count
    return 0


def _print(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print parts below each other, without blanks at the ends of lines."""
    with console.capture() as capture:
        console.print(Group(*parts), crop=False)
    emit("\n".join(line.rstrip() for line in capture.get().rstrip().split("\n")))


def _merged(panels: Iterable[tuple[str, list[click.Parameter]]]) -> dict[str, list[click.Parameter]]:
    """Return the groups in the order of a page; titles that differ in a remark are one group."""
    groups: dict[str, list[click.Parameter]] = {}
    for title, parameters in sorted(panels, key=lambda panel: _rank(*panel)):
        groups.setdefault(_short(title), []).extend(parameters)
    return groups


def _short(title: str) -> str:
    return title.partition(" (")[0].partition(":")[0]


def _rank(title: str, parameters: list[click.Parameter]) -> int:
    """Return the place of a group: arguments, the request, options, and then what many commands share.

    Options of which one is required are part of the request.
    """
    if title == "Options":
        return 1 if any(each.required for each in parameters) else 2
    return 0 if title == "Arguments" else 3 if title.startswith(_SHARED) else 1


def _usage(command: click.Command, context: click.Context) -> RenderableType:
    return Group(Text.assemble(_OPTIONS(command.get_usage(context)), style="bold"), Text(""))


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _titled(title: str, lines: list[Text]) -> list[RenderableType]:
    return [_title(title), *lines] if lines else []


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 1))


def _height(part: RenderableType, console: Console) -> int:
    return len(console.render_lines(part, pad=False))


def _parts(text: str) -> tuple[Text, list[Text], list[Text]]:
    """Return the summary of a help, the first lines of its examples, and the paragraphs of its description."""
    summary, *parts = cleandoc(text).split("\n\n")
    examples: list[str] = []
    description: list[Text] = []
    for part in parts:
        if part.startswith("[bold]Example"):
            continue
        if part.startswith("  "):
            examples += part.splitlines()
        else:
            description += [Text(""), _marked(part.strip())]
    return _marked(" ".join(summary.split())), [_command_line(each) for each in examples[:_EXAMPLES]], description


def _command_line(text: str) -> Text:
    """Return an example, which stays one line: it can be copied."""
    line = _OPTIONS(Text.from_markup(text, emoji=False))
    line.no_wrap, line.overflow = True, "ignore"
    return line


def _brief_table(parameters: list[click.Parameter]) -> Table:
    """Return the flags with their values in one column, and their texts in another one."""
    table, names = _table(highlight=True), [_typed(each) for each in parameters]
    longest = max(len(word) for each in names for word in each.plain.split())
    table.add_column(width=max(longest, min(28, max(len(each.plain) for each in names))), overflow="fold")
    table.add_column(ratio=1)
    for each, name in zip(parameters, names, strict=True):
        values = [_types(each)] if len(_types(each)) > _LONGEST_VALUE else []
        table.add_row(name, Group(_description(each), *values))
    return table


def _typed(parameter: click.Parameter) -> Text:
    """Return the names of a flag, and the placeholder of its value."""
    if isinstance(parameter, click.Argument):
        return _OPTIONS(parameter.human_readable_name)
    words = [*parameter.opts, *parameter.secondary_opts]
    text = _OPTIONS(" ".join(sorted(words, key=len)))
    value = _types(parameter)
    return Text.assemble(text, " " * bool(value), value if len(value) <= _LONGEST_VALUE else _TYPES("VALUE"))


def _names_table(groups: dict[str, list[click.Parameter]]) -> Table:
    table = _table(highlight=True)
    table.add_column(style="dim", width=18)
    table.add_column(ratio=1)
    for title, parameters in groups.items():
        table.add_row(title, _OPTIONS(" ".join(max(each.opts, key=len) for each in parameters)))
    return table


def _folded_height(parameters: list[click.Parameter]) -> int:
    """Return how many lines of 80 columns list the names of a group, at most."""
    return 1 + sum(1 + len(max(each.opts, key=len)) for each in parameters) // 46


def _titled_commands(groups: list[tuple[str, list[click.Command]]]) -> Table:
    """Return the commands with the titles of their groups beside them."""
    table = _table(highlight=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(ratio=1)
    for number, (title, commands) in enumerate(groups):
        if number:
            table.add_row()
        for place, each in enumerate(commands):
            table.add_row(title if not place else "", each.name, _line(each, is_brief=True))
    return table


def _commands(command: click.Group, context: click.Context) -> Iterator[tuple[str, list[click.Command]]]:
    """Yield the commands of a group by their panels."""
    panels: dict[str, list[click.Command]] = {}
    for name in command.list_commands(context):
        below = command.commands[name]
        panels.setdefault(getattr(below, "rich_help_panel", "") or "Commands", []).append(below)
    yield from panels.items()


def _marked(text: str, style: str = "") -> Text:
    return _OPTIONS(Text.from_markup(cleandoc(text), style=style, emoji=False))


def _paragraphs(text: str) -> Iterator[Text]:
    first, _, rest = cleandoc(text).partition("\n\n")
    yield _marked(first.replace("\n", " ").strip())
    if rest:
        yield Text("")
        yield _marked(rest, "dim")


def _panels(parameters: Iterable[click.Parameter]) -> Iterator[tuple[str, list[click.Parameter]]]:
    """Yield the parameters of each panel: arguments, options without a panel, and then the others."""
    panels: dict[str, list[click.Parameter]] = {"Arguments": [], "Options": []}
    for each in parameters:
        if getattr(each, "hidden", False):
            continue
        title = "Arguments" if isinstance(each, click.Argument) else getattr(each, "rich_help_panel", None)
        panels.setdefault(title or "Options", []).append(each)
    yield from ((title, each) for title, each in panels.items() if each)


def _panel(title: str, table: Table) -> Panel:
    return Panel(table, border_style="dim", title=title, title_align="left")


def _table(**settings: Any) -> Table:
    return Table(show_header=False, expand=True, box=None, pad_edge=False, padding=(0, 1), **settings)


def _parameter_table(parameters: list[click.Parameter]) -> Table:
    table, is_marked = _table(highlight=True), any(each.required for each in parameters)
    for each in parameters:
        mark: list[RenderableType] = [Text("*", style="red") if each.required else ""] if is_marked else []
        table.add_row(*mark, *_names(each), _types(each), _description(each))
    return table


def _names(parameter: click.Parameter) -> Iterator[Text]:
    """Yield the long and the short names, and those that switch it off."""
    opts = [parameter.human_readable_name] if isinstance(parameter, click.Argument) else parameter.opts
    for names, highlighter in ((opts, _OPTIONS), (parameter.secondary_opts, _NEGATIVES)):
        yield highlighter(",".join(name for name in names if "--" in name))
        yield highlighter(",".join(name for name in names if "--" not in name))


def _types(parameter: click.Parameter) -> Text:
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return Text("")
    text = Text(getattr(parameter, "type_text", ""), style="bold yellow", overflow="fold")
    if bounds := getattr(parameter, "range_text", None):
        text.append(f" [{bounds}]")
    return _TYPES(text)


def _description(parameter: click.Parameter) -> Columns:
    parts = []
    if parameter.help:
        parts.append(
            _marked("\n".join(each.replace("\n", " ").strip() for each in parameter.help.split("\n\n")).strip())
        )
    if default := getattr(parameter, "default_text", ""):
        parts.append(Text(f"[default: {default}]", style="dim"))
    if parameter.required:
        parts.append(Text("[required]", style="dim red"))
    return Columns(parts)


def _command_table(commands: list[click.Command]) -> Table:
    table = _table(highlight=False)
    table.add_column(style="bold cyan", no_wrap=True, width=max(len(each.name or "") for each in commands))
    table.add_column("Description", justify="left", no_wrap=False, ratio=10)
    for each in commands:
        table.add_row(Text(each.name or ""), _line(each))
    return table


def _line(command: click.Command, *, is_brief: bool = False) -> Text:
    """Return what a list of commands has about one."""
    first = cleandoc(command.help or "").partition("\n\n")[0].strip()
    brief: str = getattr(command, "brief", "") if is_brief else ""
    return _marked(brief or first)
