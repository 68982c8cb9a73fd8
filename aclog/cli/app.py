"""The `aclog` command, assembled from its sub-commands, each of which is imported when it runs; its exit status."""

import contextvars
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from typing import Annotated, Any

import click
from click.exceptions import Exit, NoSuchCommand

from aclog.cli.flags.context import ContextName, use_context
from aclog.cli.options import Group, Option, parameters_of, visible
from aclog.metalog.errors import MetadataError
from aclog.terminal.output import complain, say
from aclog.terminal.pager import paging

# Commands whose modules are imported when they are called: `--help` and completion know their names and first lines.
#
# A command that imports all the others before it runs takes longer to start than to decide on a million ACLs.


class LazyCommand(click.Command):
    """A placeholder in a group for a command that is not imported yet: enough for `--help` and completion."""

    def __init__(self, name: str, line: str) -> None:
        """Make the placeholder of the command of this name, whose help begins with this line."""
        super().__init__(name, help=line)
        self._name = name

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
    "line on stderr names the problem and its location)."
)

_COMMANDS = {
    "log": "Print the records of a log, verify it, copy it, or adopt it.",
    "acls": "List, add, remove and copy ACLs, with the flags of kafka-acls.sh, and show their changes.",
    "authorize": "Print ALLOWED or DENIED, and the determining rule as Kafka's audit log names it.",
    "explain": "Show every ACL that takes part in a decision, the determining one, and what would "
    "reverse the decision.",
    "diff": "Show which requests a second state allows and the first one denies, and the reverse.",
    "check": "Prove a statement about one state or two, or refute it with a counterexample: exit code 0 if "
    "proved, 1 if refuted or unknown (settings that a running cluster does not show could refute it).",
    "test": "Run tests of rules: who has access, who has not, and by which rule; each is proved for all requests.",
    "who-can": "List the principals with access to a resource, from which hosts, and by which rules.",
    "what-can": "List all permissions of a principal, on every resource and from every host, and the rules that grant "
    "them.",
    "when": "List the intervals of a log in which a request was allowed, and the changes at which each began and "
    "ended.",
    "lint": "Find ACLs that are ineffective, redundant, or broader than intended.",
    "simulate": "Show which accesses of a log a second state would decide differently from the first one.",
    "denied": "List denied requests of an access log, grouped by intent, with the minimal ACLs that would allow them.",
    "usage": "Report which ACLs an access log needed in the last days, and which could be removed.",
    "usage-index": "Add new access-log entries to the last-used index, which `aclog unused` reads for any window of "
    "days.",
    "unused": "List the rules that no access matched, those that matched but were never needed, and those that were "
    "needed.",
    "coverage": "Show the periods in which each broker logged accesses, and the gaps between them.",
    "suggest": "Suggest the minimal rules that keep every access of a log, and grant nothing beyond the current rules.",
    "plan": "Show the changes that would give a target the desired ACLs; nothing is written to it.",
    "apply": "Apply the changes of a plan, if the target still has the state that the plan is based on.",
    "drift": "Show desired ACLs that are missing, and managed ACLs that are no longer desired and still exist.",
    "rollback": "Show the changes that would undo an apply; nothing is written to the target.",
    "grant": "Show the minimal rules that a client needs in addition to the existing ones; with --yes, add them.",
    "revoke": "Show which of a principal's own rules grant the named access; with --yes, remove them.",
    "snapshot": "Write, check and list checkpoint files.",
    "export": "Write a state (ACLs, credentials, tokens, features, other records as bytes), or the "
    "history of its ACLs.",
    "import": "Write ACLs, credentials, tokens and features into a log, atomically; a new directory becomes a new log.",
    "shell": "Browse the state as a tree: /acl/id/<uuid>, /acl/resource, /acl/principal, /image, "
    "/scram, /delegationToken, ...",
    "serve": "Run a node: a controller, a broker, or both, as defined by process.roles in CONFIG.",
    "format": "Format the log directories of CONFIG, with the flags of kafka-storage.sh format.",
    "status": "Show the leader of a running cluster, its high-water mark, and its replicas.",
    "console": "Show access and its reasons in a browser; pages follow the source, and update by themselves.",
    "pdp": "Serve authorization decisions to proxies and programs over HTTP, by the rules of a source, which it "
    "follows.",
    "mcp": "Serve the Model Context Protocol to an assistant over stdin and stdout; read-only.",
    "sync": "Poll the ACLs of a cluster, and record the changes of each poll atomically in a log.",
    "tokens": "Create, renew, expire, describe and list delegation tokens; flags as of kafka-delegation-tokens.sh.",
    "mirror": "Copy everything a quorum commits, byte for byte, into a directory of segments.",
    "review": "Report what a pull request grants and revokes, what it breaks, and whether a check fails.",
    "migrate": "Migrate ACLs, SCRAM credentials and delegation tokens from ZooKeeper to a metadata log, or back.",
    "doctor": "Check versions, extras, clock, connection, login, permissions and the health of a log, and suggest "
    "fixes.",
    "context": "Name clusters and logs with their settings once, and use them in every command by -c NAME.",
    "schema": "Print the JSON schema of what a command prints as JSON, or list these schemas.",
    "completion": "Print the script that makes a shell complete commands, flags, and the names in a source.",
    "help": "Show the page of a command: what it does, each of its flags, and examples.",
    "spark": "Metadata logs and access logs of any size, on Spark: history, when, decisions, "
    "usage, what-if. Requires the extra `spark` and Java 17.",
}
"""The commands in the order of `--help`, and the first line of the help of each."""


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        from aclog.metalog.native import native_text

        say(f"aclog {version('aclog')}\n{native_text}")
        raise Exit


def _root(
    _version: Annotated[
        bool,
        Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    no_pager: Annotated[
        bool, Option("--no-pager", metavar="", help="Show long output without a pager ([cyan]ACLOG_PAGER[/]).")
    ] = False,
    context: ContextName = None,
) -> None:
    """Take the options before a sub-command."""
    if no_pager:
        from aclog.terminal.pager import refuse_pager

        refuse_pager()
    use_context(context)


class _Contexts:
    """Gives values of a context; see aclog.cli.options.Defaults. Its module is imported late: no --help needs it."""

    def add_option(self, command: click.Command, parser: Any) -> None:
        """Add `--context`."""
        from aclog.cli.context_defaults import add_context_option

        add_context_option(command, parser)

    def complete(self, ctx: click.Context, values: dict[str, Any], order: list[Any]) -> list[Any]:
        """Add the values."""
        from aclog.cli.context_defaults import complete_values

        return complete_values(ctx, values, order)

    def announce(self, ctx: click.Context) -> None:
        """Print what was added, and confirm it."""
        from aclog.cli.context_defaults import announce_use

        announce_use(ctx)


app = LazyGroup(
    name="aclog",
    commands=[LazyCommand(name, line) for name, line in _COMMANDS.items()],
    callback=_root,
    params=parameters_of(_root),
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "obj": _Contexts()},
)


# One command line, and its exit status.


BAD_INPUT = 2
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
    with paging():
        return _invoke(arguments)


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
        if text := _error_text(error):
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


def _error_text(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return _usage(error)
    if isinstance(error, OSError) and error.strerror is not None:
        # Code that writes files names them in its errors: an error without a file name is about stdout.
        return f"{error.filename or 'standard output'}: {error.strerror}"
    return str(error)


def _usage(error: click.ClickException) -> str:
    """Return what is wrong with the command line, and which --help to read; empty if help was printed instead."""
    what = _what(error)
    if not what:
        return ""
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    return " ".join(what.split()).rstrip(".") + hint


def _what(error: click.ClickException) -> str:
    match error:
        case click.NoSuchOption(option_name=name, possibilities=near):
            return f"No such option: {visible(name)}" + (
                f" (Possible options: {', '.join(sorted(near))})" if near else ""
            )
        case NoSuchCommand(command_name=name, possibilities=near):
            return f"No such command {name!r}." + (f" Did you mean {', '.join(map(repr, near))}?" if near else "")
    return error.format_message()


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
