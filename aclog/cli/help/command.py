"""`aclog help`: a command's page, as the manual has it."""

from typing import Annotated

import typer

app = typer.Typer()


def _complete(context: typer.Context, incomplete: str) -> list[str]:
    from aclog.cli.help.pages import command_page

    try:
        page = command_page(context.find_root().command, tuple(context.params.get("words") or ()))
    except KeyError:
        return []
    return [name for name, _ in page.below if name.startswith(incomplete)]


@app.command("help")
def help_(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND...", help="The command, such as acls list; all if left out.", autocompletion=_complete
        ),
    ] = None,
) -> None:
    """Show the page of a command: what it does, each of its flags, and examples.

    The manual pages (`man aclog-acls-list`) have the same text. For a group
    of commands the page lists them.

    [bold]Examples[/]

      aclog help acls list
      aclog help check
      aclog help
    """
    from shutil import get_terminal_size

    from aclog.cli.help.page_text import page_text
    from aclog.cli.help.pages import command_page
    from aclog.metalog.errors import ConfigError
    from aclog.terminal.output import emit
    from aclog.terminal.pager import page_output

    root = context.find_root()
    try:
        page = command_page(root.command, tuple(words or ()))
    except KeyError as error:
        raise ConfigError(_unknown(root.command, error.args[0])) from None
    page_output()
    emit(page_text(page, min(get_terminal_size().columns, 100)).rstrip("\n"))


def _unknown(root: object, words: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    from aclog.cli.help.pages import command_page

    known = [name for name, _ in command_page(root, words[:-1]).below]
    called = " ".join(("aclog", *words))
    if not known:
        return f"{called}: no such command: {' '.join(('aclog', *words[:-1]))} has none below it"
    near = get_close_matches(words[-1], known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{called}: no such command{hint}: expected one of {', '.join(known)}"
