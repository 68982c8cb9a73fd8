"""What there is to say about each command: read from the tree of commands, which is what runs."""

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from aclog.cli.lazy_commands import LazyCommand

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
    # What --help names the command by. typer has its own copy of click, whose classes are not public.
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
    record = parameter.get_help_record(context)
    if record is None:
        return None
    names, text = record
    if parameter.param_type_name == "argument":
        return FlagLine(names=_operand(parameter), text=text)
    return FlagLine(names=names, text=text, options=(*parameter.opts, *parameter.secondary_opts))


def _first_line(command: Any) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split())
