"""`aclog shell`: the tree of a state."""

from typing import Annotated

import typer

from aclog.cli.flags.common import ShowSecrets
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.source import SourceFlags

app = typer.Typer()


def _complete(context: typer.Context, incomplete: str) -> list[str]:
    from aclog.cli.shell.completion import complete_words

    return complete_words(context, incomplete)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@with_flags
def shell(
    source: SourceFlags,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...]",
            help="One shell command; without it, a prompt is started.",
            autocompletion=_complete,
        ),
    ] = None,
    show_secrets: ShowSecrets = False,
) -> None:
    """Browse the state as a tree: /acl/id/<uuid>, /acl/resource, /acl/principal, /image, /scram, /delegationToken, ...

    The commands are those of kafka-metadata-shell (ls, cat, cd, find, tree,
    man, ...), plus at, why, diff and watch.

    [bold]Examples[/]

      aclog shell --log DIR
      aclog shell --log DIR ls /acl/resource/TOPIC
      aclog shell --snapshot FILE cat '/acl/id/*'
    """
    from aclog.shell.session import run_shell
    from aclog.shell.state import ShellState

    chosen = source.choose()
    state = ShellState(source=chosen.source, show_secrets=show_secrets)
    with chosen.reading():
        state.go_to(chosen.moment)
    state.origins, state.premises = chosen.origins, chosen.premises
    raise typer.Exit(run_shell(state, command or ()))
