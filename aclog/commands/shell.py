"""`aclog shell`: the tree of a state."""

from typing import Annotated

import typer

from aclog.options import AclsFile, AsOf, LogDir, ShowSecrets, SnapshotFile


def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND...]", help="One command of the shell; without it, a prompt."),
    ] = None,
    log: LogDir = None,
    snapshot: SnapshotFile = None,
    acls: AclsFile = None,
    as_of: AsOf = None,
    show_secrets: ShowSecrets = False,
) -> None:
    """Walk the state as a tree: /acl/id/<uuid>, /acl/resource, /acl/principal, /image, /scram, /delegationToken, ...

    The commands are those of kafka-metadata-shell (ls, cat, cd, find, tree, man,
    ...), and at, why, diff and watch.

    [bold]Examples[/]

      aclog shell --log DIR
      aclog shell --log DIR ls /acl/resource/TOPIC
      aclog shell --snapshot FILE cat '/acl/id/*'
    """
