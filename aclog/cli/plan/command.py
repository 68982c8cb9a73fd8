"""`aclog plan`: what has to change so that a place holds what a source of rules wants."""

import typer

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.plan import ChangeFile, OwnershipFlags, PlanOutputFlags, WantFlags
from aclog.cli.flags.target import TargetFlags

app = typer.Typer()


@app.command()
@with_flags
def plan(
    target: TargetFlags,
    wanted: WantFlags,
    ownership: OwnershipFlags,
    authorizer: AuthorizerFlags,
    output: PlanOutputFlags,
    change: ChangeFile = None,
) -> None:
    """Show what would have to change so that a place holds the rules that are wanted; nothing is written to it.

    What is deleted is what the journal owns and is no longer wanted, never what
    somebody else has put there. A wanted rule that is there already stays as it
    is, and is owned only with --adopt. Exit code 0 if there is nothing to do, 1
    if there are changes, 2 if something is wrong.

    [bold]Examples[/]

      aclog plan --log DIR --want rules.jsonl --journal rules.journal --out PLAN
      aclog plan --bootstrap-server HOST:9092 --want kafka/ --journal prod.journal
      aclog plan --log DIR --change unused.jsonl --journal rules.journal --adopt
      aclog apply PLAN
    """
    from aclog.cli.plan.planning import print_new_plan

    raise typer.Exit(print_new_plan(target, (wanted, change), ownership, authorizer, output))
