"""The `aclog context` commands."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from aclog.cli.context.flags import NamedSourceFlags, SettingFlags
from aclog.cli.flags.context import chosen_context, complete_contexts
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.output import OutputFlags, format_option
from aclog.cli.from_context.marks import is_about_contexts
from aclog.terminal.output import say
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat

if TYPE_CHECKING:
    from aclog.sources.contexts.choosing import ChosenContext

app = typer.Typer(
    name="context",
    help="Name clusters and logs with their settings once, and use them in every command by -c NAME.",
    no_args_is_help=True,
)

Known: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The context.", autocompletion=complete_contexts, show_default=False)
]


def _used() -> "ChosenContext | None":
    """Return the context that commands use now; warn of one that cannot be used, which must not hide the others."""
    from aclog.metalog.errors import ConfigError
    from aclog.terminal.notices import warn

    try:
        return chosen_context()
    except ConfigError as error:
        warn(str(error))
        return None


@app.command("list")
@with_flags
@is_about_contexts
def list_(
    output: OutputFlags,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """List the contexts; * is the one that commands use now.

    [bold]Example[/]

      aclog context list
    """
    from aclog.cli.context.listing import print_contexts
    from aclog.sources.contexts.context_file import read_context_file

    file, chosen = read_context_file(), _used()
    name = None if chosen is None else chosen.context.name
    if not print_contexts(file, name, output.choose(format_, pipe=OutputFormat.TABLE)):
        raise typer.Exit(2)


@app.command()
@is_about_contexts
def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The context.",
            autocompletion=complete_contexts,
            show_default="the one that commands use now",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", metavar="", help="One JSON object.")] = False,
) -> None:
    """Show a context with its client properties, whose secrets are shown as ***.

    [bold]Examples[/]

      aclog context show
      aclog context show prod --json
    """
    from aclog.cli.context.listing import print_context
    from aclog.metalog.errors import ConfigError
    from aclog.sources.contexts.choosing import choose_context

    used = chosen_context() if name is None else _used()
    found = used if name is None else choose_context(name)
    if found is None:
        raise ConfigError("no context is used now: expected NAME, or `aclog context use NAME`")
    print_context(found.context, used, OutputFormat.JSON if json else OutputFormat.TEXT)


@app.command()
@with_flags
@is_about_contexts
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new context.", show_default=False)],
    source: NamedSourceFlags,
    settings: SettingFlags,
    use: Annotated[bool, typer.Option("--use", metavar="", help="Make it the current one.")] = False,
    replace: Annotated[bool, typer.Option("--replace", metavar="", help="Replace a context of this name.")] = False,
) -> None:
    """Give a source a name, with the settings that belong to it.

    Passwords stay in the file of --command-config, which is not copied.

    [bold]Examples[/]

      aclog context add prod --bootstrap-server HOST:9092 --command-config FILE
      aclog context add night --log /backup/__cluster_metadata-0 --super-users User:admin
    """
    from aclog.cli.context.flags import check_name
    from aclog.sources.contexts.context_file import own_file
    from aclog.sources.contexts.editing import add_context, use_context

    path = own_file()
    add_context(path, check_name(name), {**source.values(), **settings.values()}, replace=replace)
    if use:
        use_context(path, name)
    say(f"{path}: context {name} {'added, and used from now on' if use else 'added: use it by -c ' + name}")


@app.command()
@is_about_contexts
def use(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The context.", autocompletion=complete_contexts)
    ] = None,
    none: Annotated[bool, typer.Option("--none", metavar="", help="No context: commands name their source.")] = False,
) -> None:
    """Use a context in all commands that name neither a source nor another context.

    A command that writes names it, and asks first. ACLOG_CONTEXT, if it is
    set, wins; an empty one means no context.

    [bold]Examples[/]

      aclog context use prod
      aclog context use --none
    """
    import os

    from aclog.metalog.errors import ConfigError
    from aclog.sources.contexts.choosing import VARIABLE
    from aclog.sources.contexts.context_file import own_file
    from aclog.sources.contexts.editing import use_context
    from aclog.terminal.notices import note

    if (name is None) is not none:
        raise ConfigError("expected either NAME or --none")
    use_context(own_file(), name)
    say("no context is used" if name is None else f"context {name} is used from now on")
    if VARIABLE in os.environ:
        note(f"{VARIABLE}={os.environ[VARIABLE]} is set, and wins")


@app.command()
@is_about_contexts
def remove(name: Known) -> None:
    """Remove a context from the file; the files that it names stay.

    [bold]Example[/]

      aclog context remove old
    """
    from aclog.sources.contexts.context_file import own_file
    from aclog.sources.contexts.editing import remove_context

    remove_context(own_file(), name)
    say(f"context {name} removed")


@app.command()
@is_about_contexts
def rename(
    name: Known,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.", show_default=False)],
) -> None:
    """Give a context another name.

    [bold]Example[/]

      aclog context rename prod prod-eu
    """
    from aclog.cli.context.flags import check_name
    from aclog.sources.contexts.context_file import own_file
    from aclog.sources.contexts.editing import rename_context

    rename_context(own_file(), name, check_name(new))
    say(f"context {name} is {new} now")


@app.command()
@is_about_contexts
def path() -> None:
    """Print where the file of contexts is, or would be.

    [bold]Example[/]

      aclog context path
    """
    from aclog.sources.contexts.context_file import own_file

    say(own_file())
