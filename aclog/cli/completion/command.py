"""`aclog completion`: the script that a shell loads."""

from enum import StrEnum
from importlib.resources import files
from typing import Annotated

import typer

from aclog.terminal.output import emit

app = typer.Typer()


class Shell(StrEnum):
    """The shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command("completion")
def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the script that makes a shell complete commands, flags, and the names in a source.

    Topics, groups, principals and the like are those of the source that
    the command line names, kept for a minute; a source that does not
    answer within a second completes nothing, and nothing is ever asked.

    [bold]Examples[/]

      echo 'source <(aclog completion bash)' >> ~/.bashrc
      echo 'source <(aclog completion zsh)' >> ~/.zshrc     # after compinit
      aclog completion fish > ~/.config/fish/completions/aclog.fish
    """
    emit(files("aclog.cli.completion").joinpath(f"aclog.{shell}").read_text(encoding="utf-8").rstrip("\n"))
