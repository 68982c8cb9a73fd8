"""`aclog apply`: make the changes of a plan."""

from pathlib import Path
from typing import Annotated

import typer

from aclog.cli.flags.apply import ApplyFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.from_context.marks import is_about_contexts

app = typer.Typer()


@app.command()
@with_flags
@is_about_contexts
def apply(
    plan: Annotated[
        Path,
        typer.Argument(metavar="PLAN", help="The file that [cyan]aclog plan --out[/] wrote.", show_default=False),
    ],
    flags: ApplyFlags,
    elsewhere: TargetFlags,
) -> None:
    """Make the changes of a plan, if the place is still what the plan was made for.

    Asks before it writes. Nothing is changed if a rule in the region that the
    plan touches has changed since, if the place answers with nothing or much
    less than it had, or if the replica asked is behind. Killed at any moment, a
    second run ends as the first one would have. The flags that name a place say
    where it is found from here, if not where the plan found it. Exit code 0 if
    all is done, 2 if it was refused or stopped.

    [bold]Examples[/]

      aclog apply PLAN
      aclog apply PLAN --yes
      aclog apply PLAN --bootstrap-server HOST:9092 --journal prod.journal
    """
    from aclog.cli.apply.run import apply_plan

    apply_plan(plan, flags, elsewhere)
