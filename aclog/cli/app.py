"""The `aclog` command, assembled from its sub-commands."""

from typing import Annotated

import typer

from aclog.cli.flags.context import ContextName, use_context
from aclog.cli.lazy_commands import LazyGroup
from aclog.terminal.output import say

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
