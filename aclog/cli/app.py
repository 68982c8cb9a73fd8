"""The `aclog` command, assembled from its sub-commands, each of which is imported when it runs."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_group
from typer.models import ParameterInfo

from aclog.cli.flags.source import ContextName, use_context
from aclog.metalog.errors import ConfigError
from aclog.terminal.output import say

# Values of flags that need no validation, read without pydantic.
#
# typer 0.29 reads every value through pydantic, the default of a flag that is not given too; importing that takes
# longer than deciding on a thousand ACLs. Text, paths, whole numbers and names of an enum are what they look like;
# anything else, and all that is wrong, is left to typer, so that its errors stay its own.


_Process = Callable[[Any, Any], Any]


class _NotPlainError(Exception):
    """A value that typer must look at."""


def read_plainly(command: TyperCommand | TyperGroup) -> None:
    """Make a command, and those below it, read plain values without typer."""
    by_typer = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        """Return the parameters; --help is one that typer adds only here."""
        return plain_parameters(by_typer(ctx))

    command.get_params = get_params  # type: ignore[method-assign]
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            if isinstance(below, (TyperCommand, TyperGroup)):
                read_plainly(below)


def plain_parameters(parameters: list[Any]) -> list[Any]:
    """Return the parameters of a command, each of which now reads plain values itself."""
    for parameter in parameters:
        if "process_value" not in vars(parameter):
            parameter.process_value = _plain_first(parameter, parameter.process_value)
    return parameters


def _plain_first(parameter: TyperOption | TyperArgument, by_typer: _Process) -> _Process:
    """Return what reads a value: as typer does, but plain values without it."""

    def process_value(ctx: Any, value: Any) -> Any:
        """See typer's Parameter.process_value."""
        try:
            plain = _plain(parameter, value)
        except _NotPlainError:
            return by_typer(ctx, value)
        return plain if parameter.callback is None else parameter.callback(ctx, parameter, plain)

    return process_value


def _plain(parameter: TyperOption | TyperArgument, value: Any) -> Any:
    many = parameter.multiple or parameter.nargs == -1
    if value is None or (many and not value):
        if parameter.required:
            raise _NotPlainError
        return () if many else None
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None:  # in a typer that is newer than what this was tested with
        raise _NotPlainError
    annotation, info = descriptor.annotation, descriptor.parameter_info
    if not many:
        return _one(annotation, info, value)
    if get_origin(annotation) is not list or not isinstance(value, (list, tuple)):
        raise _NotPlainError
    return [_one(get_args(annotation)[0], info, item) for item in value]


def _one(annotation: Any, info: ParameterInfo, value: Any) -> Any:
    if info.parser is None and (type(value) is annotation or isinstance(value, Enum)):
        return value  # text, or a default
    if not isinstance(value, str):
        raise _NotPlainError
    if info.parser is not None:
        return info.parser(value)
    if issubclass(annotation, Enum):
        return _choice(annotation, value)
    if annotation is Path and not _is_checked(info):
        return _path(value)
    if annotation is int:
        return _number(info, value)
    raise _NotPlainError


def _choice(names: type[Enum], value: str) -> Enum:
    for choice in names:
        if choice.value == value:
            return choice
    raise _NotPlainError


def _is_checked(info: ParameterInfo) -> bool:
    """Whether a path must be more than readable, if it is there."""
    kind = not info.file_okay or not info.dir_okay or info.path_type is not None
    return kind or info.exists or info.writable or info.resolve_path or info.allow_dash


def _path(value: str) -> Path:
    if "\0" in value or (not os.access(value, os.R_OK) and Path(value).exists()):
        raise _NotPlainError
    return Path(value)


def _number(info: ParameterInfo, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 19) or info.clamp:
        raise _NotPlainError
    number = int(value)
    if (info.min is not None and number < info.min) or (info.max is not None and number > info.max):
        raise _NotPlainError
    return number


# Help without the parts of rich that typer imports for it and aclog never shows: a third of the time that it takes.


_UNUSED = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
"""Modules that typer.rich_utils imports, and what from them: help in Markdown, and tracebacks, which are turned off."""


def help_quickly(command: TyperCommand | TyperGroup) -> None:
    """Make a command, and those below it, show their help without these."""
    by_typer = command.format_help

    def format_help(ctx: Any, formatter: Any) -> None:
        """See typer's Command.format_help."""
        with _without_unused():
            by_typer(ctx, formatter)

    command.format_help = format_help  # type: ignore[method-assign]
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            if isinstance(below, (TyperCommand, TyperGroup)):
                help_quickly(below)


@contextmanager
def _without_unused() -> Iterator[None]:
    """Have empty modules in the place of those that are not imported yet, while typer imports its own."""
    names = [name for name in _UNUSED if name not in sys.modules and "typer.rich_utils" not in sys.modules]
    for name in names:
        module = ModuleType(name)
        setattr(module, _UNUSED[name], type(_UNUSED[name], (), {}))
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


# An option of one value that is given twice: the last one would win in silence, so it is refused.


def refuse_repeats(command: Any) -> None:
    """Make a command refuse an option that is given twice with different values; twice the same is once.

    Completion takes what it finds.
    """
    make_parser = command.make_parser

    def make(ctx: Any) -> Any:
        """See typer's Command.make_parser."""
        parser = make_parser(ctx)
        if not ctx.resilient_parsing:
            _watch(parser)
        return parser

    command.make_parser = make


def _watch(parser: Any) -> None:
    options = {id(each): each for each in (*parser._long_opt.values(), *parser._short_opt.values())}
    names: dict[str, str] = {}
    for option in options.values():
        if option.action in {"store", "store_const"}:
            option.process = _checked(option, option.process, names)


def _checked(option: Any, process: Any, names: dict[str, str]) -> Any:
    name = max((*option._long_opts, *option._short_opts), key=len)

    def process_once(value: Any, state: Any) -> None:
        """See typer's _Option.process. The error names no value: it may be a secret."""
        first = names.setdefault(option.dest, name)
        if option.dest in state.opts and state.opts[option.dest] != (value if option.takes_value else option.const):
            if first != name:
                raise ConfigError(f"{first} and {name} are both given: expected one of them")
            raise ConfigError(f"{name} is given twice, with different values: expected it once")
        process(value, state)

    return process_once


# Commands whose modules are imported when they are called: `--help` and completion know their names and first lines.
#
# A command that imports all the others before it runs takes longer to start than to decide on a million ACLs.


class LazyCommand(TyperCommand):
    """What stands in a group for a command that is not imported yet: enough for `--help` and completion."""

    def __init__(self, name: str, line: str) -> None:
        """Stand for the command of this name, whose help begins with this line."""
        super().__init__(name, help=line, rich_markup_mode="rich")
        self._name = name
        self._loaded: TyperCommand | TyperGroup | None = None

    def load(self) -> TyperCommand | TyperGroup:
        """Import the command's module, once, and return the command, or the group of commands."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> TyperCommand | TyperGroup:
        from aclog.cli.context_defaults import take_from_context  # nothing that --help needs

        holder = typer.Typer(rich_markup_mode="rich")
        holder.add_typer(_module(self._name).app)
        command = get_group(holder).commands[self._name]
        assert isinstance(command, (TyperCommand, TyperGroup))  # noqa: S101 - typer makes no other
        read_plainly(command)
        help_quickly(command)
        for leaf in _leaves(command):
            take_from_context(leaf)
            refuse_repeats(leaf)
        return command


class LazyGroup(TyperGroup):
    """A group that imports a command when it is called.

    A subclass says in `lines` which commands there are and how their help begins. The command `who-can` is the `app` in
    aclog/cli/who_can.py, or in aclog/cli/who_can/command.py.
    """

    lines: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **attributes: Any) -> None:
        """Take what typer passes to a group."""
        super().__init__(**attributes)
        self.commands.update({name: LazyCommand(name, line) for name, line in self.lines.items()})
        help_quickly(self)
        refuse_repeats(self)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group itself."""
        return plain_parameters(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name of the command that is called, the command itself, and the words after it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest


def _leaves(command: TyperCommand | TyperGroup) -> Iterator[Any]:
    if not isinstance(command, TyperGroup):
        yield command
        return
    for below in command.commands.values():
        if isinstance(below, (TyperCommand, TyperGroup)):
            yield from _leaves(below)


def _module(name: str) -> Any:
    path = f"aclog.cli.{name.replace('-', '_')}{'_' * iskeyword(name)}"
    module = import_module(path)
    return import_module(f"{path}.command") if hasattr(module, "__path__") else module


# The `aclog` command, assembled from its sub-commands.


_HELP = """Apache Kafka's access control, read from its metadata log: who may do what, since when, and why.

aclog replays a [bold]__cluster_metadata[/] log (or a checkpoint, or ACLs as JSON
lines) and decides as Kafka 4.3.1's StandardAuthorizer does. Commands that
read never change what they read.

[bold]Examples[/] (DIR: a copy of __cluster_metadata-0, or a log that aclog wrote)

  aclog log dump DIR
  aclog acls list --log DIR --topic orders --resource-pattern-type match
  aclog authorize --log DIR --principal User:bob --operation WRITE --topic pay
  aclog explain --log DIR --principal User:bob --operation WRITE --topic pay
  aclog acls list --log DIR --as-of 2026-11-20T10:00:00Z
  aclog diff --log DIR --to-as-of 2026-11-20T10:00:00Z
  aclog who-can --log DIR --operation READ --topic orders
  aclog shell --log DIR tree /acl
  aclog -c prod acls list --topic orders     (see `aclog context --help`)
"""

_EPILOG = (
    "Exit codes: 0 success, ALLOWED, same or proved; 1 DENIED, different, refuted or damage found; 2 bad input (one "
    "line on stderr says what and where)."
)

_COMMANDS = {
    "log": "Print the records of a log, verify it, copy it, or adopt it.",
    "acls": "List, add, remove and copy ACLs, with the flags of kafka-acls.sh, and tell when they changed.",
    "authorize": "Print ALLOWED or DENIED, and the determining rule as Kafka's audit log names it.",
    "explain": "Show every ACL that takes part in a decision, the determining one, and what would "
    "reverse the decision.",
    "diff": "Show which requests a second state allows and the first one does not, and which it no longer allows.",
    "check": "Prove something about one state or two, or refute it with an example: exit code 0 if "
    "proved, 1 if refuted or unknown (settings that a running cluster does not show could refute it).",
    "test": "Run tests of rules: who can, who cannot, and why; proved for all requests, never sampled.",
    "who-can": "List everybody who may do something with a resource: principals, hosts, and the rules that allow it.",
    "what-can": "List all that a principal may do, on every resource and from every host, and the rules that allow it.",
    "when": "List the intervals of a log in which something was allowed, with the change that made each end.",
    "lint": "Find rules that do not do what they seem to do, that do nothing, or that open what hardly anybody meant.",
    "simulate": "Show which accesses of a log a second state would decide differently than the first one.",
    "denied": "List who is refused what in an access log, by what it was for, with the least rules that would allow "
    "it.",
    "usage": "Report which ACLs an access log needed in the last days, and which could be removed.",
    "usage-index": "Add what is new in an access log to the index of last use, which tells what any window of days "
    "needed.",
    "unused": "List the rules that no access matched, those that matched but were never needed, and those that were "
    "needed.",
    "coverage": "Show when each broker logged anything, in an access log or in an index of last use, and where it has "
    "holes.",
    "suggest": "Suggest the least rules that keep every access of a log, and give nothing that the rules of now do not "
    "give.",
    "plan": "Show what would have to change so that a place holds the rules that are wanted; nothing is written to it.",
    "apply": "Make the changes of a plan, if the place is still what the plan was made for.",
    "drift": "Show the rules that are wanted and missing, and those that are owned, no longer wanted, and still there.",
    "rollback": "Show what would bring a place back to before an apply; nothing is written to it.",
    "grant": "Show the least rules that a client needs for its work, given what is there; with --yes, add them.",
    "revoke": "Show which of a principal's own rules let its client do something; with --yes, remove them.",
    "snapshot": "Write, check and list checkpoint files.",
    "export": "Write a state (ACLs, credentials, tokens, features, other records as bytes), or the "
    "history of its ACLs.",
    "import": "Write ACLs, credentials, tokens and features into a log, all or nothing; a new "
    "directory becomes a new log.",
    "shell": "Browse the state as a tree: /acl/id/<uuid>, /acl/resource, /acl/principal, /image, "
    "/scram, /delegationToken, ...",
    "serve": "Run a node: a controller, a broker, or both, as process.roles in CONFIG says.",
    "format": "Format the log directories of CONFIG, with the flags of kafka-storage.sh format.",
    "status": "Show the leader of a running cluster, its high-water mark, and its replicas.",
    "console": "Show who may what, and why, in a browser; it follows the source, and changes appear by themselves.",
    "pdp": "Answer questions of proxies and programs over HTTP, by the rules of a source, which it follows.",
    "mcp": "Answer questions of an assistant about a source, over stdin and stdout, and write nothing.",
    "sync": "Poll the ACLs of a cluster, and record changes in a log, those of each poll atomically.",
    "tokens": "Create, renew, expire, describe and list delegation tokens; flags as of kafka-delegation-tokens.sh.",
    "mirror": "Copy everything a quorum commits, byte for byte, into a directory of segments.",
    "review": "Say what a pull request really gives and takes, what it breaks, and whether that is acceptable.",
    "migrate": "Migrate ACLs, SCRAM credentials and delegation tokens from ZooKeeper to a metadata log, or back.",
    "doctor": "Check versions, extras, clock, connection, login, rights and the health of a log; say what to do about "
    "each.",
    "context": "Name clusters and logs with their settings once, and use them in every command by -c NAME.",
    "schema": "Print the JSON schema of what a command prints as JSON, or list these schemas.",
    "completion": "Print the script that makes a shell complete commands, flags, and the names in a source.",
    "help": "Show the page of a command: what it does, each of its flags, and examples.",
    "spark": "Metadata logs and access logs of any size, on Spark: history, when, decisions, "
    "usage, what-if. Requires `aclog\\[spark]` and Java 17.",
}
"""The commands in the order of `--help`, and the first line of the help of each."""


class _Commands(LazyGroup):
    lines = _COMMANDS


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        from aclog.metalog.native import native_text

        say(f"aclog {version('aclog')}\n{native_text}")
        raise typer.Exit


app = typer.Typer(
    name="aclog",
    cls=_Commands,
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,  # aclog.cli.completion does it
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    no_pager: Annotated[
        bool, typer.Option("--no-pager", metavar="", help="Show long output without a pager ([cyan]ACLOG_PAGER[/]).")
    ] = False,
    context: ContextName = None,
) -> None:
    """Take the options before a sub-command."""
    if no_pager:
        from aclog.terminal.pager import refuse_pager

        refuse_pager()
    use_context(context)
