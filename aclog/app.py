"""The `aclog` command, put together from its sub-commands."""

from importlib.metadata import version
from typing import Annotated

import typer

from aclog.commands import acls, authorize, explain, export, importing, log, shell, snapshot

_HELP = """Apache Kafka's access control, read from its metadata log: who may do what, since when, and why.

aclog replays a [bold]__cluster_metadata[/] log (or a checkpoint, or rules as JSON lines) and answers as Kafka 4.3.1's
StandardAuthorizer does. Commands that read never change what they read.

[bold]Examples[/]

  aclog log dump backup/__cluster_metadata-0
  aclog acls list --log backup/__cluster_metadata-0 --topic orders --resource-pattern-type match
  aclog authorize --log backup/__cluster_metadata-0 --principal User:alice --operation READ --topic orders
  aclog explain --log backup/__cluster_metadata-0 --as-of 70000 --principal User:bob --operation WRITE --topic pay
  aclog shell --log backup/__cluster_metadata-0 tree /acl
"""

_EPILOG = (
    "Exit codes: 0 done or ALLOWED, 1 DENIED or damage found, 2 bad input (one line on stderr says what and where)."
)


def _print_version(value: bool) -> None:
    if value:
        print(f"aclog {version('aclog')}")
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
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """The options before a sub-command."""


app.add_typer(log.app, name="log")
app.add_typer(acls.app, name="acls")
app.command("authorize")(authorize.authorize)
app.command("explain")(explain.explain)
app.add_typer(snapshot.app, name="snapshot")
app.command("export")(export.export)
app.command("import")(importing.import_)
app.command("shell", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(shell.shell)
