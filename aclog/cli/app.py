"""The `aclog` command, assembled from its sub-commands, each of which is imported when it runs; its exit status."""

import contextvars
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypeVar

import click
from click.exceptions import Exit, NoSuchCommand

from aclog.cli.listing import ACCESSES, BELOW, FORMER, PANELS, Line
from aclog.cli.options import (
    HELP_ALL,
    CommandOption,
    ContextName,
    Group,
    Option,
    chosen_context,
    named_context,
    parameters_of,
    use_context,
    visible,
)
from aclog.metalog.errors import ConfigError, DecodeError, MetadataError, is_newer_kafka, os_error_text
from aclog.terminal.output import ColorChoice, complain, paging, say, use_color
from aclog.usage.scratch import BEFORE_COPY

if TYPE_CHECKING:
    from aclog.sources.contexts import ChosenContext

    Split: TypeAlias = Callable[[Sequence[str]], tuple[str | None, Sequence[str]]]
    """Returns the source among words, if one is there, and the other words."""

# Commands whose modules are imported when they are called: `--help` and completion know their names and first lines.
#
# A command that imports all the others before it runs takes longer to start than to decide on a million ACLs.


BAD_INPUT = 2
"""The exit code of a command line that cannot be read, or of input that is not valid."""


class LazyCommand(click.Command):
    """A placeholder in a group for a command that is not imported yet: enough for `--help` and completion."""

    def __init__(self, name: str, line: Line, *, module: str = "", panel: str = "") -> None:
        """Make the placeholder of a command; `module`: its file in aclog/cli, by default of its name."""
        super().__init__(name, help=line.help)
        self.brief, self.rich_help_panel = line.brief, panel
        self._name = module or name

    def load(self) -> click.Command:
        """Import the command's module, and return the command, or the group of commands."""
        path = f"aclog.cli.{self._name.replace('-', '_')}{'_' * iskeyword(self._name)}"
        module = import_module(path)
        app: Group = (import_module(f"{path}.command") if hasattr(module, "__path__") else module).app
        return app if app.name == self._name else app.commands[self._name]


class LazyGroup(Group):
    """A group that imports a command when it is called.

    The command `who-can` is in the `app` of aclog/cli/who_can.py, or of aclog/cli/who_can/command.py; if that has this
    name, it is the command, a group itself.
    """

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name of the command that is called, the command itself, and the words after it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest


class _Root(LazyGroup):
    """The `aclog` command. It also takes former names of commands, which no list has."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click.Command.parse_args. Without arguments print the first steps, and end as for bad input."""
        if not args and not ctx.resilient_parsing:
            say(_FIRST_STEPS)
            ctx.exit(BAD_INPUT)
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, or of a former name; None without one."""
        if cmd_name in FORMER:
            name = FORMER[cmd_name][-1]
            return LazyCommand(name, Line(ACCESSES[name][1]), module=cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name of the command that is called, the command itself, and the words after it."""
        if args == ["version"]:
            _print_version(value=True)
        return super().resolve_command(ctx, args)


# The `aclog` command, assembled from its sub-commands.


_HELP = """Apache Kafka's access control: who may do what, since when, and why.

aclog replays a [bold]__cluster_metadata[/] log (or a checkpoint, or ACLs as JSON
lines) and decides as Kafka 4.3.1's StandardAuthorizer does. Commands that
read never change what they read.

[bold]Examples[/] (DIR: a copy of __cluster_metadata-0, or a log that aclog wrote)

  aclog why bob pay --operation WRITE DIR
  aclog who-can kafka1:9092 --operation READ --topic orders
  aclog acls history DIR --since yesterday
  aclog diff DIR --as-of 2026-11-20T10:00:00Z
  aclog -c prod acls list --topic orders     (see `aclog context --help`)
"""

_FIRST_STEPS = """\
aclog: who may do what in Apache Kafka, since when, and why. SOURCE: a log directory, files of ACLs, HOST:PORT, ...

  aclog why alice orders SOURCE                            why a request is allowed or denied, and the fix
  aclog who-can SOURCE --operation READ --topic orders     the principals with access, and by which rules
  aclog lint SOURCE                                        rules that are ineffective or broader than intended
  aclog diff OLD NEW                                       the access that one source grants and another does not
  aclog console SOURCE                                     all of it in a browser
  aclog --help, aclog COMMAND --help                       all commands; the flags of one, with examples"""

_EPILOG = (
    "`aclog --help-all` has all commands. Exit codes: 0 success, ALLOWED, same or proved; 1 DENIED, different, refuted "
    "or damage found; 2 bad input."
)


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        from aclog.metalog.native import native_text

        say(f"aclog {version('aclog')}\n{native_text}")
        raise Exit


def _use_color(when: ColorChoice) -> ColorChoice:
    use_color(when)
    return when


def _root(
    _version: Annotated[
        bool,
        Option(
            "--version", "-V", metavar="", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    no_pager: Annotated[
        bool, Option("--no-pager", metavar="", help="Show long output without a pager ([cyan]ACLOG_PAGER[/]).")
    ] = False,
    _color: Annotated[
        ColorChoice,
        Option(
            "--color",
            metavar="WHEN",
            callback=_use_color,
            is_eager=True,
            show_default=False,
            help="Colors: always, never, or auto: on a terminal only.",
        ),
    ] = ColorChoice.AUTO,
    context: ContextName = None,
) -> None:
    """Take the options before a sub-command."""
    if no_pager:
        from aclog.terminal.output import refuse_pager

        refuse_pager()
    use_context(context)


class _Contexts:
    """Gives values of a context; see aclog.cli.options.Defaults. Its module is imported late: no --help needs it."""

    def add_option(self, command: click.Command, parser: Any) -> None:
        """Add `--context`."""
        add_context_option(command, parser)

    def complete(self, ctx: click.Context, values: dict[str, Any], order: list[Any]) -> list[Any]:
        """Add the values."""
        return complete_values(ctx, values, order)

    def announce(self, ctx: click.Context) -> None:
        """Print what was added, and confirm it."""
        announce_use(ctx)


app = _Root(
    name="aclog",
    commands=[LazyCommand(name, line, panel=panel) for panel, lines in PANELS.items() for name, line in lines.items()],
    callback=_root,
    params=parameters_of(_root),
    help=_HELP,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "obj": _Contexts()},
)


# One command line, and its exit status.


INTERRUPTED = 130
BROKEN_PIPE = 141


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; bad input never raises."""
    _use_utf8()
    if shell := os.environ.get("_ACLOG_COMPLETE"):
        from aclog.cli.completion import complete

        return complete(shell, arguments, app)
    try:
        # A context of its own: what the flags of one command line choose is not known to the next.
        code = contextvars.copy_context().run(_paged, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    if code == INTERRUPTED:
        complain("interrupted")
    return code


def _paged(arguments: Sequence[str]) -> int:
    with paging(), ExitStack() as stack:
        BEFORE_COPY.set(lambda: _end_in_order(stack))
        return _invoke(arguments)


def _end_in_order(stack: ExitStack) -> None:
    """Handle SIGTERM as Ctrl-C until the stack ends, if it would end the process at once, and leave its copies."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        from aclog.cli.signals import ending_interrupts

        stack.enter_context(ending_interrupts())


def _invoke(arguments: Sequence[str]) -> int:
    try:
        code = _exit_code(arguments)
        sys.stdout.flush()
    except SystemExit as leave:
        if isinstance(leave.__context__, BrokenPipeError):  # rich exits with 1 on a broken pipe
            raise leave.__context__ from None
        raise
    except BrokenPipeError:  # of stdout: what was flushed once with an error may be gone from its buffer
        raise
    except (click.ClickException, MetadataError, OSError) as error:
        _flush_or_drop()
        if text := error_text(error):
            complain(text)
        return BAD_INPUT
    except ModuleNotFoundError as error:
        from aclog.installation import extra_of, install_command

        if (extra := extra_of(error.name)) is None:
            raise
        _flush_or_drop()
        complain(f"no module {error.name}: {install_command(extra)}")
        return BAD_INPUT
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    return code


def _exit_code(arguments: Sequence[str]) -> int:
    try:
        with app.make_context("aclog", list(arguments)) as context:
            result = app.invoke(context)
    except Exit as leave:
        return leave.exit_code
    except EOFError:
        sys.stderr.write("\n")
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    return result if isinstance(result, int) else 0  # a command returns its exit code, or nothing


def error_text(error: Exception) -> str:
    """Return an error as it is printed; empty if help was printed instead."""
    if isinstance(error, click.ClickException):
        return _usage(error)
    if isinstance(error, OSError) and error.strerror is not None:
        # Code that writes files names them in its errors: an error without a file name is about stdout.
        return f"{error.filename or 'standard output'}: {os_error_text(error)}"
    return f"{error}{_way_to_all_errors(error)}{_way_to_an_authorizer(error)}"


def _way_to_all_errors(error: Exception) -> str:
    """Return which command lists all errors of a damaged segment; empty for another error."""
    if not isinstance(error, DecodeError) or is_newer_kafka(error):
        return ""
    is_segment = error.path is not None and error.path.endswith(".log")
    return f"; `aclog log verify {Path(error.path or '').parent}` lists all errors" if is_segment else ""


def _way_to_an_authorizer(error: Exception) -> str:
    """Return what to set on a node that refuses since it has no authorizer; empty for another error."""
    if not isinstance(error, MetadataError) or not hasattr(error, "code"):
        return ""
    from aclog.authorizer.standard import SET_AUTHORIZER
    from aclog.protocol.error_codes import SECURITY_DISABLED

    if error.code != SECURITY_DISABLED:
        return ""
    # A server's own message is printed as it is, with its full stop.
    return f" {SET_AUTHORIZER[0].upper()}{SET_AUTHORIZER[1:]}" if str(error).endswith(".") else f"; {SET_AUTHORIZER}"


def _usage(error: click.ClickException) -> str:
    """Return what is wrong with the command line, and which --help to read; empty if help was printed instead."""
    what = _what(error)
    if not what:
        return ""
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    return " ".join(what.split()).rstrip(".") + hint


_FILES_OF_NAMES = {"--topic": "--topics", "--group": "--groups"}
"""Options that differ from another one by a letter, and take a file of existing names instead of a name."""


_POSITIONS_OF_WHY = {"--principal", "--topic"}
"""Flags of `explain` that are arguments of `why`."""


def _what(error: click.ClickException) -> str:
    match error:
        case click.NoSuchOption(option_name=name, ctx=click.Context(command=click.Command(name="why"))) if (
            name in _POSITIONS_OF_WHY
        ):
            return f"No such option: {name}: why takes them by position: aclog why PRINCIPAL NAME [SOURCE]"
        case click.NoSuchOption(option_name=name, possibilities=possibilities, ctx=context):
            if name in _MEANT:  # options that are spelled alike mean something else
                meant = _meant(name, context)
                return f"No such option: {visible(name)}" + (f" (did you mean {meant}?)" if meant else "")
            near = sorted(set(_alike(name, possibilities or ())) - {_FILES_OF_NAMES.get(name)})
            return f"No such option: {visible(name)}" + (f" (Possible options: {', '.join(near)})" if near else "")
        case NoSuchCommand(command_name=name, possibilities=near, ctx=context):
            below = [f"aclog {group} {name}" for group, names in BELOW.items() if name in names]
            meant = ", ".join(map(repr, _command_named(name, context) or (*below, *(near or ()))))
            return f"No such command {name!r}." + (f" Did you mean {meant}?" if meant else "")
        case click.MissingParameter(param=CommandOption(if_missing=hint)) if hint:
            return f"{error.format_message().rstrip('.')}: {hint}"
    return error.format_message()


def _alike(name: str, options: Sequence[str]) -> list[str]:
    """Return the options that differ from a name by some letters: others mean something else."""
    from difflib import get_close_matches

    return get_close_matches(name, options, cutoff=0.75)


_MEANT = {
    **dict.fromkeys(("--dir", "--directory", "--data-dir", "--log-dir", "--logdir", "--logs"), ("--log",)),
    **dict.fromkeys(("--file", "--input", "--path", "--rules"), ("--acls",)),
    **dict.fromkeys(("--checkpoint", "--snapshot-file"), ("--snapshot",)),
    **dict.fromkeys(("--commit", "--branch", "--git"), ("--ref",)),
    **dict.fromkeys(("--port", "--bind", "--address", "--listen-address"), ("--listen",)),
    **dict.fromkeys(
        ("--bootstrap", "--broker", "--brokers", "--broker-list", "--server", "--servers", "--bootstrap-servers"),
        ("--bootstrap-server",),
    ),
    **dict.fromkeys(
        ("--controller", "--controllers", "--quorum", "--bootstrap-controllers"), ("--bootstrap-controller",)
    ),
    **dict.fromkeys(("--config", "--properties", "--client-config", "--consumer.config"), ("--command-config",)),
    **dict.fromkeys(("--at", "--time", "--timestamp", "--when"), ("--as-of",)),
    **dict.fromkeys(("--after", "--from", "--begin"), ("--since",)),
    **dict.fromkeys(("--user", "--username", "--identity"), ("--principal", "--allow-principal")),
    **dict.fromkeys(("--op", "--action"), ("--operation",)),
    **dict.fromkeys(("--resource", "--resource-name", "--topics"), ("--topic",)),
    **dict.fromkeys(("--consumer-group", "--group-id", "--groups"), ("--group",)),
    **dict.fromkeys(("--ip", "--client", "--client-host"), ("--host", "--allow-host")),
    **dict.fromkeys(("--prefix", "--pattern", "--pattern-type"), ("--resource-pattern-type",)),
    **dict.fromkeys(("--tz", "--zone", "--time-zone"), ("--timezone",)),
    **dict.fromkeys(("--json", "--csv", "--table", "--output-format"), ("--format",)),
    **dict.fromkeys(("--profile", "--env", "--environment"), ("--context",)),
    **dict.fromkeys(("--consume", "--consumer"), ("--intent consume",)),
    **dict.fromkeys(("--produce", "--producer"), ("--intent produce",)),
}
"""Flags of other tools and of other commands, and those with the same meaning here, with a value if there is one."""


def _meant(name: str, context: click.Context | None) -> str | None:
    """Return the flag of the command that means what a flag of another name means elsewhere; None without one."""
    if context is None:
        return None
    options = {each for parameter in context.command.params for each in parameter.opts} | {"--context"}
    return next((each for each in _MEANT.get(name, ()) if each.split()[0] in options), None)


_COMMANDS_NAMED = {
    **dict.fromkeys(("print", "cat", "show", "read", "display", "tail"), ("dump", "list")),
    **dict.fromkeys(("get", "describe"), ("list", "show")),
    **dict.fromkeys(("create", "new", "allow"), ("add",)),
    **dict.fromkeys(("delete", "rm", "del"), ("remove",)),
    **dict.fromkeys(("changes", "log"), ("history",)),
    **dict.fromkeys(("use-context", "set", "switch", "select"), ("use",)),
    **dict.fromkeys(("fsck", "validate", "check"), ("verify",)),
    **dict.fromkeys(("make", "take", "save"), ("create",)),
    **dict.fromkeys(("can-i", "can", "is-allowed", "decide"), ("authorize",)),
    **dict.fromkeys(("audit",), ("report",)),
}
"""Names of commands of other tools, and those with the same meaning here: the first that the group has."""


def _command_named(name: str, context: click.Context | None) -> tuple[str, ...]:
    """Return the command of the group that means what a name means elsewhere; nothing without one."""
    if context is None or not isinstance(context.command, click.Group):
        return ()
    names = context.command.list_commands(context)
    return tuple(each for each in _COMMANDS_NAMED.get(name, ()) if each in names)[:1]


def _use_utf8() -> None:
    """Read and write UTF-8, regardless of the locale: names in a log are Unicode."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")


def _flush_or_drop() -> None:
    """Flush stdout, or discard the rest if it is closed. Raises BrokenPipeError: the reader has closed it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        _drop_output()


def _drop_output() -> None:
    """Discard what is left in stdout: the interpreter's final flush would report the same again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is not a file
        return


# Values that the chosen context gives to flags that a command line leaves out.


# The flags of one command line, to which a context adds what was not typed.


class Filling:
    """The flags of one command line, to which values of a context are added. No attrs, as `aclog --help` imports none.

    `deciding`: settings that came from the context and change decisions, as people read them. `client_properties`: the
    file of them that came from the context.
    """

    def __init__(self, parameters: dict[str, Any], values: dict[str, Any]) -> None:
        self._parameters = parameters
        self._values = values
        self.deciding: list[str] = []
        self.client_properties: Path | None = None

    def is_given(self, options: tuple[str, ...]) -> bool:
        """Return whether the command line names one of these options, or another in their place."""
        return any(self._has_value(name) for name in options)

    def has(self, option: str) -> bool:
        """Return whether the command has this option."""
        return option in self._parameters

    def put(self, option: str, value: Any) -> bool:
        """Give an option a value, unless the command has no such option, or the command line gives it."""
        if value is None or option not in self._parameters or self._has_value(option):
            return False
        self._values[self._parameters[option].name] = value
        return True

    def put_settings(self, choice: "ChosenContext") -> None:
        """Give the other options the values of a context."""
        context = choice.context
        self.put("--acls-format", context.acls_format)
        self.put("--module", [f"{source}={path}" for source, path in context.modules.items()] or None)
        self.put("--topics", context.topics)
        if self.put("--command-config", _text(context.command_config)):
            self.client_properties = context.command_config
        self.put("--zk-tls-config-file", _text(context.zookeeper_config))
        self.put("--timezone", context.timezone)
        self._put_choice("--format", context.format)
        self._put_deciding(choice)

    def _put_deciding(self, choice: "ChosenContext") -> None:
        context = choice.context
        everyone, never = "--allow-everyone-if-no-acl-found", "--no-allow-everyone-if-no-acl-found"
        if context.allow_everyone is False and not self._has_value(everyone):
            self.put(never, True)  # aclog.toml may have another value
        put = {
            "super_users": self.put("--super-users", context.super_users),
            "allow_everyone": not self._has_value(never) and self.put(everyone, context.allow_everyone),
            "semantics": self.put("--semantics", context.semantics),
            "cidr": not self._has_value("--kafka-version") and self.put("--cidr", context.cidr),
        }
        self.deciding += [text for name, text in context.decides().items() if put[name]]

    def _put_choice(self, option: str, value: str | None) -> None:
        """Give `--format` a value if the command knows it, and a person reads: scripts get the default format.

        Flags with the same meaning take precedence.
        """
        if not sys.stdout.isatty() or any(map(self._has_value, ("--json", "--columns", "--follow"))):
            return
        parameter = self._parameters.get(option)
        from aclog.terminal.columns import OutputFormat

        if value is None or parameter is None or parameter.annotation is not OutputFormat:
            return
        with suppress(click.BadParameter):
            self.put(option, parameter.type(value))

    def _has_value(self, option: str) -> bool:
        parameter = self._parameters.get(option)
        return parameter is not None and self._values.get(parameter.name) not in (None, [], ())


def _text(path: object) -> str | None:
    return None if path is None else str(path)


# Marks of commands: what they do with the source that their flags, or a context, name.


_WRITES = "writes_to_source"
_WRITES_WITH = "writes_to_source_with"
_ABOUT = "is_about_contexts"
_EXAMINES = "examines_contexts"

_AMONG = "source_among"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def writes_to_source(*, unless: tuple[str, ...] = ()) -> Callable[[_Command], _Command]:
    """Mark a command that changes what its source flags name; with one of the flags in `unless` it only reads."""

    def mark(command: _Command) -> _Command:
        """Return the same command."""
        setattr(command, _WRITES, unless)
        return command

    return mark


def writes_only_with(*flags: str) -> Callable[[_Command], _Command]:
    """Mark a command that changes what its source flags name with one of these flags, and else only reads it."""

    def mark(command: _Command) -> _Command:
        """Return the same command."""
        setattr(command, _WRITES_WITH, flags)
        return command

    return mark


def source_among(words: str, split: "Split") -> Callable[[_Command], _Command]:
    """Mark a command that takes any number of words, one of which may be its source if no flag names one."""

    def mark(command: _Command) -> _Command:
        """Return the same command."""
        setattr(command, _AMONG, (words, split))
        return command

    return mark


def is_about_contexts(command: _Command) -> _Command:
    """Mark a command that is about contexts itself: none of its flags comes from one."""
    setattr(command, _ABOUT, True)
    return command


def examines_contexts(command: _Command) -> _Command:
    """Mark a command that reports itself the problem of a context that it does not name, and continues without it."""
    setattr(command, _EXAMINES, True)
    return command


def goes_on_without(command: Any) -> bool:
    """Return whether a command continues without a context that cannot be used."""
    return getattr(command.callback, _EXAMINES, False) is True


def written_unless(command: Any) -> tuple[str, ...] | None:
    """Return with which flags a command does not change its source; None if it never does, or with some flags only."""
    flags: tuple[str, ...] | None = getattr(command.callback, _WRITES, None)
    return flags


def written_with(command: Any) -> tuple[str, ...]:
    """Return with which flags alone a command changes its source."""
    flags: tuple[str, ...] = getattr(command.callback, _WRITES_WITH, ())
    return flags


def _split_of(command: Any) -> "tuple[str, Split] | None":
    """Return the parameter among whose words a command's source may be, and how they are split."""
    mark: tuple[str, Split] | None = getattr(command.callback, _AMONG, None)
    return mark


def takes_no_context(command: Any) -> bool:
    """Return whether a command is about contexts itself."""
    return getattr(command.callback, _ABOUT, False) is True


# What a command took from a context: printed, and confirmed, before the command runs.


class Unused(NamedTuple):
    """A context that the command line names, and does not use."""

    name: str
    why: str

    def tell(self, *, force: bool) -> None:
        """Print a note."""
        del force
        from aclog.terminal.output import note

        note(f"context {self.name} is not used: {self.why}")


class ContextUse(NamedTuple):
    """What a command took from a context."""

    choice: "ChosenContext"
    writes: bool
    """Whether the command changes the context's source."""
    deciding: tuple[str, ...]
    client_properties: Path | None

    def tell(self, *, force: bool) -> None:
        """Note what decides besides the rules; confirm a write to a target that this command line does not name.

        Raises:
            ConfigError: the answer is no, or there is no terminal.

        """
        from aclog.cli.flags.source import tell_what_decides
        from aclog.sources.contexts import warn_of_readers

        context = self.choice.context
        if self.client_properties is not None:
            warn_of_readers(self.client_properties)
        tell_what_decides(context, self.deciding)
        if self.writes and self.choice.is_ambient and not force:
            self._ask()

    def _ask(self) -> None:
        from aclog.terminal.output import confirms_on_terminal

        context = self.choice.context
        what = f"context {context.name} ({context.address}), {self.choice.by}"
        answer = confirms_on_terminal(
            f"Write to {what}? (y/n)",
            f"writing to {what}: stdin is not a terminal, cannot ask for confirmation: expected -c {context.name} or "
            "--force",
        )
        if not answer:
            raise ConfigError(f"nothing was written to context {context.name}")


# What a command line leaves out is taken from a context.


SOURCES = ("--log", "--snapshot", "--acls", "--ref", "--bootstrap-controller", "--bootstrap-server")
"""Flags that name a state source, or what is written."""
STORES = ("--zookeeper", "--authorizer-properties")
"""Flags that name a ZooKeeper."""
SOURCE_WORDS = ("source_word", "second_word")
"""Arguments that name a state source by their place, each by what it is."""
_SOURCE_GROUP = (*SOURCES, "--bootstrap-checkpoint")
_STORE_GROUP = (*STORES, "--to-zookeeper")
"""Of each group a command takes one flag; of both together, unless it takes a source and a ZooKeeper."""
_REPOSITORY = "--config"
"""A command with this flag reads aclog.toml, before a context that its command line does not name."""
META = "aclog.cli.app"
"""The key of click's context for what is to be printed, and confirmed, before the command runs."""
_NAMED = "_named_context"
"""Under which key the values of a command line have the name of a context that follows the command."""
_ANYWHERE = click.Option([_NAMED, "--context", "-c"])
"""That option; the command does not define it."""


def add_context_option(command: Any, parser: Any) -> None:
    """Have the parser of a command line take `--context`, unless the command is about contexts itself."""
    if not takes_no_context(command):
        _ANYWHERE.add_to_parser(parser, parser.ctx)


def announce_use(ctx: click.Context) -> None:
    """Print what a command took from a context, and confirm it, before it runs. Raises ConfigError: not confirmed."""
    use = ctx.meta.pop(META, None)
    if use is not None:
        use.tell(force=bool(ctx.params.get("force")))


def complete_values(ctx: click.Context, values: dict[str, Any], order: list[Any]) -> list[Any]:
    """Add the values of the context of the invocation to those of a command line; return what it gives, in its order.

    Raises:
        MetadataError, OSError: the context cannot be used.

    """
    if takes_no_context(ctx.command):
        return order
    _take_words(ctx, values)
    name = values.pop(_NAMED, None)
    if ctx.resilient_parsing:
        with suppress(MetadataError, OSError):  # completion prints no error, and completes the rest
            # No callback of `aclog` itself is called.
            use_context(ctx.find_root().params.get("context") if name is None else name)
            _fill(ctx, values)
    elif not _asks_for_help(ctx, values):
        _name_context(name)
        with suppress(*_passed_over(ctx.command)):
            _fill(ctx, values)
    return [each for each in order if each is not _ANYWHERE]


def _take_words(ctx: click.Context, values: dict[str, Any]) -> None:
    """Put the sources that a command line names by their place under their flags.

    Raises:
        UsageError: a word that is no source, or could be several, or is beside a flag that names one.
        OSError: a path cannot be read.

    """
    among = _split_of(ctx.command)
    words = SOURCE_WORDS if among is None else (*SOURCE_WORDS, among[0])
    if all(values.get(name) in (None, (), []) for name in words) or _asks_for_help(ctx, values):
        return
    try:
        _put_words(ctx, values, among)
    except (ConfigError, OSError) as error:
        if ctx.resilient_parsing:  # completion prints no error, and completes the rest
            return
        if isinstance(error, OSError):
            raise
        raise click.UsageError(str(error), ctx) from error


def _put_words(ctx: click.Context, values: dict[str, Any], among: "tuple[str, Split] | None") -> None:
    from aclog.cli.flags.positional import take_first, take_second

    filling, probe = Filling(_parameters(ctx.command), values), not ctx.resilient_parsing
    above = ctx.find_root().params.get("context") if ctx.resilient_parsing else named_context()
    named = [flag for flag in (*_SOURCE_GROUP, *_STORE_GROUP) if filling.is_given((flag,))]
    named += [f"-c {name}" for name in (values.get(_NAMED), above) if name]
    if among is not None and not named:
        parameter, split = among
        values["source_word"], rest = split(values.get(parameter) or ())
        values[parameter] = list(rest)
    if (word := values.pop("source_word", None)) is not None:
        context = take_first(word, filling, named, values, probe=probe)
        if context is not None:
            values[_NAMED] = context
    if (word := values.pop("second_word", None)) is not None:
        take_second(word, filling, values, probe=probe)


def _asks_for_help(ctx: click.Context, values: dict[str, Any]) -> bool:
    option = ctx.command.get_help_option(ctx)
    return HELP_ALL in values or (option is not None and option.name in values)


def _passed_over(command: Any) -> tuple[type[Exception], ...]:
    """Return what may be wrong with a context without keeping the command from running."""
    return (MetadataError, OSError) if goes_on_without(command) else ()


def _name_context(name: str | None) -> None:
    """Use a context that is named after the command, where many look for such a flag. Raises ConfigError: two are."""
    if name is None:
        return
    if named_context() not in {None, name}:
        raise ConfigError("--context is given twice, with different values: expected it once")
    use_context(name)


def _parameters(command: Any) -> dict[str, Any]:
    parameters = {name: each for each in command.params for name in each.opts}
    if "--base" in parameters and "path" in parameters:  # `aclog review PATH --base REF` compares commits of files
        parameters["--acls"] = parameters["path"]
    return parameters


def _fill(ctx: Any, values: dict[str, Any]) -> None:
    """Add the values of the context to those of a command line."""
    parameters = _parameters(ctx.command)
    filling = Filling(parameters, values)
    options = [name for name in (*SOURCES, *STORES) if name in parameters]
    if not options:
        _note_unused(ctx, f"{ctx.command_path} takes no source from it")
        return
    both = (*_SOURCE_GROUP, *_STORE_GROUP)
    groups = [_SOURCE_GROUP, _STORE_GROUP] if "--zookeeper" in parameters else [both]
    if all(filling.is_given(group) for group in groups):
        _note_unused(ctx, "a flag names the source")
        return
    choice = chosen_context()
    if choice is None or (choice.is_ambient and _REPOSITORY in parameters):
        return
    option, value = _source_flag(choice, parameters)
    if option is None:
        raise _unfit(choice, ctx.command_path, options)
    if filling.is_given(next(group for group in groups if option in group)):
        return
    filling.put(option, value)
    filling.put_settings(choice)
    ctx.meta[META] = ContextUse(
        choice=choice,
        writes=option != "--zookeeper" and _writes(ctx.command, values),
        deciding=tuple(filling.deciding),
        client_properties=filling.client_properties,
    )


def _writes(command: Any, values: dict[str, Any]) -> bool:
    unless = written_unless(command)
    if unless is None:
        return any(values.get(_dest(name)) for name in written_with(command))
    return not any(values.get(_dest(name)) for name in unless)


def _note_unused(ctx: Any, why: str) -> None:
    if name := named_context():
        ctx.meta[META] = Unused(name=name, why=why)


def _dest(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _source_flag(choice: "ChosenContext", parameters: dict[str, Any]) -> tuple[str | None, Any]:
    """Return the flag of this command that a context's source is, and its value."""
    context = choice.context
    option = f"--{context.kind}"
    if option == "--zookeeper" and "--authorizer-properties" in parameters:
        from aclog.sources.named_source import store_properties

        return "--authorizer-properties", list(store_properties(context))
    return (option if option in parameters else None), context.value


def _unfit(choice: "ChosenContext", command: str, options: list[str]) -> ConfigError:
    context = choice.context
    return ConfigError(
        f"context {context.name} ({choice.by}) is {context.address}: {command} takes {' or '.join(options)}"
    )
