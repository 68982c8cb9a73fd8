"""The page that `--help` prints: usage, text, and panels of arguments, options and commands."""

from collections.abc import Iterable, Iterator
from inspect import cleandoc
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


def print_help(command: click.Command, context: click.Context) -> None:
    """Print the page of a command on stdout, in color on a terminal and where FORCE_COLOR or the like is set."""
    forced = any(map(environ.get, ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS")))
    width = environ.get("TERMINAL_WIDTH")
    console = Console(
        theme=_THEME, highlighter=_OPTIONS, force_terminal=True if forced else None, width=int(width) if width else None
    )
    console.print(Padding(_OPTIONS(command.get_usage(context)), 1), style="bold")
    if command.help:
        console.print(Padding(Align(Group(*_paragraphs(command.help)), "left", pad=False), (0, 1, 1, 1)))
    for title, parameters in _panels(command.get_params(context)):
        console.print(_panel(title, _parameter_table(parameters)))
    if isinstance(command, click.Group):
        below = [command.commands[name] for name in command.list_commands(context)]
        console.print(_panel("Commands", _command_table(below)))
    if command.epilog:
        console.print(Padding(Align(_marked(command.epilog), "left", pad=False), 1))


def _marked(text: str, style: str = "") -> Text:
    return _OPTIONS(Text.from_markup(cleandoc(text), style=style))


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
    text = Text(
        getattr(parameter, "type_text", "<bool>"), style="bold yellow", overflow="fold"
    )  # click's --help has none
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
        table.add_row(Text(each.name or ""), _marked(cleandoc(each.help or "").partition("\n\n")[0].strip()))
    return table
