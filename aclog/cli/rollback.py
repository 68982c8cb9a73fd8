"""`aclog rollback`: a plan back to before an apply."""

from pathlib import Path
from typing import Annotated

from attrs import field
from click.exceptions import Exit

from aclog.cli.flags.accesses import given_accesses
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.plans import JournalFile, MaxDeletes, OtherJournals, PlanOutputFlags
from aclog.cli.flags.target import TargetFlags, place_address
from aclog.cli.options import Group, Option
from aclog.cli.plan import (
    CHANGES,
    NOTHING,
    check_accesses,
    note_next_step,
    print_plan,
    print_unless_refused,
    take_plan_file,
    write_plan,
)
from aclog.metalog.values import frozen
from aclog.ops.plan import place_settings
from aclog.planning.plan import JournalError
from aclog.planning.planner import DeleteLimit, change_back, make_plan
from aclog.targets.applies import origin_now
from aclog.targets.opening import find_place
from aclog.terminal.output import note

# The flags of `aclog rollback`.


@frozen(kw_only=True)
class RollbackFlags:
    """What is undone, and whose rules stay nevertheless."""

    journal: JournalFile
    other_journals: OtherJournals = field(factory=list)
    apply: Annotated[
        str | None,
        Option(
            "--apply",
            metavar="ID",
            help="The apply to undo, with all later ones of this journal: its id, or a prefix of its id.",
            show_default="the newest",
        ),
    ] = None
    max_deletes: MaxDeletes = None

    def journals(self) -> tuple[Path, list[Path]]:
        """Return the journal, and those of others."""
        return self.journal, self.other_journals


# `aclog rollback`: a plan back to before an apply.


app = Group()


@app.command()
def rollback(
    target: TargetFlags,
    authorizer: AuthorizerFlags,
    flags: RollbackFlags,
    output: PlanOutputFlags,
) -> None:
    """Show the changes that would undo an apply; nothing is written to the target.

    The result is a plan for `aclog apply`: it deletes the rules that the apply
    added, adds those that it deleted, and restores which rules are managed.
    Changes by others in the meantime stay. Exit code 0 if there is nothing to do,
    1 if there are changes, 2 for an error.

    [bold]Examples[/]

      aclog rollback --log DIR --journal rules.journal --out BACK
      aclog rollback --bootstrap-server HOST:9092 --journal prod.journal --apply yECTJI5T
      aclog apply BACK
    """
    raise Exit(print_way_back(target, authorizer, flags, output))


# Makes a plan back to before an apply, prints it and writes it.


def print_way_back(
    target: TargetFlags, authorizer: AuthorizerFlags, flags: RollbackFlags, output: PlanOutputFlags
) -> int:
    """Make the plan, print it, and write it if it changes anything; return the exit code.

    Raises:
        RefusedError: it deletes too much, or adds again what cannot be created.
        JournalError: there is no such journal, or no such apply.
        MetadataError, OSError: the place or a file cannot be read.

    """
    how = output.choose()
    check_accesses(given_accesses(output), how)
    take_plan_file(output.out)
    limit = DeleteLimit.parse(flags.max_deletes)
    journal, others = flags.journals()
    place = find_place(place_address(target), place_settings(authorizer), journal, note, others)
    if place.settled is None or place.settled.is_new:
        raise JournalError(f"{journal}: no such journal: expected the one that the apply was made with")
    change = change_back(place.settled, place.holdings, flags.apply)
    plan = make_plan(change, place.circumstances(origin_now()))
    print_unless_refused(
        lambda: place.check_plan(change, plan.steps, limit),
        lambda: print_plan(plan, change, place, how, full=output.full, accesses=given_accesses(output)),
        how,
    )
    if plan.is_empty:
        return NOTHING
    if output.out is not None:
        write_plan(plan, output.out)
    note_next_step(output.out, how)
    return CHANGES
