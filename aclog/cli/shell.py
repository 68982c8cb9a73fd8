"""`aclog shell`: the tree of a state."""

from typing import Annotated

import typer

from aclog.cli.options import (
    AclsFile,
    AsOf,
    BootstrapController,
    BootstrapServer,
    CommandConfig,
    LogDir,
    ShowSecrets,
    SnapshotFile,
)

app = typer.Typer()


def _complete(context: typer.Context, incomplete: str) -> list[str]:
    from aclog.cli.shell_completion import complete_words

    return complete_words(context, incomplete)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...]",
            help="One command of the shell; without it, a prompt.",
            autocompletion=_complete,
        ),
    ] = None,
    log: LogDir = None,
    snapshot: SnapshotFile = None,
    acls: AclsFile = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    as_of: AsOf = None,
    show_secrets: ShowSecrets = False,
) -> None:
    """Walk the state as a tree: /acl/id/<uuid>, /acl/resource, /acl/principal, /image, /scram, /delegationToken, ...

    The commands are those of kafka-metadata-shell (ls, cat, cd, find, tree,
    man, ...), and at, why, diff and watch.

    [bold]Examples[/]

      aclog shell --log DIR
      aclog shell --log DIR ls /acl/resource/TOPIC
      aclog shell --snapshot FILE cat '/acl/id/*'
    """
    from aclog.shell.session import run_shell
    from aclog.shell.state import ShellState
    from aclog.snapshots.moments import parse_moment
    from aclog.sources.choice import LiveFlags, choose_source
    from aclog.terminal.progress import progress

    live = LiveFlags(bootstrap_controller, bootstrap_server, command_config)
    source = choose_source(log, snapshot, acls, live=live).source
    state = ShellState(source=source, show_secrets=show_secrets)
    with progress(f"reading {source.name}"):
        state.go_to(None if as_of is None else parse_moment(as_of))
    raise typer.Exit(run_shell(state, command or ()))
