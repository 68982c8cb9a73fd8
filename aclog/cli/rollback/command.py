"""`aclog rollback`: a plan back to before an apply."""

import typer

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.plan import PlanOutputFlags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.rollback.flags import RollbackFlags

app = typer.Typer()


@app.command()
@with_flags
def rollback(
    target: TargetFlags,
    authorizer: AuthorizerFlags,
    flags: RollbackFlags,
    output: PlanOutputFlags,
) -> None:
    """Show what would bring a place back to before an apply; nothing is written to it.

    It is a plan like any other, for [cyan]aclog apply[/]: rules that were added are
    deleted, those that were deleted are added, and what was owned before is owned
    again. What others changed meanwhile stays. Exit code 0 if there is nothing to
    do, 1 if there are changes, 2 if something is wrong.

    [bold]Examples[/]

      aclog rollback --log DIR --journal rules.journal --out BACK
      aclog rollback --bootstrap-server HOST:9092 --journal prod.journal --apply yECTJI5T
      aclog apply BACK
    """
    from aclog.cli.rollback.planning import print_way_back

    raise typer.Exit(print_way_back(target, authorizer, flags, output))
