"""The `aclog` command, assembled from its sub-commands."""

from importlib.metadata import version
from typing import Annotated

import typer

from aclog.cli import authorize, explain, export, what_can, when, who_can
from aclog.cli import format as formatting
from aclog.cli import import_ as importing
from aclog.cli.acls import command as acls
from aclog.cli.check import command as check
from aclog.cli.diff import command as diff
from aclog.cli.lint import command as lint
from aclog.cli.log import command as log
from aclog.cli.migrate import command as migrate
from aclog.cli.mirror import command as mirror
from aclog.cli.review import command as review
from aclog.cli.serve import command as serve
from aclog.cli.shell import command as shell
from aclog.cli.snapshot import command as snapshot
from aclog.cli.spark import command as spark
from aclog.cli.status import command as status
from aclog.cli.sync import command as sync
from aclog.cli.test import command as test
from aclog.cli.tokens import command as tokens
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
"""

_EPILOG = (
    "Exit codes: 0 success, ALLOWED, same or proved; 1 DENIED, different, refuted or damage found; 2 bad input (one "
    "line on stderr says what and where)."
)


def _print_version(value: bool) -> None:
    if value:
        say(f"aclog {version('aclog')}")
        raise typer.Exit


app = typer.Typer(
    name="aclog",
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
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
) -> None:
    """Take the options before a sub-command."""


_MODULES = (
    log,
    acls,
    authorize,
    explain,
    diff,
    check,
    test,
    who_can,
    what_can,
    when,
    lint,
    snapshot,
    export,
    importing,
    shell,
    serve,
    formatting,
    status,
    sync,
    tokens,
    mirror,
    review,
    migrate,
    spark,
)
for _module in _MODULES:
    app.add_typer(_module.app)
